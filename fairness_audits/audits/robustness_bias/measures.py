r"""Robustness of a group of points: for one perturbation size, for all sizes, and compared with the other points.

.. math::
   \widehat{I_P}(\tau) &= \frac{|\{(x, y) \in P : d(x) > \tau,\; y = \hat y\}|}{|P|}
                         = \text{share of } P \text{ with length} > \tau \\
   RB(P, \tau) &= \big| \widehat{I_P}(\tau) - \widehat{I_{\bar P}}(\tau) \big| \\
   \sigma(P) &= \frac{AUC(\widehat{I_P}) - AUC(\widehat{I_{\bar P}})}{AUC(\widehat{I_{\bar P}})}, \qquad
   AUC(I) = \int_0^T I(\tau)\, d\tau

with :math:`\bar P` the points outside P, pooled. The *length* is the distance d(x) of a correctly classified point. The
denominator decides how other points count:

- ``paper``, |P| as in the equation: misclassified points count with length 0, because they are robust to nothing.
- ``correct``, as in (1), (2) and the authors' code: only correctly classified points count.

The two differ by the group's accuracy, which affects the first and not the second.

A correctly classified point without a distance (a failed attack) is in neither numerator nor denominator, for both
denominators and in the authors' program, because there is no d(x) to compare with tau. Length 0 would reverse the
measure, because attacks fail on far points rather than on near ones. Excluding these points draws sigma towards 0 if
the far group loses more of them, so report their number with every share.

I_P is a step function, and its area is exactly the mean over P of min(length, T), so no grid of tau is needed. If T is
at least the largest length, sigma is the ratio of two mean lengths, minus 1. It is negative for a group that is closer
to the boundary.

Equation (3) as printed has a sum over the other elements P' of the partition instead of :math:`\bar P`. Taken
literally, the area of a sum of curves is the sum of their areas. With several groups this sum exceeds the area of any
one of them, and every sigma would be negative, unlike the published values. The authors' code pools the points.

The code also sums over grids of tau with 2,000 points on [0, 2] (DeepFool) or [0, 1] (Carlini and Wagner). This gives
the same areas up to the step of the grid and stops at its end, like T here. For certificates its grid has 100 points
from the smallest to the largest, which omits the area below the smallest. T is therefore a setting, by default the
largest length.

Nanda et al. (2021) count 151 elements in their five datasets. Counting levels gives 152: 10 classes of CIFAR-10, 100
and 20 of CIFAR-100, 8 classes and 2 genders of Adience, 5 classes, 2 genders and 5 races of UTKFace. Counting
comparisons gives 150, because two levels are two elements but one comparison: each is the other's complement, and their
signs of sigma are opposite.

Source: Nanda et al. 2021, (1)-(6).
"""

from dataclasses import dataclass

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


@dataclass(frozen=True)
class Partition:
    """Partition of n points: ``codes`` (n,) index ``levels``, the elements, -1 for an unknown level.

    ``name`` is the attribute. P is compared with the points of the other levels. Points of unknown level are in
    neither.
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
        """Return the number of elements."""
        return len(self.levels)

    def element(self, level: int) -> tuple[Array, Array]:
        """Return the points of this level, and the points of the other levels, (n,) bool each."""
        inside = self.codes == level
        return inside, (self.codes >= 0) & ~inside

    @property
    def comparisons(self) -> Array:
        """Return a number for each level, the same for two levels that are each other's complement: (L,)."""
        return np.zeros(2, dtype=np.int64) if len(self) == 2 else np.arange(len(self))


DENOMINATORS = ("paper", "correct")


@dataclass(frozen=True)
class Lengths:
    """``length`` (n,) >= 0 of each of n points, 0 if it does not count; ``counts`` (n,) bool."""

    length: Array
    counts: Array

    def upto(self, budget: float) -> Array:
        """Return min(length, budget), (n,): the integral over [0, budget] of 1[length > tau]."""
        return np.minimum(self.length, budget)

    @property
    def longest(self) -> float:
        """Return the largest length, NaN if no point counts."""
        return float(self.length[self.counts].max()) if self.counts.any() else float("nan")


def counted(distance: Array, correct: Array, denominator: str) -> Lengths:
    """Convert distances to the lengths that a denominator counts.

    Parameters
    ----------
    distance : ndarray of shape (n,)
        Distances to the decision boundary, NaN if unknown.
    correct : ndarray of shape (n,), bool
        Whether each point is classified correctly. A correct point without a distance counts in neither denominator.
    denominator : {"paper", "correct"}
        Whether misclassified points count with length 0, or not at all.

    Returns
    -------
    Lengths

    Raises
    ------
    InvalidInput
        If the denominator is unknown, array lengths differ, or a distance is negative or infinite.

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
        Lengths of all n points.
    member : ndarray of shape (n,), bool
        The points of P.
    tau : ndarray of shape (t,)
        Sizes of perturbations, in the unit of the lengths.

    Returns
    -------
    ndarray of shape (t,)
        NaN if no point of P counts.

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
    """Measures of the L levels of a partition: ``n`` points that count, ``area`` of the curve and ``sigma``, (L,) each.

    NaN if no point of the level, or none outside it, counts. sigma is also NaN if the area outside is 0.
    """

    n: Array
    area: Array
    sigma: Array


def by_level(lengths: Lengths, partition: Partition, budget: float) -> ByLevel:
    """Compute the measures of every level of a partition.

    Parameters
    ----------
    lengths : Lengths
        Lengths of all points.
    partition : Partition
        Partition of the same points into L levels.
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
    """Return, for each level, the weighted sums of min(length, budget) and of points that count; ``weight`` is (b, n).

    Both have shape (b, L).
    """
    value, counts = lengths.upto(budget) * lengths.counts, lengths.counts.astype(float)
    members = [np.flatnonzero(partition.codes == level) for level in range(len(partition))]
    parts = [(weight[:, rows] @ value[rows], weight[:, rows] @ counts[rows]) for rows in members]
    total, n = (np.stack(sums, axis=-1) for sums in zip(*parts, strict=True))
    return total, n


def sigma(total: Array, n: Array) -> Array:
    """Return sigma(P) of each level, (..., L), from the levels' sums of min(length, T) and of points, (..., L)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inside, outside = total / n, _others(total) / _others(n)
        return np.where(outside > 0, inside / outside - 1, np.nan)


def _others(values: Array) -> Array:
    """Sum over the other levels by addition, not subtraction, so that it is 0 exactly if all of them are, (..., L)."""
    others = 1 - np.eye(values.shape[-1])
    return values @ others
