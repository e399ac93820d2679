r"""A decision tree that looks for subgroups in which an output depends on group membership.

.. math:: r = \operatorname{corr}(y, z), \qquad \operatorname{artanh} r \pm \frac{\Phi^{-1}(1 - \alpha/2)}{\sqrt{n - 3}}

y is the output (n,), z the group (n,) in {0, 1}; the interval is Fisher's, and the *effect* is its end nearest to 0,
0 if it contains 0. A node is split where the mean effect of its two children is largest, and first of all where a child
has a larger effect than the node. Each node is a context: a conjunction of bounds on features.

Source: Tramer et al. 2017, with the choices of their program: depth, smallest leaf, bins, mean of the children.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.types import Array

INFINITE = (-np.inf, np.inf)
ROUNDING = 1e-9
"""Variances below this share of the mean square are rounding errors."""


@dataclass(frozen=True)
class Limits:
    """``depth`` of the tree, rows of its smallest leaf, ``bins`` of a feature, ``confidence`` of the intervals."""

    depth: int
    minimum_leaf: int
    bins: int
    confidence: float


@dataclass(frozen=True)
class Context:
    """A node: ``bounds`` (low, high] by column number, ``depth``, and the number of its parent, None for the root."""

    bounds: dict[int, tuple[float, float]]
    depth: int
    parent: int | None

    def contains(self, x: Array) -> Array:
        """Which rows of x (n, d) are in it: (n,) bool."""
        inside = np.ones(len(x), dtype=bool)
        for column, (low, high) in self.bounds.items():
            inside &= (x[:, column] > low) & (x[:, column] <= high)
        return inside


@dataclass(frozen=True)
class Split:
    """A cut of a node at ``column`` <= ``value``; ``better``: an effect of its sides is larger than the node's."""

    column: int
    value: float
    score: float
    better: bool


def grown(x: Array, y: Array, z: Array, limits: Limits) -> list[Context]:
    """The contexts of the tree for rows x (n, d), output y (n,) and group z (n,), the root first, parents before."""
    # Centred, so that sums of products lose no digits to the means.
    y, z = y - y.mean(), z - z.mean()
    bins = [binned(column, limits.bins) for column in x.T]
    contexts = [Context({}, 0, None)]
    pending = [(0, np.arange(len(x)))]
    while pending:
        number, rows = pending.pop(0)
        node = contexts[number]
        if node.depth == limits.depth:
            continue
        split = best_split(rows, bins, y, z, limits)
        if split is None:
            continue
        left = x[rows, split.column] <= split.value
        low, high = node.bounds.get(split.column, INFINITE)
        for bounds, members in (((low, split.value), rows[left]), ((split.value, high), rows[~left])):
            contexts.append(Context({**node.bounds, split.column: bounds}, node.depth + 1, number))
            pending.append((len(contexts) - 1, members))
    return contexts


def binned(values: Array, bins: int) -> tuple[Array, Array]:
    """The cuts of a feature (c,), at most ``bins`` - 1 of them, and each row's bin (n,): its cuts below the value.

    A feature of few values is cut at each of them but the last; one of more at its quantiles.
    """
    different = np.unique(values)
    if len(different) > bins:
        different = np.unique(np.quantile(values, np.arange(1, bins) / bins, method="lower"))
        cuts = different[different < values.max()]
    else:
        cuts = different[:-1]
    return cuts, np.searchsorted(cuts, values, side="left")


def best_split(rows: Array, bins: Sequence[tuple[Array, Array]], y: Array, z: Array, limits: Limits) -> Split | None:
    """The best cut of the node that holds ``rows``; None where no cut has an effect and two leaves large enough."""
    each = products(y[rows], z[rows])
    own = float(effects(each.sum(axis=1), limits.confidence))
    best: Split | None = None
    for column, (cuts, bin_of) in enumerate(bins):
        if len(cuts) == 0:
            continue
        sums = np.stack([np.bincount(bin_of[rows], weights=w, minlength=len(cuts) + 1) for w in each])
        left = sums.cumsum(axis=1)[:, :-1]
        right = sums.sum(axis=1, keepdims=True) - left
        large = np.minimum(left[0], right[0]) >= limits.minimum_leaf
        sides = np.stack([effects(side, limits.confidence) for side in (left, right)])
        score = np.where(large, sides.mean(axis=0), 0.0)
        better = sides.max(axis=0) > own
        for cut in np.flatnonzero(score > 0):
            found = Split(column, float(cuts[cut]), float(score[cut]), bool(better[cut]))
            if best is None or (found.better, found.score) > (best.better, best.score):
                best = found
    return best


def products(y: Array, z: Array) -> Array:
    """1, y, z, y^2, z^2 and y z of every row: (6, n). Their sums over any rows give these rows' correlation."""
    return np.stack([np.ones(len(y)), y, z, y * y, z * z, y * z])


def correlation(sums: Array) -> Array:
    """r of the rows over which the six products are summed, (6, ...) -> (...); NaN where y or z does not vary."""
    n, y, z, yy, zz, yz = sums
    y_variance, z_variance = n * yy - y**2, n * zz - z**2
    # What rounding makes of the variance of a constant is no variance.
    varies = (y_variance > ROUNDING * n * yy) & (z_variance > ROUNDING * n * zz)
    scale = np.sqrt(np.where(varies, y_variance * z_variance, 1.0))
    return np.where(varies, np.clip((n * yz - y * z) / scale, -1, 1), np.nan)


def effects(sums: Array, confidence: float) -> Array:
    """The effect of the rows over which the six products are summed, (6, ...) -> (...); 0 where r is undefined."""
    low, high = interval(correlation(sums), sums[0], confidence)
    return np.where(np.isnan(low), 0.0, nearest_to_zero(low, high))


def nearest_to_zero(low: Array, high: Array) -> Array:
    """The distance of an interval from 0; 0 if it contains 0, NaN if it is none."""
    return np.maximum(np.maximum(low, -high), 0.0)


def interval(r: Array, n: Array, confidence: float) -> tuple[Array, Array]:
    """Fisher's interval of correlations r over n rows each; NaN below four rows."""
    from scipy.stats import norm

    with np.errstate(divide="ignore", invalid="ignore"):
        half = norm.isf((1 - confidence) / 2) / np.sqrt(np.where(n > 3, n - 3.0, np.nan))
        middle = np.arctanh(r)
        return np.tanh(middle - half), np.tanh(middle + half)


def p_value(r: Array, n: Array) -> Array:
    """Two-sided p-values of r = 0, by the same normal limit."""
    from scipy.stats import norm

    with np.errstate(divide="ignore", invalid="ignore"):
        return 2 * norm.sf(np.abs(np.arctanh(r)) * np.sqrt(np.where(n > 3, n - 3.0, np.nan)))
