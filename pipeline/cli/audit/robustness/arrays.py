"""A file of arrays as images: which array, which axis is which, and whether its numbers are pixels."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from pipeline.cli.audit.robustness.images import Images
from pipeline.messages import listed, reason
from pipeline.types import Array

COLOURS = (1, 3)
USUAL = "images"
HIGHEST = 255
FORMS = "(n, c, h, w), (n, h, w, c) or (n, h, w) with 1 or 3 channels, uint8 or floating in [0, 1]"
AT_ONCE = 1024
"""Images looked at together."""


def array_images(path: Path, member: str | None, layout: str | None, resize: tuple[int, int] | None) -> Images:
    """The images of ``path``; ValueError for an unreadable file, another shape, and numbers that are no pixels."""
    array = _loaded(path, member)
    if array.ndim == 3:
        array = array[:, None]
    elif array.ndim == 4 and _last(array, layout, path):
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


def _loaded(path: Path, member: str | None) -> Array:
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


def _last(array: Array, layout: str | None, path: Path) -> bool:
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


def _scale(array: Array, path: Path) -> np.float32:
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
