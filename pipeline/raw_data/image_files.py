"""Images in a tar or zip archive or a folder, read without unpacking, or in memory.

Reading is lazy: listing an archive reads names only, and an image is decoded when it is needed, so a run on few or
small images is cheap. Undecodable images are listed with the reason. An incomplete archive is an error. Nothing is ever
written, whatever path an archive contains.
"""

import io
import itertools
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

FORMATS = ("JPEG", "PNG", "WEBP")
"""Accepted image formats; no other decoder is tried."""


@dataclass(frozen=True)
class Decoded:
    """``images`` (n, c, size, size) uint8, a mask ``readable`` (n,), and ``faults`` of the other images."""

    images: Array
    readable: Array
    faults: tuple[str, ...] = ()


class Pictures(Protocol):
    """Images that are read lazily."""

    def decoded(self, rows: Array, size: int) -> Decoded:
        """The images of these rows, ``size`` pixels a side."""


@dataclass(frozen=True)
class Held:
    """Images in memory, (n, c, h, w) uint8."""

    images: Array

    def decoded(self, rows: Array, size: int) -> Decoded:
        """The images of these rows, ``size`` pixels a side."""
        return Decoded(resized(self.images[rows], size), np.ones(len(rows), dtype=bool))


@dataclass(frozen=True)
class ImageFiles:
    """Image files in the archive or folder at ``path``, by name; names may be repeated or missing."""

    path: Path
    names: tuple[str, ...]

    def decoded(self, rows: Array, size: int) -> Decoded:
        """Return the images of these rows in colour, (n, 3, size, size), in one pass over the archive."""
        places: dict[str, list[int]] = {}
        for place, row in enumerate(rows):
            places.setdefault(self.names[row], []).append(place)
        # In an unnamed file, which the system can swap out if memory is short.
        with tempfile.TemporaryFile() as scratch:
            images = np.memmap(scratch, np.uint8, "w+", shape=(len(rows), 3, size, size))
        readable = np.zeros(len(rows), dtype=bool)
        faults, wanted = [], set(places)
        for name, content in files(self.path):
            if not wanted:
                break
            if name not in wanted:
                continue
            wanted.remove(name)
            try:
                images[places[name]] = decode(content(), size)
                readable[places[name]] = True
            except Undecodable as fault:
                faults.append(f"{name}: {fault}")
        faults += [f"{name}: not in {self.path.name}" for name in wanted]
        return Decoded(images, readable, tuple(sorted(faults)))


class Undecodable(Exception):
    """The bytes are not a usable image."""


def decode(content: bytes, size: int | None = None) -> Array:
    """Decode an image file to colour pixels, (3, size, size) uint8; without ``size`` the image keeps its own size.

    Images of another size are resized bilinearly with antialiasing. To save time, a JPEG of at least twice the size is
    first reduced by 2, 4 or 8 while decoding, never below ``size``; pixels differ by about half a grey level of 255.
    Raises :class:`Undecodable`.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            if image.width != image.height:
                raise Undecodable(f"{image.width} x {image.height} pixels, expected a square")
            size = size or image.width
            image.draft("RGB", (size, size))
            picture = image.convert("RGB")
    except (OSError, ValueError, SyntaxError, EOFError, struct.error, Image.DecompressionBombError) as error:
        # Pillow's message for an unknown format prints an object's address.
        wrong = "no image" if isinstance(error, UnidentifiedImageError) else str(error)
        raise Undecodable(f"{wrong} ({len(content):,} bytes)") from error
    if picture.size != (size, size):
        picture = picture.resize((size, size), Image.Resampling.BILINEAR)
    return np.asarray(picture).transpose(2, 0, 1)


def resized(images: Array, size: int, *, nearest: bool = False) -> Array:
    """Resize images (n, c, h, w) uint8 of one or three channels to (n, c, size, size), if they differ.

    Bilinear with antialiasing, or by the nearest pixel.
    """
    from PIL import Image

    if images.shape[2:] == (size, size):
        return images
    how = Image.Resampling.NEAREST if nearest else Image.Resampling.BILINEAR
    out = np.empty((*images.shape[:2], size, size), dtype=np.uint8)
    for row, image in enumerate(images):
        for channel, plane in enumerate(image):
            out[row, channel] = Image.fromarray(plane).resize((size, size), how)
    return out


def files(path: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Yield the name of every file in the archive (tar or zip) or folder at ``path``, and a function to read it.

    Names use slashes and are sorted in a folder. Links are skipped. Raises ValueError if the archive is missing,
    damaged or truncated.
    """
    with _whole(path):
        if path.is_dir():
            found = (entry for entry in path.rglob("*") if entry.is_file() and not entry.is_symlink())
            for name, entry in sorted((entry.relative_to(path).as_posix(), entry) for entry in found):
                yield name, entry.read_bytes
        elif path.suffix.lower() == ".zip":
            with zipfile.ZipFile(path) as packed:
                for info in packed.infolist():
                    if not info.is_dir():
                        yield info.filename, partial(_content, path, packed.open, info)
        else:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile():
                        yield member.name.removeprefix("./"), partial(_content, path, archive.extractfile, member)


def names(path: Path) -> tuple[str, ...]:
    """Return the sorted names of all files in the archive or folder at ``path``. Raises ValueError for a duplicate."""
    found = sorted(name for name, _ in files(path))
    twice = {name for name, following in itertools.pairwise(found) if name == following}
    if twice:
        problem = f"{path} holds {sorted(twice)[0]!r} twice: expected each image once"
        raise InvalidInput(problem, source=path, remedy="Fetch the archive again")
    return tuple(found)


def contents(path: Path, wanted: Sequence[str]) -> dict[str, bytes]:
    """Return some files of an archive by name. Raises ValueError with the missing names."""
    found = {name: content() for name, content in files(path) if name in wanted}
    missing = [name for name in wanted if name not in found]
    if missing:
        problem = f"{path} lacks {', '.join(missing)}"
        raise InvalidInput(problem, source=path, remedy="Delete it and fetch it again")
    return found


def _content(path: Path, opened: Callable[[Any], IO[bytes] | None], member: Any) -> bytes:
    with _whole(path):
        file = opened(member)
        assert file is not None, "regular members can always be extracted"
        with file:
            return file.read()


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Turn errors of an archive into a ValueError that names the archive."""
    try:
        yield
    except FileNotFoundError:
        remedy = "Run the fetch stage, or put the file there by hand"
        raise InvalidInput(f"{path} is missing", source=path, remedy=remedy) from None
    except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, zlib.error) as error:
        problem = f"{path} is not a whole archive ({error})"
        raise InvalidInput(problem, source=path, remedy="Delete it and fetch it again") from error
