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

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.raw_data.source import Corrupt, Fetched, Source, Unavailable, verify

if TYPE_CHECKING:
    import requests

BLOCK = 1 << 16
"""Bytes read at a time."""


@dataclass(frozen=True)
class Patience:
    """How long to wait for a server, in seconds.

    ``connect``: to be connected to an address of the host. ``stall``: for an answer, and between two pieces of it.
    ``grace``: after that long, a download slower than ``rate`` bytes a second is given up. ``attempts``: how often a
    cut download is continued before the call gives up.
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
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    if source.sha256 is not None:
        total, fate = f"{source.size:,} bytes", "which are kept to continue from"
    else:
        total, fate = f"at most {source.size:,} bytes", "which are thrown away for want of a checksum"
    with _answer(address, before, patience) as answer:
        if not (answer.headers.get("Content-Range") or "").startswith(f"bytes {before}-"):
            before = 0
        received, started = before, time.monotonic()
        with part.open("ab" if before else "wb") as file:
            try:
                # Whatever is there is taken at once, so that a slow server is noticed.
                while block := answer.raw.read1(BLOCK):
                    received += len(block)
                    file.write(block)
                    if received > source.size:
                        return  # too long already: the verification says so
                    elapsed = time.monotonic() - started
                    if elapsed > patience.grace and (received - before) / elapsed < patience.rate:
                        raise _Cut(f"too slow: given up after {elapsed:.0f} s at {received:,} of {total}, {fate}")
            except ReadTimeoutError as error:
                raise _Cut(f"the server stalled at {received:,} of {total}, {fate}") from error
            except HTTPError as error:
                raise _Cut(f"the connection was cut at {received:,} of {total}, {fate}", at_once=True) from error


def _answer(address: str, before: int, patience: Patience) -> requests.Response:
    """The server's answer, asked for from byte ``before`` on, or from the first where there is no such byte."""
    import requests

    headers = {"User-Agent": "fairness-audits", "Accept-Encoding": "identity"}
    if before:
        headers["Range"] = f"bytes={before}-"
    try:
        answer = requests.get(address, headers=headers, stream=True, timeout=(patience.connect, patience.stall))
    except requests.Timeout as error:
        raise _Cut(f"no answer within {max(patience.connect, patience.stall):g} s") from error
    except requests.RequestException as error:
        raise _Cut(f"cannot be reached ({error})") from error
    if answer.status_code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and before:
        return _answer(address, 0, patience)
    if not answer.ok:
        raise _Cut(f"HTTP {answer.status_code} {answer.reason}")
    return answer
