"""Ratios of sums over units that are mostly different: one compiled pass for each permutation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.draws import BLOCK, byte_codes, generator, with_replacement
from pipeline.audits.permutation.statistics import MetricEstimate, RatioOfSums
from pipeline.types import Array


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
