r"""Is a flipset's mean shift further from the whole group's than that of people picked at random?

Under the null hypothesis that flipping has nothing to do with a column v, the k members are a random subset of the n
people of the group. With T(A) = |mean over A of v - mean over all of v|,

.. math:: p = \frac{1 + \#\{b : T(A_b) \ge T(F)\}}{B + 1}, \qquad A_1, \dots, A_B \text{ random subsets of size } k,

which is at most alpha with probability at most alpha under the null, whatever n, k and the distribution of v. The
subsets are drawn, because for small flipsets and skewed shifts the normal limit of the mean of a sample without
replacement is wrong by large factors in the tails, where adjusted p-values are decided. With v centred, its sum over A
is minus the sum over the others, so the smaller of the two is drawn.

A small p-value says that the flipset shifts otherwise than its group. A large one does not make a shift noise: that of
everybody alike is as large in any part of the group (``pipeline.audits.fliptest.standing``). Whether flips of this
number arise from errors of the map is another question again; its null is a map between identical distributions (Black
et al. 2020, section 5.1), where every flip is noise (``pipeline.audits.fliptest.dealt``).
"""

from __future__ import annotations

import numpy as np

from pipeline.audits.permutation.pvalue import ROUNDING, monte_carlo_p
from pipeline.types import Array

MEMBERS_AT_ONCE = 2**22
"""Drawn members held in memory at a time."""


def subset_p_values(values: Array, members: Array, draws: int, rng: np.random.Generator) -> Array:
    """Two-sided p-values (c,) of the means of values (n, c) over the ``members`` (n,) bool, from ``draws`` subsets.

    The same subsets serve all columns. NaN without members.
    """
    n, k = len(values), int(members.sum())
    if k == 0:
        return np.full(values.shape[1], np.nan)
    centred = values - values.mean(axis=0)
    # Sums in another order differ by rounding, which must not decide whether a subset is as extreme.
    slack = ROUNDING * n * np.abs(values).max(axis=0)
    least = np.abs(centred[members].sum(axis=0)) - slack
    drawn = min(k, n - k)
    extremes = np.zeros(values.shape[1], dtype=np.int64)
    at_once = max(1, MEMBERS_AT_ONCE // max(drawn, 1))
    for start in range(0, draws, at_once):
        sums = _subset_sums(centred, drawn, min(at_once, draws - start), rng)
        extremes += (np.abs(sums) >= least).sum(axis=0)
    return monte_carlo_p(extremes, draws)


def _subset_sums(values: Array, size: int, draws: int, rng: np.random.Generator) -> Array:
    """Column sums (draws, c) over random subsets of ``size`` rows of values (n, c)."""
    from scipy.sparse import csr_matrix

    chosen = np.empty((draws, size), dtype=np.int64)
    for row in chosen:
        row[:] = rng.choice(len(values), size, replace=False, shuffle=False)
    ends = np.arange(draws + 1) * size
    return csr_matrix((np.ones(draws * size), chosen.ravel(), ends), shape=(draws, len(values))) @ values
