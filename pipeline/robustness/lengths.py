r"""What a point contributes to its group's robustness, and which points a group's share is taken of.

.. math:: \widehat{I_P}(\tau) = \frac{|\{(x, y) \in P : d(x) > \tau,\; y = \hat y\}|}{|P|}

is the share of points of P whose *length* exceeds tau, where the length is the distance d(x) of a correctly classified
point. What is left to say is what the others are. With the denominator

- ``paper``, |P| as in the equation: every point counts. A misclassified point has length 0, being robust to nothing; so
  has a correctly classified point without a distance (a failed attack), since the equation has no d(x) to compare
  with tau. That is the cautious reading for the group and may be far off, for an attack fails on robust points rather
  than on others: look at the number of failures before reading such a share.
- ``correct``, as in (1), (2) and the authors' code: correctly classified points with a distance count, no others.

The two differ by the group's accuracy, which has a part in the first and none in the second.

Source: Nanda et al. 2021, (1)-(6).
"""

from __future__ import annotations

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
    return Lengths(length, np.ones(len(distance), dtype=bool) if denominator == "paper" else known)
