"""Two small examples in the plane, computed and not drawn by hand: section 2 of Nanda et al. (2021)."""

from dataclasses import dataclass

import numpy as np

from pipeline.attacks.linear_distance import linear_distance
from pipeline.types import Array

SEED = 2021
MEMBERS = 10
"""Points of each subclass in each class of Figure 1, as its shares of 70 and 30 % of 20 points need."""
ROUND, CROSS = 0, 1
SHARES = ((0.7, 0.3), (0.3, 0.3))
"""Of the round and of the cross points, those within the budget of boundary A, and of boundary B."""
ANGLES = np.deg2rad(np.linspace(-60, 60, 241))
BUDGETS = np.linspace(0.2, 1.2, 101)
CLASSES = 3
POINTS_A_CLASS = 60
CENTRES = np.array([(-2.3, 0.9), (0.0, 0.0), (2.3, 0.9)])
"""Of the classes of Figure 2; the middle one lies between the others."""
SPREADS = np.array([0.55, 0.5, 0.55])
PENALTY = 1e-2


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
    """Points, and by search two boundaries through the origin without an error whose shares are ``SHARES``.

    The round points of a class face those of the other across the origin, further out than the crosses, which face
    each other the other way: a boundary that is turned towards the round points comes closer to those of both classes.
    Of the budgets and angles on a grid that give the shares, those are taken whose points are furthest from the edge
    of the budget, so that no share hangs on a hair.
    Raises ValueError where there are none.
    """
    points, label, subclass = _facing_clouds(np.random.default_rng(SEED))
    normals = np.column_stack([-np.sin(ANGLES), np.cos(ANGLES)])
    signed = normals @ points.T
    separating = np.flatnonzero(((signed > 0) == (label == 1)).all(axis=1))
    distance = np.abs(signed[separating])
    near = distance[:, None, :] <= BUDGETS[None, :, None]
    shares = np.stack([near[..., subclass == kind].mean(axis=-1) for kind in (ROUND, CROSS)], axis=-1)
    slack = np.abs(distance[:, None, :] - BUDGETS[None, :, None]).min(axis=-1)
    best = []
    for wanted in SHARES:
        fits = np.isclose(shares, wanted).all(axis=-1)
        best.append(np.where(fits, slack, -1.0))
    together = np.minimum(best[0].max(axis=0), best[1].max(axis=0))
    place = int(together.argmax())
    if together[place] < 0:
        raise ValueError("no budget gives both boundaries the shares of Figure 1: change the points of the example")
    chosen = (separating[values[:, place].argmax()] for values in best)
    first, second = (normals[row] for row in chosen)
    return TwoBoundaries(points, label, subclass, (first, second), float(BUDGETS[place]))


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
    rng = np.random.default_rng(SEED)
    label = np.repeat(np.arange(CLASSES), POINTS_A_CLASS)
    points = CENTRES[label] + SPREADS[label, None] * rng.standard_normal((len(label), 2))
    weights, bias = fitted(points, label)
    return ThreeClasses(points, label, weights, bias)


def fitted(points: Array, label: Array) -> tuple[Array, Array]:
    """Weights (C, d) and bias (C,) of least mean cross entropy + ``PENALTY`` / 2 ||W||^2, by L-BFGS."""
    from scipy.optimize import minimize

    n, d = points.shape
    design, target = np.column_stack([points, np.ones(n)]), np.eye(CLASSES)[label]

    def loss(flat: Array) -> tuple[float, Array]:
        parameters = flat.reshape(CLASSES, d + 1)
        logits = design @ parameters.T
        shifted = logits - logits.max(axis=1, keepdims=True)
        probability = np.exp(shifted)
        total = probability.sum(axis=1, keepdims=True)
        probability /= total
        penalised = parameters * ([1.0] * d + [0.0])
        value = float((np.log(total[:, 0]) - shifted[np.arange(n), label]).mean() + PENALTY / 2 * (penalised**2).sum())
        return value, ((probability - target).T @ design / n + PENALTY * penalised).ravel()

    parameters = minimize(loss, np.zeros(CLASSES * (d + 1)), jac=True, method="L-BFGS-B").x.reshape(CLASSES, d + 1)
    return parameters[:, :-1], parameters[:, -1]
