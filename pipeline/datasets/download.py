"""Fetching official files: whole or not at all, and only with the checksum that their publisher's file has.

A file is looked for, in this order,

1. in the raw folder itself (``data/raw/<dataset>/``),
2. in a mirror, a folder or an http(s) address that has it as ``<dataset>/<filename>`` or as ``<filename>``,
3. at its official addresses.

Bytes arrive in ``<filename>.part`` and are renamed to ``<filename>`` only when size and sha256 are right, so the raw
folder never holds half a file under its real name. A cut download leaves its ``.part`` behind, and the next attempt
asks the server for the rest (HTTP ``Range``).

Of a file whose sha256 nobody has recorded, the content itself is checked instead (``Source.check``), its size is only
bounded, and a cut download starts anew: without a checksum nobody could tell whether two pieces belong together.

pooch (1.9), which would be the library for this, starts every attempt anew, gives a slow server all the time it wants,
and checks nothing but a hash; around it all of this would stay, but for the hash.

Two things can go wrong and they are different: nobody has the file (:class:`Unavailable`, another source or a twin may
do), or somebody has a wrong one (:class:`Corrupt`, a person must look).
"""

import http.client
import queue
import re
import shutil
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from pipeline.datasets.source import Corrupt, Fetched, Source, Unavailable, verify

BLOCK = 1 << 16
"""Bytes read at a time."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, in seconds.

    ``connect``: to be answered at all, name look-up and all addresses of the host together. ``stall``: between two
    pieces of the body. ``grace``: after that long, a download slower than ``rate`` bytes a second is given up.
    ``attempts``: how often a cut download is continued before the call gives up.
    """

    connect: float = 6.0
    stall: float = 10.0
    grace: float = 10.0
    rate: float = 10_000.0
    attempts: int = 3


TWIN = "work with the synthetic twin (DATA_SOURCE=twin)"
"""What somebody can do who cannot have a file of a dataset that has a twin."""


def fetch(
    sources: Sequence[Source],
    folder: Path,
    mirror: str | None,
    *,
    dataset: str,
    patience: Patience | None = None,
    otherwise: str = TWIN,
) -> tuple[Fetched, ...]:
    """See that every source stands, verified, in ``folder``; return where each came from.

    ``mirror`` is a folder or an http(s) address, None or ``""`` for none; ``otherwise`` says what can be done without
    the files. Raises :class:`Corrupt` for a wrong file in ``folder``, in the mirror or at every address that answered;
    such a file is neither used nor replaced. Raises :class:`Unavailable` when nobody has a file; it names every place
    and what happened there.
    """
    return tuple(_fetch_one(source, folder, mirror, dataset, patience or Patience(), otherwise) for source in sources)


def _fetch_one(
    source: Source, folder: Path, mirror: str | None, dataset: str, patience: Patience, otherwise: str
) -> Fetched:
    target = folder / source.filename
    advice = f"or put the file into {folder} by hand, or {otherwise}"
    if target.exists():
        found = verify(target, source, f"It is neither used nor replaced: delete it to have it fetched again, {advice}")
        return Fetched(target, *found, str(target))
    folder.mkdir(parents=True, exist_ok=True)

    tried = [f"{target}: absent"]
    addresses: list[str] = list(source.urls)
    mirrored = (f"{dataset}/{source.filename}", source.filename)
    if mirror and mirror.lower().startswith(("http://", "https://")):
        addresses = [*(f"{mirror.rstrip('/')}/{name}" for name in mirrored), *addresses]
    elif mirror and not Path(mirror).is_dir():
        tried.append(f"mirror {mirror}: no such folder")
    elif mirror:
        for original in (Path(mirror) / name for name in mirrored):
            if original.exists():
                mend = f"Mend the mirror (DATA_MIRROR={mirror}), or unset DATA_MIRROR, {advice}"
                found = verify(original, source, mend)
                part = target.with_name(f"{target.name}.part")
                shutil.copyfile(original, part)
                part.replace(target)
                return Fetched(target, *found, str(original))
            tried.append(f"{original}: absent")

    corrupt: Corrupt | None = None
    for address in addresses:
        try:
            found = _download(address, source, target, patience, f"Look at that address with a browser, {advice}")
        except Unavailable as error:
            tried.append(str(error))
        except Corrupt as error:
            corrupt = corrupt or error
            # A mirror somebody chose must be right; of several official addresses any one will do.
            if address not in source.urls:
                break
        else:
            return Fetched(target, *found, address)
    if corrupt is not None:
        raise corrupt
    again = "connect to the network and run again (a cut download continues); or " if source.urls else ""
    raise Unavailable(
        f"{source.filename} of {dataset!r} is nowhere to be had. Tried:\n  " + "\n  ".join(tried) + "\n"
        f"What to do: {again}get the file from {source.home} and put it into {folder} (licence: {source.licence}); or "
        f"point DATA_MIRROR at a folder or address that holds it as {' or as '.join(mirrored)}; or {otherwise}"
    )


