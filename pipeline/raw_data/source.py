"""Published files, and the verification of a local file."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HEAD = 512
"""Number of bytes read to recognise a web page."""


@dataclass(frozen=True)
class Source:
    """An official raw file: its name, official addresses, sha256 and size in bytes, licence and home page.

    ``sha256`` is None if it is not recorded. Then ``check`` raises ValueError unless the content of the file at a path
    has the published properties, and ``size`` is an upper bound.
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
    """A verified file: ``path`` on disk, and ``place``, the path or address that it came from.

    ``sha256`` and ``size`` are those of the file on disk. They equal the expected values if those are known.
    """

    path: Path
    sha256: str
    size: int
    place: str


class FetchError(OSError):
    """A file could not be fetched."""


class Unavailable(FetchError):
    """No place has the file, or none answered in time."""


class Corrupt(FetchError):
    """A place has a file that differs from the published one."""


def fingerprint(path: Path) -> tuple[str, int]:
    """Return the sha256 and the size of a file, or of all files in a folder with their names, sorted."""
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
    """Return the sha256 and size of ``path``. Raises :class:`Corrupt` unless it is the published file."""
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
    """Return what is wrong with the content of a file without a recorded checksum, ``""`` if nothing is."""
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
