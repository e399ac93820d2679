r"""The cost of moving a point to another, which transport maps keep low.

squared_l1, the paper's: :math:`c(x, y) = (\sum_j |x_j - y_j|)^2`; l1 without the square; squared_l2
:math:`\sum_j (x_j - y_j)^2`; and l2, its root.
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
"""c(x, y): NumPy arrays or torch tensors (..., d) and (..., d), broadcast, to (...)."""
CostName = Annotated[str, one_of(COSTS)]
METRICS = {"squared_l1": "cityblock", "l1": "cityblock", "squared_l2": "sqeuclidean", "l2": "euclidean"}
"""What scipy calls the named costs, before the square of the first."""


def cost_matrix(x: Array, y: Array, cost: str = "squared_l1") -> Array:
    """c(x_i, y_j) of every pair, (n, d) and (m, d) to (n, m) float64."""
    from scipy.spatial.distance import cdist

    matrix = np.asarray(cdist(x, y, METRICS[cost]))
    return np.square(matrix, out=matrix) if cost == "squared_l1" else matrix


def paired_costs(x: Array, y: Array, cost: str = "squared_l1") -> Array:
    """c(x_i, y_i) of each row and its own counterpart, (n, d) and (n, d) to (n,)."""
    return np.asarray(COSTS[cost](x, y))
