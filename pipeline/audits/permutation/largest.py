r"""The largest |T| of several pairs of groups: p-values that know how the pairs depend on one another.

All groups are permuted together, B times. With the k pairs in descending order of their observed |T|,

.. math:: p_{(j)} = \max_{i \le j} \; \frac{1 + \#\{b : \max_{l \ge i} |T^{*b}_{(l)}| \ge |T_{(i)}|\}}{B + 1},

so the largest is compared with the largest of all pairs, the next with that of the pairs that are left, and so on: the
step-down form, which rejects whatever the single step does, and more.

If all groups are alike (for a rate permuted within its outcome: if all rates are equal) a permutation leaves the law of
the k statistics as it is, and the chance of any rejection is at most alpha. If only some pairs are equal, the step-down
needs the law of *their* statistics: studentised, each is standard normal in the limit, before a permutation and after;
how two of them correlate also depends on the variance of a row, which is the same in groups of equal rate, so for rates
the chance of any false rejection is at most alpha in the limit, whichever pairs are equal. For other metrics that is so
where groups with the same metric have the same variance a row, and nearly so elsewhere.
Source: Westfall and Young 1993, algorithm 4.1; Ge, Dudoit and Speed 2003.
"""

from __future__ import annotations

import numpy as np

from pipeline.audits.permutation.draws import BLOCK, Resampler
from pipeline.audits.permutation.pvalue import extreme, monte_carlo_p
from pipeline.audits.permutation.statistics import MetricEstimate, studentized
from pipeline.types import Array


def largest_p(source: Resampler, pairs: list[tuple[int, int]], known: Array, draws: int) -> Array:
    """p-values (k,) of the ``known`` (k,) pairs of groups, two-sided.

    NaN where a pair is not known, or its statistic does not exist; the others are then compared without it. A statistic
    that does not exist after a permutation counts as extreme.
    """
    observed = np.where(known, _all_t(source.observed, pairs), np.nan)
    p, rivals = np.full(len(pairs), np.nan), np.flatnonzero(~np.isnan(observed))
    if not len(rivals):
        return p
    rivals = rivals[np.argsort(-observed[rivals], kind="stable")]
    extremes = np.zeros(len(rivals), dtype=np.int64)
    for number, first in enumerate(range(0, draws, BLOCK)):
        drawn = _all_t(source.permuted(number, min(BLOCK, draws - first)), pairs)[rivals]
        drawn = np.where(np.isnan(drawn), np.inf, drawn)
        of_the_rest = np.maximum.accumulate(drawn[::-1], axis=0)[::-1]
        extremes += extreme(of_the_rest, observed[rivals], "two-sided").sum(axis=-1)
    p[rivals] = np.maximum.accumulate(monte_carlo_p(extremes, draws))
    return p


def _all_t(estimate: MetricEstimate, pairs: list[tuple[int, int]]) -> Array:
    """|T| of every pair from the estimates (G, ...) -> (k, ...)."""
    return np.abs(
        np.stack([studentized(MetricEstimate(estimate.value[[a, b]], estimate.variance[[a, b]])) for a, b in pairs])
    )
