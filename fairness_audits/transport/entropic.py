r"""Debiased entropic optimal transport with the target's marginals: a smooth, stable and fast map.

.. math:: \min_P \sum_{ij} P_{ij} c(x_i, y_j) + \epsilon\, \mathrm{KL}(P \,|\, \mu \otimes \nu), \qquad
          T_{xy}(x) = \frac{\sum_j y_j\, e^{(g_j - c(x, y_j)) / \epsilon}}{\sum_j e^{(g_j - c(x, y_j)) / \epsilon}}

where g is the potential of the target points y under the optimal plan from the source points x. The barycentric map
:math:`T_{xy}` is defined for every x (Pooladian and Niles-Weed 2021), but it contracts the points, and more so for a
larger epsilon. The map from the source to itself should be the identity and contracts the points too. The debiased map
is therefore

.. math:: T(x) = x + T_{xy}(x) - T_{xx}(x)

(Pooladian, Cuturi and Niles-Weed 2022). Finally, each feature of T(x) is shifted by the difference between the quantile
functions of the target and of the mapped source points. This corrects the marginals and keeps the order.

The squared L1 cost has many optimal plans, and their mean is not a useful map: within a quadrant the cost depends only
on the sum of the differences. The term :math:`\delta \sum_j (x_j - y_j)^2` is added to the cost to break these ties.
Epsilon is a share of the mean cost between two points of the same group.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.models import stacked
from fairness_audits.transport.cost import CostName, tie_broken_costs
from fairness_audits.validation import Checked, NonNegative, Positive, at_least
from fairness_audits.values import Array, TransportMap

BLOCK = 200_000
"""Number of costs held at once when rows are mapped: 1.6 MB, which fit into a processor's cache."""
MARGINAL_ERROR = 1e-6
"""Convergence threshold: Euclidean norm of the difference between the plan's column masses and 1/m."""
ANNEALING = 50
"""Annealing starts at an epsilon of the largest cost divided by this number, and halves it in each round."""
COARSE_ERROR = 1e-4
ITERATIONS = 1000
"""Maximum number of iterations for each epsilon."""
SAME = 1e-9
"""Values of a feature that differ by less than this share of its range form one atom."""


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """Settings of the entropic map.

    ``cost`` is a name of :mod:`fairness_audits.transport.cost`, ``tie_break`` is delta, and ``regularization`` is
    epsilon as a share of the mean cost. ``centres`` is the maximum number of random points of each group with
    potentials; time and memory grow with its square. ``quantiles`` is the number of levels of the quantile functions.
    """

    cost: CostName
    tie_break: NonNegative
    regularization: Positive
    centres: Annotated[int, at_least(2)]
    quantiles: Annotated[int, at_least(2)]


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """Fit one map for each trial, from (n_t, d) to (m_t, d), one trial after the other.

    The parameters, for up to K centres of each group and Q quantiles, are ``source_centres`` and ``target_centres``
    (T, K, d); ``source_potential`` and ``target_potential`` (T, K), minus infinity for missing centres; ``knots`` and
    ``moves`` (T, Q, d); ``epsilon`` and ``tie_break`` (T,); and the name ``cost`` (T,). The fact ``marginal_error`` is
    a Euclidean norm, the larger one of the two plans. Raises InvalidInput if all points within each group are equal.
    """
    return fit_with_images(source, target, config, rngs)[0]


