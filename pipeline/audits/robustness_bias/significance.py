r"""Is a group "significantly closer to (or farther from) a decision boundary"? A p-value for Definition 1.

sigma(P) = 0 if and only if the means of min(length, T) in P and outside P are equal. The test of that permutes who is
in P among the points that count and compares

.. math:: t = \frac{\bar a_P - \bar a_{\bar P}}{\sqrt{s_P^2 / n_P + s_{\bar P}^2 / n_{\bar P}}}, \qquad
          a_i = \min(\text{length}_i, T),

with its values after permutations (:mod:`pipeline.audits.permutation`): in every sample its level is at most alpha if
the lengths have the same law inside and outside P, and in the limit also if only their means are the same.

Where one side has equal lengths alone there is nothing to studentise by. A group that is misclassified or certified
nowhere is such a side, and no group is closer. There the difference of the means itself is compared with its values
after permutations, and the null hypothesis is that of one law, not of one mean. A group has a test, then, as soon as
there are two different lengths: which tests there are, and so what they are adjusted for, does not depend on the data.

Two levels are one comparison, tested once. Over all levels of all partitions of a dataset the p-values are adjusted by
Holm's method: with it the chance that any group is found closer or farther that is not, is at most alpha.

Source: Nanda et al. 2021, Definition 1, which leaves open what "significantly" means; the test is that of DiCiccio
et al. 2020.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.audits.correction import corrected
from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.result import Method
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.robustness_bias.lengths import Lengths
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.types import Array


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
