"""Is an attack equally good for all groups? Compare it with a second upper bound on a sample of each group.

An attack's distance is an upper bound. If gradients vanish or mislead, it is far too long, and the affected group looks
farther from the boundary than it is. A second search (:mod:`fairness_audits.attacks.second_bound`) gives another upper
bound for a sample of images. The attack is *worse* at an image if its distance is more than ``FACTOR`` times the second
bound and more than ``LEAST`` above it. Images on which the attack failed are counted separately.

The second bound judges the attack. It does not replace distances, because the share of images in the sample differs by
group, and the group with the smaller share would look farther from the boundary than it is.
"""

from collections.abc import Sequence
from typing import Any

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


def checked(
    distance: Array, second: Array, tried: Array, lost: Array, correct: Array, partition: Partition
) -> list[dict[str, Any]]:
    """Compare an attack's ``distance`` (n,) with the ``second`` bound (n,) of the points ``tried`` (n,), by level.

    NaN means that a search failed. ``lost`` (n,) is the share of a point's pixels without a gradient. Only points that
    are ``correct`` (n,) count.

    Each level has the number of images ``checked``, which have a distance and a second bound, with the means of both;
    at how many the attack is ``worse``, and their ``worse_share``, 0 if at most one is worse; the number of
    ``n_correct`` images, of those with a ``lost_gradient`` along some pixels, and ``lost_apart``, the difference of
    this share from that of all other levels.
    """
    both = tried & ~np.isnan(distance) & ~np.isnan(second)
    beyond = both & (distance > np.maximum(FACTOR * second, second + LEAST))

    def by_level(values: Array) -> Array:
        known = correct & (partition.codes >= 0)
        return np.bincount(partition.codes[known], values[known], minlength=len(partition))

    n, pairs, worse, without = (by_level(of).astype(int) for of in (correct, both, beyond, lost > 0))
    attack, bound = (by_level(np.where(both, values, 0.0)) for values in (distance, second))
    counts, others = np.where(pairs > 0, pairs, np.nan), (without.sum() - without) / np.maximum(n.sum() - n, 1)
    columns = {
        "checked": pairs,
        "worse": worse,
        "worse_share": np.where(worse > 1, worse / np.maximum(pairs, 1), 0.0),
        "mean_distance": attack / counts,
        "mean_second_bound": bound / counts,
        "n_correct": n,
        "lost_gradient": without,
        "lost_apart": np.abs(without / np.maximum(n, 1) - others),
    }
    return [
        {"partition": partition.name, "level": name, **{key: values[level] for key, values in columns.items()}}
        for level, name in enumerate(partition.levels)
    ]
