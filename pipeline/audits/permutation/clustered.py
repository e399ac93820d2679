r"""Rows of one person move together: what is permuted, resampled and counted are persons, not rows.

A rate or a mean is a ratio of sums over persons, sum a_c / sum b_c, so nothing but :class:`RatioOfSums` is needed. The
AUC of weighted rows i of persons c has the influence of a person

.. math:: \psi_c = \frac{1}{m} \sum_{i \in c, y_i = 1} w_i (V_{10}(i) - AUC)
                 + \frac{1}{n} \sum_{j \in c, y_j = 0} w_j (V_{01}(j) - AUC), \qquad
          v = \frac{C}{C - 1} \sum_c \psi_c^2,

m and n being the weights of positives and negatives (Obuchowski 1997). With one row a person this is DeLong's variance
up to a factor 1 + O(1/n).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.draws import BLOCK, byte_codes, generator, with_replacement
from pipeline.audits.permutation.statistics import MetricEstimate
from pipeline.types import Array


def summed(values: Array, cluster: Array) -> Array:
    """Sums over the rows of each cluster: values (n, C), cluster (n,) codes -> (clusters, C)."""
    return np.stack([np.bincount(cluster, weights=column) for column in values.T], axis=-1)


@dataclass(frozen=True)
class ClusteredRanks:
    """Rows in ascending order of score, with the cluster of each and the group of each cluster.

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
