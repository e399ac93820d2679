"""The AUC of rows whose scores are mostly different: ranked once, then one compiled pass for each permutation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.auc_statistic import of_moments
from pipeline.audits.permutation.draws import BLOCK, byte_codes, generator, with_replacement
from pipeline.audits.permutation.statistics import MetricEstimate
from pipeline.types import Array


@dataclass(frozen=True)
class RankedRows:
    """Rows in ascending order of score: ``label`` (n,) uint8, ``group`` (n,) uint8 codes of the G groups.

    ``tie_end`` (n,) marks the last row of each run of equal scores; it is empty where all scores differ.
    """

    label: Array
    group: Array
    tie_end: Array
    units: tuple[int, ...]
    seed: int

    @classmethod
    def of(cls, label: Array, score: Array, group: Array, groups: int, seed: int) -> RankedRows:
        """From rows in any order; ``group`` holds codes below ``groups``. Raises ValueError for more than 256."""
        order = np.argsort(score, kind="stable")
        ranked = score[order]
        last = np.append(ranked[1:] != ranked[:-1], True)
        tie_end = np.empty(0, dtype=bool) if last.all() else last
        units = tuple(int(size) for size in np.bincount(group, minlength=groups))
        return cls(label[order].astype(np.uint8), byte_codes(group[order], groups), tie_end, units, seed)

    @property
    def observed(self) -> MetricEstimate:
        from pipeline.audits.permutation.kernels import ranked_moments

        moments = np.zeros((3, 2 * len(self.units)))
        ranked_moments(self.group, self.label, self.tie_end, moments)
        return _estimate(moments)

    def permuted(self, block: int, size: int) -> MetricEstimate:
        from pipeline.audits.permutation.kernels import permuted_ranks

        moments = np.zeros((size, 3, 2 * len(self.units)))
        permuted_ranks(self.seed, block * BLOCK, np.array(self.units), self.label, self.tie_end, moments)
        return _estimate(moments)

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        drawn = with_replacement(self.group, len(self.units), size, pooled, generator(self.seed, block, 1))
        return np.stack([self._auc(np.sort(rows)) for rows in drawn], axis=-1)

    def _auc(self, drawn: Array) -> Array:
        """The AUC of each group in the sample of these rows, in ascending order, (G,)."""
        from pipeline.audits.permutation.kernels import ranked_moments

        run = np.cumsum(self.tie_end) - self.tie_end if len(self.tie_end) else np.arange(len(self.label))
        tie_end = np.append(run[drawn[1:]] != run[drawn[:-1]], True)
        moments = np.zeros((3, 2 * len(self.units)))
        ranked_moments(self.group[drawn], self.label[drawn], tie_end, moments)
        return _estimate(moments).value


def _estimate(moments: Array) -> MetricEstimate:
    """Moments (..., 3, 2 G) -> AUC and variance (G, ...)."""
    count, total, squares = np.moveaxis(moments, (-1, -2), (0, 1)).swapaxes(0, 1)
    return of_moments(count[1::2], count[::2], total[1::2], squares[1::2], total[::2], squares[::2])
