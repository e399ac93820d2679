"""What a published file is, and whether a file at hand is that one."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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


def fingerprint(path: Path) -> tuple[str, int]:
    """The sha256 and the size of a file; of a folder, those of the files in its folders and of their names, sorted."""
    if not path.is_dir():
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest(), path.stat().st_size
    digest, size = hashlib.sha256(), 0
    inside = (file for file in path.glob("*/**/*") if file.is_file())
    for name, file in sorted((file.relative_to(path).as_posix(), file) for file in inside):
        found, length = fingerprint(file)
        digest.update(f"{name}\0{found}\n".encode())
        size += length
    return digest.hexdigest(), size


def verify(path: Path, source: Source, advice: str, place: str | None = None) -> tuple[str, int]:
    """The sha256 and size of ``path``; raises :class:`Corrupt` unless it holds the published file."""
    if not path.is_file():
        raise Corrupt(f"{path} is not a file. {advice}")
    found, size = fingerprint(path)
    with path.open("rb") as file:
        head = file.read(HEAD).lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    page = head.startswith((b"<!doctype html", b"<html", b"<head"))
    shape = " (an HTML page, not data)" if page else " (an empty file)" if size == 0 else ""
    if source.check is not None:
        wrong = _unlike(path, source, shape, size)
    elif (size, found) == (source.size, source.sha256):
        wrong = ""
    else:
        less = source.size - size
        differs = f"truncated: {less:,} bytes short" if less > 0 else f"{-less:,} bytes too many"
        shape = shape or (f" ({differs})" if less else " (the right size, altered)")
        wrong = (
            f"expected {source.size:,} bytes with sha256 {source.sha256}, found {size:,} bytes with sha256 "
            f"{found}{shape}"
        )
    if wrong:
        raise Corrupt(f"{source.filename} from {place or path} is not the published file: {wrong}. {advice}")
    return found, size


def _unlike(path: Path, source: Source, shape: str, size: int) -> str:
    """What is wrong with the content of a file of unrecorded checksum, ``""`` when nothing is."""
    assert source.check is not None
    if size > source.size:
        return f"expected at most {source.size:,} bytes, found {size:,} bytes"
    if shape:
        return f"expected a file whose content can be checked, found {size:,} bytes{shape}"
    try:
        source.check(path)
    except ValueError as error:
        return str(error)
    return ""
