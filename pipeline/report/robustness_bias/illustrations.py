"""Two small examples in the plane, computed and not drawn by hand: section 2 of Nanda et al. (2021)."""

from dataclasses import dataclass

import numpy as np

from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.values import Array

SEED = 2021
MEMBERS = 10
"""Points of each subclass in each class of Figure 1, as its shares of 70 and 30 % of 20 points need."""
ROUND, CROSS = 0, 1
SHARES = ((0.7, 0.3), (0.3, 0.3))
"""Of the round and of the cross points, those within the budget of boundary A, and of boundary B."""
ANGLES = np.deg2rad([-17.5, -2.0])
"""Of the two boundaries with the horizontal: chosen so that the shares hang on no point at the edge of the budget."""
BUDGET = 1.0
CLASSES = 3
POINTS_A_CLASS = 60
CENTRES = np.array([(-2.3, 0.9), (0.0, 0.0), (2.3, 0.9)])
"""Of the classes of Figure 2; the middle one lies between the others."""
SPREADS = np.array([0.55, 0.5, 0.55])
PENALTY = 1e-2
"""lambda of the mean cross entropy + lambda / 2 ||W||^2."""


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
        """Distances of the points (n,), positive on the side of the class 1."""
        return np.asarray(self.points @ boundary)

    def accuracy(self, boundary: Array) -> float:
        """The share of points on their own side."""
        return float(((self.signed(boundary) > 0) == (self.label == 1)).mean())

    def attacked(self, boundary: Array) -> tuple[float, float]:
        """The shares of round and of cross points that are no further than the budget from a boundary."""
        near = np.abs(self.signed(boundary)) <= self.budget
        return float(near[self.subclass == ROUND].mean()), float(near[self.subclass == CROSS].mean())


def two_boundaries() -> TwoBoundaries:
    """Points, and two boundaries through the origin without an error whose shares are ``SHARES``.

    The round points of a class face those of the other across the origin, further out than the crosses, which face
    each other the other way: a boundary that is turned towards the round points comes closer to those of both classes.
    """
    points, label, subclass = _facing_clouds(np.random.default_rng(SEED))
    first, second = np.column_stack([-np.sin(ANGLES), np.cos(ANGLES)])
    return TwoBoundaries(points, label, subclass, (first, second), BUDGET)


def _facing_clouds(rng: np.random.Generator) -> tuple[Array, Array, Array]:
    """Class 1 above and class 0 below; the round points of class 1 on the left and of class 0 on the right."""
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
        """Those of points (m, 2), (m, 3)."""
        return np.asarray(points @ self.weights.T + self.bias)

    @property
    def correct(self) -> Array:
        """Whether each point is classified correctly, (n,)."""
        return np.asarray(self.logits(self.points).argmax(axis=1) == self.label)

    @property
    def distance(self) -> Array:
        """The exact distance of each point to the boundary; 0 of one that is classified wrongly."""
        return linear_distance(self.weights, self.bias, self.points, self.label).distance


def three_classes() -> ThreeClasses:
    """Three normal clouds, one between the others, and a multinomial logistic regression fitted to them."""
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(SEED)
    label = np.repeat(np.arange(CLASSES), POINTS_A_CLASS)
    points = CENTRES[label] + SPREADS[label, None] * rng.standard_normal((len(label), 2))
    regression = LogisticRegression(C=1 / (len(points) * PENALTY), tol=1e-8).fit(points, label)
    return ThreeClasses(points, label, regression.coef_, regression.intercept_)
