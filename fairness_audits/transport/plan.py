r"""The transport plan of least cost between two sets of points, all of the same weight.

.. math:: \min_{P \ge 0} \sum_{ij} P_{ij} c(x_i, y_j), \qquad \sum_j P_{ij} = \frac{1}{n}, \quad
          \sum_i P_{ij} = \frac{1}{m},

over the n source points x and the m target points y. Four things keep it small without making it inexact:

- Equal points are one *atom* of as many times the weight. With weights in units of 1 / lcm(n, m) every mass is a whole
  number, so that the plan between as many points as there are targets is an assignment without rounding.
- Of a single feature, points go in order under every named cost: the solver is not asked.
- Beyond :data:`DENSE` pairs only some of them are given to the solver, the network simplex of POT. Its potentials u, v
  price the others: a pair of negative reduced cost c(x, y) - u(x) - v(y) could improve the plan and joins in, and the
  solver starts again, until there is none. First come the pairs that are cheapest by the potentials of a sample.
- :math:`\sum_i u_i / n + \sum_j v_j / m`, with u lowered to make all reduced costs positive, bounds the least cost from
  below. What remains between the plan's cost and the bound is its ``gap``, 0 but for rounding.

Source of the pricing: Dantzig and Wolfe 1960, column generation.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.transport.cost import cost_matrix, paired_costs
from fairness_audits.values import Array

DENSE = 4_000_000
"""With more pairs than this the solver gets a part of them: it needs some 45 bytes for each."""
BLOCK = 4_000_000
"""So many costs are held at once when pairs are priced."""
SAMPLE = 2000
"""Atoms of either side whose potentials choose the first pairs."""
NEIGHBOURS = 10
"""First pairs of each atom, and those that join in at once at most, besides its cheapest."""
TOLERANCE = 1e-10
"""A reduced cost is negative below minus this, times the largest cost among the solver's pairs."""
ITERATIONS_PER_ATOM = 10_000
"""The solver stops, with an error, after so many iterations for each atom; it needs far fewer."""


@dataclass(frozen=True)
class TransportPlan:
    """A best plan between atoms: the pair of numbers e carries ``mass[e]`` from ``row[e]`` to ``column[e]``.

    ``source`` (k, d) and ``target`` (l, d) are the distinct points; ``source_atom`` (n,) and ``target_atom`` (m,) say
    which of them each point is. Masses (E,) are whole numbers: a source point has ``unit``, all together ``total``.
    ``cost`` is the plan's mean cost, and no plan's is lower than ``cost - gap``.
    """

    source: Array
    target: Array
    source_atom: Array
    target_atom: Array
    row: Array
    column: Array
    mass: Array
    unit: int
    total: int
    cost: float
    gap: float

    @property
    def transposed(self) -> TransportPlan:
        """The same plan from the target points to the source points, which is a best one for a symmetric cost."""
        return replace(
            self,
            source=self.target,
            target=self.source,
            source_atom=self.target_atom,
            target_atom=self.source_atom,
            row=self.column,
            column=self.row,
            unit=self.total // len(self.target_atom),
        )


