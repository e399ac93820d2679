"""Contingency tables of scored rows at many thresholds at once."""

from __future__ import annotations

import numpy as np

from pipeline.audits.permutation.metrics import METRICS, Rate
from pipeline.types import Array

RATES = {name: metric for name, metric in METRICS.items() if isinstance(metric, Rate)}


def threshold_tables(label: Array, score: Array, protected: Array, thresholds: Array) -> Array:
    """Tables group x label x prediction at each of the ascending ``thresholds`` (T,): (T, 2, 2, 2).

    Group 0 of a table is level 1 of the attribute ``protected`` (n,), and the decision is 1[``score`` >= threshold].
    """
    # Cell k holds the scores that reach exactly the first k thresholds.
    cell = np.searchsorted(thresholds, score, side="right")
    shape = 2, 2, len(thresholds) + 1
    flat = np.ravel_multi_index((1 - protected, label, cell), shape)
    counts = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape)
    below = counts.cumsum(axis=-1)
    negative = np.moveaxis(below[..., :-1], -1, 0)
    return np.stack([negative, below[..., -1] - negative], axis=-1)
