r"""Exact distances to another class of small networks with one hidden layer of rectified linear units.

.. math:: d = \min_e |e| \quad\text{with}\quad \beta + \sum_j u_j \max(0, h_j + A_j e) \le 0,

where the margin of the own class over another one is linear as long as no unit changes sign. The search branches on the
signs of units. A node bounds the margin from below by a plane: within the ball of the best distance so far, a unit of
unknown sign lies above 0 and its own plane, and below its chord. A node without unknown signs is a least-distance
problem with linear constraints, which non-negative least squares solves.

Sources: Lawson and Hanson 1974, "Solving least squares problems", chapter 23 (least distance); Zhang et al. 2018,
"Efficient neural network robustness certification with general activation functions" (the planes).
"""

from dataclasses import dataclass

import numpy as np

from fairness_audits.attacks.changes import Changes
from fairness_audits.progress import track
from fairness_audits.values import Array

NODES = 2000
"""Largest number of nodes for each row and class."""
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Layers:
    """Scores W2 max(0, W1 z + b1) + b2: ``w1`` (H, d), ``b1`` (H,), ``w2`` (K, H), ``b2`` (K,)."""

    w1: Array
    b1: Array
    w2: Array
    b2: Array

    def scores(self, z: Array) -> Array:
        """Return the scores (n, K) of points (n, d)."""
        return np.maximum(z @ self.w1.T + self.b1, 0.0) @ self.w2.T + self.b2


def relu_distance(layers: Layers, z: Array, own: Array, bound: Array, changes: Changes) -> Array | None:
    """Compute the distance of rows to another class.

    Parameters
    ----------
    layers : Layers
        The network.
    z, own : array (n, d) and (n,)
        The rows and their classes.
    bound : array (n,)
        Finite upper bounds of the distances.
    changes : Changes
        What may change: numbers alone.

    Returns
    -------
    array (n,), optional
        At most the bound. None if the search of a row does not end within ``NODES`` nodes.
    """
    distance, slopes = bound.copy(), layers.w1[:, changes.numbers] @ changes.isotropic
    hidden_and_own = list(zip(z @ layers.w1.T + layers.b1, own, strict=True))
    for row, (hidden, y) in enumerate(track("exact distances", hidden_and_own)):
        for k in set(range(len(layers.b2))) - {int(y)}:
            weight, bias = layers.w2[y] - layers.w2[k], float(layers.b2[y] - layers.b2[k])
            nearest = _nearest(slopes, hidden, weight, bias, float(distance[row]))
            if nearest is None:
                return None
            distance[row] = nearest
    return distance


def _nearest(slopes: Array, hidden: Array, weight: Array, bias: float, best: float) -> float | None:
    """Return the smallest change to a margin of at most 0, not above ``best``; None if the search does not end."""
    steep = np.linalg.norm(slopes, axis=1)
    waiting = [np.zeros(len(hidden), dtype=int)]
    for _ in range(NODES):
        if not waiting:
            return best
        sign = waiting.pop()
        low, high = hidden - best * steep, hidden + best * steep
        if ((sign > 0) & (high < 0) | (sign < 0) & (low > 0)).any():
            continue
        active, unknown = (sign > 0) | (low >= 0), (sign == 0) & (low < 0) & (high > 0)
        active &= ~(sign < 0)
        share = active.astype(float)
        with np.errstate(divide="ignore", invalid="ignore"):
            chord = np.where(unknown, high / (high - low), 0.0)
        share = np.where(unknown, np.where(weight < 0, chord, hidden > 0), share)
        offset = np.where(unknown & (weight < 0), -chord * low, 0.0)
        plane, value = (weight * share) @ slopes, bias + weight @ (share * hidden + offset)
        length = np.linalg.norm(plane)
        if value > 0 and (length == 0 or value / length >= best * (1 - TOLERANCE)):
            continue
        if not unknown.any():
            fixed = np.flatnonzero(sign)
            rows = np.vstack([-plane, sign[fixed, None] * slopes[fixed]])
            best = min(best, _least(rows, np.append(value, -sign[fixed] * hidden[fixed])))
            continue
        # Branch where the plane is farthest from the unit; the sign at the row itself comes first.
        gap = np.where(unknown, np.abs(weight) * np.where(weight < 0, -chord * low, np.minimum(-low, high)), -1.0)
        unit = int(gap.argmax())
        for value_of in (-1, 1) if hidden[unit] > 0 else (1, -1):
            child = sign.copy()
            child[unit] = value_of
            waiting.append(child)
    return None


def _least(rows: Array, limits: Array) -> float:
    """Return the smallest |e| with ``rows`` e >= ``limits``, infinite if there is none."""
    from scipy.optimize import nnls

    system = np.vstack([rows.T, limits])
    target = np.zeros(len(system))
    target[-1] = 1.0
    solution, rest = nnls(system, target)
    if rest < TOLERANCE:
        return float("inf")
    residual = system @ solution - target
    return float(np.linalg.norm(residual[:-1] / residual[-1]))
