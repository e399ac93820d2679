"""A user's images as numbers, pixels in [0, 1], read when they are asked for: of a file of arrays, or of a folder;
and which of them the rows of a table name.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import torch

from pipeline.messages import SHOWN, listed, reason
from pipeline.types import Array

if TYPE_CHECKING:
    from PIL import Image

SUFFIXES = (".png", ".jpg", ".jpeg")
ARRAYS = (".npy", ".npz")
FORMATS = ("PNG", "JPEG")
GREY = ("1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F")
DEEP = ("I", "I;16", "I;16B", "I;16L")
"""Modes of 16-bit files."""
DEEPEST, HIGHEST = 65535, 255
COLOURS = (1, 3)
USUAL = "images"
"""The array that is taken where a file has several."""
FORMS = "(n, c, h, w), (n, h, w, c) or (n, h, w) with 1 or 3 channels, uint8 or floating in [0, 1]"
AT_ONCE = 1024
"""Images looked at together."""
Shape = tuple[int, int, int]


class Unreadable(Exception):
    """One image cannot be read; the text says why."""


@dataclass(frozen=True)
class Images:
    """n images of one ``shape`` (c, h, w), called ``names`` (n,).

    ``raw`` gives one of them, (c, h', w') float32 in [0, 1], or raises :class:`Unreadable`; ``resized`` says whether
    it is brought to the shape's size then. ``unreadable`` are those known to be so before they are read, with reasons.
    ``notes`` are sentences that a reader of the result must know.
    """

    names: tuple[str, ...]
    shape: Shape
    raw: Callable[[int], Array]
    resized: bool
    unreadable: dict[int, str]
    notes: tuple[str, ...] = ()

    def one(self, point: int) -> Array:
        """The image of this number, (c, h, w) float32 in [0, 1]. Raises Unreadable."""
        pixels = self.raw(point)
        return _resized(pixels, self.shape[1:]) if self.resized else pixels

    def pixels(self, points: Array) -> Array:
        """The images of these numbers, (m, c, h, w). Raises Unreadable."""
        return np.stack([self.one(int(point)) for point in points]) if len(points) else np.zeros((0, *self.shape))


def _resized(pixels: Array, size: tuple[int, ...]) -> Array:
    """Bilinear, averaged first where it shrinks; within [0, 1]."""
    if pixels.shape[1:] == size:
        return pixels
    made = torch.nn.functional.interpolate(
        torch.from_numpy(pixels)[None], size, mode="bilinear", align_corners=False, antialias=True
    )
    return made[0].clamp(0, 1).numpy()


def common_size(
    sizes: Sequence[tuple[int, int]], names: Sequence[str], resize: Sequence[int] | None
) -> tuple[int, int]:
    """The size (h, w) of all images; ValueError where they differ and none was asked for."""
    if resize is not None:
        height, width = resize
        return height, width
    first = sizes[0]
    for size, name in zip(sizes, names, strict=True):
        if size != first:
            raise ValueError(
                f"expected images of one size, found {first[0]} x {first[1]} ({names[0]}) and {size[0]} x {size[1]} "
                f"({name}): --resize {first[0]}x{first[1]} makes them alike; distances are then of the resized images"
            )
    return first


def check_path(path: Path) -> None:
    """ValueError where ``--images`` is neither a folder nor a file of arrays."""
    if not path.exists():
        raise ValueError(f"there is no folder or file {path}: --images takes a folder of images, or .npy or .npz")
    if path.is_file() and path.suffix.lower() not in ARRAYS:
        raise ValueError(
            f"expected --images to be a folder of PNG and JPEG files, or a file ending in {', '.join(ARRAYS)}; found "
            f"the file {path}: give the folder that it is in"
        )


def array_images(array: Array, path: object, layout: str | None, resize: Sequence[int] | None) -> Images:
    """The images of an array; ValueError for another shape, and numbers that are no pixels."""
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and _channels_last(array, layout, path):
        array = array.transpose(0, 3, 1, 2)
    if array.ndim != 4 or array.shape[1] not in COLOURS or not len(array):
        raise ValueError(f"{path}: expected images of shape {FORMS}; found shape {array.shape}: write it again so")
    scale = _scale(array, path)
    return Images(
        names=tuple(str(row) for row in range(len(array))),
        shape=(int(array.shape[1]), *(resize or (int(array.shape[2]), int(array.shape[3])))),
        raw=lambda point: np.ascontiguousarray(array[point], dtype=np.float32) / scale,
        resized=resize is not None,
        unreadable={},
    )


def loaded(path: Path, member: str | None) -> Array:
    """The array in a file; ValueError for one that cannot be read, or has no such array."""
    try:
        if path.suffix.lower() == ".npy":
            if member is not None:
                raise ValueError(f"--array {member} is for an .npz: {path} holds one array")
            return np.load(path, mmap_mode="r", allow_pickle=False)
        with np.load(path, allow_pickle=False) as stored:
            name = member or (stored.files[0] if len(stored.files) == 1 else USUAL)
            if name not in stored.files:
                what = f"no array {name!r}" if member else f"{len(stored.files)} arrays, none of them {USUAL!r}"
                raise ValueError(f"{path} has {what}: name one of {listed(stored.files)} with --array")
            return np.asarray(stored[name])
    except (OSError, BadZipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}): write it with numpy.save") from error
    except ValueError as error:
        if "--array" in str(error):
            raise
        raise ValueError(f"{path} does not hold arrays of numbers: write it with numpy.save") from error


def _channels_last(array: Array, layout: str | None, path: object) -> bool:
    """Whether the channels are the last axis; ValueError where both could be."""
    if layout is not None:
        return layout == "nhwc"
    first, last = array.shape[1] in COLOURS, array.shape[3] in COLOURS
    if first and last:
        raise ValueError(
            f"{path}: of shape {array.shape} both the second and the last axis may be channels: say --layout nchw or "
            "--layout nhwc"
        )
    return last


def _scale(array: Array, path: object) -> np.float32:
    """What the array is divided by; ValueError unless it holds pixels."""
    if array.dtype == np.uint8:
        return np.float32(HIGHEST)
    if array.dtype.kind != "f":
        raise ValueError(f"{path}: expected images of uint8 or floating numbers, found {array.dtype}: convert them")
    for start in range(0, len(array), AT_ONCE):
        part = array[start : start + AT_ONCE]
        low, high = float(part.min()), float(part.max())
        # NaN fails both comparisons.
        if not (low >= 0 and high <= 1):
            raise ValueError(
                f"{path}: expected floating pixels in [0, 1], found values from {low:g} to {high:g}: divide by the "
                "maximum, undo the normalisation, and state it with --mean and --std"
            )
    return np.float32(1)


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


def folder_images(path: Path, names: Sequence[str], channels: int | None, resize: Sequence[int] | None) -> Images:
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


def joined(column: pd.Series, files: Sequence[str], path: Path, table: str, named: bool) -> list[str]:
    """The file that each row names: by its path below the folder, folders and suffix left out where that is unique.

    Raises ValueError for names that are missing, not there, ambiguous or repeated, and for files that are no images.
    """
    empty = column.index[column.isna()].tolist()
    if empty:
        raise ValueError(
            f"{table}: column {column.name!r} names no file in {listed(empty, SHOWN)} (rows counted from 0): fill it "
            "in or remove these rows"
        )
    asked = [str(value).replace("\\", "/").removeprefix("./") for value in column]
    meant = _meant(files)
    absent = [name for name in asked if name not in meant]
    if absent:
        raise ValueError(_absent(absent, files, path, str(column.name), table, named))
    ambiguous = [name for name in asked if len(meant[name]) > 1]
    if ambiguous:
        raise ValueError(
            f"{table}: {listed(ambiguous, SHOWN)} may be {listed(meant[ambiguous[0]], SHOWN)}: name images by their "
            f"path below {path}"
        )
    found = [meant[name][0] for name in asked]
    repeated = [name for name, count in Counter(found).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{table}: expected one row for each image, found several for {listed(repeated, SHOWN)}: keep one of them"
        )
    return found


def _meant(files: Sequence[str]) -> dict[str, list[str]]:
    """The files that a name may stand for: a path below the folder, or the same without its folders or its suffix."""
    meant: dict[str, list[str]] = {}
    for file in files:
        name = file.rpartition("/")[2]
        for short in {name, file.rpartition(".")[0], name.rpartition(".")[0]}:
            meant.setdefault(short, []).append(file)
    return meant | {file: [file] for file in files}


def _absent(absent: Sequence[str], files: Sequence[str], path: Path, column: str, table: str, named: bool) -> str:
    """Why names of the table are no images of the folder."""
    shown = f"{table}: column {column!r} names {listed(absent, SHOWN)}"
    other = [name for name in absent if (path / name).is_file()]
    if other:
        return (
            f"{shown}, which {'are' if len(other) > 1 else 'is'} in {path} but no image file (expected "
            f"{', '.join(SUFFIXES)}): convert it, or remove these rows"
        )
    near = difflib.get_close_matches(absent[0], files, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else f", which holds files such as {files[0]!r}"
    remedy = "" if named else "; --file names the column of file names if it is another"
    return f"{shown}: no such file below {path}{hint}. Add {len(absent):,} missing files or remove their rows{remedy}"