def _download(address: str, source: Source, target: Path, patience: Patience, advice: str) -> tuple[str, int]:
    """Download one address into ``target``, continuing what an earlier attempt left; its sha256 and size.

    A ``.part`` that was continued and came out wrong may have been another file's beginning, so it is thrown away and
    the whole file is asked for once more before the address is called corrupt.
    """
    part = target.with_name(f"{target.name}.part")
    for attempt in range(1, patience.attempts + 1):
        before = part.stat().st_size if part.exists() else 0
        if before > source.size or (before and source.sha256 is None):
            part.unlink()
            before = 0
        try:
            if before < source.size:
                _receive(address, part, before, source, patience)
            found = verify(part, source, f"Nothing was kept. {advice}", place=address)
        except _Cut as cut:
            gained = part.stat().st_size > before if part.exists() else False
            if source.sha256 is None:
                part.unlink(missing_ok=True)
            if gained and cut.at_once and attempt < patience.attempts:
                continue
            raise Unavailable(f"{address}: {cut}") from cut
        except Corrupt:
            part.unlink()
            if before == 0 or attempt == patience.attempts:
                raise
        else:
            part.replace(target)
            return found
    raise AssertionError("every attempt returns or raises")


class _Cut(Exception):
    """The server did not deliver; ``at_once`` says whether asking again at once makes sense."""

    def __init__(self, what: str, *, at_once: bool = False) -> None:
        super().__init__(what)
        self.at_once = at_once


def _receive(address: str, part: Path, before: int, source: Source, patience: Patience) -> None:
    """Append the bytes from ``before`` on to ``part``, or all of them when the server ignores ``Range``."""
    recorded = source.sha256 is not None
    total = f"{source.size:,} bytes" if recorded else f"at most {source.size:,} bytes"
    fate = "which are kept to continue from" if recorded else "which are thrown away for want of a checksum"
    with _answer(address, before, patience) as answer:
        if before and not _continues(answer, before):
            before = 0
        received, started = before, time.monotonic()
        announced = int(answer.headers.get("Content-Length") or -1)
        with part.open("ab" if before else "wb") as file:
            while block := _next_block(answer, received - before, fate):
                received += len(block)
                file.write(block)
                if received > source.size:
                    return  # too long already: the verification says so
                elapsed = time.monotonic() - started
                if elapsed > patience.grace and (received - before) / elapsed < patience.rate:
                    raise _Cut(
                        f"too slow, {received - before:,} bytes in {elapsed:.0f} s: given up at {received:,} of "
                        f"{total}, {fate}"
                    )
    if 0 <= received - before < announced:
        raise _Cut(f"the connection was cut at {received:,} of {total}, {fate}", at_once=True)


def _next_block(answer: http.client.HTTPResponse, received: int, fate: str) -> bytes:
    """The next piece of the body as soon as any of it is there; ``fate``: what becomes of the pieces before."""
    try:
        return answer.read1(BLOCK)
    except TimeoutError as error:
        raise _Cut(f"the server stalled after {received:,} bytes, {fate}") from error
    except (OSError, http.client.HTTPException) as error:
        raise _Cut(f"the connection broke after {received:,} bytes ({error})", at_once=True) from error


def _continues(answer: http.client.HTTPResponse, before: int) -> bool:
    """Whether the answer is the part of the file that starts at byte ``before``."""
    stated = re.match(r"bytes (\d+)-", answer.headers.get("Content-Range") or "")
    return answer.status == HTTPStatus.PARTIAL_CONTENT and stated is not None and int(stated[1]) == before


@contextmanager
def _answer(address: str, before: int, patience: Patience) -> Iterator[http.client.HTTPResponse]:
    """The server's answer, asked for from byte ``before`` on; raises :class:`_Cut` within ``patience.connect``.

    The request runs in a thread of its own because neither name look-up nor a host with many dead addresses heeds a
    socket's timeout; off the network either can take a minute.
    """
    request = urllib.request.Request(address, headers={"User-Agent": "fairness-audits"})
    if before:
        request.add_header("Range", f"bytes={before}-")
    answers: queue.SimpleQueue[http.client.HTTPResponse | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            answers.put(urllib.request.urlopen(request, timeout=patience.stall))
        except Exception as error:
            answers.put(error)

    threading.Thread(target=ask, daemon=True).start()
    try:
        answer = answers.get(timeout=patience.connect)
    except queue.Empty:
        raise _Cut(f"no answer within {patience.connect:g} s") from None
    if isinstance(answer, urllib.error.HTTPError) and answer.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        answer.close()
        with _answer(address, 0, patience) as whole:
            yield whole
        return
    if isinstance(answer, urllib.error.HTTPError):
        answer.close()
        raise _Cut(f"HTTP {answer.code} {answer.reason}")
    if isinstance(answer, Exception):
        reason = getattr(answer, "reason", answer)
        if isinstance(reason, TimeoutError):
            raise _Cut(f"no answer within {patience.stall:g} s")
        raise _Cut(f"cannot be reached ({reason})")
    with answer:
        yield answer
