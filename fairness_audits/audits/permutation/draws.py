r"""Permute counted units by multivariate hypergeometric draws, at a cost that does not depend on the number of units.

Shuffling the group labels of N units and counting the kinds in group A is the same as drawing n_A units without
replacement from the pooled counts. B permutations of a table are therefore B draws of a few numbers. For one kind,

.. math:: P(X = x) = \binom{K}{x} \binom{N - K}{m - x} \Big/ \binom{N}{m}

where X counts the successes among m units drawn without replacement from N units with K successes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fairness_audits.audits.permutation.statistics import MetricEstimate, Statistic
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

UNDERFLOW = 750.0
"""exp(-UNDERFLOW) is less than the smallest double."""

NUMPY_LIMIT = 10**9
"""NumPy draws hypergeometric numbers only if there are fewer units of either kind."""

FEW = 0.003
"""Beyond NUMPY_LIMIT units, draws of up to this share of them are binomial and larger draws are normal."""

MOST_GROUPS = 256
"""Largest number of groups: compiled passes over rows store the group code in a byte."""

BLOCK = 1024
"""Permutations per block. Block number and seed determine the draws, independently of earlier draws."""

COUNTS_AT_ONCE = 2**21
"""Counts of one group held in memory at once: a table with many kinds is permuted in parts of a block."""


def window(successes: int, total: int, size: int) -> tuple[Array, Array]:
    """Return all x within sqrt(m' UNDERFLOW / 2) of the mode, and log P(X = x) - log P(X = mode), (w,) each.

    By Hoeffding's bound P(|X - EX| >= t) <= 2 exp(-2 t^2 / m'), with m' the smallest of m, N - m, K and N - K, the
    omitted probabilities underflow: the cost grows with the root of the number of units. Sums of the logarithms of P(x
    + 1) / P(x) = (K - x)(m - x) / ((x + 1)(N - K - m + x + 1)), outwards from the mode, keep the precision that
    differences of log-factorials would lose.
    """
    low, high = max(0, size - (total - successes)), min(size, successes)
    mode = min(max((successes + 1) * (size + 1) // (total + 2), low), high)
    reach = int(np.sqrt(min(size, total - size, successes, total - successes) * UNDERFLOW / 2)) + 2
    x = np.arange(max(low, mode - reach), min(high, mode + reach) + 1)
    k = x[:-1].astype(float)
    steps = np.log((successes - k) / (k + 1)) + np.log((size - k) / (total - successes - size + k + 1))
    below = mode - x[0]
    downward, upward = -np.cumsum(steps[:below][::-1])[::-1], np.cumsum(steps[below:])
    return x, np.concatenate([downward, [0.0], upward])


def draw(successes: Array, others: Array, size: Array, rng: np.random.Generator) -> Array:
    """Draw a hypergeometric number for each entry: ``size`` units of ``successes`` + ``others``; shapes broadcast."""
    successes, others, size = np.broadcast_arrays(successes, others, size)
    huge = (successes >= NUMPY_LIMIT) | (others >= NUMPY_LIMIT)
    if not huge.any():
        return rng.hypergeometric(successes, others, size)
    drawn = np.empty(successes.shape, dtype=np.int64)
    drawn[~huge] = rng.hypergeometric(successes[~huge], others[~huge], size[~huge])
    drawn[huge] = draw_huge(successes[huge], others[huge], size[huge], rng)
    return drawn


def draw_huge(successes: Array, others: Array, size: Array, rng: np.random.Generator) -> Array:
    r"""Draw hypergeometric numbers for any number of units, (n,) each -> (n,), by limits of the distribution.

    X counts the units shared by two random subsets of sizes a and b out of N units. All cases are complements of a <= b
    <= N / 2, where

    .. math:: X \approx \mathrm{Bin}(a, b / N) \;\text{for few } a, \qquad
              X \approx \mathcal N\Big(\frac{ab}{N}, \frac{ab (N - a)(N - b)}{N^2 (N - 1)}\Big) \;\text{for many},

    whose distribution functions are within 1e-3 of the exact one if N is beyond NUMPY_LIMIT.
    """
    total = successes + others
    rarer, fewer = np.minimum(successes, others), np.minimum(size, total - size)
    a, share = np.minimum(rarer, fewer), np.maximum(rarer, fewer) / total
    deviation = np.sqrt(a * share * (1 - share) * ((total - a) / (total - 1)))
    normal = np.clip(np.rint(a * share + deviation * rng.standard_normal(a.shape)), 0, a)
    both = np.where(a < FEW * total, rng.binomial(a, share), normal).astype(np.int64)
    rare = np.where(fewer == size, both, rarer - both)
    return np.where(rarer == successes, rare, size - rare)


class Resampler(Protocol):
    """The observed metric of the G groups, and the metric on permuted groups."""

    @property
    def observed(self) -> MetricEstimate:
        """Return metric and variance of each group, (G,)."""

    @property
    def units(self) -> tuple[int, ...]:
        """The number of permuted units in each group."""

    def permuted(self, block: int, size: int) -> MetricEstimate:
        """Return metric and variance of each group after each of ``size`` permutations, (G, size)."""


def generator(seed: int, *block: int) -> np.random.Generator:
    """Return the random generator of one block of draws."""
    return np.random.default_rng([seed, *block])


def byte_codes(group: Array, groups: int) -> Array:
    """Return codes below ``groups`` as uint8. Raises ValueError if a byte is too small."""
    if groups > MOST_GROUPS:
        raise InvalidInput(
            f"expected at most {MOST_GROUPS} groups to permute row by row, found {groups}: merge small groups, or test "
            "the pairs one at a time"
        )
    return group.astype(np.uint8)


def times_drawn(n: int, size: int, rng: np.random.Generator) -> Array:
    """Draw how often each of n units is in each of ``size`` samples of n with replacement, (size, n): multinomial."""
    drawn = rng.integers(n, size=(size, n)) + n * np.arange(size)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)


def split(pooled: Array, sizes: Sequence[Array | int], draws: int, rng: np.random.Generator) -> Array:
    """Draw random partitions of units into groups of given sizes, counted by kind.

    ``pooled`` (..., U) holds the number of units of each kind. ``sizes`` holds the G group sizes, integers or arrays
    (...) that sum to pooled.sum(-1). Returns counts (G, ..., draws, U) that sum to ``pooled`` over the groups.
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


