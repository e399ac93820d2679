r"""Entropic optimal transport without its bias, and with the target's marginals: a smooth, stable and quick map.

.. math:: \min_P \sum_{ij} P_{ij} c(x_i, y_j) + \epsilon\, \mathrm{KL}(P \,|\, \mu \otimes \nu), \qquad
          T_{xy}(x) = \frac{\sum_j y_j\, e^{(g_j - c(x, y_j)) / \epsilon}}{\sum_j e^{(g_j - c(x, y_j)) / \epsilon}}

with g the potential of the target points y under the best plan from the source points x. The mean of counterparts
:math:`T_{xy}` is defined for every x (Pooladian and Niles-Weed 2021), but it draws points together, the more the larger
epsilon. So does the same map from the source to itself, which should be the identity, and the difference is left:

.. math:: T(x) = x + T_{xy}(x) - T_{xx}(x)

(Pooladian, Cuturi and Niles-Weed 2022). Last each feature of T(x) is moved by the difference of two quantile functions,
those of the target and of the mapped source points, which makes the marginals right and keeps the order.

The squared L1 cost has many best plans, and their mean is no map at all: within a quadrant it depends on the sum of the
differences alone. :math:`\delta \sum_j (x_j - y_j)^2`, which is added to it, chooses among them. Epsilon is given as
a share of the mean cost between two points of the same group.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.models import stacked
from fairness_audits.transport.cost import CostName, cost_matrix
from fairness_audits.validation import Checked, NonNegative, Positive, at_least
from fairness_audits.values import Array, TransportMap

BLOCK = 200_000
"""So many costs are held at once when rows are mapped: 1.6 MB, which stay in a processor's cache."""
MARGINAL_ERROR = 1e-6
"""The iteration ends when the plan's column masses are that close to 1/m, in Euclidean norm."""
ANNEALING = 50
"""The first, coarser epsilon is the largest cost over this, and each further one is half of the one before."""
COARSE_ERROR = 1e-4
ITERATIONS = 1000
"""At most, for each epsilon."""
SAME = 1e-9
"""Values of a feature that differ by less than this share of its range are one atom."""


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """``cost``: a name of :mod:`fairness_audits.transport.cost`.

    ``tie_break``: delta. ``regularization``: epsilon's share.

    ``centres``: at most so many random points of each group carry potentials; time and memory go with its square.
    ``quantiles``: the number of levels at which quantile functions are compared.
    """

    cost: CostName
    tie_break: NonNegative
    regularization: Positive
    centres: Annotated[int, at_least(2)]
    quantiles: Annotated[int, at_least(2)]


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """One map a trial, (n_t, d) to (m_t, d), one trial after the other.

    Parameters, with at most K centres of each group and Q quantiles: ``source_centres``, ``target_centres`` (T, K, d);
    ``source_potential``, ``target_potential`` (T, K), minus infinity where there are fewer; ``knots`` and ``moves``
    (T, Q, d); ``epsilon`` and ``tie_break`` (T,), ``cost`` (T,) its name. Fact: the larger
    ``marginal_error`` of the two plans, a Euclidean norm. Raises InvalidInput for groups whose points are all equal.
    """
    fitted = [_fitted(x, y, config, rng) for x, y, rng in zip(source, target, rngs, strict=True)]
    return TransportMap(
        kind="entropic",
        parameters={name: _stacked([parameters[name] for parameters, _ in fitted]) for name in fitted[0][0]},
        facts={"marginal_error": np.array([error for _, error in fitted])},
    )


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """The images of any rows, (n_t, d) to (n_t, d)."""
    moved = []
    for t, own in enumerate(rows):
        one = {name: array[t] for name, array in parameters.items()}
        moved.append(_with_marginals(one, _debiased(one, np.asarray(own, dtype=np.float64))))
    return moved


def _fitted(x: Array, y: Array, config: Config, rng: np.random.Generator) -> tuple[dict[str, Array], float]:
    """The parameters of one trial's map, and the larger error of its plans' marginals."""
    x_centres, y_centres = (points[rng.permutation(len(points))[: config.centres]] for points in (x, y))
    within = [_costs(points, points, config.cost, config.tie_break) for points in (x_centres, y_centres)]
    epsilon = config.regularization * float(np.mean([costs.mean() for costs in within]))
    if epsilon == 0:
        problem = "expected groups of different rows, but within each group all are equal"
        raise InvalidInput(problem, option="source", remedy="Map other columns")
    _, g, error = sinkhorn(_costs(x_centres, y_centres, config.cost, config.tie_break), epsilon)
    # No row is its own counterpart, as none is in the other group.
    np.fill_diagonal(within[0], np.inf)
    left, right, error_within = sinkhorn(within[0], epsilon)
    parameters = {
        "source_centres": x_centres,
        "target_centres": y_centres,
        # The same but for a constant: the costs are symmetric.
        "source_potential": (left + right) / 2,
        "target_potential": g,
        "epsilon": np.array(epsilon),
        "tie_break": np.array(config.tie_break),
        "cost": np.array(config.cost),
    }
    parameters["knots"], parameters["moves"] = quantile_moves(_debiased(parameters, x), y, config.quantiles)
    return parameters, max(error, error_within)


