r"""Changes of table rows and their length: numbers move, two-valued columns and categories switch as a whole.

.. math:: \|v\|^2 = |v|^2 - (1 - c^2)\, |U'v|^2

for a change v in units of the audit. Without a sensitive subspace U this is the Euclidean length. Within U a unit costs
c. At c = 0 it is the fair metric of Maity et al. 2021, in which changes along U are free and points may have distance 0
from another decision. The units are chosen so that a switch has Euclidean length 1.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from fairness_audits.values import Array

BLOCK_NUMBERS = 1 << 22
"""Maximum number of float64 numbers in an intermediate array."""


@dataclass(frozen=True)
class Switch:
    """A column that takes whole values: features at ``positions`` (p,), whose possible ``levels`` are (L, p)."""

    positions: Array
    levels: Array

    def level_of(self, z: Array) -> Array:
        """Return the number of the level of each row (n,)."""
        return np.abs(z[:, None, self.positions] - self.levels).sum(axis=2).argmin(axis=1)


@dataclass(frozen=True)
class Changes:
    """The features that may change: ``numbers`` (k,) by position, and ``switches``; all others do not change.

    ``basis`` (d, r) is U, orthonormal, and ``cost`` is c in (0, 1], the length of a unit along it.
    """

    numbers: Array
    switches: Sequence[Switch]
    basis: Array
    cost: float = 1.0

    @property
    def plain(self) -> bool:
        """Return whether lengths are Euclidean."""
        return self.basis.shape[1] == 0 or self.cost == 1

    def stretched(self, v: Array) -> Array:
        """Return vectors (..., d) whose Euclidean length is the length of the changes ``v``."""
        return v if self.plain else v - (1 - self.cost) * (v @ self.basis) @ self.basis.T

    def length(self, v: Array) -> Array:
        """Return the length of the changes (..., d)."""
        return np.linalg.norm(self.stretched(v), axis=-1)

    @cached_property
    def isotropic(self) -> Array:
        """Return R (k, k): changes e R of the numbers have the length |e|."""
        own = self.basis[self.numbers]
        values, vectors = np.linalg.eigh(np.eye(len(self.numbers)) - (1 - self.cost**2) * own @ own.T)
        return (vectors / np.sqrt(values)) @ vectors.T

    @property
    def closed_form(self) -> bool:
        """Return whether the distance to a plane has a closed form."""
        return self.plain or not self.switches


def plane_distance(weight: Array, bias: Array, z: Array, own: Array, changes: Changes) -> Array:
    r"""Compute the distance of rows to another decision of the linear scores W z + b.

    .. math:: d(z) = \min_{k \ne y,\, s} \sqrt{s + \max(0, m_k - G_{k,s})^2 / |w_k|^2}

    with the margin m_k of the own class y over class k, its slope w_k in the numbers, and the largest loss of margin
    G_{k,s} by s switches. All switches have the same length, so the s best ones are the best set of this size.

    Parameters
    ----------
    weight, bias : array (K, d) and (K,)
        W and b.
    z : array (n, d)
        The rows.
    own : array (n,)
        The class y of each row, which has the largest score.
    changes : Changes
        What may change. Its lengths are Euclidean if there are switches.

    Returns
    -------
    array (n,)
        Infinite if no change leads to another decision.

    Examples
    --------
    The plane 3 a + 4 b = 2 at distance .3, where b may switch from 0.5 to 0 at the price of 1:

    >>> weight, bias = np.array([[0.0, 0.0], [3.0, 4.0]]), np.array([0.0, -2.0])
    >>> only_numbers = Changes(np.arange(2), (), np.zeros((2, 0)))
    >>> plane_distance(weight, bias, np.array([[0.5, 0.5]]), np.array([1]), only_numbers)
    array([0.3])
    """
    found = np.full(len(z), np.inf)
    scores = z @ weight.T + bias
    for y in np.unique(own):
        rows = np.flatnonzero(own == y)
        for k in set(range(len(bias))) - {int(y)}:
            slope, margin = weight[y] - weight[k], scores[rows, y] - scores[rows, k]
            steep = float(np.linalg.norm(slope[changes.numbers] @ changes.isotropic))
            gains = np.zeros((len(rows), 1 + len(changes.switches)))
            for place, one in enumerate(changes.switches, start=1):
                part = slope[one.positions]
                gains[:, place] = z[rows][:, one.positions] @ part - (one.levels @ part).min()
            gains[:, 1:] = -np.sort(-gains[:, 1:], axis=1)
            rest = margin[:, None] - gains.cumsum(axis=1)
            way = np.maximum(rest, 0.0) / steep if steep > 0 else np.where(rest < 0, 0.0, np.inf)
            every = np.sqrt(np.arange(gains.shape[1]) + way**2)
            found[rows] = np.minimum(found[rows], every.min(axis=1))
    return found


@dataclass(frozen=True)
class Boxes:
    """Disjoint boxes low < z <= high, (L, d) each, with one ``decision`` (L,) in each box."""

    low: Array
    high: Array
    decision: Array

    def of(self, z: Array) -> Array:
        """Return the decision at each point (n,)."""
        size = max(1, BLOCK_NUMBERS // max(1, self.low.size))
        parts = [z[at : at + size, None] for at in range(0, len(z), size)]
        places = [((self.low < part) & (part <= self.high)).all(axis=2).argmax(axis=1) for part in parts]
        return np.asarray(self.decision[np.concatenate([np.zeros(0, dtype=int), *places])])

    def scores(self, z: Array) -> Array:
        """Return 1 for the decision at each point and 0 for every other, (n, K)."""
        return np.asarray(np.eye(self.decision.max() + 1)[self.of(z)])


def boxes_of(feature: Array, threshold: Array, left: Array, right: Array, decision: Array, features: int) -> Boxes:
    """Return the leaf boxes of a decision tree of d ``features``, whose nodes send z[feature] <= threshold to the left.

    ``feature`` and ``threshold`` are the split of each node, ``left`` and ``right`` its children, -1 in a leaf, and
    ``decision`` its class, (nodes,) each.
    """
    low, high, leaves = [], [], []
    waiting = [(0, np.full(features, -np.inf), np.full(features, np.inf))]
    while waiting:
        node, below, above = waiting.pop()
        if left[node] < 0:
            low.append(below)
            high.append(above)
            leaves.append(node)
            continue
        place, cut = feature[node], threshold[node]
        upper, lower = above.copy(), below.copy()
        upper[place], lower[place] = min(above[place], cut), max(below[place], cut)
        waiting += [(int(left[node]), below, upper), (int(right[node]), lower, above)]
    return Boxes(np.array(low), np.array(high), decision[leaves])


def box_distance(boxes: Boxes, z: Array, own: Array, changes: Changes) -> Array:
    r"""Compute the Euclidean distance of rows to the nearest box with another decision.

    .. math:: d(z)^2 = \min_{l : y_l \ne y} \sum_j \max(a_{lj} - z_j, 0, z_j - b_{lj})^2 + \#\{\text{switches}\}

    Every box is tried. Fixed features, and switches without a level in the box, rule a box out.

    Parameters
    ----------
    boxes : Boxes
        Of the decision tree.
    z, own : array (n, d) and (n,)
        The rows and their decisions.
    changes : Changes
        What may change.

    Returns
    -------
    array (n,)
        Infinite if no change leads to another decision.
    """
    free = [changes.numbers, *(one.positions for one in changes.switches)]
    fixed = np.setdiff1d(np.arange(z.shape[1]), np.concatenate(free))
    # Which levels of each switch are in each box, (L, levels).
    within = [
        np.all((boxes.low[:, None, one.positions] < one.levels) & (one.levels <= boxes.high[:, None, one.positions]), 2)
        for one in changes.switches
    ]
    found = np.empty(len(z))
    size = max(1, BLOCK_NUMBERS // max(1, boxes.low.size))
    for start in range(0, len(z), size):
        rows = slice(start, start + size)
        some = z[rows, None]
        gap = np.maximum(0.0, np.maximum(boxes.low - some, some - boxes.high))
        squared = (gap[..., changes.numbers] ** 2).sum(axis=2)
        squared[((some <= boxes.low) | (some > boxes.high))[..., fixed].any(axis=2)] = np.inf
        for one, inside in zip(changes.switches, within, strict=True):
            here = inside[:, one.level_of(z[rows])].T
            squared += np.where(here, 0.0, np.where(inside.any(axis=1), 1.0, np.inf))
        squared[boxes.decision == own[rows, None]] = np.inf
        found[rows] = np.sqrt(squared.min(axis=1))
    return found