def best_plan(x: Array, y: Array, cost: str = "squared_l1") -> TransportPlan:
    """Compute a transport plan of least mean cost from n points to m, each set of equal weights.

    Parameters
    ----------
    x, y : ndarray of shape (n, d) and (m, d)
        Source and target points.
    cost : str
        A name of :data:`fairness_audits.transport.cost.COSTS`.

    Returns
    -------
    TransportPlan
        The plan, its mean cost, and by how much a plan could be cheaper at most.

    Raises
    ------
    InvalidInput
        For points that are not finite, and where the solver stops before its end.

    References
    ----------
    Dantzig and Wolfe 1960, column generation.

    Examples
    --------
    >>> plan = best_plan(np.array([[0.0], [2.0]]), np.array([[3.0], [1.0]]))
    >>> plan.cost, plan.gap
    (1.0, 0.0)

    """
    if bad := int((~np.isfinite(x)).any(axis=1).sum() + (~np.isfinite(y)).any(axis=1).sum()):
        raise InvalidInput(
            f"exact transport needs finite points, found {bad} with NaN or infinite values",
            option="y" if np.isfinite(x).all() else "x",
            remedy="Leave them out",
        )
    n, m = len(x), len(y)
    shared = math.gcd(n, m)
    source, source_atom, x_count = np.unique(x, axis=0, return_inverse=True, return_counts=True)
    target, target_atom, y_count = np.unique(y, axis=0, return_inverse=True, return_counts=True)
    problem = _Problem(source, target, x_count * (m // shared), y_count * (n // shared), cost)
    solved = problem.solved()
    total = n // shared * m
    return TransportPlan(
        source=source,
        target=target,
        source_atom=source_atom.reshape(-1),
        target_atom=target_atom.reshape(-1),
        row=solved.row,
        column=solved.column,
        mass=solved.mass,
        unit=m // shared,
        total=total,
        cost=solved.cost / total,
        gap=(solved.cost - solved.bound) / total,
    )


def overlaps(first: Array, second: Array) -> tuple[Array, Array, Array]:
    """Where two rows of intervals, of these lengths and of the same whole length, overlap: numbers and lengths.

    This is the plan of the north-west corner between two ordered sets of masses.
    """
    ends = [np.cumsum(lengths) for lengths in (first, second)]
    cuts = np.unique(np.concatenate(ends))
    cuts = cuts[cuts > 0]
    numbers = [np.searchsorted(end, cuts, side="left") for end in ends]
    return numbers[0], numbers[1], np.diff(cuts, prepend=0)


@dataclass(frozen=True)
class _Solved:
    """A plan of the pairs that the solver was given, its cost, its potentials and a lower bound of the least cost."""

    row: Array
    column: Array
    mass: Array
    cost: float
    u: Array
    v: Array
    bound: float = -math.inf


@dataclass(frozen=True)
class _Problem:
    """Atoms x (k, d), y (l, d) and their whole masses a (k,), b (l,), of the same sum."""

    x: Array
    y: Array
    a: Array
    b: Array
    cost: str

    def solved(self) -> _Solved:
        """The best plan: in order, or of all pairs at once, or of growing sets of them."""
        if self.x.shape[1] == 1:
            row, column, mass = overlaps(self.a, self.b)
            least = float(mass @ self._paired(row, column))
            return _Solved(row, column, mass, least, np.zeros(len(self.x)), np.zeros(len(self.y)), bound=least)
        if len(self.x) * len(self.y) <= DENSE:
            return self._bounded(_simplex(self.a, self.b, _finite(cost_matrix(self.x, self.y, self.cost))))[0]
        pairs = np.unique(np.concatenate([*self._cheapest(*self._sampled_potentials()), self._feasible()]))
        while True:
            candidate, joining = self._bounded(self._of_pairs(pairs))
            grown = np.union1d(pairs, joining)
            if len(grown) == len(pairs):
                return candidate
            pairs = grown

    def _of_pairs(self, pairs: Array) -> _Solved:
        """The best plan of these pairs alone, each as row * len(y) + column."""
        from scipy.sparse import coo_matrix

        row, column = np.divmod(pairs, len(self.y))
        steps = range(0, len(pairs), BLOCK)
        costs = np.concatenate([self._paired(row[s : s + BLOCK], column[s : s + BLOCK]) for s in steps])
        return _simplex(self.a, self.b, coo_matrix((_finite(costs), (row, column)), shape=(len(self.x), len(self.y))))

    def _paired(self, row: Array, column: Array) -> Array:
        return paired_costs(self.x[row], self.y[column], self.cost)

    def _feasible(self) -> Array:
        """Pairs among which there is a plan: the north-west corner in the order of the features' sum."""
        rows, columns = np.argsort(self.x.sum(axis=1)), np.argsort(self.y.sum(axis=1))
        i, j, _ = overlaps(self.a[rows], self.b[columns])
        return np.asarray(rows[i] * len(self.y) + columns[j])

    def _sampled_potentials(self) -> tuple[Array, Array]:
        """Potentials of all atoms that continue those of a sample: u(x) = min_j c(x, y_j) - v_j, and so v."""
        rows, columns = (np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64)) for n in (len(self.x), len(self.y)))
        a, b = self.a[rows].astype(np.float64), self.b[columns].astype(np.float64)
        sample = _simplex(a, b * (a.sum() / b.sum()), cost_matrix(self.x[rows], self.y[columns], self.cost))
        u = np.concatenate([(c - sample.v).min(axis=1) for _, c in self._blocks(self.x, self.y[columns])])
        v = np.concatenate([(c.T - u[rows]).min(axis=1) for c in self._transposed(self.x[rows])])
        return u, v

    def _cheapest(self, u: Array, v: Array) -> Iterator[Array]:
        """The pairs of least reduced cost of each atom of either side."""
        width = len(self.y)
        for start, c in self._blocks(self.x, self.y):
            near = np.argpartition(c - v, min(NEIGHBOURS, width - 1), axis=1)[:, :NEIGHBOURS]
            yield ((start + np.arange(len(c)))[:, None] * width + near).ravel()
        start = 0
        for c in self._transposed(self.x):
            near = np.argpartition(c.T - u, min(NEIGHBOURS, len(self.x) - 1), axis=1)[:, :NEIGHBOURS]
            yield (near * width + (start + np.arange(c.shape[1]))[:, None]).ravel()
            start += c.shape[1]

    def _bounded(self, found: _Solved) -> tuple[_Solved, Array]:
        """The plan with its lower bound, and the pairs that could improve it."""
        scale = float(np.max(self._paired(found.row, found.column)))
        lowered, joining = found.u.copy(), []
        for start, c in self._blocks(self.x, self.y):
            stop = start + len(c)
            c -= found.u[start:stop, None]
            c -= found.v
            lowered[start:stop] += np.minimum(c.min(axis=1), 0)
            joining.append(_evenly(c < -TOLERANCE * scale) + start * len(self.y))
            cheapest = c.argmin(axis=1)
            negative = np.flatnonzero(c[np.arange(len(c)), cheapest] < -TOLERANCE * scale)
            joining.append((start + negative) * len(self.y) + cheapest[negative])
        bound = float(self.a @ lowered + self.b @ found.v)
        # By rounding alone the bound may pass the cost.
        return replace(found, bound=min(bound, found.cost)), np.concatenate(joining)

    def _blocks(self, x: Array, y: Array) -> Iterator[tuple[int, Array]]:
        """The costs of some rows of x after the other, and the first row's number."""
        step = max(1, BLOCK // len(y))
        for start in range(0, len(x), step):
            yield start, _finite(cost_matrix(x[start : start + step], y, self.cost))

    def _transposed(self, x: Array) -> Iterator[Array]:
        """The costs (len(x), some) of some columns after the other."""
        step = max(1, BLOCK // len(x))
        for start in range(0, len(self.y), step):
            yield cost_matrix(x, self.y[start : start + step], self.cost)


def _simplex(a: Array, b: Array, costs: Any) -> _Solved:
    """POT's network simplex, of a matrix of costs (k, l) or of a sparse one, whose absent pairs are not allowed.

    It calls sums of masses unequal from 1e-8 on, however large they are, so that rounding alone makes large ones
    infeasible. It gets masses whose sum is between 1/2 and 1: divided by a power of two, which rounds none.
    """
    from scipy.sparse import coo_matrix

    from fairness_audits.transport.pot import ot

    scale = 2.0 ** math.frexp(float(a.sum()))[1]
    with warnings.catch_warnings():
        # What the solver warns of is in its log too, and is an error below.
        warnings.simplefilter("ignore")
        found, log = ot.emd(
            a / scale, b / scale, costs, numItermax=ITERATIONS_PER_ATOM * (len(a) + len(b)), log=True, center_dual=False
        )
    if log["warning"]:
        problem = f"exact transport of {len(a)} to {len(b)} distinct points did not end: {log['warning']}"
        raise InvalidInput(problem, option="x", remedy="Map fewer points")
    flows = coo_matrix(found)
    mass = flows.data * scale
    if a.dtype.kind == "i":
        mass = np.rint(mass).astype(np.int64)
    carried = mass > 0
    cost = float(log["cost"]) * scale
    return _Solved(flows.row[carried], flows.col[carried], mass[carried], cost, log["u"], log["v"])


def _evenly(chosen: Array) -> Array:
    """Flat numbers of at most :data:`NEIGHBOURS` true entries of each row (n, m), spread evenly over them.

    The most negative entries would lie close together, and repair one spot of the potentials.
    """
    rows, columns = np.nonzero(chosen)
    count = np.bincount(rows, minlength=len(chosen))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    share = np.minimum(count, NEIGHBOURS)[rows]
    taken = (place + 1) * share // count[rows] > place * share // count[rows]
    return np.asarray(rows[taken] * chosen.shape[1] + columns[taken])


def _finite(costs: Array) -> Array:
    if not np.isfinite(costs).all():
        problem = "exact transport needs finite costs, but these points are too far apart"
        raise InvalidInput(problem, option="x", remedy="Scale them")
    return costs


def levels_in_shares(weights: Array, shares: Array) -> Array:
    r"""Give each person one level of a category, so that every level keeps the target group's share.

    A smooth map gives each person i a weight w_il of each level l, the mean of indicators. The level of the largest
    weight would make common levels more common: who is at (.6, .4) becomes the first. Instead

    .. math:: \max_{l(1), \dots, l(n)} \sum_i w_{i\,l(i)} \quad \text{with} \quad \#\{i : l(i) = l\} = n_l,

    a transport problem whose counts n_l have the shares of the target group, up to rounding. It has a solution in whole
    people, which the network simplex finds.

    Parameters
    ----------
    weights : ndarray of shape (n, L)
        How much of each level a person has.
    shares : ndarray of shape (L,)
        The target group's shares.

    Returns
    -------
    ndarray of shape (n,)
        The number of each person's level.

    Examples
    --------
    >>> levels_in_shares(np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.7, 0.3]]), np.array([0.5, 0.5]))
    array([0, 1, 0, 1])

    """
    from fairness_audits.transport.pot import ot

    counts = whole_counts(shares, len(weights))
    present = np.flatnonzero(counts)
    if len(present) == 1:
        return np.repeat(present, len(weights))
    # Costs from 0 on, and masses of 1: with whole masses every vertex is a whole assignment.
    costs = np.ascontiguousarray(weights.max(axis=1, keepdims=True) - weights[:, present], dtype=np.float64)
    plan = ot.emd(np.ones(len(weights)), counts[present].astype(np.float64), costs, numItermax=100_000_000)
    return np.asarray(present[plan.argmax(axis=1)])


def whole_counts(shares: Array, n: int) -> Array:
    """Whole numbers (L,) with sum n, nearest to n times the ``shares``: the largest remainders are rounded up."""
    exact = n * np.asarray(shares, dtype=np.float64) / np.sum(shares)
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts
