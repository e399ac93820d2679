"""The audit's check of its attacks: lost gradients for all images, a second upper bound for a sample of each group.

Only attacks that follow gradients are checked. :mod:`fairness_audits.attacks.second_bound` describes the second bound
and its cost, and :mod:`fairness_audits.audits.robustness_bias.attack_check` defines when an attack is worse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from fairness_audits.attacks import Execution
from fairness_audits.attacks.distances import batch_of
from fairness_audits.attacks.second_bound import lost_gradient, second_bound
from fairness_audits.audits.robustness_bias.attack_check import FACTOR, checked, sampled
from fairness_audits.audits.robustness_bias.points import Subjects
from fairness_audits.audits.robustness_bias.subjects import TOGETHER, Pictures
from fairness_audits.progress import progress_bar, track
from fairness_audits.seeds import generators
from fairness_audits.values import Array

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
        """Return the comparison of an attack's distances (n,) with the second bounds, for the JSON."""
        groups = [
            group
            for partition in subjects.points.partitions
            for group in checked(distance, self.second, self.tried, self.lost, subjects.correct, partition)
        ]
        return {"factor": FACTOR, "images": int(self.tried.sum()), "forward_passes": self.passes, "groups": groups}


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
