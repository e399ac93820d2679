"""Is an attack equally good for all groups? Look for lost gradients, and for a second upper bound on a sample of each.

An attack's distance is an upper bound. If gradients vanish or mislead, it is far too long, and the affected group looks
farther from the boundary than it is. A second search (:mod:`fairness_audits.attacks.second_bound`, with its cost) gives
another upper bound for a sample of images. The attack is *worse* at an image if its distance is more than ``FACTOR``
times the second bound and more than ``LEAST`` above it. Images on which the attack failed are counted separately.

The second bound judges the attack. It does not replace distances, because the share of images in the sample differs by
group, and the group with the smaller share would look farther from the boundary than it is. Only attacks that follow
gradients are checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from fairness_audits.attacks import Execution
from fairness_audits.attacks.distances import batch_of
from fairness_audits.attacks.second_bound import lost_gradient, second_bound
from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.audits.robustness_bias.points import Subjects
from fairness_audits.audits.robustness_bias.subjects import TOGETHER, Pictures
from fairness_audits.progress import progress_bar, track
from fairness_audits.seeds import generators
from fairness_audits.values import Array

FACTOR = 1.5
LEAST = 1e-3
"""A quarter of a grey level in one pixel. Smaller differences are rounding."""
SAMPLE, FEWEST = 16, 4
"""Largest number of images of a group that are checked, and the smallest if there are many groups."""
MOST = 320
"""Largest number of images checked in all groups together, except that each group has at least ``FEWEST``."""
NEIGHBOURS = 3
"""Nearest images of other classes that serve as targets. The mean of the nearest one's class is another target."""
POOL, POOL_NUMBERS = 1000, 2**25
"""Largest number of images, and of pixel values, among which neighbours are searched."""


@dataclass(frozen=True)
class Check:
    """Check of the attacks on n points.

    ``lost`` (n,) is the share of pixels along which a point has no gradient. ``second`` (n,) is the second bound of the
    points ``tried`` (n,), NaN if the search failed. ``line`` (n,) is the bound of points without any gradient.
    ``passes`` counts forward passes of single images.
    """

    lost: Array
    tried: Array
    second: Array
    line: Array
    passes: int

    def entry(self, distance: Array, subjects: Subjects) -> Mapping[str, Any]:
        """Return the comparison of an attack's distances (n,), NaN if it failed, with the second bounds, for the JSON.

        Only points that are classified correctly count.
        """
        groups = [
            group for one in subjects.points.partitions for group in self._groups(distance, subjects.correct, one)
        ]
        return {"factor": FACTOR, "images": int(self.tried.sum()), "forward_passes": self.passes, "groups": groups}

    def _groups(self, distance: Array, correct: Array, partition: Partition) -> list[dict[str, Any]]:
        """Return the comparison for each level.

        A level has the number of images ``checked``, which have a distance and a second bound, with the means of both;
        at how many the attack is ``worse``, and their ``worse_share``, 0 if at most one is worse; the number of
        ``n_correct`` images, of those with a ``lost_gradient`` along some pixels, and ``lost_apart``, the difference of
        this share from that of all other levels.
        """
        both = self.tried & ~np.isnan(distance) & ~np.isnan(self.second)
        beyond = both & (distance > np.maximum(FACTOR * self.second, self.second + LEAST))

        def by_level(values: Array) -> Array:
            known = correct & (partition.codes >= 0)
            return np.bincount(partition.codes[known], values[known], minlength=len(partition))

        n, pairs, worse, without = (by_level(of).astype(int) for of in (correct, both, beyond, self.lost > 0))
        attack, bound = (by_level(np.where(both, values, 0.0)) for values in (distance, self.second))
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


def sampled(correct: Array, partitions: Sequence[Partition], rng: np.random.Generator) -> Array:
    """Return the indices of the points to check: the first ``SAMPLE`` of each level in a random order.

    Only points that are ``correct`` (n,) are drawn. All partitions use the same order, so their samples overlap.
    """
    order = rng.permutation(np.flatnonzero(correct))
    levels = [(one, level) for one in partitions for level in range(len(one))]
    size = min(SAMPLE, max(FEWEST, MOST // max(1, len(levels))))
    chosen = [order[one.codes[order] == level][:size] for one, level in levels]
    return np.unique(np.concatenate(chosen)) if chosen else order[:0]


def checked_attacks(subjects: Pictures, seed: int) -> Check:
    """Check the gradients of all correctly classified images, and compute second bounds for a sample."""
    n, right = len(subjects.prediction), np.flatnonzero(subjects.correct)
    rng, order = generators("audit", "robustness", "check", str(seed), repetitions=2)
    execution = Execution(device=subjects.device, keep_adversarial=False)
    evaluate, size = subjects.classifier.evaluate, batch_of(subjects.device)
    lost = np.zeros(n)
    for part in track("checking gradients", [right[start : start + size] for start in range(0, len(right), size)]):
        lost[part] = lost_gradient(evaluate, subjects.pixels(part), subjects.prediction[part], execution=execution)
    sample, none = sampled(subjects.correct, subjects.points.partitions, rng), np.flatnonzero(lost == 1)
    neighbours = _neighbours(subjects, order)
    passes, second, line = len(right), np.full(n, np.nan), np.full(n, np.nan)
    with progress_bar("checking distances"):
        # Search together with the sample, whose directions lead points without a gradient to the boundary.
        for start in range(0, max(1, len(none)), TOGETHER):
            some = none[start : start + TOGETHER]
            points, bound = np.union1d(sample, some), np.full(n, np.nan)
            images, label = subjects.pixels(points), subjects.prediction[points]
            how: Any = {"seed": seed, "streams": points, "execution": execution}
            found = second_bound(evaluate, images, label, partial(neighbours, images, label), **how)
            passes += found.forward_passes
            bound[points] = found.distance
            line[some] = bound[some]
            if start == 0:
                second[sample] = bound[sample]
    return Check(lost, np.isin(np.arange(n), sample), second, line, passes)


def _neighbours(subjects: Pictures, rng: np.random.Generator) -> Callable[[Array, Array, Array], Array]:
    """Return a function from images, their classes and some row numbers to target images of other classes."""
    # Take equal numbers of each predicted class, up to the size of the pool.
    order = rng.permutation(len(subjects.prediction))
    rank = np.empty(len(order), dtype=np.int64)
    for label in np.unique(subjects.prediction):
        own = order[subjects.prediction[order] == label]
        rank[own] = np.arange(len(own))
    size = max(2, min(POOL, POOL_NUMBERS // int(np.prod(subjects.source.shape))))
    pooled = order[np.argsort(rank[order], kind="stable")][:size]
    pool, classes = torch.from_numpy(subjects.pixels(pooled)), subjects.prediction[pooled]
    means = {label: pool[torch.from_numpy(classes == label)].mean(0) for label in np.unique(classes).tolist()}

    def towards(images: Array, label: Array, rows: Array) -> Array:
        apart = torch.cdist(torch.from_numpy(images[rows]).flatten(1), pool.flatten(1))
        found = []
        for distances, own in zip(apart.numpy(), label[rows], strict=True):
            others = np.flatnonzero(classes != own)
            nearest = others[np.argsort(distances[others], kind="stable")[:NEIGHBOURS]]
            if len(nearest):
                # If there are fewer other images than directions, repeat some directions.
                ways = [pool[place] for place in np.resize(nearest, NEIGHBOURS)]
                found.append(torch.stack([*ways, means[int(classes[nearest[0]])]]))
        return torch.stack(found).numpy() if len(found) == len(rows) else np.zeros((len(rows), 0, *images.shape[1:]))

    return towards
