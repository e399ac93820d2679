r"""Any metric of the user's own, studentised by a bootstrap within every permutation (Algorithm 1).

.. math:: v_g = \frac{1}{T - 1} \sum_t \Big(f_g^{(t)} - \bar f_g\Big)^2

where f_g^{(t)} is the metric of a sample with replacement from the rows of group g: not rows copied, but the same rows
with multinomial weights, all T of them in one call if the metric can. Source: DiCiccio et al. 2020, equation 1.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.draws import generator
from pipeline.audits.permutation.metrics import UserMetric
from pipeline.audits.permutation.statistics import MetricEstimate
from pipeline.types import Array

WEIGHTS_AT_ONCE = 2**22


@dataclass(frozen=True)
class UserRows:
    """Rows ``label``, ``score``, ``weight`` (n,), each of a ``unit`` (n,) (itself, or its cluster) in ``group`` (U,).

    ``bootstraps`` is T; with 0 no variance is estimated (NaN). A ValueError of the user's function on permuted or
    resampled rows counts as an undefined metric.
    """

    metric: UserMetric
    label: Array
    score: Array
    weight: Array
    unit: Array
    group: Array
    units: tuple[int, ...]
    bootstraps: int
    seed: int

    def __post_init__(self) -> None:
        inside = self.group[self.unit] == 0
        some = self._call(np.flatnonzero(inside), self.weight[inside])
        masked = self._call(np.arange(len(self.label)), np.where(inside, self.weight, 0.0))
        if not np.isclose(some, masked, rtol=1e-6, equal_nan=True):
            raise ValueError(
                f"metric {self.metric.name!r} gives {some:.6g} for the rows of a group, but {masked:.6g} when the "
                "other rows are there with weight 0: make it a function of weighted rows"
            )

    @property
    def observed(self) -> MetricEstimate:
        return self._estimate(self.group, generator(self.seed, 0, 2))

    def permuted(self, block: int, size: int) -> MetricEstimate:
        rng = generator(self.seed, block)
        estimates = [self._estimate(rng.permutation(self.group), rng) for _ in range(size)]
        value, variance = (np.stack(parts, axis=-1) for parts in zip(*estimates, strict=True))
        return MetricEstimate(value, variance)

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        rng = generator(self.seed, block, 1)
        if not pooled:
            return np.stack([self._resampled(rows, size, rng) for rows in self._rows(self.group)])
        times = self._times(np.arange(len(self.group)), size, rng)[:, self.unit] * self.weight
        return np.stack([self._calls(rows, times[:, rows]) for rows in self._rows(self.group)])

    def _estimate(self, group: Array, rng: np.random.Generator) -> MetricEstimate:
        rows = self._rows(group)
        value = np.array([self._tried(own, self.weight[own]) for own in rows])
        if not self.bootstraps:
            return MetricEstimate(value, np.full(len(rows), np.nan))
        samples = [self._resampled(own, self.bootstraps, rng) for own in rows]
        return MetricEstimate(value, np.array([sample.var(ddof=1) for sample in samples]))

    def _rows(self, group: Array) -> list[Array]:
        own = group[self.unit]
        return [np.flatnonzero(own == g) for g in range(len(self.units))]

    def _resampled(self, rows: Array, size: int, rng: np.random.Generator) -> Array:
        """The metric of ``size`` samples with replacement of the units of these rows, (size,)."""
        units, place = np.unique(self.unit[rows], return_inverse=True)
        at_once = max(1, WEIGHTS_AT_ONCE // len(rows))
        parts = []
        for first in range(0, size, at_once):
            times = self._times(units, min(at_once, size - first), rng)
            parts.append(self._calls(rows, times[:, place] * self.weight[rows]))
        return np.concatenate(parts)

    @staticmethod
    def _times(units: Array, size: int, rng: np.random.Generator) -> Array:
        """How often each unit is drawn in each of ``size`` samples with replacement, (size, units): multinomial."""
        n = len(units)
        drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
        return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)

    def _calls(self, rows: Array, weights: Array) -> Array:
        """The metric of these rows under each row of weights: (T, rows) -> (T,)."""
        if not self.metric.batched:
            return np.array([self._tried(rows, weight) for weight in weights])
        values = np.asarray(self.metric.function(self.label[rows], self.score[rows], weights), dtype=float)
        if values.shape != (len(weights),):
            raise ValueError(
                f"expected metric {self.metric.name!r} to give {(len(weights),)} values for weights {weights.shape}, "
                f"found {values.shape}: sum over the last axis, or do not declare it batched"
            )
        return values

    def _tried(self, rows: Array, weight: Array) -> float:
        try:
            return self._call(rows, weight)
        except ValueError:
            return float("nan")

    def _call(self, rows: Array, weight: Array) -> float:
        return float(self.metric.function(self.label[rows], self.score[rows], weight))
