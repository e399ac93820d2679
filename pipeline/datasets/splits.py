"""Random splits into rows to train on and rows to test, and how large they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pipeline.fields import Checked, Share
from pipeline.types import Array

Split = tuple[Array, Array]
"""Row numbers to train on and to test."""


@dataclass(frozen=True)
class SplitConfig(Checked, of="dataset"):
    """``train_fraction``: the share of rows that each repetition trains on, rounded down to whole rows."""

    train_fraction: Share


def random_split(n: int, train_fraction: float, rng: np.random.Generator) -> Split:
    """The rows 0 to n - 1 in random order, parted after the first ``train_fraction`` of them, rounded down."""
    order = rng.permutation(n)
    n_train = math.floor(Fraction(str(train_fraction)) * n)
    return order[:n_train], order[n_train:]


def stratified_split(label: Array, train_fraction: float, rng: np.random.Generator) -> Split:
    """A random split that gives each class of ``label`` (n,), 0 or 1, its share of the training rows.

    Class c gets floor(fraction n_c) rows; the rows still missing of floor(fraction n) go to the classes with the
    largest remainders. Both sides come in random order.
    """
    share = Fraction(str(train_fraction))
    exact = [share * int((label == c).sum()) for c in (0, 1)]
    sizes = [math.floor(size) for size in exact]
    for c in sorted((0, 1), key=lambda c: sizes[c] - exact[c])[: math.floor(share * len(label)) - sum(sizes)]:
        sizes[c] += 1
    order = rng.permutation(len(label))
    classes = [order[label[order] == c] for c in (0, 1)]
    train = np.concatenate([rows[:size] for rows, size in zip(classes, sizes, strict=True)])
    test = np.concatenate([rows[size:] for rows, size in zip(classes, sizes, strict=True)])
    return rng.permutation(train), rng.permutation(test)
