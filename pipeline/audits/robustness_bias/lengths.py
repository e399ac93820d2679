r"""What a point contributes to its group's robustness, and which points a group's share is taken of.

.. math:: \widehat{I_P}(\tau) = \frac{|\{(x, y) \in P : d(x) > \tau,\; y = \hat y\}|}{|P|}

is the share of points of P whose *length* exceeds tau, where the length is the distance d(x) of a correctly classified
point. What is left to say is what the others are. With the denominator

- ``paper``, |P| as in the equation: misclassified points count as well, with length 0, being robust to nothing.
- ``correct``, as in (1), (2) and the authors' code: correctly classified points alone count.

The two differ by the group's accuracy, which has a part in the first and none in the second.

A correctly classified point without a distance (a failed attack) is in neither numerator nor denominator, of both kinds
of share and as in the authors' program: there is no d(x) to compare with tau. Length 0 would turn the measure round,
since attacks fail on far points rather than on near ones. Leaving them out draws sigma towards 0 where the far group
loses more of its points, so their number belongs beside every share.

Source: Nanda et al. 2021, (1)-(6).
"""

from dataclasses import dataclass

import numpy as np

from pipeline.types import Array

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
    """The lengths of points with distances (n,), NaN where none is known, that are ``correct`` (n,) or not.

    A ``correct`` point without a distance counts in neither denominator.
    Raises ValueError for an unknown denominator, arrays of unequal length, and distances that are negative or infinite.
    """
    if denominator not in DENOMINATORS:
        raise ValueError(f"expected a denominator among {', '.join(DENOMINATORS)}; found {denominator!r}")
    if distance.ndim != 1 or distance.shape != correct.shape:
        raise ValueError(f"expected one distance and one `correct` a point, found {distance.shape} and {correct.shape}")
    if odd := distance[(distance < 0) | np.isinf(distance)].tolist():
        raise ValueError(f"expected finite distances of at least 0, or NaN where there is none; found {odd[0]}")
    known = correct.astype(bool) & ~np.isnan(distance)
    length = np.where(known, distance, 0.0)
    failed = correct.astype(bool) & np.isnan(distance)
    return Lengths(length, ~failed if denominator == "paper" else known)
