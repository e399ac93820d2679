"""Handwritten digits: 1,797 images of 8 x 8 pixels with grey values from 0 to 16, included in scikit-learn.

The digit is the label and the only partition. Networks for larger images need ``image_size`` pixels a side; every pixel
is then repeated k x k times. Distances are measured *in the enlarged image*: a change that is equal in all copies of a
pixel is k times as long as in the original.

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
    """``train_fraction``: share of images in the training set."""

    train_fraction: Share


def parse() -> Labelled:
    """Return scikit-learn's digits, (n, 1, 8, 8) uint8 from 0 to 16. There is no raw file."""
    from sklearn.datasets import load_digits

    digits = load_digits()
    images = Held(digits.images[:, None].astype(np.uint8))
    return Labelled(images, digits.target.astype(np.int64), "digit", tuple("0123456789"))


def prepare(rows: Labelled, config: Config, rngs: Generators, origin: Provenance) -> ImageDataset:
    """Return a random split; the first ``train_fraction`` of the images is the training set."""
    assert isinstance(rows.pictures, Held)
    enlarged = replace(rows, pictures=Held(resized(rows.pictures.images, config.image_size, nearest=True)))
    split = rows.random_split(config.train_fraction, rngs[0])
    return image_sets.assembled("digits", origin, enlarged, split, config, rngs[0], maximum=MAXIMUM)
