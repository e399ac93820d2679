r"""Cost functions of transport maps: the cost of moving one point to another.

The paper's cost is squared_l1, :math:`c(x, y) = (\sum_j |x_j - y_j|)^2`; l1 is its square root. The cost squared_l2 is
:math:`\sum_j (x_j - y_j)^2`; l2 is its square root.
Source: Black et al. 2020, section 3.2.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np

from fairness_audits.validation import one_of
from fairness_audits.values import Array

COSTS: Mapping[str, Callable[[Any, Any], Any]] = {
    "squared_l1": lambda x, y: abs(x - y).sum(-1) ** 2,
    "l1": lambda x, y: abs(x - y).sum(-1),
    "squared_l2": lambda x, y: ((x - y) ** 2).sum(-1),
    "l2": lambda x, y: ((x - y) ** 2).sum(-1) ** 0.5,
}
"""Cost functions c(x, y) by name: they broadcast NumPy arrays or torch tensors (..., d) and (..., d) to (...)."""
CostName = Annotated[str, one_of(COSTS)]
FEW_INDICATORS = 8
"""Minimum number of indicator columns for which the matrix product is faster."""
BLOCK = 2**16
"""Number of costs computed at once: half a megabyte for each of the terms, which fit into a processor's cache."""
UNPOWERED = {"cityblock": "l1", "sqeuclidean": "squared_l2"}
METRICS = {"squared_l1": "cityblock", "l1": "cityblock", "squared_l2": "sqeuclidean", "l2": "euclidean"}
"""SciPy's names of the costs; squared_l1 is squared afterwards."""


def cost_matrix(x: Array, y: Array, cost: str = "squared_l1") -> Array:
    """Return the costs c(x_i, y_j) of all pairs of rows, (n, d) and (m, d) to (n, m) float64."""
    from scipy.spatial.distance import cdist

    matrix = np.asarray(cdist(x, y, METRICS[cost]))
    return np.square(matrix, out=matrix) if cost == "squared_l1" else matrix


def tie_broken_costs(x: Array, y: Array, cost: str, tie_break: float) -> Array:
    """Return c(x_i, y_j) + delta |x_i - y_j|^2 of all pairs, (n, d) and (m, d) to (n, m) float64.

    delta is ``tie_break``. Columns that hold only 0 and one other value w, such as indicators of categories, differ by
    0 or w. A matrix product counts the differing columns in a tenth of the time of a sum over the columns.
    """
    if not tie_break:
        return cost_matrix(x, y, cost)
    width = _widths(x, y)
    other, first = width == 0, METRICS[cost]
    powered = np.sqrt if first == "euclidean" else np.square if cost == "squared_l1" else np.positive
    counts = [(w, *_counted(x[:, width == w] != 0, y[:, width == w] != 0)) for w in np.unique(width[~other])]
    x, y, costs = x[:, other], y[:, other], np.empty((len(x), len(y)))
    step = max(1, BLOCK // len(y))
    for start in range(0, len(x), step):
        rows, block = slice(start, start + step), costs[start : start + step]
        sums = {metric: cost_matrix(x[rows], y, of) for metric, of in UNPOWERED.items()}
        for w, left, right in counts:
            differing = left[rows] @ right
            for metric, power in (("cityblock", w), ("sqeuclidean", w**2)):
                sums[metric] += np.multiply(differing, power, out=block)
        square = sums["sqeuclidean"]
        powered(sums.get(first, square), out=block)
        square *= tie_break
        block += square
    return costs


def _widths(x: Array, y: Array) -> Array:
    """Return w (d,) of each column that holds only 0 and w, else 0; all 0 if there are few such columns."""
    width = np.maximum(x.max(axis=0), y.max(axis=0))
    width[width < 0] = 0
    two = np.all([((side == 0) | (side == width)).all(axis=0) for side in (x, y)], axis=0)
    return np.where(two, width, 0.0) if two.sum() >= FEW_INDICATORS else np.zeros_like(width)


def _counted(x: Array, y: Array) -> tuple[Array, Array]:
    """Return two matrices, (n, k + 2) and (k + 2, m), whose product counts the columns in which two rows differ.

    ``x`` (n, k) and ``y`` (m, k) are bool. The counts are exact in single precision.
    """
    one, other = x.astype(np.float32), y.astype(np.float32)
    ones, sizes = [np.ones((len(side), 1), np.float32) for side in (one, other)], one.sum(axis=1, keepdims=True)
    right = np.hstack([other, ones[1], other.sum(axis=1, keepdims=True)])
    return np.hstack([-2 * one, sizes, ones[0]]), np.ascontiguousarray(right.T)


def paired_costs(x: Array, y: Array, cost: str = "squared_l1") -> Array:
    """Return the cost c(x_i, y_i) of each row and its own counterpart, (n, d) and (n, d) to (n,)."""
    return np.asarray(COSTS[cost](x, y))
