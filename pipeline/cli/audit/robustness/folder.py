"""A folder of PNG and JPEG files as images: which files there are, and what each of them holds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.cli.audit.robustness.images import SUFFIXES, Images, Unreadable, common_size
from pipeline.messages import SHOWN, listed
from pipeline.types import Array

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("PNG", "JPEG")
GREY = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F")
DEEP = ("I", "I;16", "I;16B", "I;16L")
"""Modes of 16-bit files."""
DEEPEST, HIGHEST = 65535, 255


def files_in(path: Path) -> tuple[list[str], int]:
    """Image files at any depth as sorted paths below the folder, and how many other files there are.

    Raises ValueError where there is no image file. Hidden files and folders are passed over.
    """
    found, others = [], 0
    for file in sorted(path.rglob("*")):
        below = file.relative_to(path)
        if not file.is_file() or any(part.startswith(".") for part in below.parts):
            continue
        if file.suffix.lower() in SUFFIXES:
            found.append(below.as_posix())
        else:
            others += 1
    if not found:
        raise ValueError(
            f"expected {path} to hold image files ending in {', '.join(SUFFIXES)}, found none"
            + (f" among {others} other files" if others else "")
            + ": give the folder of the images, or convert them"
        )
    return found, others


def folder_images(path: Path, names: Sequence[str], channels: int | None, resize: tuple[int, int] | None) -> Images:
    """The files ``names`` below the folder, all of one shape.

    Only their headers are read here; a file whose header cannot be is noted as unreadable. Raises ValueError where
    none can be read, and for files of several sizes without ``resize``.
    """
    unreadable: dict[int, str] = {}
    modes, sizes, known = [], [], []
    for point, name in enumerate(names):
        try:
            mode, size = _header(path / name)
        except Unreadable as error:
            unreadable[point] = str(error)
            continue
        modes.append(mode)
        sizes.append(size)
        known.append(name)
    if not known:
        told = listed([f"{names[point]} ({why})" for point, why in unreadable.items()], SHOWN)
        raise ValueError(f"none of the {len(names)} images below {path} can be read: {told}: write them again")
    count = channels or (1 if all(mode in GREY for mode in modes) else 3)
    size = common_size(sizes, known, resize)
    return Images(
        names=tuple(names),
        shape=(count, *size),
        raw=lambda point: _decoded(path / names[point], count),
        resized=resize is not None,
        unreadable=unreadable,
        notes=tuple(_notes(modes, count)),
    )


def _notes(modes: Sequence[str], channels: int) -> list[str]:
    said = []
    transparent = sum("A" in mode for mode in modes)
    if transparent:
        said.append(f"{transparent:,} images have a transparency channel, which was dropped.")
    grey = sum(mode in GREY for mode in modes)
    if channels == 3 and grey:
        whose = "All images are" if grey == len(modes) else f"{grey:,} of {len(modes):,} images are"
        said.append(f"{whose} grey and were given to the model as three equal channels.")
    if channels == 1 and grey < len(modes):
        said.append(f"{len(modes) - grey:,} images are in colour and were turned to grey.")
    return said


def _header(file: Path) -> tuple[str, tuple[int, int]]:
    """Mode and size (h, w) of an image file."""
    with _opened(file) as image:
        return image.mode, (image.height, image.width)


def _decoded(file: Path, channels: int) -> Array:
    """The pixels of an image file, (c, h, w) float32 in [0, 1]."""
    with _opened(file) as image:
        try:
            if image.mode in DEEP:
                values = np.asarray(image, dtype=np.float32) / np.float32(DEEPEST)
                return np.repeat(values[None], channels, axis=0)
            values = np.asarray(image.convert("L" if channels == 1 else "RGB"), dtype=np.float32) / np.float32(HIGHEST)
        except (OSError, ValueError, SyntaxError, EOFError) as error:
            raise Unreadable(f"damaged: {_told(error)}") from error
    return values[None] if channels == 1 else np.ascontiguousarray(values.transpose(2, 0, 1))


def _opened(file: Path) -> Image.Image:
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(file, formats=FORMATS)
    except UnidentifiedImageError as error:
        # Pillow's own words for bytes of no known format would be the path once more.
        raise Unreadable("neither PNG nor JPEG inside") from error
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise Unreadable(_told(error)) from error


def _told(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(". ")
