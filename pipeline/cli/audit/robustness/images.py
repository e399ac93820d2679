"""A user's images as numbers: pixels in [0, 1], read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pipeline.types import Array

SUFFIXES = (".png", ".jpg", ".jpeg")
ARRAYS = (".npy", ".npz")
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
    import torch

    if pixels.shape[1:] == size:
        return pixels
    made = torch.nn.functional.interpolate(
        torch.from_numpy(pixels)[None], size, mode="bilinear", align_corners=False, antialias=True
    )
    return made[0].clamp(0, 1).numpy()


def common_size(
    sizes: Sequence[tuple[int, int]], names: Sequence[str], resize: tuple[int, int] | None
) -> tuple[int, int]:
    """The size (h, w) of all images; ValueError where they differ and none was asked for."""
    if resize is not None:
        return resize
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
