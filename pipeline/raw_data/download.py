"""Fetch official files completely or not at all, and verify their content.

Places are searched in this order:

1. in the raw folder itself (``data/raw/<dataset>/``),
2. in a mirror, a folder or an http(s) address that has it as ``<dataset>/<filename>`` or as ``<filename>``,
3. at its official addresses, by pooch.

Downloads have a temporary name until their size and sha256 are verified or, without a recorded sha256, their content
(``Source.check``).

There are two kinds of failure. :class:`Unavailable`: no place has the file; use another source or a twin.
:class:`Corrupt`: a place has a wrong file; a person must look at it.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from fairness_audits.files import written
from pipeline.raw_data.source import Corrupt, Fetched, Source, Unavailable, verify

if TYPE_CHECKING:
    import requests


@dataclass(frozen=True)
class Patience:
    """Timeouts of downloads, in seconds.

    ``connect``: for the connection to a host. ``stall``: for an answer, and between two parts of it. ``grace``: after
    this time, downloads slower than ``rate`` bytes per second are stopped. ``attempts``: maximum number of attempts if
    the connection is cut.
    """

    connect: float = 6.0
    stall: float = 10.0
    grace: float = 10.0
    rate: float = 10_000.0
    attempts: int = 3


TWIN = "work with the synthetic twin (DATA_SOURCE=twin)"
"""Advice if a file is unavailable and the data set has a twin."""


def fetch(
    sources: Sequence[Source],
    folder: Path,
    mirror: str | None,
    *,
    dataset: str,
    patience: Patience | None = None,
    otherwise: str = TWIN,
) -> tuple[Fetched, ...]:
    """Make sure that ``folder`` holds every source, verified; return where each came from.

    ``mirror`` is a folder or an http(s) address, None or ``""`` for none. ``otherwise`` is advice for the case that the
    files are unavailable. Raises :class:`Corrupt` for a wrong file in ``folder``, in the mirror, or at every address
    that answered; such a file is neither used nor replaced. Raises :class:`Unavailable` if no place has a file, with
    the result for every place.
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
                mend = f"Correct the mirror (DATA_MIRROR={mirror}), or unset DATA_MIRROR, {advice}"
                found = verify(original, source, mend)
                with written(target) as part:
                    shutil.copyfile(original, part)
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
            # A wrong file in the chosen mirror is an error; one correct official address is enough.
            if address not in source.urls:
                break
        else:
            return Fetched(target, *found, address)
    if corrupt is not None:
        raise corrupt
    again = "connect to the network and run again; or " if source.urls else ""
    raise Unavailable(
        f"{source.filename} of {dataset!r} is nowhere to be had. Tried:\n  " + "\n  ".join(tried) + "\n"
        f"What to do: {again}get the file from {source.home} and put it into {folder} (licence: {source.licence}); or "
        f"point DATA_MIRROR at a folder or address that holds it as {' or as '.join(mirrored)}; or {otherwise}"
    )


def _download(address: str, source: Source, target: Path, patience: Patience, advice: str) -> tuple[str, int]:
    """Download one address into ``target``; return its sha256 and size."""
    from requests.exceptions import ChunkedEncodingError

    with written(target) as part:
        for _ in range(patience.attempts):
            try:
                _receive(address, part, source.size, patience)
                return verify(part, source, f"Nothing was kept. {advice}", place=address)
            except ChunkedEncodingError as error:
                cut = error
        raise Unavailable(f"{address}: the connection was cut, {patience.attempts} times") from cut


def _receive(address: str, part: Path, most: int, patience: Patience) -> None:
    """Download ``address`` to ``part``, at most about ``most`` bytes; a longer file then fails verification."""
    import pooch
    import requests

    get = pooch.HTTPDownloader(
        timeout=(patience.connect, patience.stall),
        headers={"User-Agent": "fairness-audits", "Accept-Encoding": "identity"},
        hooks={"response": _as_stored},
    )
    with part.open("wb") as file, suppress(_TooLong):
        output = _Output(file, address, most, patience)
        try:
            get(address, output, None)
        except requests.exceptions.ChunkedEncodingError:
            raise
        except requests.RequestException as error:
            if error.response is not None:
                what = f"HTTP {error.response.status_code} {error.response.reason}"
            elif output.received:
                what = f"the server stalled after {output.received:,} bytes"
            elif isinstance(error, requests.Timeout):
                what = f"no answer within {max(patience.connect, patience.stall):g} s"
            else:
                what = f"cannot be reached ({error})"
            raise Unavailable(f"{address}: {what}") from error


def _as_stored(answer: requests.Response, **_: Any) -> None:
    """Do not decompress an archive if the server declares its compression as an encoding."""
    answer.raw.headers.pop("Content-Encoding", None)


class _TooLong(Exception):
    """The download is longer than the file may be."""


@dataclass
class _Output:
    """An output file that stops downloads that are too long or too slow."""

    file: BinaryIO
    address: str
    most: int
    patience: Patience
    received: int = 0
    started: float = 0.0

    def write(self, block: bytes) -> None:
        self.started = self.started or time.monotonic()
        self.file.write(block)
        self.received += len(block)
        if self.received > self.most:
            raise _TooLong
        elapsed = time.monotonic() - self.started
        if elapsed > self.patience.grace and self.received / elapsed < self.patience.rate:
            raise Unavailable(f"{self.address}: too slow, given up after {elapsed:.0f} s at {self.received:,} bytes")

    def flush(self) -> None:
        """Leave it to the file."""
