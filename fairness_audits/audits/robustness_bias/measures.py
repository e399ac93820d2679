r"""How robust a group of points is, against perturbations of a size and of all sizes, and against other points.

.. math::
   \widehat{I_P}(\tau) &= \frac{|\{(x, y) \in P : d(x) > \tau,\; y = \hat y\}|}{|P|}
                         = \text{share of } P \text{ with length} > \tau \\
   RB(P, \tau) &= \big| \widehat{I_P}(\tau) - \widehat{I_{\bar P}}(\tau) \big| \\
   \sigma(P) &= \frac{AUC(\widehat{I_P}) - AUC(\widehat{I_{\bar P}})}{AUC(\widehat{I_{\bar P}})}, \qquad
   AUC(I) = \int_0^T I(\tau)\, d\tau

with :math:`\bar P` the points outside P, pooled. The *length* is the distance d(x) of a correctly classified point.
What is left to say is what the others are. With the denominator

- ``paper``, |P| as in the equation: misclassified points count as well, with length 0, being robust to nothing.
- ``correct``, as in (1), (2) and the authors' code: correctly classified points alone count.

The two differ by the group's accuracy, which has a part in the first and none in the second.

A correctly classified point without a distance (a failed attack) is in neither numerator nor denominator, of both kinds
of share and as in the authors' program: there is no d(x) to compare with tau. Length 0 would turn the measure round,
since attacks fail on far points rather than on near ones. Leaving them out draws sigma towards 0 where the far group
loses more of its points, so their number belongs beside every share.

I_P is a step function, and its area is exactly the mean over P of min(length, T): no grid of tau is needed. Where T is
no less than any length, sigma is the ratio of two mean lengths, minus 1. It is negative for a group that is closer to
the boundary.

Equation (3) prints a sum over the other elements P' of the partition where :math:`\bar P` stands here. Taken literally,
the area of a sum of curves is the sum of their areas, which exceeds that of any one of them as soon as there are a few
groups: every sigma would be negative, which the published ones are not. The authors' code pools the points.

The code also sums over grids of tau, 2,000 points on [0, 2] (DeepFool) or [0, 1] (Carlini and Wagner), which gives
these areas up to the step of the grid and stops at the grid's end, as T does here; for certificates 100 points from
their smallest to their largest, which leaves out the area below the smallest. T is therefore a setting, and the
largest length where it is not set.

Nanda et al. (2021) count 151 elements in their five datasets. One for each level, of which are 10 classes of CIFAR-10,
100 and 20 of CIFAR-100, 8 classes and 2 genders of Adience, 5 classes, 2 genders and 5 races of UTKFace, is 152; one
for each comparison is 150: two levels make two elements but one comparison, as each is the other's complement and
their signs of sigma are opposite.

Source: Nanda et al. 2021, (1)-(6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array, ImageDataset


@dataclass(frozen=True)
class Partition:
    """``codes`` (n,) index ``levels``, the elements, -1 where the level is unknown. ``name`` says by what is parted.

    What P is compared with are the points of the other levels; points of unknown level are in neither.
    """

    name: str
    levels: tuple[str, ...]
    codes: Array

    def __post_init__(self) -> None:
        if len(self.codes) and not -1 <= self.codes.min() <= self.codes.max() < len(self.levels):
            raise InvalidInput(
                f"partition {self.name!r} has {len(self.levels)} levels, but codes from {self.codes.min()} to "
                f"{self.codes.max()}: expected -1 (unknown) to {len(self.levels) - 1}",
                option="codes",
            )

    def __len__(self) -> int:
        """The number of elements."""
        return len(self.levels)

    def element(self, level: int) -> tuple[Array, Array]:
        """The points of this level, and those of the others, (n,) bool each."""
        inside = self.codes == level
        return inside, (self.codes >= 0) & ~inside

    @property
    def comparisons(self) -> Array:
        """A number for each level, the same for two levels that are each other's complement: (L,)."""
        return np.zeros(2, dtype=np.int64) if len(self) == 2 else np.arange(len(self))


def partitions_of(dataset: ImageDataset, rows: Array) -> tuple[Partition, ...]:
    """The partitions of a dataset, restricted to these rows; the classes come first."""
    names = sorted(dataset.partitions, key=lambda name: name != dataset.label_name)
    return tuple(Partition(name, dataset.levels[name], dataset.partitions[name][rows]) for name in names)


def elements(levels: Mapping[str, Sequence[str]]) -> int:
    """How many elements partitions with these levels have: one for each level."""
    return sum(len(names) for names in levels.values())


def comparisons(levels: Mapping[str, Sequence[str]]) -> int:
    """How many elements there are to compare with the others: a partition of two levels counts once."""
    return sum(1 if len(names) == 2 else len(names) for names in levels.values())


DENOMINATORS = ("paper", "correct")


@dataclass(frozen=True)
class Lengths:
    """The ``length`` (n,) >= 0 of each of n points, 0 where it does not count; ``counts`` (n,) bool."""

    length: Array
    counts: Array

    def upto(self, budget: float) -> Array:
        """min(length, budget), (n,): the integral over [0, budget] of 1[length > tau]."""
        return np.minimum(self.length, budget)

    @property
    def longest(self) -> float:
        """The largest length of all, NaN without any point that counts."""
        return float(self.length[self.counts].max()) if self.counts.any() else float("nan")


