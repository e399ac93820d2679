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
    other = width == 0
    first = METRICS[cost]
    sums = {metric: cost_matrix(x[:, other], y[:, other], of) for metric, of in UNPOWERED.items()}
    for w in np.unique(width[~other]):
        differing = _differing(x[:, width == w] != 0, y[:, width == w] != 0)
        sums["cityblock"] += w * differing
        sums["sqeuclidean"] += w**2 * differing
    square = sums["sqeuclidean"]
    costs = sums["cityblock"] if first == "cityblock" else np.sqrt(square) if first == "euclidean" else square.copy()
    if cost == "squared_l1":
        np.square(costs, out=costs)
    square *= tie_break
    costs += square
    return costs


def _widths(x: Array, y: Array) -> Array:
    """Return w (d,) of each column that holds only 0 and w, else 0; all 0 if there are few such columns."""
    width = np.maximum(x.max(axis=0), y.max(axis=0))
    width[width < 0] = 0
    two = np.all([((side == 0) | (side == width)).all(axis=0) for side in (x, y)], axis=0)
    return np.where(two, width, 0.0) if two.sum() >= FEW_INDICATORS else np.zeros_like(width)


def _differing(x: Array, y: Array) -> Array:
    """Count the columns in which two rows differ: bool (n, k) and (m, k) to (n, m), exact in single precision."""
    one, other = x.astype(np.float32), y.astype(np.float32)
    count = one @ (-2 * other.T)
    count += one.sum(axis=1)[:, None]
    count += other.sum(axis=1)
    return count


def paired_costs(x: Array, y: Array, cost: str = "squared_l1") -> Array:
    """Return the cost c(x_i, y_i) of each row and its own counterpart, (n, d) and (n, d) to (n,)."""
    return np.asarray(COSTS[cost](x, y))
