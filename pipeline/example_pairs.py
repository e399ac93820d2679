"""A rule that chooses two inputs and one budget that fools the network on only one of them.

The two groups are levels of the dataset's first partition other than the classes, among points of the same class.
Without such a partition they are two classes. We take the pair whose median distances differ most, among pairs with at
least ``ENOUGH`` measured points on each side, because the largest difference between small groups is mostly noise. If
no pair has enough points, we take a pair with the most points on its smaller side, at least ``FEWEST``. Each group
contributes its most typical member, the point whose distance is nearest to the group's median. The budget is the
midpoint of the two distances.

The point of the nearer group is shown as perturbed by the attack, which takes less than the budget. The point of the
farther group is shown moved towards the attack's result by the full budget. An attack does not prove that no closer
adversarial point exists. The network therefore classifies the second picture again. If it is misclassified, we try the
next most typical point, up to ``CANDIDATES`` points.

After Nanda et al. 2021, figure 3. Its two faces belong to other groups and were not chosen by a stated rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.values import Array

FEWEST = 3
"""Fewest measured points in a group."""
ENOUGH = 20
"""Number of measured points from which a group is large enough."""
CANDIDATES = 8
"""Largest number of candidates in the farther group."""


@dataclass(frozen=True)
class Pair:
    """The points of two groups: ``near``, one point, and ``far`` (f,), candidates in the order in which they are tried.

    ``levels`` (2,) are the codes of the groups in ``partition``. ``budget`` is between the distances.
    """

    partition: str
    levels: tuple[int, int]
    near: int
    far: Array
    budget: float


def chosen(distance: Array, label: Array, partitions: Sequence[Partition]) -> Pair | None:
    """Apply the rule to ``distance`` (n,), NaN if there is none; the first of ``partitions`` is the classes.

    Return None if no two groups have enough points and different medians.
    """
    classes, *others = partitions
    partition = others[0] if others else classes
    cells = [label == own for own in np.unique(label)] if others else [np.ones(len(label), dtype=bool)]
    best: Pair | None = None
    most = (0, 0.0)
    for cell in cells:
        groups = [
            np.flatnonzero(cell & (partition.codes == level) & ~np.isnan(distance)) for level in range(len(partition))
        ]
        median = {level: float(np.median(distance[rows])) for level, rows in enumerate(groups) if len(rows) >= FEWEST}
        for near, far in combinations(sorted(median, key=median.__getitem__), 2):
            size = min(len(groups[near]), len(groups[far]), ENOUGH)
            difference = median[far] - median[near]
            if difference > 0 and (size, difference) > most:
                most = (size, difference)
                first, beyond = int(_ordinary(distance, groups[near])[0]), _ordinary(distance, groups[far])
                budget = float(distance[first] + distance[beyond[0]]) / 2
                best = Pair(partition.name, (near, far), first, beyond[distance[beyond] > budget][:CANDIDATES], budget)
    return best


def _ordinary(distance: Array, rows: Array) -> Array:
    """Return the rows in the order of their distance from the median."""
    own = distance[rows]
    return rows[np.argsort(np.abs(own - np.median(own)), kind="stable")]


def shown(
    pair: Pair,
    pixels: Callable[[Array], Array],
    attack: Callable[[Array], Array],
    classify: Callable[[Array], Array],
    label: Array,
) -> tuple[Array, Array, Array] | None:
    """Return the near and far point (2,), their perturbed images (2, c, h, w) within the budget, and their classes.

    Return None if the attack now fails, or if the budget fools every far candidate. ``pixels`` returns the images of
    points, ``attack`` their adversarial images, NaN if it fails, and ``classify`` the classes of images. ``label`` (n,)
    are the classes of the points.
    """
    points = np.append(pair.near, pair.far)
    images = pixels(points).astype(np.float64)
    step = attack(points) - images
    length = np.sqrt((step**2).sum(axis=(1, 2, 3), keepdims=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = (images + step * np.minimum(1.0, pair.budget / length)).astype(np.float32)
    there = np.isfinite(moved).all(axis=(1, 2, 3))
    prediction = classify(np.nan_to_num(moved))
    right = prediction == label[points]
    held = 1 + np.flatnonzero((there & right)[1:])
    if not (there & ~right)[0] or not len(held):
        return None
    both = np.array([0, held[0]])
    return points[both], moved[both], prediction[both]
