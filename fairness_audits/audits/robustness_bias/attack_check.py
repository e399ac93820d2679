"""Is an attack equally good for all groups? Compare it with a second upper bound on a sample of each group.

An attack's distance is an upper bound. If gradients vanish or mislead, it is far too long, and the affected group looks
farther from the boundary than it is. A second search (:mod:`fairness_audits.attacks.second_bound`) gives another upper
bound for a sample of images. The attack is *worse* at an image if its distance is more than ``FACTOR`` times the second
bound and more than ``LEAST`` above it. Images on which the attack failed are counted separately.

The second bound judges the attack. It does not replace distances, because the share of images in the sample differs by
group, and the group with the smaller share would look farther from the boundary than it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.values import Array

FACTOR = 1.5
LEAST = 1e-3
"""A quarter of a grey level in one pixel. Smaller differences are rounding."""
SAMPLE = 16
"""Largest number of images of a group that are checked."""
MOST = 320
"""Largest number of images checked in all groups together, except that each group has at least ``FEWEST``."""
FEWEST = 4


def sampled(correct: Array, partitions: Sequence[Partition], rng: np.random.Generator) -> Array:
    """Return the indices of the points to check: the first ``SAMPLE`` of each level in a random order.

    Only points that are ``correct`` (n,) are drawn. All partitions use the same order, so their samples overlap.
    """
    order = rng.permutation(np.flatnonzero(correct))
    levels = [(one, level) for one in partitions for level in range(len(one))]
    size = min(SAMPLE, max(FEWEST, MOST // max(1, len(levels))))
    chosen = [order[one.codes[order] == level][:size] for one, level in levels]
    return np.unique(np.concatenate(chosen)) if chosen else order[:0]


@dataclass(frozen=True)
class Checked:
    """Check of an attack in the L levels of a partition; each array is (L,).

    ``checked`` counts the images with a distance and a second bound. Their means are ``attack_mean`` and
    ``second_mean``, NaN without such images. The attack is worse at ``worse`` of them. ``lost`` of the ``n`` correct
    images have no gradient along some of their pixels.
    """

    n: Array
    checked: Array
    worse: Array
    attack_mean: Array
    second_mean: Array
    lost: Array

    @property
    def worse_share(self) -> Array:
        """Return the share of checked images at which the attack is worse; 0 if at most one is worse."""
        return np.where(self.worse > 1, self.worse / np.maximum(self.checked, 1), 0.0)

    @property
    def lost_apart(self) -> Array:
        """Return the absolute difference between the shares of lost gradients in the level and in all other levels."""
        own, others = self.lost / np.maximum(self.n, 1), self.lost.sum() - self.lost
        rest = others / np.maximum(self.n.sum() - self.n, 1)
        return np.abs(own - rest)


def checked(distance: Array, second: Array, tried: Array, lost: Array, correct: Array, partition: Partition) -> Checked:
    """Compare an attack's ``distance`` (n,) with the ``second`` bound (n,) of the points ``tried`` (n,), by level.

    NaN means that a search failed. ``lost`` (n,) is the share of a point's pixels without a gradient. Only points that
    are ``correct`` (n,) count.
    """
    both = tried & ~np.isnan(distance) & ~np.isnan(second)
    worse = both & (distance > np.maximum(FACTOR * second, second + LEAST))

    def by_level(values: Array) -> Array:
        known = correct & (partition.codes >= 0)
        return np.bincount(partition.codes[known], values[known], minlength=len(partition))

    pairs = by_level(both)
    attack, bound = (by_level(np.where(both, values, 0.0)) for values in (distance, second))
    counts = np.where(pairs > 0, pairs, np.nan)
    n, compared, beyond, without = (by_level(of).astype(int) for of in (correct, both, worse, lost > 0))
    return Checked(n, compared, beyond, attack / counts, bound / counts, without)
