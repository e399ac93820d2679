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

from pipeline.cli.audit.robustness_bias import Settings
from pipeline.cli.table import Source
from pipeline.messages import SHOWN, check_columns, listed, reason
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
COLUMNS = ("file", "filename", "file_name", "image", "path")
"""Columns that are taken for the file names without being told."""
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
        """The image of this number, (c, h, w) float32 in [0, 1]. Raises Unreadable.

        Resized bilinearly, averaged first where it shrinks.
        """
        pixels = self.raw(point)
        if not self.resized or pixels.shape == self.shape:
            return pixels
        made = torch.nn.functional.interpolate(
            torch.from_numpy(pixels)[None], self.shape[1:], mode="bilinear", align_corners=False, antialias=True
        )
        return made[0].clamp(0, 1).numpy()

    def pixels(self, points: Array) -> Array:
        """The images of these numbers, (m, c, h, w). Raises Unreadable."""
        return np.stack([self.one(int(point)) for point in points]) if len(points) else np.zeros((0, *self.shape))


def in_array(source: Source, asked: Settings, array: Array | None) -> Images:
    """The images of an ``array``, or of the file that is asked for, in the order of the table's rows.

    Raises ValueError for another shape, numbers that are no pixels, and another number of rows or channels.
    """
    path = asked.images
    if asked.file is not None:
        raise ValueError(f"--file names files, but {path} is an array: its images are in the order of the rows")
    pixels = loaded(path, asked.array) if array is None else np.asarray(array)
    if pixels.ndim == 3:
        pixels = pixels[:, None]
    elif pixels.ndim == 4:
        first, last = pixels.shape[1] in COLOURS, pixels.shape[3] in COLOURS
        if asked.layout is None and first and last:
            raise ValueError(
                f"{path}: of shape {pixels.shape} both the second and the last axis may be channels: say --layout nchw "
                "or --layout nhwc"
            )
        pixels = pixels.transpose(0, 3, 1, 2) if (last if asked.layout is None else asked.layout == "nhwc") else pixels
    if pixels.ndim != 4 or pixels.shape[1] not in COLOURS or not len(pixels):
        raise ValueError(f"{path}: expected images of shape {FORMS}; found shape {pixels.shape}: write it again so")
    if pixels.dtype != np.uint8 and pixels.dtype.kind != "f":
        raise ValueError(f"{path}: expected images of uint8 or floating numbers, found {pixels.dtype}: convert them")
    scale = np.float32(HIGHEST if pixels.dtype == np.uint8 else 1)
    for start in range(0, len(pixels) if pixels.dtype.kind == "f" else 0, AT_ONCE):
        part = pixels[start : start + AT_ONCE]
        if not (finite := np.isfinite(part).all(axis=(1, 2, 3))).all():
            raise ValueError(
                f"{path}: image {start + int(finite.argmin())} (counted from 0) has pixels that are missing or "
                "infinite: mend such images, or leave them out"
            )
        low, high = float(part.min()), float(part.max())
        if not (low >= 0 and high <= 1):
            raise ValueError(
                f"{path}: expected floating pixels in [0, 1], found values from {low:g} to {high:g}: divide by the "
                "maximum, undo the normalisation, and state it with --mean and --std"
            )
    if len(pixels) != len(source.table):
        raise ValueError(
            f"expected a row of {source.name} for each image of {path}, in the same order; found "
            f"{len(source.table):,} rows and {len(pixels):,} images"
        )
    if asked.channels not in (None, pixels.shape[1]):
        raise ValueError(f"--channels {asked.channels}: the images of {path} have {pixels.shape[1]}")
    height, width = asked.resize or pixels.shape[2:]
    return Images(
        names=tuple(str(row) for row in range(len(pixels))),
        shape=(int(pixels.shape[1]), int(height), int(width)),
        raw=lambda point: np.ascontiguousarray(pixels[point], dtype=np.float32) / scale,
        resized=asked.resize is not None,
        unreadable={},
    )


def loaded(path: Path, member: str | None) -> Array:
    """The array in a file; ValueError for one that cannot be read, or has no such array."""
    if path.suffix.lower() not in ARRAYS:
        raise ValueError(
            f"expected --images to be a folder of PNG and JPEG files, or a file ending in {', '.join(ARRAYS)}; found "
            f"the file {path}: give the folder that it is in"
        )
    if path.suffix.lower() == ".npy" and member is not None:
        raise ValueError(f"--array {member} is for an .npz: {path} holds one array")
    try:
        stored = np.load(path, mmap_mode="r", allow_pickle=False)
        if isinstance(stored, np.ndarray):
            return stored
        with stored:
            files = list(stored.files)
            name = member or (files[0] if len(files) == 1 else USUAL)
            if name in files:
                return np.asarray(stored[name])
    except (OSError, BadZipFile, EOFError) as error:
        raise ValueError(f"{path} cannot be read ({reason(error)}): write it with numpy.save") from error
    except ValueError as error:
        raise ValueError(f"{path} does not hold arrays of numbers: write it with numpy.save") from error
    what = f"no array {name!r}" if member else f"{len(files)} arrays, none of them {USUAL!r}"
    raise ValueError(f"{path} has {what}: name one of {listed(files)} with --array")