def sinkhorn(costs: Array, epsilon: float) -> tuple[Array, Array, float]:
    """Potentials f (n,), g (m,) of the entropic plan exp((f_i + g_j - c_ij) / epsilon) / (n m), by POT; its error.

    Epsilon starts coarser and is halved to its value; the potentials so far are taken off the costs each time, which
    keeps exponentials in range. Raises InvalidInput where they leave it all the same.
    """
    from fairness_audits.transport.pot import ot

    n, m = costs.shape
    f = costs.min(axis=1)
    g = (costs - f[:, None]).min(axis=0)
    current = max(epsilon, float(costs[np.isfinite(costs)].max()) / ANNEALING)
    while True:
        last = current == epsilon
        with warnings.catch_warnings():
            # How far it came is a fact of the map; what is not finite is an error below.
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
            raise InvalidInput(problem, option="regularization", remedy="Raise transport.regularization")
        if last:
            return f + epsilon * np.log(n), g + epsilon * np.log(m), float(log["err"][-1])
        current = max(epsilon, current / 2)


def quantile_moves(mapped: Array, target: Array, levels: int) -> tuple[Array, Array]:
    """Values of each mapped feature (Q, d), and how far each lies below the target's quantile of the same level (Q, d).

    One value at several levels, an atom, moves by the mean of its moves, at all its places.
    """
    at = (np.arange(levels) + 0.5) / levels
    knots = np.quantile(mapped, at, axis=0)
    moves = np.quantile(target, at, axis=0) - knots
    for j in range(knots.shape[1]):
        atom = np.concatenate([[0], np.cumsum(np.diff(knots[:, j]) > SAME * np.ptp(knots[:, j]))])
        size = np.bincount(atom)
        knots[:, j], moves[:, j] = (
            (np.bincount(atom, weights=values) / size)[atom] for values in (knots[:, j], moves[:, j])
        )
    return knots, moves


def _costs(x: Array, y: Array, cost: str, tie_break: float) -> Array:
    """The cost with the tie-break, (n, m)."""
    costs = cost_matrix(x, y, cost)
    if tie_break:
        costs += tie_break * cost_matrix(x, y, "squared_l2")
    return costs


def _debiased(parameters: Mapping[str, Array], rows: Array) -> Array:
    """T(x) = x + T_xy(x) - T_xx(x), (n, d), worked out once for equal rows."""
    rows, place = np.unique(rows, axis=0, return_inverse=True)
    moved = rows.copy()
    for group, sign in (("target", 1), ("source", -1)):
        centres, potential = parameters[f"{group}_centres"], parameters[f"{group}_potential"]
        step = max(1, BLOCK // len(centres))
        for start in range(0, len(rows), step):
            part = rows[start : start + step]
            costs = _costs(part, centres, str(parameters["cost"]), float(parameters["tie_break"]))
            weight = (potential - costs) / parameters["epsilon"]
            if group == "source":
                weight += _without_itself(costs == 0)
            weight -= weight.max(axis=1, keepdims=True)
            np.exp(weight, out=weight)
            moved[start : start + step] += sign * (weight @ centres) / weight.sum(axis=1, keepdims=True)
    return np.asarray(moved[place.reshape(-1)])


def _without_itself(equal: Array) -> Array:
    """Log weights (n, k) that take one of the centres equal to a row out of account: of r such each keeps 1 - 1/r."""
    count = equal.sum(axis=1)
    with np.errstate(divide="ignore"):
        share = np.log1p(-1 / np.maximum(count, 1))
    return np.where(equal, share[:, None], 0.0)


def _with_marginals(parameters: Mapping[str, Array], mapped: Array) -> Array:
    """Each feature moved as the nearest quantiles are, and linearly between them."""
    columns = zip(mapped.T, parameters["knots"].T, parameters["moves"].T, strict=True)
    return np.stack([values + np.interp(values, knots, moves) for values, knots, moves in columns], axis=1)


def _stacked(arrays: Sequence[Array]) -> Array:
    """Trials of unequal numbers of centres: the shorter get centres at 0 with the potential minus infinity."""
    return np.stack(arrays) if arrays[0].ndim == 0 else stacked(arrays, -np.inf if arrays[0].ndim == 1 else 0.0)
