r"""Categories of counterparts: soft indicators made hard so that every category keeps the target group's share.

A smooth map gives each person i a weight w_il of each level l, the mean of indicators. The level of the largest weight
would make common levels more common: who is at (.6, .4) becomes the first. Instead

.. math:: \max_{l(1), \dots, l(n)} \sum_i w_{i\,l(i)} \quad \text{with} \quad \#\{i : l(i) = l\} = n_l,

a transport problem whose counts n_l have the shares of the target group, up to rounding. It has a solution in whole
people, which the network simplex finds.
"""

from __future__ import annotations

import numpy as np

from pipeline.transport.pot import ot
from pipeline.types import Array


def assigned(weights: Array, shares: Array) -> Array:
    """The level of each person (n,), for weights (n, L) and the target group's shares of the levels (L,)."""
    counts = whole_counts(shares, len(weights))
    present = np.flatnonzero(counts)
    if len(present) == 1:
        return np.repeat(present, len(weights))
    # Costs from 0 on, and masses of 1: with whole masses every vertex is a whole assignment.
    costs = np.ascontiguousarray(weights.max(axis=1, keepdims=True) - weights[:, present], dtype=np.float64)
    plan = ot.emd(np.ones(len(weights)), counts[present].astype(np.float64), costs, numItermax=100_000_000)
    return np.asarray(present[plan.argmax(axis=1)])


def whole_counts(shares: Array, n: int) -> Array:
    """Whole numbers (L,) with sum n, nearest to n times the ``shares``: the largest remainders are rounded up."""
    exact = n * np.asarray(shares, dtype=np.float64) / np.sum(shares)
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts
