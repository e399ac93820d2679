"""Handwritten digits: 1,797 images of 8 x 8 pixels, grey from 0 to 16, which come with scikit-learn.

The label, and the only partition, is the digit. A network made for larger images needs them enlarged to
``image_size``: by the nearest pixel, which repeats every pixel, or bilinearly. Distances are then lengths *in the
enlarged input*: where a pixel is repeated k x k times, a change that is the same in all its copies is k times as long
as in the original. Interpolated pixels are kept in steps of 1/240 instead of 1/16.

Source: Alpaydin and Kaynak (1998), the test part of the UCI data set; no split is published.
"""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from pipeline.datasets import image_sets
from pipeline.datasets.image_files import Held, resized
from pipeline.datasets.image_sets import Labelled
from pipeline.fields import Share
from pipeline.types import Generators, ImageDataset, Origin

ORIGIN: Origin = "bundled"
MAXIMUM = 16
FINER = 15
"""So many steps between two greys, when pixels are interpolated."""


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``train_fraction``: the share to train on. ``interpolation``: how to enlarge, ``nearest`` or ``bilinear``."""

    train_fraction: Share
    interpolation: Literal["nearest", "bilinear"]


def parse() -> Labelled:
    """The digits as scikit-learn holds them, (n, 1, 8, 8) uint8 of 0 to 16; there is no raw file."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = Held(digits.images[:, None].astype(np.uint8))
    return Labelled(images, digits.target.astype(np.int64), "digit", tuple("0123456789"))


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Origin) -> ImageDataset:
    """A random split, of which the first ``train_fraction`` is to train on."""
    assert isinstance(rows.pictures, Held)
    images = rows.pictures.images
    nearest = config.interpolation == "nearest" or images.shape[-1] == config.image_size
    finer = 1 if nearest else FINER
    enlarged = Held(resized(images * np.uint8(finer), config.image_size, nearest=nearest))
    split = rows.random_split(config.train_fraction, rngs[0])
    return image_sets.assembled(
        "digits", origin, replace(rows, pictures=enlarged), split, config, rngs[0], maximum=float(MAXIMUM * finer)
    )
