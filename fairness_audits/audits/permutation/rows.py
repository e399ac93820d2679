"""Resamplers for units that mostly differ: each permutation is one pass over all units.

:class:`RankedRows` holds rows sorted by score, for the AUC; :class:`SummedRows` holds units with two parts, for ratios
of sums; :class:`ClusteredRanks` holds rows sorted by score whose clusters move together. Their passes are compiled.
:class:`UserRows` takes any user-defined metric.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.permutation.draws import BLOCK, byte_codes, generator, times_drawn
from fairness_audits.audits.permutation.metrics import UserMetric
from fairness_audits.audits.permutation.statistics import MetricEstimate, RatioOfSums, of_moments
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import reason
from fairness_audits.progress import track
from fairness_audits.values import Array

WEIGHTS_AT_ONCE = 2**22


def sizes(group: Array, groups: int) -> tuple[int, ...]:
    """Count the units of each group, by codes (n,)."""
    return tuple(np.bincount(group, minlength=groups).tolist())


def ranked(score: Array) -> tuple[Array, Array]:
    """Return the order of ascending scores (n,), and a mask (n,) of the last row of each run of ties in this order."""
    order = np.argsort(score, kind="stable")
    return order, np.append(score[order[1:]] != score[order[:-1]], True)


@dataclass(frozen=True)
class RankedRows:
    """Rows in ascending order of score: ``label`` (n,) uint8, ``group`` (n,) uint8 codes of the G groups.

    ``tie_end`` (n,) marks the last row of each run of equal scores; it is empty if all scores differ.
    """

    label: Array
    group: Array
    tie_end: Array
    units: tuple[int, ...]
    seed: int

    @classmethod
    def of(cls, label: Array, score: Array, group: Array, groups: int, seed: int) -> RankedRows:
        """Create from rows in any order; ``group`` holds codes below ``groups`` (ValueError for more than 256)."""
        order, last = ranked(score)
        tie_end = np.empty(0, dtype=bool) if last.all() else last
        codes = byte_codes(group[order], groups)
        return cls(label[order].astype(np.uint8), codes, tie_end, sizes(group, groups), seed)

    @property
    def distinct(self) -> int:
        """Return the number of distinct scores."""
        return int(self.tie_end.sum()) or len(self.label)

    @property
    def observed(self) -> MetricEstimate:
        from fairness_audits.audits.permutation.kernels import ranked_moments

        moments = np.zeros((3, 2 * len(self.units)))
        ranked_moments(self.group, self.label, self.tie_end, moments)
        return _estimate(moments)

    def permuted(self, block: int, size: int) -> MetricEstimate:
        from fairness_audits.audits.permutation.kernels import permuted_ranks

        moments = np.zeros((size, 3, 2 * len(self.units)))
        permuted_ranks(self.seed, block * BLOCK, np.array(self.units), self.label, self.tie_end, moments)
        return _estimate(moments)


def _estimate(moments: Array) -> MetricEstimate:
    """Compute AUC and variance (G, ...) from moments (..., 3, 2 G)."""
    count, total, squares = np.moveaxis(moments, (-1, -2), (0, 1)).swapaxes(0, 1)
    return of_moments(count[1::2], count[::2], total[1::2], squares[1::2], total[::2], squares[::2])


@dataclass(frozen=True)
class SummedRows:
    """Units with parts (a, b), ``statistic.parts`` (n, 2), and ``group`` (n,), codes of the G groups.

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
        # With contiguous columns NumPy adds in pairs, which rounds less than adding one row after the other.
        columns = np.ascontiguousarray(self.statistic.moments().T)
        sums = [columns.compress(self.group == g, axis=1).sum(axis=1) for g in range(len(self.units))]
        return self.statistic.of_sums(np.stack(sums))

    def permuted(self, block: int, size: int) -> MetricEstimate:
        from fairness_audits.audits.permutation.kernels import permuted_sums

        moments = self.statistic.moments()
        # If b = 1 throughout, as in a mean, four of the six sums are known: they are counts of units, or repeated.
        plain = bool((self.statistic.parts[:, 1] == 1).all())
        columns = np.ascontiguousarray(moments[:, [0, 2]].T if plain else moments.T)
        sums = np.zeros((size, len(self.units), len(columns)))
        permuted_sums(self.seed, block * BLOCK, np.array(self.units), columns, sums)
        sums[:, 0] = columns.sum(axis=1) - sums[:, 1:].sum(axis=1)
        if plain:
            n = np.broadcast_to(np.array(self.units, dtype=float), sums.shape[:-1])
            sums = np.stack([sums[..., 0], n, sums[..., 1], sums[..., 0], n, n], axis=-1)
        return self.statistic.of_sums(np.moveaxis(sums, 1, 0))


