r"""Exact optimal transport of n points to m: the plan of least mean cost.

.. math:: \min_{P \ge 0} \sum_{ij} P_{ij} c(x_i, y_j), \qquad P 1 = 1/n, \quad P^\top 1 = 1/m.

With n = m some best plan is an assignment: every point has one counterpart. Else the map is randomised: the counterpart
of :math:`x_i` is :math:`y_j` with probability :math:`n P_{ij}`, and its image is drawn from these, or is their mean.
The map is defined on the points that it was fitted on, and on no others. Solver: the network simplex of POT; and for
as many numbers as numbers, where the cost grows faster than the distance, both in order.
Source: Black et al. 2020, section 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.transport.cost import Cost, cost_function, cost_matrix, paired_costs
from pipeline.types import Array, TransportMap

FITTED_ROWS_ONLY = True
CONVEX = ("squared_l1", "squared_l2")
"""Costs of a single feature under which points go in order."""
IMAGES = ("expectation", "sample")
ITERATIONS_PER_POINT = 2_000
"""The solver stops, with an error, after so many iterations for each point; it needs far fewer."""


@dataclass(frozen=True)
class Config:
    """``cost``: a name of :mod:`pipeline.transport.cost`, or a function. ``image``: expectation or sample."""

    cost: str | Cost
    image: str

    def __post_init__(self) -> None:
        try:
            cost_function(self.cost)
        except ValueError as error:
            raise ValueError(f"transport.cost: {error}") from error
        if self.image not in IMAGES:
            raise ValueError(f"expected transport.image among {', '.join(IMAGES)}; found {self.image!r}")


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """The best plan of each trial, (n_t, d) to (m_t, d), kept as the image of every source row.

    Parameters ``rows`` and ``images`` (T, N, d), with N the largest n_t, of which ``size`` (T,) count. Facts:
    ``mean_cost``, of the plan. Raises ValueError where the solver does not converge.
    """
    size = np.array([len(rows) for rows in source])
    shape = (len(source), size.max(), source[0].shape[1])
    rows, images, costs = np.zeros(shape), np.zeros(shape), np.zeros(len(source))
    for t, (x, y, rng) in enumerate(zip(source, target, rngs, strict=True)):
        rows[t, : size[t]] = x
        if x.shape == y.shape and x.shape[1] == 1 and config.cost in CONVEX:
            image = _in_order(x, y)
            costs[t] = paired_costs(x, image, config.cost).mean()
        else:
            matrix = cost_matrix(x, y, config.cost)
            found = plan(matrix)
            image = _expected(found, y) if config.image == "expectation" else y[_drawn(found, rng)]
            costs[t] = float((found * matrix).sum())
        images[t, : size[t]] = image
    return TransportMap("exact", {"rows": rows, "images": images, "size": size}, facts={"mean_cost": costs})


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """The counterparts of rows that the map was fitted on, in any order; of equal rows each has its own.

    Raises ValueError for a row that it was not fitted on.
    """
    moved = []
    for t, asked in enumerate(rows):
        size = int(parameters["size"][t])
        moved.append(_looked_up(parameters["rows"][t, :size], parameters["images"][t, :size], np.asarray(asked)))
    return moved


def plan(matrix: Array) -> Array:
    """The plan of least cost between uniform weights, costs (n, m) to (n, m) summing to 1.

    Raises ValueError where a cost is not finite, or the solver does not converge.
    """
    import ot

    if not np.isfinite(matrix).all():
        raise ValueError("exact transport needs finite costs: look for NaN or infinite features")
    n, m = matrix.shape
    with warnings.catch_warnings():
        # What the solver warns of is in its log too, and is an error below.
        warnings.simplefilter("ignore")
        found, log = ot.emd(
            np.full(n, 1 / n), np.full(m, 1 / m), matrix, numItermax=ITERATIONS_PER_POINT * (n + m), log=True
        )
    if log["warning"]:
        raise ValueError(f"exact transport of {n} to {m} points did not converge: {log['warning']}. Map fewer points")
    return np.asarray(found)


def _in_order(source: Array, target: Array) -> Array:
    """The k-th smallest number to the k-th smallest, (n, 1) and (n, 1): no plan of a convex cost is better."""
    image = np.empty_like(target)
    image[np.argsort(source[:, 0], kind="stable")] = np.sort(target, axis=0)
    return image


def _expected(found: Array, target: Array) -> Array:
    """The mean counterpart of each source point; to the last digit the counterpart itself where there is only one."""
    mean = found @ target / found.sum(axis=1, keepdims=True)
    alone = (found > 0).sum(axis=1) == 1
    mean[alone] = target[found[alone].argmax(axis=1)]
    return np.asarray(mean)


def _drawn(found: Array, rng: np.random.Generator) -> Array:
    """The number of a counterpart drawn for each source point."""
    below = np.cumsum(found, axis=1)
    level = rng.random(len(found)) * below[:, -1]
    # A point beyond the last one of positive weight would be there by rounding alone.
    last = found.shape[1] - 1 - np.argmax(found[:, ::-1] > 0, axis=1)
    return np.minimum((below <= level[:, None]).sum(axis=1), last)


def _looked_up(fitted: Array, moved: Array, asked: Array) -> Array:
    """The images of ``asked`` among the fitted rows: the k-th of equal rows has the k-th image, and so on in turn."""
    both = np.ascontiguousarray(np.concatenate([fitted, asked]) + 0.0)
    _, kind = np.unique(both, axis=0, return_inverse=True)
    of_fitted, of_asked = kind.reshape(-1)[: len(fitted)], kind.reshape(-1)[len(fitted) :]
    order = np.argsort(of_fitted, kind="stable")
    first = np.searchsorted(of_fitted[order], of_asked, side="left")
    count = np.searchsorted(of_fitted[order], of_asked, side="right") - first
    if unknown := int((count == 0).sum()):
        raise ValueError(
            f"an exact map is defined on the rows it was fitted on alone: {unknown} of {len(asked)} rows are others. "
            "Fit it on the rows to be mapped (transport.split), or use a map that learns, such as wgan"
        )
    return moved[order[first + _occurrence(of_asked) % count]]


def _occurrence(kind: Array) -> Array:
    """How often the value of each place stood before it."""
    order = np.argsort(kind, kind="stable")
    arranged = kind[order]
    occurrence = np.empty(len(kind), dtype=np.int64)
    occurrence[order] = np.arange(len(kind)) - np.searchsorted(arranged, arranged, side="left")
    return occurrence