def counted(distance: Array, correct: Array, denominator: str) -> Lengths:
    """Turn distances into the lengths that a denominator counts.

    Parameters
    ----------
    distance : ndarray of shape (n,)
        Distances to the decision boundary, NaN where none is known.
    correct : ndarray of shape (n,), bool
        Which points are classified correctly. Such a point without a distance counts in neither denominator.
    denominator : {"paper", "correct"}
        Whether misclassified points count with length 0, or not at all.

    Returns
    -------
    Lengths

    Raises
    ------
    InvalidInput
        For an unknown denominator, arrays of unequal length, and distances that are negative or infinite.

    Examples
    --------
    >>> counted(np.array([0.2, np.nan]), np.array([True, False]), "paper").length
    array([0.2, 0. ])

    """
    if denominator not in DENOMINATORS:
        problem = f"expected a denominator among {', '.join(DENOMINATORS)}; found {denominator!r}"
        raise InvalidInput(problem, option="denominator")
    if distance.ndim != 1 or distance.shape != correct.shape:
        problem = f"expected one distance and one `correct` a point, found {distance.shape} and {correct.shape}"
        raise InvalidInput(problem, option="correct" if distance.ndim == 1 else "distance")
    if odd := distance[(distance < 0) | np.isinf(distance)].tolist():
        problem = f"expected finite distances of at least 0, or NaN where there is none; found {odd[0]}"
        raise InvalidInput(problem, option="distance")
    known = correct.astype(bool) & ~np.isnan(distance)
    length = np.where(known, distance, 0.0)
    failed = correct.astype(bool) & np.isnan(distance)
    return Lengths(length, ~failed if denominator == "paper" else known)


def survival(lengths: Lengths, member: Array, tau: Array) -> Array:
    """Compute I_P(tau), the share of a group whose length exceeds tau.

    Parameters
    ----------
    lengths : Lengths
        Of all n points.
    member : ndarray of shape (n,), bool
        The points of P.
    tau : ndarray of shape (t,)
        Sizes of perturbations, in the unit of the lengths.

    Returns
    -------
    ndarray of shape (t,)
        NaN where no point of P counts.

    References
    ----------
    Nanda et al. 2021, (2).

    Examples
    --------
    >>> lengths = counted(np.array([0.1, 0.3]), np.array([True, True]), "paper")
    >>> survival(lengths, np.array([True, True]), np.array([0.0, 0.2, 0.4]))
    array([1. , 0.5, 0. ])

    """
    own = np.sort(lengths.length[member & lengths.counts])
    if not len(own):
        return np.full(np.shape(tau), np.nan)
    return 1 - np.searchsorted(own, tau, side="right") / len(own)


@dataclass(frozen=True)
class ByLevel:
    """For the L levels of a partition: ``n`` points that count, the ``area`` of their curve, and ``sigma``, (L,) each.

    NaN where no point of the level, or none outside it, counts; sigma also where the area outside is 0.
    """

    n: Array
    area: Array
    sigma: Array


def by_level(lengths: Lengths, partition: Partition, budget: float) -> ByLevel:
    """Compute the measures of every level of a partition.

    Parameters
    ----------
    lengths : Lengths
        Of all points.
    partition : Partition
        Parts the same points into L levels.
    budget : float
        T, the largest perturbation that counts.

    Returns
    -------
    ByLevel

    References
    ----------
    Nanda et al. 2021, (4)-(6).

    Examples
    --------
    >>> lengths = counted(np.array([1.0, 2.0]), np.array([True, True]), "correct")
    >>> by_level(lengths, Partition("sex", ("f", "m"), np.array([0, 1])), 5.0).sigma
    array([-0.5,  1. ])

    """
    total, n = level_sums(np.ones((1, len(lengths.length))), lengths, partition, budget)
    with np.errstate(invalid="ignore"):
        return ByLevel(n[0].astype(np.int64), (total / n)[0], sigma(total, n)[0])


def level_sums(weight: Array, lengths: Lengths, partition: Partition, budget: float) -> tuple[Array, Array]:
    """Sums over each level of min(length, budget) and of the points that count, when they weigh ``weight`` (b, n).

    Returns (b, L) each.
    """
    value, counts = lengths.upto(budget) * lengths.counts, lengths.counts.astype(float)
    members = [np.flatnonzero(partition.codes == level) for level in range(len(partition))]
    parts = [(weight[:, rows] @ value[rows], weight[:, rows] @ counts[rows]) for rows in members]
    total, n = (np.stack(sums, axis=-1) for sums in zip(*parts, strict=True))
    return total, n


def sigma(total: Array, n: Array) -> Array:
    """sigma(P) of each level from the sums over all levels (..., L) of min(length, T) and of points, (..., L)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = total / n, _others(total) / _others(n)
        return np.where(outside > 0, inside / outside - 1, np.nan)


def _others(values: Array) -> Array:
    """The sum over the other levels, added up and not subtracted: it is 0 exactly where all of them are, (..., L)."""
    others = 1 - np.eye(values.shape[-1])
    return values @ others
