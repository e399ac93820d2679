r"""The error of sigma, and a p-value for Definition 1.

*Intervals.* A resample draws n of the n points with replacement, so that point i is in it w_i times; all that sigma
needs are the level's sums of w_i min(length_i, T) and of w_i over the points that count. The points are drawn whole:
those of all levels and those that do not count, so that the sizes of groups and their accuracies vary too. The budget T
is kept. The intervals are percentiles over the resamples in which sigma exists. The variance of a resample of k points
is (k - 1) / k of what it should be, and one point always finds itself: a group of few points has a short interval, and
fewer than ``FEWEST`` have none. Equal lengths stay equal in every resample, as if there were no error at all: where a
side has no two different ones (a group that is misclassified altogether, say) there is no interval either.

*Is a group "significantly closer to (or farther from) a decision boundary"?* sigma(P) = 0 if and only if the means of
min(length, T) in P and outside P are equal. The test of that permutes who is in P among the points that count and
compares

.. math:: t = \frac{\bar a_P - \bar a_{\bar P}}{\sqrt{s_P^2 / n_P + s_{\bar P}^2 / n_{\bar P}}}, \qquad
          a_i = \min(\text{length}_i, T),

with its values after permutations (:mod:`fairness_audits.audits.permutation`): in every sample its level is at most
alpha if the lengths have the same law inside and outside P, and in the limit also if only their means are the same.

Where one side has equal lengths alone there is nothing to studentise by. A group that is misclassified or certified
nowhere is such a side, and no group is closer. There the difference of the means itself is compared with its values
after permutations, and the null hypothesis is that of one law, not of one mean. A group has a test, then, as soon as
there are two different lengths: which tests there are, and so what they are adjusted for, does not depend on the data.

Two levels are one comparison, tested once. Over all levels of all partitions of a dataset the p-values are adjusted by
Holm's method: with it the chance that any group is found closer or farther that is not, is at most alpha.

Source: Nanda et al. 2021, Definition 1, which leaves open what "significantly" means; the test is that of DiCiccio et
al. 2020.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.inference import corrected
from fairness_audits.audits.permutation.draws import times_drawn
from fairness_audits.audits.permutation.monte_carlo import Method
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.permutation_test import permutation_test
from fairness_audits.audits.robustness_bias.measures import Lengths, Partition, level_sums, sigma
from fairness_audits.values import Array

WEIGHTS_AT_ONCE = 2**22
"""Weights held in memory at a time."""

FEWEST = 2
"""Points that count below which there is no interval."""


def sigma_intervals(
    lengths: Lengths, partitions: Sequence[Partition], budget: float, draws: int, alpha: float, rng: np.random.Generator
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
        yield times_drawn(n, min(at_once, draws - first), rng).astype(float)


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


@dataclass(frozen=True)
class Significance:
    """Two-sided ``p`` and ``adjusted`` p-values of sigma = 0, (L,) each, NaN where there is no test.

    There is none where no point of a level, or none outside it, counts, and where all lengths of both are equal. There
    is one where sigma does not exist because all lengths outside are 0.
    """

    p: Array
    adjusted: Array


def significance(
    lengths: Lengths, partitions: Sequence[Partition], budget: float, draws: int, rng: np.random.Generator
) -> list[Significance]:
    """The tests of all levels of all partitions, from ``draws`` permutations each.

    The smallest p-value is 1 / (draws + 1), and adjusted as many times that as there are comparisons.
    """
    values = lengths.upto(budget)
    raw = [_by_comparison(values, lengths.counts, partition, draws, rng) for partition in partitions]
    adjusted = np.split(corrected(np.concatenate(raw), "holm"), np.cumsum([len(p) for p in raw])[:-1]) if raw else []
    return [
        Significance(p[partition.comparisons], again[partition.comparisons])
        for p, again, partition in zip(raw, adjusted, partitions, strict=True)
    ]


def _by_comparison(values: Array, counts: Array, partition: Partition, draws: int, rng: np.random.Generator) -> Array:
    """p-values of a partition's comparisons, in order."""
    _, first = np.unique(partition.comparisons, return_index=True)
    return np.array([difference_p(values, counts, *partition.element(level), draws, rng) for level in first])


def difference_p(
    values: Array, counts: Array, inside: Array, outside: Array, draws: int, rng: np.random.Generator
) -> float:
    """Two-sided p-value of equal means of ``values`` (n,) inside and outside, among the points that count.

    Studentised where the values vary on both sides. NaN where a side is empty, or all values are equal.
    """
    rows = np.flatnonzero(counts & (inside | outside))
    group = outside[rows].astype(np.int64)
    own = values[rows]
    sides = own[group == 0], own[group == 1]
    if not all(len(side) for side in sides) or not np.ptp(own) > 0:
        return float("nan")
    method: Method = "studentized" if all(np.ptp(side) > 0 for side in sides) else "unstudentized"
    data = Predictions(np.zeros(len(own)), own, group, ("inside", "outside"))
    test = permutation_test(data, "mean_score", rng=rng, draws=draws, method=method)
    return float("nan") if test.p_value is None else test.p_value
