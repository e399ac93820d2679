"""Samples of a classifier's outcomes in two groups, and tests of them by the names that levels are reported under."""

from __future__ import annotations

import numpy as np

from pipeline.audits.permutation.many_tables import table_p
from pipeline.audits.permutation.result import Method
from pipeline.types import Array

TESTS: dict[str, tuple[Method, float]] = {
    "unstudentized": ("unstudentized", 0.0),
    "studentized": ("studentized", 0.0),
    "studentized_smoothed": ("studentized", 1.0),
    "exact": ("exact", 0.0),
    "lift": ("lift", 0.0),
    "bootstrap": ("bootstrap", 0.0),
}
"""Method and smoothing: ``studentized`` has Wald's variance, as published; ``studentized_smoothed`` adds one each."""


def sampled(
    sizes: tuple[int, int],
    positives: tuple[float, float],
    true_positive: tuple[float, float],
    true_negative: float,
    simulations: int,
    rng: np.random.Generator,
) -> Array:
    """Tables group x label x prediction, (S, 2, 2, 2), of S = ``simulations`` samples; pairs are of A and B."""
    n = np.broadcast_to(sizes, (simulations, 2))
    ones = rng.binomial(n, positives)
    caught = rng.binomial(ones, true_positive)
    passed = rng.binomial(n - ones, true_negative)
    return np.stack([np.stack([passed, n - ones - passed], -1), np.stack([ones - caught, caught], -1)], -2)


def tested(tables: Array, metric: str, test: str, draws: int, rng: np.random.Generator) -> Array:
    """Two-sided p-values (S,) of a test in :data:`TESTS`; NaN where a group has no rows that the metric is of."""
    method, smoothing = TESTS[test]
    return table_p(tables, metric, method=method, rng=rng, draws=draws, smoothing=smoothing)