def summed(values: Array, cluster: Array) -> Array:
    """Sum the rows of each cluster: values (n, C), cluster (n,) codes -> (clusters, C)."""
    return np.stack([np.bincount(cluster, weights=column) for column in values.T], axis=-1)


@dataclass(frozen=True)
class ClusteredRanks:
    r"""Rows in ascending order of score, with the cluster of each row and the group of each cluster.

    Rows of one person move together: we permute and count persons, not rows. The influence of a person c on the AUC is

    .. math:: \psi_c = \frac{1}{m} \sum_{i \in c, y_i = 1} (V_{10}(i) - AUC)
                     + \frac{1}{n} \sum_{j \in c, y_j = 0} (V_{01}(j) - AUC), \qquad
              v = \frac{C}{C - 1} \sum_c \psi_c^2,

    with m and n the numbers of positives and negatives (Obuchowski 1997). With one row per person this is DeLong's
    variance up to a factor 1 + O(1/n). With weights, a row counts as often as its weight says.

    ``cluster``, ``label`` (uint8), ``tie_end`` (last row of a run of equal scores) and ``weight`` are (n,); ``group``
    (C,) holds uint8 codes.
    """

    cluster: Array
    label: Array
    tie_end: Array
    weight: Array
    group: Array
    units: tuple[int, ...]
    seed: int

    @classmethod
    def of(
        cls,
        label: Array,
        score: Array,
        cluster: Array,
        group: Array,
        groups: int,
        seed: int,
        weight: Array | None = None,
    ) -> ClusteredRanks:
        """Create from rows in any order, all (n,) except ``group`` (C,): the code below ``groups`` of each cluster.

        Raises ValueError for more than 256 groups.
        """
        order, tie_end = ranked(score)
        rows = cluster[order], label[order].astype(np.uint8)
        times = np.ones(len(label)) if weight is None else weight[order].astype(float)
        return cls(*rows, tie_end, times, byte_codes(group, groups), sizes(group, groups), seed)

    def _rows_of(self) -> Array:
        """Weighted number of rows by cluster and label, (C, 2)."""
        return np.bincount(2 * self.cluster + self.label, self.weight, 2 * len(self.group)).reshape(-1, 2)

    @property
    def observed(self) -> MetricEstimate:
        from fairness_audits.audits.permutation.kernels import clustered_auc

        value, variance = np.empty(len(self.units)), np.empty(len(self.units))
        rows = self.cluster, self.label, self.tie_end, self.weight, self._rows_of()
        clustered_auc(self.group, *rows, value, variance)
        return MetricEstimate(value, variance)

    def permuted(self, block: int, size: int) -> MetricEstimate:
        from fairness_audits.audits.permutation.kernels import permuted_clusters

        value, variance = np.empty((size, len(self.units))), np.empty((size, len(self.units)))
        rows = self.cluster, self.label, self.tie_end, self.weight, self._rows_of()
        permuted_clusters(self.seed, block * BLOCK, np.array(self.units), *rows, value, variance)
        return MetricEstimate(value.T, variance.T)


