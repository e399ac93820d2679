"""Handwritten digits: 1,797 images of 8 x 8 pixels, grey from 0 to 16, which come with scikit-learn.

The label, and the only partition, is the digit. A network made for larger images needs them enlarged to
``image_size``, by repeating every pixel. Distances are then lengths *in the enlarged input*: where a pixel is repeated
k x k times, a change that is the same in all its copies is k times as long as in the original.

Source: Alpaydin and Kaynak (1998), the test part of the UCI data set; no split is published.
"""

from dataclasses import dataclass, replace

import numpy as np

from fairness_audits.validation import Share
from fairness_audits.values import Generators, ImageDataset, Provenance
from pipeline.raw_data import image_sets
from pipeline.raw_data.image_files import Held, resized
from pipeline.raw_data.image_sets import Labelled

ORIGIN: Provenance = "bundled"
MAXIMUM = 16.0


@dataclass(frozen=True)
class Config(image_sets.ImageConfig):
    """``train_fraction``: the share to train on."""

    train_fraction: Share


def parse() -> Labelled:
    """The digits as scikit-learn holds them, (n, 1, 8, 8) uint8 of 0 to 16; there is no raw file."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = Held(digits.images[:, None].astype(np.uint8))
    return Labelled(images, digits.target.astype(np.int64), "digit", tuple("0123456789"))


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Provenance) -> ImageDataset:
    """A random split, of which the first ``train_fraction`` is to train on."""
    assert isinstance(rows.pictures, Held)
    enlarged = replace(rows, pictures=Held(resized(rows.pictures.images, config.image_size, nearest=True)))
    split = rows.random_split(config.train_fraction, rngs[0])
    return image_sets.assembled("digits", origin, enlarged, split, config, rngs[0], maximum=MAXIMUM)
