"""Is an attack equally good for all groups? Its distances beside a second upper bound on a sample of every group.

A distance is an upper bound. Where gradients vanish or mislead, it is far too long, and a group whose images lose them
looks farther from the boundary than it is. On the images of the sample a second search
(:mod:`fairness_audits.attacks.second_bound`) gives another upper bound. An attack is *worse* at an image where its
distance is more than ``FACTOR`` times the second one and more than ``LEAST`` above it. Images where it failed are
counted apart.

The second bound judges the attack and does not replace its distances: groups of different sizes have samples of
different shares, and the smaller sample's group would look farther than it is.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.values import Array

FACTOR = 1.5
LEAST = 1e-3
"""A quarter of a grey level in one pixel: closer to the boundary, distances are rounding."""
SAMPLE = 16
"""Images of each group that are checked."""
MOST = 320
"""Images checked, where there are many groups; each has at least ``FEWEST``."""
FEWEST = 4


def sampled(correct: Array, partitions: Sequence[Partition], rng: np.random.Generator) -> Array:
    """The numbers of the points to check, ascending: of each level the first ``SAMPLE`` of a random order.

    ``correct`` (n,): the points that have a distance to be checked. Partitions share their samples, since each takes
    the same order.
    """
    order = rng.permutation(np.flatnonzero(correct))
    levels = [(one, level) for one in partitions for level in range(len(one))]
    size = min(SAMPLE, max(FEWEST, MOST // max(1, len(levels))))
    chosen = [order[one.codes[order] == level][:size] for one, level in levels]
    return np.unique(np.concatenate(chosen)) if chosen else order[:0]


@dataclass(frozen=True)
class Checked:
    """What the check found of the L levels of a partition; everything is (L,).

    ``checked`` images have a distance and a second bound, of the means ``attack_mean`` and ``second_mean``, NaN without
    any; at ``worse`` of them the attack is worse. Of the ``n`` images ``lost`` have no gradient along some of their
    pixels.
    """

    n: Array
    checked: Array
    worse: Array
    attack_mean: Array
    second_mean: Array
    lost: Array

    @property
    def worse_share(self) -> Array:
        """``worse`` of ``checked``, 0 of none; a single image is no share."""
        return np.where(self.worse > 1, self.worse / np.maximum(self.checked, 1), 0.0)

    @property
    def lost_apart(self) -> Array:
        """The difference between the share of lost gradients in the level and in all others."""
        own, others = self.lost / np.maximum(self.n, 1), self.lost.sum() - self.lost
        rest = others / np.maximum(self.n.sum() - self.n, 1)
        return np.abs(own - rest)


def is_worse(distance: Array, second: Array) -> Array:
    """Where the attack is worse than the second bound; nowhere where a search found nothing, which is NaN."""
    return distance > np.maximum(FACTOR * second, second + LEAST)


def checked(distance: Array, second: Array, tried: Array, lost: Array, correct: Array, partition: Partition) -> Checked:
    """Compare by level the ``distance`` (n,) of an attack with the ``second`` (n,) bound of the points ``tried`` (n,).

    NaN stands for a search that found nothing. ``lost`` (n,) is the share of a point's pixels without a gradient. All
    is of the points that are ``correct`` (n,).
    """
    both = tried & ~np.isnan(distance) & ~np.isnan(second)
    worse = both & is_worse(distance, second)

    def by_level(values: Array) -> Array:
        known = correct & (partition.codes >= 0)
        return np.bincount(partition.codes[known], values[known], minlength=len(partition))

    pairs = by_level(both)
    attack, bound = (by_level(np.where(both, values, 0.0)) for values in (distance, second))
    counts = np.where(pairs > 0, pairs, np.nan)
    n, compared, beyond, without = (by_level(of).astype(int) for of in (correct, both, worse, lost > 0))
    return Checked(n, compared, beyond, attack / counts, bound / counts, without)
