"""Two p-values of equal AUCs for each of many samples at once: what simulations of the level are made of."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipeline.audits.permutation.auc_statistic import of_moments
from pipeline.audits.permutation.pvalue import extreme, monte_carlo_p
from pipeline.audits.permutation.ranked_rows import RankedRows
from pipeline.audits.permutation.statistics import MetricEstimate, studentized
from pipeline.types import Array

TOGETHER = 16
"""Samples that share their permutations, one for each lane of a vector register or two."""

PERMUTATIONS_AT_ONCE = 128


class AucP(NamedTuple):
    """Two-sided p-values (S,) of the difference itself and of the difference studentised by DeLong's variance."""

    unstudentized: Array
    studentized: Array


def auc_p(label: Array, group: Array, *, rng: np.random.Generator, draws: int = 1000) -> AucP:
    """p-values of S samples of n rows each, ``label`` and ``group`` (S, n) of 0 and 1 in ascending order of score.

    The tests are those of ``permutation_test`` by the same names, of scores of which no two are equal. In every sample
    the groups have the sizes of the first. ``TOGETHER`` samples share their permutations: each p-value has its law, and
    what they have in common is only the error of their ``draws``. NaN where a group lacks a label or, studentised,
    where DeLong's variance is 0 or does not exist.
    """
    sizes = np.bincount(group[0], minlength=2)
    observed = _observed(label, group, sizes)
    difference, t = observed.value[0] - observed.value[1], studentized(observed)
    beyond = np.zeros((2, len(label)), dtype=np.int64)
    for first in range(0, len(label), TOGETHER):
        part = slice(first, first + TOGETHER)
        beyond[:, part] = _extremes(label[part], sizes, difference[part], t[part], draws, int(rng.integers(2**63)))
    p = monte_carlo_p(beyond, draws)
    testable = np.isfinite(t) & (observed.variance > 0).all(axis=0)
    return AucP(np.where(np.isfinite(difference), p[0], np.nan), np.where(testable, p[1], np.nan))


def _observed(label: Array, group: Array, sizes: Array) -> MetricEstimate:
    """AUC and variance of both groups, (2, S)."""
    units, none = (int(sizes[0]), int(sizes[1])), np.empty(0, dtype=bool)
    rows = zip(label.astype(np.uint8), group.astype(np.uint8), strict=True)
    found = [RankedRows(own, codes, none, units, 0).observed for own, codes in rows]
    return MetricEstimate(
        np.stack([one.value for one in found], axis=1), np.stack([one.variance for one in found], axis=1)
    )


def _extremes(label: Array, sizes: Array, difference: Array, t: Array, draws: int, seed: int) -> Array:
    """How many of the draws are as extreme as D and as T: (2, S) for at most ``TOGETHER`` samples."""
    from pipeline.audits.permutation.kernels import permuted_codes
    from pipeline.audits.permutation.ranked_kernel import ranked_sums

    samples, n = label.shape
    # A column for each sample; those that fill up the register are of no sample.
    columns = np.zeros((n, TOGETHER))
    columns[:, :samples] = label.T
    beyond = np.zeros((2, samples), dtype=np.int64)
    for first in range(0, draws, PERMUTATIONS_AT_ONCE):
        codes = np.empty((min(PERMUTATIONS_AT_ONCE, draws - first), n), dtype=np.uint8)
        permuted_codes(seed, first, sizes, codes)
        sums = np.zeros((len(codes), 2, 6, TOGETHER))
        ranked_sums(codes, columns, sums)
        # (6, 2, samples, draws)
        estimate = of_moments(*np.moveaxis(sums, 0, -1).swapaxes(0, 1)[:, :, :samples])
        beyond[0] += extreme(estimate.value[0] - estimate.value[1], difference, "two-sided").sum(axis=-1)
        beyond[1] += extreme(studentized(estimate), t, "two-sided").sum(axis=-1)
    return beyond
