r"""Bootstrap intervals for the sizes of flipsets and for the lines of their transparency reports.

The n people of the audited group are resampled with replacement, together with their counterparts. So an interval says
how far a number would move with other people from the same population, under the same map and the same classifier. How
far it moves with another map is the spread over trials; a map that was fitted on the audited rows themselves would move
with them, which these intervals leave out.

The sizes of the resampled flipsets are multinomial counts, so no row need be touched. A line is a mean over a flipset.
Person i enters a resample W_i ~ Poisson(1) times, the limit of the multinomial count of one row:

.. math:: \frac{\sum_{i \in F} W_i v_i}{\sum_{i \in F} W_i}

of which only the members' weights are needed. Resamples without members are left out. All intervals are percentiles. A
mean of few members has a short one (as every bootstrap: by sqrt(1 - 1/k) in the standard deviation, at k members), and
fewer than two members have none.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.types import Array

WEIGHTS_AT_ONCE = 2**22
"""Poisson weights held in memory at a time."""

FEWEST = 2
"""Members below which there is no interval: resampling one person always finds the same person."""

Interval = tuple[float, float]
NONE: Interval = (float("nan"), float("nan"))


@dataclass(frozen=True)
class SizeIntervals:
    """Lower and upper end for |F+|, |F-| and |F+| - |F-|; NaN where there are fewer than two members (of F for net)."""

    positive: Interval
    negative: Interval
    net: Interval


def size_intervals(
    positive: int, negative: int, n: int, draws: int, alpha: float, rng: np.random.Generator
) -> SizeIntervals:
    """Percentile intervals of level 1 - alpha for flipsets of these sizes among n people."""
    if n == 0:
        return SizeIntervals(NONE, NONE, NONE)
    shares = np.array([positive, negative, n - positive - negative]) / n
    drawn = rng.multinomial(n, shares, size=draws)
    favoured, disfavoured = drawn[:, 0], drawn[:, 1]

    def percentiles(values: Array, members: int) -> Interval:
        if members < FEWEST:
            return NONE
        low, high = np.quantile(values, [alpha / 2, 1 - alpha / 2])
        return float(low), float(high)

    return SizeIntervals(
        percentiles(favoured, positive),
        percentiles(disfavoured, negative),
        percentiles(favoured - disfavoured, positive + negative),
    )


def mean_intervals(values: Array, draws: int, alpha: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Percentile intervals for the column means of a flipset's values (k, c): lower and upper ends, (c,) each."""
    k, columns = values.shape
    if k < FEWEST:
        return np.full(columns, np.nan), np.full(columns, np.nan)
    means = np.empty((draws, columns))
    at_once = max(1, WEIGHTS_AT_ONCE // k)
    for start in range(0, draws, at_once):
        weights = rng.poisson(1.0, size=(min(at_once, draws - start), k)).astype(float)
        total = weights.sum(axis=1, keepdims=True)
        means[start : start + at_once] = weights @ values / np.where(total > 0, total, np.nan)
    means = means[np.isfinite(means).all(axis=1)]
    if not len(means):
        return np.full(columns, np.nan), np.full(columns, np.nan)
    low, high = np.quantile(means, [alpha / 2, 1 - alpha / 2], axis=0)
    return low, high
