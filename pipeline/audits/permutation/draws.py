"""A permutation of counted units is a multivariate hypergeometric draw: its cost does not depend on how many there are.

Shuffling the group labels of N units and counting the kinds in group A is drawing n_A units without replacement from
the pooled counts of the kinds. So B permutations of a table are B draws of a few numbers.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from pipeline.audits.permutation.hypergeometric import draw
from pipeline.audits.permutation.statistics import MetricEstimate, Statistic
from pipeline.types import Array

MOST_GROUPS = 256
"""Compiled passes over rows hold the code of a group in a byte."""

BLOCK = 1024
"""Permutations in a block. Block number and seed determine the draws, whatever was drawn before."""

COUNTS_AT_ONCE = 2**21
"""Counts of one group held in memory at a time: a table with many kinds is permuted in parts of a block."""


class Resampler(Protocol):
    """What every test needs: the observed metric of the G groups, and the same on permuted or resampled groups."""

    @property
    def observed(self) -> MetricEstimate:
        """Metric and variance of each group, (G,)."""

    @property
    def units(self) -> tuple[int, ...]:
        """How many units of each group are permuted."""

    def permuted(self, block: int, size: int) -> MetricEstimate:
        """Metric and variance of each group after each of ``size`` permutations, (G, size)."""

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        """The metric of each group in ``size`` samples with replacement, of each group or of all rows: (G, size)."""


def generator(seed: int, *block: int) -> np.random.Generator:
    """The stream of one block of draws."""
    return np.random.default_rng([seed, *block])


def byte_codes(group: Array, groups: int) -> Array:
    """Codes below ``groups`` in a byte each, uint8. Raises ValueError where a byte is too small."""
    if groups > MOST_GROUPS:
        raise ValueError(
            f"expected at most {MOST_GROUPS} groups to permute row by row, found {groups}: merge small groups, or test "
            "the pairs one at a time"
        )
    return group.astype(np.uint8)


def with_replacement(group: Array, groups: int, size: int, pooled: bool, rng: np.random.Generator) -> Iterator[Array]:
    """``size`` samples with replacement of the units of each group, or of all of them ``pooled``: numbers of units."""
    strata = [np.arange(len(group))] if pooled else [np.flatnonzero(group == g) for g in range(groups)]
    for _ in range(size):
        yield np.concatenate([units[rng.integers(len(units), size=len(units))] for units in strata])


def split(pooled: Array, sizes: Sequence[Array | int], draws: int, rng: np.random.Generator) -> Array:
    """Random partitions of units into groups of given sizes, counted by kind.

    ``pooled`` (..., U) are the units of each kind and ``sizes`` the G group sizes, integers or arrays (...), that sum
    to pooled.sum(-1). Returns counts (G, ..., draws, U) that sum to ``pooled`` over the groups.
    """
    pooled = np.asarray(pooled)
    rest = np.repeat(pooled[..., None, :], draws, axis=-2)
    groups = []
    for size in sizes[:-1]:
        left = np.broadcast_to(np.asarray(size)[..., None], rest.shape[:-1])
        taken = np.empty_like(rest)
        remaining = rest.sum(axis=-1)
        for kind in range(rest.shape[-1] - 1):
            remaining = remaining - rest[..., kind]
            taken[..., kind] = draw(rest[..., kind], remaining, left, rng)
            left = left - taken[..., kind]
        taken[..., -1] = left
        groups.append(taken)
        rest = rest - taken
    return np.stack([*groups, rest])


@dataclass(frozen=True)
class CountResampler:
    """Counts of U kinds of units in G groups, ``counts`` (G, U), permuted as a whole or within strata of kinds.

    ``strata`` (U,) numbers the strata; each is permuted by itself, so that its rows keep their number in every group.
    """

    statistic: Statistic
    counts: Array
    seed: int
    strata: Array | None = None

    @property
    def observed(self) -> MetricEstimate:
        return self.statistic(self.counts)

    @property
    def units(self) -> tuple[int, ...]:
        return tuple(int(n) for n in self.counts.sum(axis=1))

    def permuted(self, block: int, size: int) -> MetricEstimate:
        rng = generator(self.seed, block)
        at_once = min(BLOCK, max(1, COUNTS_AT_ONCE // self.counts.shape[1]))
        # Parts are always whole and then cut: so fewer draws are the first of many.
        parts = [self.statistic(self._drawn(at_once, rng)) for _ in range(0, size, at_once)]
        value, variance = (np.concatenate(part, axis=-1)[..., :size] for part in zip(*parts, strict=True))
        return MetricEstimate(value, variance)

    def _drawn(self, size: int, rng: np.random.Generator) -> Array:
        """Counts after each of ``size`` permutations, (G, size, U)."""
        counts = np.empty((len(self.counts), size, self.counts.shape[1]), dtype=np.int64)
        strata = np.zeros(self.counts.shape[1], dtype=int) if self.strata is None else self.strata
        for stratum in np.unique(strata):
            kinds = np.flatnonzero(strata == stratum)
            own = self.counts[:, kinds]
            counts[..., kinds] = split(own.sum(axis=0), list(own.sum(axis=1)), size, rng)
        return counts

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        rng = generator(self.seed, block, 1)
        if pooled:
            share = self.counts.ravel() / self.counts.sum()
            drawn = rng.multinomial(self.counts.sum(), share, size=size).reshape(size, *self.counts.shape)
            return self.statistic(np.moveaxis(drawn, 1, 0)).value
        drawn = np.stack([rng.multinomial(row.sum(), row / row.sum(), size=size) for row in self.counts])
        return self.statistic(drawn).value