def files_in(path: Path) -> tuple[list[str], int]:
    """Image files at any depth as sorted paths below the folder, and how many other files there are.

    Raises ValueError where there is no image file. Hidden files and folders are passed over.
    """
    below = [file.relative_to(path) for file in sorted(path.rglob("*")) if file.is_file()]
    seen = [file for file in below if not any(part.startswith(".") for part in file.parts)]
    found = [file.as_posix() for file in seen if file.suffix.lower() in SUFFIXES]
    others = len(seen) - len(found)
    if not found:
        raise ValueError(
            f"expected {path} to hold image files ending in {', '.join(SUFFIXES)}, found none"
            + (f" among {others} other files" if others else "")
            + ": give the folder of the images, or convert them"
        )
    return found, others


def in_folder(source: Source, asked: Settings) -> tuple[str, Images, dict[str, int]]:
    """The column of file names, the images in the order of the table's rows, and what lies beside them unused.

    Only the files' headers are read here; one whose header cannot be is noted as unreadable. Raises ValueError where
    none can be read, and for files of several sizes without ``--resize``.
    """
    path, table = asked.images, source.table
    for option in ("array", "layout"):
        if getattr(asked, option) is not None:
            raise ValueError(f"--{option} is for a file of arrays, but {path} is a folder: leave it out")
    if asked.file is not None:
        check_columns(table, [asked.file], "--file", source.name)
    column = asked.file or next((str(name) for name in table if str(name).lower() in COLUMNS), str(table.columns[0]))
    files, others = files_in(path)
    names = joined(table[column], files, path, source.name, asked.file is not None)
    unreadable: dict[int, str] = {}
    known: list[tuple[str, str, tuple[int, int]]] = []
    for point, name in enumerate(names):
        try:
            with _opened(path / name) as image:
                known.append((name, image.mode, (image.height, image.width)))
        except Unreadable as error:
            unreadable[point] = str(error)
    if not known:
        told = listed([f"{names[point]} ({why})" for point, why in unreadable.items()], SHOWN)
        raise ValueError(f"none of the {len(names)} images below {path} can be read: {told}: write them again")
    first, _, (height, width) = known[0]
    if asked.resize is not None:
        height, width = asked.resize
    elif other := next(((name, size) for name, _, size in known if size != (height, width)), None):
        raise ValueError(
            f"expected images of one size, found {height} x {width} ({first}) and {other[1][0]} x {other[1][1]} "
            f"({other[0]}): --resize {height},{width} makes them alike; distances are then of the resized images"
        )
    modes = [mode for _, mode, _ in known]
    count = asked.channels or (1 if all(mode in GREY for mode in modes) else 3)
    grey, transparent = sum(mode in GREY for mode in modes), sum("A" in mode for mode in modes)
    whose = "All images are" if grey == len(modes) else f"{grey:,} of {len(modes):,} images are"
    notes = {
        f"{transparent:,} images have a transparency channel, which was dropped.": transparent > 0,
        f"{whose} grey and were given to the model as three equal channels.": count == 3 and grey > 0,
        f"{len(modes) - grey:,} images are in colour and were turned to grey.": count == 1 and grey < len(modes),
    }
    images = Images(
        names=tuple(names),
        shape=(count, height, width),
        raw=lambda point: _decoded(path / names[point], count),
        resized=asked.resize is not None,
        unreadable=unreadable,
        notes=tuple(note for note, holds in notes.items() if holds),
    )
    return column, images, {"unlisted": len(files) - len(set(names)), "others": others}


def _decoded(file: Path, channels: int) -> Array:
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
    meant: dict[str, list[str]] = {}
    for file in files:
        name = file.rpartition("/")[2]
        for short in {name, file.rpartition(".")[0], name.rpartition(".")[0]}:
            meant.setdefault(short, []).append(file)
    meant |= {file: [file] for file in files}
    asked = [str(value).replace("\\", "/").removeprefix("./") for value in column]
    absent = [name for name in asked if name not in meant]
    if absent:
        shown = f"{table}: column {column.name!r} names {listed(absent, SHOWN)}"
        others = [name for name in absent if (path / name).is_file()]
        if others:
            raise ValueError(
                f"{shown}, which {'are' if len(others) > 1 else 'is'} in {path} but no image file (expected "
                f"{', '.join(SUFFIXES)}): convert it, or remove these rows"
            )
        near = difflib.get_close_matches(absent[0], files, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else f", which holds files such as {files[0]!r}"
        remedy = "" if named else "; --file names the column of file names if it is another"
        raise ValueError(
            f"{shown}: no such file below {path}{hint}. Add {len(absent):,} missing files or remove their rows{remedy}"
        )
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