@dataclass(frozen=True)
class UserRows:
    r"""Rows ``label``, ``score`` (n,) with each row's ``unit`` (n,) (itself or its cluster) and its ``group`` (U,).

    Any user-defined metric, studentised by a bootstrap within every permutation (Algorithm 1):

    .. math:: v_g = \frac{1}{T - 1} \sum_t \Big(f_g^{(t)} - \bar f_g\Big)^2

    where f_g^{(t)} is the metric of a sample with replacement from the rows of group g. Rows are not copied: they get
    multinomial weights, with all T samples in one call if the metric allows it (DiCiccio et al. 2020, equation 1).

    ``bootstraps`` is T; with 0 no variance is estimated (NaN). If the user's function raises ValueError on permuted or
    resampled rows, the metric counts as undefined.
    """

    metric: UserMetric
    label: Array
    score: Array
    unit: Array
    group: Array
    units: tuple[int, ...]
    bootstraps: int
    seed: int

    def __post_init__(self) -> None:
        inside = self.group[self.unit] == 0
        try:
            some = self._call(np.flatnonzero(inside), np.ones(inside.sum()))
            masked = self._call(np.arange(len(self.label)), inside.astype(float))
        except Exception as error:
            raise InvalidInput(
                f"metric {self.metric.name!r} fails on the rows of a group: {reason(error)}", option="metric"
            ) from error
        if not np.isclose(some, masked, rtol=1e-6, equal_nan=True):
            raise InvalidInput(
                f"metric {self.metric.name!r} gives {some:.6g} for the rows of a group, but {masked:.6g} if the "
                "other rows are present with weight 0: make it respect the weights"
            )

    @property
    def observed(self) -> MetricEstimate:
        return self._estimate(self.group, generator(self.seed, 0, 2))

    def permuted(self, block: int, size: int) -> MetricEstimate:
        rng = generator(self.seed, block)
        estimates = [self._estimate(rng.permutation(self.group), rng) for _ in range(size)]
        value, variance = (np.stack(parts, axis=-1) for parts in zip(*estimates, strict=True))
        return MetricEstimate(value, variance)

    def _estimate(self, group: Array, rng: np.random.Generator) -> MetricEstimate:
        own_group = group[self.unit]
        rows = [np.flatnonzero(own_group == g) for g in range(len(self.units))]
        value = np.array([self._tried(own, np.ones(len(own))) for own in rows])
        if not self.bootstraps:
            return MetricEstimate(value, np.full(len(rows), np.nan))
        samples = [self._resampled(own, rng) for own in rows]
        return MetricEstimate(value, np.array([sample.var(ddof=1) for sample in samples]))

    def _resampled(self, rows: Array, rng: np.random.Generator) -> Array:
        """Compute the metric of ``bootstraps`` samples with replacement of the units of these rows."""
        units, place = np.unique(self.unit[rows], return_inverse=True)
        at_once = max(1, WEIGHTS_AT_ONCE // len(rows))
        parts = []
        for first in track("bootstrap", range(0, self.bootstraps, at_once)):
            times = times_drawn(len(units), min(at_once, self.bootstraps - first), rng)
            parts.append(self._calls(rows, times[:, place].astype(float)))
        return np.concatenate(parts)

    def _calls(self, rows: Array, weights: Array) -> Array:
        """Compute the metric of these rows under each row of weights: (T, rows) -> (T,)."""
        if not self.metric.batched:
            return np.array([self._tried(rows, weight) for weight in weights])
        values = np.asarray(self.metric.function(self.label[rows], self.score[rows], weights), dtype=float)
        if values.shape != (len(weights),):
            raise InvalidInput(
                f"expected metric {self.metric.name!r} to return shape {(len(weights),)} for weights of shape "
                f"{weights.shape}, found {values.shape}: sum over the last axis, or do not declare it batched"
            )
        return values

    def _tried(self, rows: Array, weight: Array) -> float:
        try:
            return self._call(rows, weight)
        except (ValueError, ZeroDivisionError):
            return float("nan")
        except Exception as error:
            raise InvalidInput(f"metric {self.metric.name!r} failed: {reason(error)}", option="metric") from error

    def _call(self, rows: Array, weight: Array) -> float:
        return float(self.metric.function(self.label[rows], self.score[rows], weight))
