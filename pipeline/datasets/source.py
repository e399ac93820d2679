"""What a published file is, and whether a file at hand is that one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

BLOCK = 1 << 16
"""Bytes read at a time."""

HEAD = 512
"""Bytes looked at to tell a web page from data."""


@dataclass(frozen=True)
class Source:
    """One official raw file: its name, its official addresses, sha256 and size in bytes, licence and home page.

    ``sha256`` is None where nobody has recorded it. Then ``check`` raises ValueError unless the file at a path is the
    one that was published, as far as its content tells, and ``size`` is the most that it may have.
    """

    filename: str
    urls: tuple[str, ...]
    sha256: str | None
    size: int
    licence: str
    home: str
    check: Callable[[Path], None] | None = None

    def __post_init__(self) -> None:
        if (self.sha256 is None) == (self.check is None):
            raise ValueError(
                f"{self.filename}: a source has a sha256, or, where nobody has recorded it, a check of its content; "
                f"found {'neither' if self.check is None else 'both'}"
            )


@dataclass(frozen=True)
class Fetched:
    """A verified file: ``path`` on disk, and ``place``, where it came from this time (a path or an address).

    ``sha256`` and ``size`` are what was found, which is what was expected wherever that is known.
    """

    path: Path
    sha256: str
    size: int
    place: str


class FetchError(OSError):
    """A file could not be fetched."""


class Unavailable(FetchError):
    """No place that was asked has the file, or none answered in time."""


class Corrupt(FetchError):
    """A place has the file, but not the one that was published."""


def verify(path: Path, source: Source, advice: str, place: str | None = None) -> tuple[str, int]:
    """The sha256 and size of ``path``; raises :class:`Corrupt` unless it holds the published file."""
    if not path.is_file():
        raise Corrupt(f"{path} is not a file. {advice}")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        head = file.read(HEAD)
        digest.update(head)
        while block := file.read(BLOCK):
            digest.update(block)
    size, found = path.stat().st_size, digest.hexdigest()
    if source.check is not None:
        wrong = _unlike(path, source, head, size)
    elif size == source.size and found == source.sha256:
        wrong = ""
    else:
        wrong = (
            f"expected {source.size:,} bytes with sha256 {source.sha256}, found {size:,} bytes with sha256 {found}"
            f"{_kind(head, size, source.size)}"
        )
    if wrong:
        raise Corrupt(f"{source.filename} from {place or path} is not the published file: {wrong}. {advice}")
    return found, size


def _unlike(path: Path, source: Source, head: bytes, size: int) -> str:
    """What is wrong with the content of a file of unrecorded checksum, ``""`` when nothing is."""
    assert source.check is not None
    if size > source.size:
        return f"expected at most {source.size:,} bytes, found {size:,} bytes"
    if shape := _shape(head, size):
        return f"expected a file whose content can be checked, found {size:,} bytes{shape}"
    try:
        source.check(path)
    except ValueError as error:
        return str(error)
    return ""


def _shape(head: bytes, size: int) -> str:
    """A web page or an empty file, as the end of a clause; ``""`` for anything else."""
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype html", b"<html", b"<head")):
        return " (an HTML page, not data)"
    return " (an empty file)" if size == 0 else ""


def _kind(head: bytes, size: int, expected: int) -> str:
    """What a wrong file looks like, as the end of a clause."""
    if shape := _shape(head, size):
        return shape
    if size < expected:
        return f" (truncated: {expected - size:,} bytes short)"
    return f" ({size - expected:,} bytes too many)" if size > expected else " (the right size, altered)"
