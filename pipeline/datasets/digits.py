"""Handwritten digits: 1,797 images of 8 x 8 pixels, grey from 0 to 16, which come with scikit-learn.

The label, and the only partition, is the digit. A network made for larger images needs them enlarged to
``image_size``: by the nearest pixel, which repeats every pixel, or bilinearly. Distances are then lengths *in the
enlarged input*: where a pixel is repeated k x k times, a change that is the same in all its copies is k times as long
as in the original. Interpolated pixels are kept in steps of 1/240 instead of 1/16.

Source: Alpaydin and Kaynak (1998), the test part of the UCI data set; no split is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from pipeline.datasets import image_sets
from pipeline.datasets.download import Source
from pipeline.datasets.image_archives import Held, resized
from pipeline.fields import Share
from pipeline.types import Array, ImageDataset, Origin

SOURCES: tuple[Source, ...] = ()
TWIN = None
ORIGIN: Origin = "bundled"
MAXIMUM = 16
FINER = 15
"""So many steps between two greys, when pixels are interpolated."""


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``train_fraction``: the share to train on. ``interpolation``: how to enlarge, ``nearest`` or ``bilinear``."""

    train_fraction: Share
    interpolation: Literal["nearest", "bilinear"]


@dataclass(frozen=True)
class Digits:
    """``images`` (n, 1, 8, 8) uint8 of 0 to 16 and ``label`` (n,)."""

    images: Array
    label: Array


def parse(folder: Path | None = None) -> Digits:
    """The digits as scikit-learn holds them; there is no raw file, so nothing is looked for in ``folder``."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    return Digits(digits.images[:, None].astype(np.uint8), digits.target.astype(np.int64))


def prepare(rows: Digits | None, config: Config, rngs: Sequence[np.random.Generator], origin: Origin) -> ImageDataset:
    """A random split, of which the first ``train_fraction`` is to train on."""
    if rows is None:
        raise ValueError("digits are made of images: parse them first")
    nearest = config.interpolation == "nearest" or rows.images.shape[-1] == config.image_size
    finer = 1 if nearest else FINER
    images = resized(rows.images * np.uint8(finer), config.image_size, nearest=nearest)
    labelled = image_sets.Labelled(Held(images), rows.label, "digit", tuple("0123456789"))
    split = image_sets.random_split(len(rows.label), config.train_fraction, rngs[0])
    maximum = float(MAXIMUM * finer)
    return image_sets.assembled("digits", origin, labelled, split, config, rngs[0], maximum=maximum)