def fit_with_images(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> tuple[TransportMap, list[Array]]:
    """Return the result of :func:`fit` and the images of the source rows, which the fit computes anyway."""
    fitted = [_fitted(x, y, config, rng) for x, y, rng in zip(source, target, rngs, strict=True)]
    maps = TransportMap(
        kind="entropic",
        parameters={name: _stacked([parameters[name] for parameters, _, _ in fitted]) for name in fitted[0][0]},
        facts={"marginal_error": np.array([error for _, error, _ in fitted])},
    )
    return maps, [image for _, _, image in fitted]


def images_of_drawn(
    source: Array, target: Array, drawn: tuple[Array, Array], config: Config, rng: np.random.Generator
) -> Array:
    """Fit a map to drawn rows, ``source[drawn[0]]`` and ``target[drawn[1]]``; return the images of all source rows.

    The drawn rows are among the source rows, so no row is mapped twice.
    """
    return _fitted(source, target, config, rng, *drawn)[2]


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """Return the images of any rows, (n_t, d) to (n_t, d)."""
    moved = []
    for t, own in enumerate(rows):
        one = {name: array[t] for name, array in parameters.items()}
        moved.append(_with_marginals(one, _debiased(one, np.asarray(own, dtype=np.float64))))
    return moved


def _fitted(
    x: Array, y: Array, config: Config, rng: np.random.Generator, here: Any = slice(None), there: Any = slice(None)
) -> tuple[dict[str, Array], float, Array]:
    """Return the parameters of a map from x[here] to y[there], its larger marginal error, and the images of all x."""
    parameters, error = _potentials(x[here], y[there], config, rng)
    moved = _debiased(parameters, np.asarray(x, dtype=np.float64))
    parameters["knots"], parameters["moves"] = quantile_moves(moved[here], y[there], config.quantiles)
    return parameters, error, _with_marginals(parameters, moved)


def _potentials(x: Array, y: Array, config: Config, rng: np.random.Generator) -> tuple[dict[str, Array], float]:
    """Return the parameters of a map without its quantiles, and the larger marginal error of its two plans."""
    x_centres, y_centres = (points[rng.permutation(len(points))[: config.centres]] for points in (x, y))
    within = [tie_broken_costs(points, points, config.cost, config.tie_break) for points in (x_centres, y_centres)]
    epsilon = config.regularization * float(np.mean([costs.mean() for costs in within]))
    if epsilon == 0:
        problem = "expected groups of different rows, but all rows of each group are equal"
        raise InvalidInput(problem, option="source", remedy="Map other columns")
    _, g, error = sinkhorn(tie_broken_costs(x_centres, y_centres, config.cost, config.tie_break), epsilon)
    # Rule out a row as its own counterpart, because no row is in the other group.
    np.fill_diagonal(within[0], np.inf)
    left, right, error_within = sinkhorn(within[0], epsilon)
    parameters = {
        "source_centres": x_centres,
        "target_centres": y_centres,
        # The two potentials differ only by a constant, because the costs are symmetric.
        "source_potential": (left + right) / 2,
        "target_potential": g,
        "epsilon": np.array(epsilon),
        "tie_break": np.array(config.tie_break),
        "cost": np.array(config.cost),
    }
    return parameters, max(error, error_within)


def sinkhorn(costs: Array, epsilon: float) -> tuple[Array, Array, float]:
    """Return potentials f (n,), g (m,) of the entropic plan exp((f_i + g_j - c_ij) / epsilon) / (n m), and its error.

    POT solves the problem. Epsilon starts larger and is halved down to its value. Each round subtracts the current
    potentials from the costs, which keeps the exponentials in range. Raises InvalidInput if they overflow anyway.
    """
    from fairness_audits.transport.pot import ot

    n, m = costs.shape
    f = costs.min(axis=1)
    g = (costs - f[:, None]).min(axis=0)
    current = max(epsilon, float(costs[np.isfinite(costs)].max()) / ANNEALING)
    while True:
        last = current == epsilon
        with warnings.catch_warnings():
            # The map's facts report the convergence, and potentials that are not finite raise an error below.
            warnings.simplefilter("ignore")
            _, log = ot.bregman.sinkhorn_knopp(
                np.full(n, 1 / n),
                np.full(m, 1 / m),
                costs - f[:, None] - g,
                current,
                numItermax=ITERATIONS,
                stopThr=MARGINAL_ERROR if last else COARSE_ERROR,
                log=True,
            )
            f, g = f + current * np.log(log["u"]), g + current * np.log(log["v"])
        if not (np.isfinite(f).all() and np.isfinite(g).all()):
            problem = f"the entropic plan overflowed at epsilon {current:.3g}"
            raise InvalidInput(problem, option="regularization", remedy="Raise the regularization")
        if last:
            return f + epsilon * np.log(n), g + epsilon * np.log(m), float(log["err"][-1])
        current = max(epsilon, current / 2)


def quantile_moves(mapped: Array, target: Array, levels: int) -> tuple[Array, Array]:
    """Return quantiles of each mapped feature (Q, d), and the target's quantiles minus these (Q, d).

    A value that occurs at several levels (an atom) moves by the mean of its moves.
    """
    at = (np.arange(levels) + 0.5) / levels
    # Sort first, because NumPy's partition at hundreds of places takes longer.
    knots, moves = (np.quantile(np.sort(values, axis=0), at, axis=0) for values in (mapped, target))
    moves -= knots
    for j in range(knots.shape[1]):
        atom = np.concatenate([[0], np.cumsum(np.diff(knots[:, j]) > SAME * np.ptp(knots[:, j]))])
        size = np.bincount(atom)
        knots[:, j], moves[:, j] = (
            (np.bincount(atom, weights=values) / size)[atom] for values in (knots[:, j], moves[:, j])
        )
    return knots, moves


def _debiased(parameters: Mapping[str, Array], rows: Array) -> Array:
    """Return T(x) = x + T_xy(x) - T_xx(x), (n, d), computed once for equal rows."""
    rows, place = np.unique(rows, axis=0, return_inverse=True)
    moved = rows.copy()
    for group, sign in (("target", 1), ("source", -1)):
        centres, potential = parameters[f"{group}_centres"], parameters[f"{group}_potential"]
        step = max(1, BLOCK // len(centres))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            costs = tie_broken_costs(part, centres, str(parameters["cost"]), float(parameters["tie_break"]))
            weight = (potential - costs) / parameters["epsilon"]
            if group == "source":
                equal = costs == 0
                centre = equal.any(axis=1)  # few rows equal a centre
                weight[centre] += _without_itself(equal[centre])
            weight -= weight.max(axis=1, keepdims=True)
            np.exp(weight, out=weight)
            moved[start : start + step] += sign * (weight @ centres) / weight.sum(axis=1, keepdims=True)
    return np.asarray(moved[place.reshape(-1)])


def _without_itself(equal: Array) -> Array:
    """Return log weights (n, k) that remove one centre equal to the row: each of r equal centres keeps 1 - 1/r."""
    count = equal.sum(axis=1)
    with np.errstate(divide="ignore"):
        share = np.log1p(-1 / np.maximum(count, 1))
    return np.where(equal, share[:, None], 0.0)


def _with_marginals(parameters: Mapping[str, Array], mapped: Array) -> Array:
    """Move each feature by the moves of its quantiles, interpolated linearly."""
    columns = zip(mapped.T, parameters["knots"].T, parameters["moves"].T, strict=True)
    return np.stack([values + np.interp(values, knots, moves) for values, knots, moves in columns], axis=1)


def _stacked(arrays: Sequence[Array]) -> Array:
    """Stack trials. Shorter trials are padded with centres at 0 whose potential is minus infinity."""
    return np.stack(arrays) if arrays[0].ndim == 0 else stacked(arrays, -np.inf if arrays[0].ndim == 1 else 0.0)
