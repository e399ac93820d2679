"""Two inputs and one budget that fools the network on one of them: which two is decided by a rule.

The groups are two levels of the dataset's first partition that is not its classes, among the points of one class; where
there is no such partition, two classes. Of all such pairs it is the one whose median distances differ most, among those
with at least ``ENOUGH`` measured points on either side: the largest difference of small groups is mostly noise. Where
no pair has so many, it is one of the pairs with the most on their smaller side, ``FEWEST`` at least. From each group
comes its most ordinary member, the point with the distance nearest to the median of its group, and the budget lies
halfway between the two distances.

The point of the nearer group is shown as the attack changed it, which takes less than the budget. That of the farther
group is shown moved towards the attack's result for the whole length of the budget. Since an attack is no proof that
there is nothing nearer, the network classifies this second picture again; if it is misclassified the point is passed
over for the next most ordinary one, up to ``CANDIDATES`` of them.

After Nanda et al. 2021, figure 3, whose two faces have other groups and were not chosen by a stated rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.values import Array

FEWEST = 3
"""Measured points that a group must have."""
ENOUGH = 20
"""Measured points with which a group is as good as a larger one."""
CANDIDATES = 8
"""Of the farther group, at most so many points are looked at."""


@dataclass(frozen=True)
class Pair:
    """``near``, a point, and ``far`` (f,), points in the order in which they are tried, of two groups.

    ``levels`` (2,) are the codes of the groups in ``partition``; ``budget`` lies between the distances.
    """

    partition: str
    levels: tuple[int, int]
    near: int
    far: Array
    budget: float


def chosen(distance: Array, label: Array, partitions: Sequence[Partition]) -> Pair | None:
    """The rule, on ``distance`` (n,) with NaN where there is none; the first of ``partitions`` are the classes.

    None where no two groups have enough points and medians that differ.
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
    """The rows, those with a distance near to the median first."""
    own = distance[rows]
    return rows[np.argsort(np.abs(own - np.median(own)), kind="stable")]


def shown(
    pair: Pair,
    pixels: Callable[[Array], Array],
    attack: Callable[[Array], Array],
    classify: Callable[[Array], Array],
    label: Array,
) -> tuple[Array, Array, Array] | None:
    """The near and the far point (2,), their perturbed images (2, c, h, w) within the budget, and the classes of these.

    None where the attack fails now, or every far candidate is fooled within the budget.
    ``pixels`` gives the images of points, ``attack`` the adversarial images of points, NaN where it fails, and
    ``classify`` the classes of images; ``label`` (n,) are the classes of the points.
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
