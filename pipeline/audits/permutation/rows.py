"""Ways to permute units that are mostly different: one compiled pass over all of them for each permutation.

:class:`RankedRows` are rows by their score, for the AUC; :class:`SummedRows` units with two parts, for ratios of sums;
:class:`ClusteredRanks` weighted rows by their score, of which those of one person move together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.draws import BLOCK, byte_codes, generator, with_replacement
from pipeline.audits.permutation.statistics import MetricEstimate, RatioOfSums, of_moments
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


@dataclass(frozen=True)
class SummedRows:
    """Units with parts (a, b), ``statistic.parts`` (n, 2), of ``group`` (n,), codes of the G groups.

    Raises ValueError for more than 256 groups.
    """

    statistic: RatioOfSums
    group: Array
    units: tuple[int, ...]
    seed: int

    def __post_init__(self) -> None:
        byte_codes(self.group, len(self.units))

    @property
    def observed(self) -> MetricEstimate:
        columns = self.statistic.moments()
        sums = [columns[self.group == g].sum(axis=0) for g in range(len(self.units))]
        return self.statistic.of_sums(np.stack(sums))

    def permuted(self, block: int, size: int) -> MetricEstimate:
        from pipeline.audits.permutation.kernels import permuted_sums

        moments = self.statistic.moments()
        # Where b = 1 throughout, as in a mean, four of the six sums are known: they are numbers of units, or repeated.
        plain = bool((self.statistic.parts[:, 1] == 1).all())
        columns = np.ascontiguousarray(moments[:, [0, 2]].T if plain else moments.T)
        sums = np.zeros((size, len(self.units), len(columns)))
        permuted_sums(self.seed, block * BLOCK, np.array(self.units), columns, sums)
        sums[:, 0] = columns.sum(axis=1) - sums[:, 1:].sum(axis=1)
        if plain:
            n = np.broadcast_to(np.array(self.units, dtype=float), sums.shape[:-1])
            sums = np.stack([sums[..., 0], n, sums[..., 1], sums[..., 0], n, n], axis=-1)
        return self.statistic.of_sums(np.moveaxis(sums, 1, 0))

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        values = np.empty((len(self.units), size))
        drawn = with_replacement(self.group, len(self.units), size, pooled, generator(self.seed, block, 1))
        for draw, rows in enumerate(drawn):
            sums = [np.bincount(self.group[rows], part[rows], len(self.units)) for part in self.statistic.parts.T]
            with np.errstate(divide="ignore", invalid="ignore"):
                values[:, draw] = sums[0] / sums[1]
        return values


def summed(values: Array, cluster: Array) -> Array:
    """Sums over the rows of each cluster: values (n, C), cluster (n,) codes -> (clusters, C)."""
    return np.stack([np.bincount(cluster, weights=column) for column in values.T], axis=-1)


@dataclass(frozen=True)
class ClusteredRanks:
    r"""Rows in ascending order of score, with the cluster of each and the group of each cluster.

    Rows of one person move together: what is permuted, resampled and counted are persons, not rows. The AUC of weighted
    rows i of persons c has the influence of a person

    .. math:: \psi_c = \frac{1}{m} \sum_{i \in c, y_i = 1} w_i (V_{10}(i) - AUC)
                     + \frac{1}{n} \sum_{j \in c, y_j = 0} w_j (V_{01}(j) - AUC), \qquad
              v = \frac{C}{C - 1} \sum_c \psi_c^2,

    m and n being the weights of positives and negatives (Obuchowski 1997). With one row a person this is DeLong's
    variance up to a factor 1 + O(1/n).

    ``cluster``, ``label`` (uint8), ``weight`` and ``tie_end`` (last row of a run of equal scores) are (n,); ``group``
    (C,) uint8 codes.
    """

    cluster: Array
    label: Array
    weight: Array
    tie_end: Array
    group: Array
    units: tuple[int, ...]
    seed: int

    @classmethod
    def of(
        cls, label: Array, score: Array, weight: Array, cluster: Array, group: Array, groups: int, seed: int
    ) -> ClusteredRanks:
        """From rows in any order, all (n,) but ``group`` (C,): the code below ``groups`` of each cluster.

        Raises ValueError for more than 256 groups.
        """
        order = np.argsort(score, kind="stable")
        ranked = score[order]
        tie_end = np.append(ranked[1:] != ranked[:-1], True)
        units = tuple(int(size) for size in np.bincount(group, minlength=groups))
        rows = cluster[order], label[order].astype(np.uint8), weight[order].astype(float)
        return cls(*rows, tie_end, byte_codes(group, groups), units, seed)

    def _held(self, weight: Array) -> Array:
        """Weight by cluster and label, (C, 2)."""
        cell = 2 * self.cluster + self.label
        return np.bincount(cell, weights=weight, minlength=2 * len(self.group)).reshape(-1, 2)

    def _estimate(self, weight: Array) -> MetricEstimate:
        from pipeline.audits.permutation.kernels import clustered_auc, clustered_ranks

        groups = len(self.units)
        count, part = np.zeros(2 * groups), np.zeros((len(self.group), 2))
        value, variance = np.empty(groups), np.empty(groups)
        clustered_ranks(self.group, self.cluster, self.label, weight, self.tie_end, count, part)
        clustered_auc(self.group, part, self._held(weight), count, value, variance)
        return MetricEstimate(value, variance)

    @property
    def observed(self) -> MetricEstimate:
        return self._estimate(self.weight)

    def permuted(self, block: int, size: int) -> MetricEstimate:
        from pipeline.audits.permutation.kernels import permuted_clusters

        value, variance = np.empty((size, len(self.units))), np.empty((size, len(self.units)))
        permuted_clusters(
            self.seed,
            block * BLOCK,
            np.array(self.units),
            self.cluster,
            self.label,
            self.weight,
            self.tie_end,
            self._held(self.weight),
            value,
            variance,
        )
        return MetricEstimate(value.T, variance.T)

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        drawn = with_replacement(self.group, len(self.units), size, pooled, generator(self.seed, block, 1))
        times = (np.bincount(clusters, minlength=len(self.group)) for clusters in drawn)
        return np.stack([self._estimate(self.weight * each[self.cluster]).value for each in times], axis=-1)
