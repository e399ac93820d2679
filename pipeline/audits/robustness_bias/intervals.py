r"""The error of sigma: how much it varies from one sample of points to the next.

A resample draws n of the n points with replacement, so that point i is in it w_i times; all that sigma needs are the
level's sums of w_i min(length_i, T) and of w_i over the points that count. The points are drawn whole: those of all
levels and those that do not count, so that the sizes of groups and their accuracies vary too. The budget T is kept.

The intervals are percentiles over the resamples in which sigma exists. The variance of a resample of k points is
(k - 1) / k of what it should be, and one point always finds itself: a group of few points has a short interval, and
fewer than ``FEWEST`` have none. Equal lengths stay equal in every resample, as if there were no error at all: where a
side has no two different ones (a group that is misclassified altogether, say) there is no interval either.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pipeline.audits.robustness_bias.lengths import Lengths
from pipeline.audits.robustness_bias.measures import level_sums, sigma
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.types import Array

WEIGHTS_AT_ONCE = 2**22
"""Weights held in memory at a time."""

FEWEST = 2
"""Points that count below which there is no interval."""


def sigma_intervals(
    lengths: Lengths,
    partitions: Sequence[Partition],
    budget: float,
    draws: int,
    alpha: float,
    rng: np.random.Generator,
) -> list[Array]:
    """Intervals of level 1 - ``alpha`` for sigma of every level, from ``draws`` resamples that all partitions share.

    Returns for each partition (2, L): lower and upper ends, NaN where a level, or what is outside it, has fewer than
    ``FEWEST`` points that count or equal lengths alone, and where no resample gave a sigma.
    """
    parts: list[list[Array]] = [[] for _ in partitions]
    for weight in resamples(len(lengths.length), draws, rng):
        for part, partition in zip(parts, partitions, strict=True):
            part.append(sigma(*level_sums(weight, lengths, partition, budget)))
    return [
        _percentiles(np.concatenate(part), _testable(lengths, partition, budget), alpha)
        for part, partition in zip(parts, partitions, strict=True)
    ]


def resamples(n: int, draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """How often each of n points is in each of ``draws`` samples with replacement: parts (b, n) of (draws, n)."""
    at_once = max(1, WEIGHTS_AT_ONCE // max(n, 1))
    for first in range(0, draws, at_once):
        size = min(at_once, draws - first)
        drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n).astype(float)


def _testable(lengths: Lengths, partition: Partition, budget: float) -> Array:
    """Whether both sides of each level have enough points, and not all of one length, (L,)."""
    values = lengths.upto(budget)
    sides = [[values[side & lengths.counts] for side in partition.element(level)] for level in range(len(partition))]
    return np.array([all(len(side) >= FEWEST and np.ptp(side) > 0 for side in both) for both in sides], dtype=bool)


def _percentiles(drawn: Array, testable: Array, alpha: float) -> Array:
    """Of each column of ``drawn`` (B, L) over its finite values, (2, L)."""
    ends = np.full((2, drawn.shape[1]), np.nan)
    for level in np.flatnonzero(testable):
        found = drawn[np.isfinite(drawn[:, level]), level]
        if len(found):
            ends[:, level] = np.quantile(found, [alpha / 2, 1 - alpha / 2])
    return ends
