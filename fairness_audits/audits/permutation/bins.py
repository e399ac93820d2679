r"""Permute many units by bins of ranks, and bound the error of a metric if each score is known only by its bin.

A permutation of n rows takes a pass over all rows; a permutation of K bins takes K draws. If there are many rows and
nearly all scores differ, the estimates and T use the exact scores, but the permutations that T is compared with treat
the scores of one bin as equal. T is studentised before and after a permutation, so only the change of the variance by
the bins matters. If the bins lose more than :data:`LOST` of the variance, the rows themselves are permuted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.permutation.draws import CountResampler
from fairness_audits.audits.permutation.metrics import Auc, Mean
from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.audits.permutation.statistics import BinnedAuc, MetricEstimate, RatioOfSums, freedom
from fairness_audits.values import Array

MANY_ROWS = 100_000
"""Largest number of units that are permuted one by one."""
MANY_CELLS = 2_000
"""Largest number of distinct scores that are permuted without bins."""
NUMBER = 500
"""Number of bins per label."""
LOST = 1e-2
"""Largest share of the variance that bins may lose."""


def by_rank(counts: Array, number: int) -> Array:
    """Return the bin of each of K cells in ascending order, from counts (K, C) of rows in C classes: (K,) from 0.

    The rows of each class are cut into ``number`` bins of equal counts. Neighbouring cells share a bin if they begin
    and end in the same bin of every class. A bin therefore holds at most one in ``number`` of each class, or it is a
    single cell.
    """
    end, total = np.cumsum(counts, axis=0), np.maximum(counts.sum(axis=0), 1)
    begin = end - counts
    places = np.hstack([begin * number // total, np.maximum(begin, end - 1) * number // total])
    return np.append(0, np.cumsum((places[1:] != places[:-1]).any(axis=1)))


def merged(counts: Array, bins: Array) -> Array:
    """Sum the cells of each bin: (..., K) -> (..., B)."""
    return np.add.reduceat(counts, np.flatnonzero(np.diff(bins, prepend=-1)), axis=-1)


@dataclass(frozen=True)
class Coarse:
    """The estimate ``observed`` on the exact scores, and the resampler ``drawn`` that permutes bins."""

    observed: MetricEstimate
    drawn: CountResampler

    @property
    def units(self) -> tuple[int, ...]:
        return self.drawn.units

    def permuted(self, block: int, size: int) -> MetricEstimate:
        return self.drawn.permuted(block, size)


def coarse_auc(observed: MetricEstimate, counts: Array, table: Callable[[Array], Array], seed: int) -> Coarse | None:
    """Permute bins of K cells of scores.

    ``counts`` (2, K) is by label; ``table`` maps the bin of each cell to counts (G, 2, B). Return None if the bins may
    lose too much of the variance of all groups together.
    """
    bins = by_rank(counts.T, NUMBER)
    binned, variance = table(bins), BinnedAuc(counts.shape[1])(counts.ravel()).variance
    _, changes = off_by_pairs(binned.sum(axis=0, keepdims=True).astype(float), np.bincount(bins) > 1)
    if not changes[0] <= LOST * variance:
        return None
    return Coarse(observed, CountResampler(BinnedAuc(binned.shape[2]), binned.reshape(len(binned), -1), seed))


def coarse_mean(
    observed: MetricEstimate, values: Array, counts: Array, table: Callable[[Array], Array], seed: int
) -> Coarse | None:
    """Permute bins of K ascending ``values`` with ``counts`` (K,) units; ``table`` maps the values' bins to (G, B).

    Bins have equal counts and a limited width. Return None if they lose too much of the variance.
    """
    wide = np.floor((values - values[0]) / ((values[-1] - values[0]) / NUMBER))
    changes = (np.diff(by_rank(counts[:, None], NUMBER)) > 0) | (np.diff(wide) > 0)
    bins, mean = np.append(0, np.cumsum(changes)), np.average(values, weights=counts)
    within, total = merged(counts, bins), merged(counts * (values - mean), bins)
    between = (total**2 / within).sum() / (counts * (values - mean) ** 2).sum()
    if not 1 - between <= LOST:
        return None
    parts = np.stack([total / within + mean, np.ones(len(within))], axis=-1)
    return Coarse(observed, CountResampler(RatioOfSums(parts), table(bins), seed))


def can_be_binned(parts: Array) -> bool:
    """Return whether units with these parts (U, 2) are averaged with equal weights, and all values are finite."""
    return bool((parts[:, 1] == 1).all() and np.isfinite(parts).all())


def values_of(metric: Mean, data: Counts) -> tuple[Array, Array]:
    """Return the midpoint of the mean's range in each label's cells, and half the width of that range: (2 K,) each.

    Within a cell the value is least and largest at one of the cell's ends, or where the score equals the label.
    """
    label, lower, upper = np.repeat([0.0, 1.0], len(data.lower)), np.tile(data.lower, 2), np.tile(data.upper, 2)
    values = np.stack([metric.value(label, score) for score in (lower, upper, np.clip(label, lower, upper))])
    least, most = values.min(axis=0), values.max(axis=0)
    with np.errstate(invalid="ignore"):
        return np.where(least == most, least, (least + most) / 2), np.where(least == most, 0.0, (most - least) / 2)


def hidden(data: Counts, metric: Auc | Mean) -> Array:
    """Bound the error of each group's metric, and of its standard error, from cells that hold several scores: (2, G).

    Rows of one cell may be in any order: a pair of a positive and a negative counts one half, but its true value may be
    0 or 1. A standard deviation is a norm: it changes by no more than the norm of all changes.
    """
    table = data.table.astype(float)
    if isinstance(metric, Auc):
        off, squares = off_by_pairs(table, data.lower < data.upper)
    else:
        rows, half = table.reshape(len(table), -1), values_of(metric, data)[1]
        each = np.multiply(rows, half, where=rows > 0, out=np.zeros(rows.shape))
        n = rows.sum(axis=1)
        off, squares = each.sum(axis=1) / n, (each * half).sum(axis=1) / freedom(n) / n
    return np.stack([off, np.sqrt(squares)])


def off_by_pairs(table: Array, several: Array) -> tuple[Array, Array]:
    """Bound the error of each group's AUC by pairs within cells, and the square of the error of its standard error.

    ``several`` (K,) marks the cells with several scores; the rows are given by counts (G, 2, K).
    """
    negative, positive = table[:, 0], table[:, 1]
    m, n = positive.sum(axis=1, keepdims=True), negative.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        v10, v01 = several * negative / (2 * n), several * positive / (2 * m)
        off = (positive * v10).sum(axis=1) / m[:, 0]
        return off, (positive * v10**2 / freedom(m) / m + negative * v01**2 / freedom(n) / n).sum(axis=1)
