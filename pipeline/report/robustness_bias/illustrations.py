"""Two small computed examples in the plane: section 2 of Nanda et al. (2021)."""

from dataclasses import dataclass

import numpy as np

from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.values import Array

SEED = 2021
MEMBERS = 10
"""Points of each subclass in each class of Figure 1: 20 points per subclass allow shares of 70 and 30 %."""
ROUND, CROSS = 0, 1
SHARES = ((0.7, 0.3), (0.3, 0.3))
"""Shares of the round and the cross points within the budget: of boundary A, then of boundary B."""
ANGLES = np.deg2rad([-17.5, -2.0])
"""Angles of the two boundaries with the horizontal, chosen to keep all points away from the edge of the budget."""
BUDGET = 1.0
CLASSES = 3
POINTS_A_CLASS = 60
CENTRES = np.array([(-2.3, 0.9), (0.0, 0.0), (2.3, 0.9)])
"""Centres of the classes of Figure 2. The middle class is between the others."""
SPREADS = np.array([0.55, 0.5, 0.55])
PENALTY = 1e-2
"""lambda in the objective, the mean cross entropy + lambda / 2 ||W||^2."""


@dataclass(frozen=True)
class TwoBoundaries:
    """Figure 1: 40 ``points`` (n, 2) with a ``label`` (n,) 0 or 1 and a ``subclass`` (n,), two boundaries, a budget.

    A boundary is the normal (2,), of length 1, of the line {x : normal . x = 0}.
    """

    points: Array
    label: Array
    subclass: Array
    boundaries: tuple[Array, Array]
    budget: float

    def signed(self, boundary: Array) -> Array:
        """Return the signed distances of the points (n,), positive on the side of class 1."""
        return np.asarray(self.points @ boundary)

    def accuracy(self, boundary: Array) -> float:
        """Return the share of points on the correct side."""
        return float(((self.signed(boundary) > 0) == (self.label == 1)).mean())

    def attacked(self, boundary: Array) -> tuple[float, float]:
        """Return the shares of round and of cross points within the budget of a boundary."""
        near = np.abs(self.signed(boundary)) <= self.budget
        return float(near[self.subclass == ROUND].mean()), float(near[self.subclass == CROSS].mean())


def two_boundaries() -> TwoBoundaries:
    """Make points and two error-free boundaries through the origin with the shares ``SHARES``.

    The round points of the two classes face each other across the origin, further out than the crosses, which face each
    other along the other diagonal. A boundary that turns towards the round points gets closer to those of both classes.
    """
    points, label, subclass = _facing_clouds(np.random.default_rng(SEED))
    first, second = np.column_stack([-np.sin(ANGLES), np.cos(ANGLES)])
    return TwoBoundaries(points, label, subclass, (first, second), BUDGET)


def _facing_clouds(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Draw class 1 above and class 0 below. Round points are on the left in class 1 and on the right in class 0."""
    points, label, subclass = [], [], []
    for kind, across, sideways, up in ((ROUND, -1, (1.5, 2.6), (0.75, 2.0)), (CROSS, 1, (0.05, 0.9), (0.4, 2.5))):
        for side in (1, -1):
            x = side * across * rng.uniform(*sideways, MEMBERS)
            y = side * (np.linspace(*up, MEMBERS) + rng.uniform(-0.08, 0.08, MEMBERS))
            points.append(np.column_stack([x, y]))
            label.append(np.full(MEMBERS, int(side > 0)))
            subclass.append(np.full(MEMBERS, kind))
    return np.concatenate(points), np.concatenate(label), np.concatenate(subclass)


@dataclass(frozen=True)
class ThreeClasses:
    """Figure 2: ``points`` (n, 2), their ``label`` (n,), and logits ``points @ weights.T + bias``."""

    points: Array
    label: Array
    weights: Array
    bias: Array

    def logits(self, points: Array) -> Array:
        """Return the logits (m, 3) of points (m, 2)."""
        return np.asarray(points @ self.weights.T + self.bias)

    @property
    def correct(self) -> Array:
        """Return whether each point is classified correctly, (n,)."""
        return np.asarray(self.logits(self.points).argmax(axis=1) == self.label)

    @property
    def distance(self) -> Array:
        """Return the exact distance of each point to the boundary, 0 for misclassified points."""
        return linear_distance(self.weights, self.bias, self.points, self.label).distance


def three_classes() -> ThreeClasses:
    """Draw three normal clouds, one between the others, and fit a multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(SEED)
    label = np.repeat(np.arange(CLASSES), POINTS_A_CLASS)
    points = CENTRES[label] + SPREADS[label, None] * rng.standard_normal((len(label), 2))
    regression = LogisticRegression(C=1 / (len(points) * PENALTY), tol=1e-8).fit(points, label)
    return ThreeClasses(points, label, regression.coef_, regression.intercept_)
