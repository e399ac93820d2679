r"""Intervals for sigma, and a p-value for Definition 1.

*Intervals.* A resample draws n of the n points with replacement; point i occurs w_i times. sigma needs only the level's
sums of w_i min(length_i, T) and of w_i over the points that count. Points of all levels are drawn together, including
points that do not count, so that the group sizes and accuracies vary too. The budget T is fixed. The intervals are
percentiles over the resamples in which sigma exists. A resample of k points has (k - 1) / k of the correct variance,
and a single point only ever resamples itself. Groups of few points would have too short an interval, so groups with
fewer than ``FEWEST`` points have none. Equal lengths stay equal in every resample, as if there were no error. If all
lengths on a side are equal (for example, in a group that is misclassified altogether), there is no interval either.

*Is a group "significantly closer to (or farther from) a decision boundary"?* sigma(P) = 0 if and only if the means of
min(length, T) inside and outside P are equal. The test permutes the membership in P among the points that count and
compares

.. math:: t = \frac{\bar a_P - \bar a_{\bar P}}{\sqrt{s_P^2 / n_P + s_{\bar P}^2 / n_{\bar P}}}, \qquad
          a_i = \min(\text{length}_i, T),

with its values after permutations (:mod:`fairness_audits.audits.permutation`). In every sample its level is at most
alpha if the lengths have the same distribution inside and outside P. In the limit this also holds if only the means are
the same.

If all lengths on one side are equal, the statistic cannot be studentised. An example is a group that is misclassified
or certified nowhere, and no group is closer. The test then compares the difference of the means itself with its values
after permutations. Its null hypothesis is equal distributions, not equal means. A group therefore has a test as soon as
there are two different lengths. Apart from this, the data do not affect which tests exist, or the number of tests in
the adjustment.

Two levels are one comparison, tested once. The p-values of all levels of all partitions of a dataset are adjusted by
Holm's method. The probability of a false claim that any group is closer or farther is then at most alpha.

Source: Nanda et al. 2021, Definition 1, which does not define "significantly". The test is from DiCiccio et al. 2020.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.inference import corrected
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.draws import times_drawn
from fairness_audits.audits.permutation.monte_carlo import Method
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.robustness_bias.measures import Lengths, Partition, level_sums, sigma
from fairness_audits.progress import track
from fairness_audits.values import Array

WEIGHTS_AT_ONCE = 2**22
"""Number of weights held in memory at a time."""

FEWEST = 2
"""Fewest points that count for an interval."""


def sigma_intervals(
    lengths: Lengths, partitions: Sequence[Partition], budget: float, draws: int, alpha: float, rng: np.random.Generator
) -> list[Array]:
    """Return intervals of level 1 - ``alpha`` for sigma of every level; all partitions share the ``draws`` resamples.

    The result has (2, L) for each partition: lower and upper ends. They are NaN if a level or its complement has fewer
    than ``FEWEST`` points that count or only equal lengths, or if no resample has a sigma.
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
    """Yield the counts of each of n points in ``draws`` samples with replacement: parts (b, n) of (draws, n)."""
    at_once = max(1, WEIGHTS_AT_ONCE // max(n, 1))
    for first in track("bootstrap", range(0, draws, at_once)):
        yield times_drawn(n, min(at_once, draws - first), rng).astype(float)


def _testable(lengths: Lengths, partition: Partition, budget: float) -> Array:
    """Return whether both sides of each level have enough points with different lengths, (L,)."""
    values = lengths.upto(budget)
    sides = [[values[side & lengths.counts] for side in partition.element(level)] for level in range(len(partition))]
    return np.array([all(len(side) >= FEWEST and np.ptp(side) > 0 for side in both) for both in sides], dtype=bool)


def _percentiles(drawn: Array, testable: Array, alpha: float) -> Array:
    """Return percentiles of each column of ``drawn`` (B, L) over its finite values, (2, L)."""
    ends = np.full((2, drawn.shape[1]), np.nan)
    for level in np.flatnonzero(testable):
        found = drawn[np.isfinite(drawn[:, level]), level]
        if len(found):
            ends[:, level] = np.quantile(found, [alpha / 2, 1 - alpha / 2])
    return ends


@dataclass(frozen=True)
class Significance:
    """Two-sided ``p`` and ``adjusted`` p-values of sigma = 0, (L,) each, NaN if there is no test.

    There is no test if no point of a level, or none outside it, counts, or if all lengths are equal. There is a test if
    sigma does not exist because all lengths outside are 0.
    """

    p: Array
    adjusted: Array


def significance(
    lengths: Lengths, partitions: Sequence[Partition], budget: float, draws: int, rng: np.random.Generator
) -> list[Significance]:
    """Return the tests of all levels of all partitions, from ``draws`` permutations each.

    The smallest p-value is 1 / (draws + 1). Its smallest adjusted value is this times the number of comparisons.
    """
    values = lengths.upto(budget)
    raw = [_by_comparison(values, lengths.counts, partition, draws, rng) for partition in partitions]
    adjusted = np.split(corrected(np.concatenate(raw), "holm"), np.cumsum([len(p) for p in raw])[:-1]) if raw else []
    return [
        Significance(p[partition.comparisons], again[partition.comparisons])
        for p, again, partition in zip(raw, adjusted, partitions, strict=True)
    ]


def _by_comparison(values: Array, counts: Array, partition: Partition, draws: int, rng: np.random.Generator) -> Array:
    """Return the p-values of a partition's comparisons, in order."""
    _, first = np.unique(partition.comparisons, return_index=True)
    every = track("permutations", first.tolist())
    return np.array([difference_p(values, counts, *partition.element(level), draws, rng) for level in every])


def difference_p(
    values: Array, counts: Array, inside: Array, outside: Array, draws: int, rng: np.random.Generator
) -> float:
    """Return the two-sided p-value of equal means of ``values`` (n,) inside and outside, among the points that count.

    The statistic is studentised if the values vary on both sides. NaN if a side is empty or all values are equal.
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
