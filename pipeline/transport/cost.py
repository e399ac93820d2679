r"""The cost of moving a point to another, which transport maps keep low.

squared_l1, the paper's: :math:`c(x, y) = (\sum_j |x_j - y_j|)^2`; l1 without the square; squared_l2
:math:`\sum_j (x_j - y_j)^2`; and l2, its root. A cost of one's own is any function of two broadcast arrays.
Source: Black et al. 2020, section 3.2.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np

from pipeline.fields import one_of
from pipeline.types import Array

Cost = Callable[[Any, Any], Any]
"""c(x, y): (..., d) and (..., d), broadcast, to (...)."""


def squared_l1(x: Any, y: Any) -> Any:
    """The squared sum of absolute differences; NumPy arrays or torch tensors."""
    return abs(x - y).sum(-1) ** 2


COSTS: Mapping[str, Cost] = {
    "squared_l1": squared_l1,
    "l1": lambda x, y: abs(x - y).sum(-1),
    "squared_l2": lambda x, y: ((x - y) ** 2).sum(-1),
    "l2": lambda x, y: ((x - y) ** 2).sum(-1) ** 0.5,
}
"""Of NumPy arrays or torch tensors."""
CostOrName = Annotated[str, one_of(COSTS)] | Cost
METRICS = {"squared_l1": "cityblock", "l1": "cityblock", "squared_l2": "sqeuclidean", "l2": "euclidean"}
"""What scipy calls the named costs, before the square of the first."""


def cost_function(cost: str | Cost) -> Cost:
    """The cost of this name, or the function itself. Raises ValueError for a name that is not known."""
    if callable(cost):
        return cost
    if cost not in COSTS:
        raise ValueError(f"expected a cost among {', '.join(COSTS)}, or a function c(x, y); found {cost!r}")
    return COSTS[cost]


def cost_matrix(x: Array, y: Array, cost: str | Cost = "squared_l1") -> Array:
    """c(x_i, y_j) of every pair, (n, d) and (m, d) to (n, m) float64."""
    found = cost_function(cost)
    if callable(cost):
        return np.stack([np.asarray(found(row[None], y), dtype=np.float64) for row in x])
    from scipy.spatial.distance import cdist

    matrix = np.asarray(cdist(x, y, METRICS[cost]))
    return np.square(matrix, out=matrix) if cost == "squared_l1" else matrix


def paired_costs(x: Array, y: Array, cost: str | Cost = "squared_l1") -> Array:
    """c(x_i, y_i) of each row and its own counterpart, (n, d) and (n, d) to (n,)."""
    return np.asarray(cost_function(cost)(x, y))