def permuted(counts: Array, draws: int, rng: np.random.Generator) -> Array:
    """Permute the units of G groups, counted by kind: ``counts`` (G, ..., U) -> (G, ..., draws, U)."""
    return split(counts.sum(axis=0), list(counts.sum(axis=-1)), draws, rng)


@dataclass(frozen=True)
class CountResampler:
    """Counts (G, U) of U kinds of units in G groups, permuted as a whole or within strata of kinds.

    ``strata`` (U,) numbers the strata. Each stratum is permuted separately, so its number of rows in every group is
    fixed.
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
        # Draw whole parts and cut the result, so that fewer draws are a prefix of many.
        parts = [self.statistic(self._drawn(at_once, rng)) for _ in range(0, size, at_once)]
        value, variance = (np.concatenate(part, axis=-1)[..., :size] for part in zip(*parts, strict=True))
        return MetricEstimate(value, variance)

    def _drawn(self, size: int, rng: np.random.Generator) -> Array:
        """Return the counts after each of ``size`` permutations, (G, size, U)."""
        counts = np.empty((len(self.counts), size, self.counts.shape[1]), dtype=np.int64)
        strata = np.zeros(self.counts.shape[1], dtype=int) if self.strata is None else self.strata
        for stratum in np.unique(strata):
            kinds = np.flatnonzero(strata == stratum)
            counts[..., kinds] = permuted(self.counts[:, kinds], size, rng)
        return counts
