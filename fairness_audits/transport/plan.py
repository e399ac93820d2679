r"""Optimal transport plan between two sets of points with equal weights.

.. math:: \min_{P \ge 0} \sum_{ij} P_{ij} c(x_i, y_j), \qquad \sum_j P_{ij} = \frac{1}{n}, \quad
          \sum_i P_{ij} = \frac{1}{m},

over the n source points x and the m target points y. Four measures keep the problem small and its solution exact:

- Equal points are merged into one *atom* with their total weight. In units of 1 / lcm(n, m) every mass is an integer.
  If n = m, the plan is therefore an assignment without rounding errors.
- With a single feature, the sorted points are matched in order. This is optimal for every named cost and needs no
  solver.
- Beyond :data:`DENSE` pairs, the solver (the network simplex of POT) gets only some of the pairs. Its potentials u, v
  price the other pairs: a pair with negative reduced cost c(x, y) - u(x) - v(y) could improve the plan and is added.
  The solver runs again until there is no such pair. The first pairs are the cheapest under the potentials of a sample.
- :math:`\sum_i u_i / n + \sum_j v_j / m`, with u lowered until no reduced cost is negative, is a lower bound of the
  least cost. The difference between the plan's cost and this bound is its ``gap``, which is 0 up to rounding.

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
"""Maximum number of pairs that the solver gets at once; it needs about 45 bytes for each."""
BLOCK = 4_000_000
"""Number of costs held at once when pairs are priced."""
SAMPLE = 2000
"""Number of sampled atoms on each side whose potentials select the first pairs."""
NEIGHBOURS = 10
"""Number of first pairs of each atom, and maximum number of pairs added per round, besides the cheapest."""
TOLERANCE = 1e-10
"""A reduced cost counts as negative below minus this number times the plan's largest cost of a pair."""
ITERATIONS_PER_ATOM = 10_000
"""Maximum number of solver iterations per atom, after which we raise an error; the solver needs far fewer."""


@dataclass(frozen=True)
class TransportPlan:
    """An optimal plan between atoms: entry e moves ``mass[e]`` from atom ``row[e]`` to atom ``column[e]``.

    ``source`` (k, d) and ``target`` (l, d) are the distinct points; ``source_atom`` (n,) and ``target_atom`` (m,) hold
    the atom of each point. Masses (E,) are integers: a source point has ``unit``, all points together ``total``.
    ``cost`` is the plan's mean cost, and no plan has a lower mean cost than ``cost - gap``.
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
        """Return the plan from the target points to the source points, which is optimal for a symmetric cost."""
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
    """Compute a transport plan of least mean cost from n points to m points, each set with equal weights.

    Parameters
    ----------
    x, y : ndarray of shape (n, d) and (m, d)
        Source and target points.
    cost : str
        A name of :data:`fairness_audits.transport.cost.COSTS`.

    Returns
    -------
    TransportPlan
        The plan, its mean cost, and an upper bound on its excess over the least mean cost.

    Raises
    ------
    InvalidInput
        If points are not finite, or if the solver does not converge.

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
    """Return the overlaps of two sequences of intervals with equal total length: both indices, and the lengths.

    This is the north-west corner plan between two ordered sets of masses.
    """
    ends = [np.cumsum(lengths) for lengths in (first, second)]
    cuts = np.unique(np.concatenate(ends))
    cuts = cuts[cuts > 0]
    numbers = [np.searchsorted(end, cuts, side="left") for end in ends]
    return numbers[0], numbers[1], np.diff(cuts, prepend=0)


@dataclass(frozen=True)
class _Solved:
    """A plan on the solver's pairs, its cost, its potentials and a lower bound of the least cost."""

    row: Array
    column: Array
    mass: Array
    cost: float
    u: Array
    v: Array
    bound: float = -math.inf


@dataclass(frozen=True)
class _Problem:
    """Atoms x (k, d) and y (l, d) and their integer masses a (k,) and b (l,), which have the same sum."""

    x: Array
    y: Array
    a: Array
    b: Array
    cost: str

    def solved(self) -> _Solved:
        """Return the optimal plan: by sorting, from all pairs at once, or from a growing set of pairs."""
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
        """Return the best plan on these pairs only; a pair is encoded as row * len(y) + column."""
        from scipy.sparse import coo_matrix

        row, column = np.divmod(pairs, len(self.y))
        steps = range(0, len(pairs), BLOCK)
        costs = np.concatenate([self._paired(row[s : s + BLOCK], column[s : s + BLOCK]) for s in steps])
        return _simplex(self.a, self.b, coo_matrix((_finite(costs), (row, column)), shape=(len(self.x), len(self.y))))

    def _paired(self, row: Array, column: Array) -> Array:
        return paired_costs(self.x[row], self.y[column], self.cost)

    def _feasible(self) -> Array:
        """Return pairs on which a plan exists: the north-west corner plan in the order of the features' sums."""
        rows, columns = np.argsort(self.x.sum(axis=1)), np.argsort(self.y.sum(axis=1))
        i, j, _ = overlaps(self.a[rows], self.b[columns])
        return np.asarray(rows[i] * len(self.y) + columns[j])

    def _sampled_potentials(self) -> tuple[Array, Array]:
        """Extend the potentials of a sample to all atoms: u(x) = min_j c(x, y_j) - v_j, and likewise v."""
        rows, columns = (np.unique(np.linspace(0, n - 1, SAMPLE).astype(np.int64)) for n in (len(self.x), len(self.y)))
        a, b = self.a[rows].astype(np.float64), self.b[columns].astype(np.float64)
        sample = _simplex(a, b * (a.sum() / b.sum()), cost_matrix(self.x[rows], self.y[columns], self.cost))
        u = np.concatenate([(c - sample.v).min(axis=1) for _, c in self._blocks(self.x, self.y[columns])])
        v = np.concatenate([(c.T - u[rows]).min(axis=1) for c in self._transposed(self.x[rows])])
        return u, v

    def _cheapest(self, u: Array, v: Array) -> Iterator[Array]:
        """Yield the pairs with the least reduced cost for each atom on either side."""
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
        """Return the plan with its lower bound, and the pairs that could improve it."""
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
        # Rounding can lift the bound above the cost.
        return replace(found, bound=min(bound, found.cost)), np.concatenate(joining)

    def _blocks(self, x: Array, y: Array) -> Iterator[tuple[int, Array]]:
        """Yield the costs block by block of rows of x, each with the index of its first row."""
        step = max(1, BLOCK // len(y))
        for start in range(0, len(x), step):
            yield start, _finite(cost_matrix(x[start : start + step], y, self.cost))

    def _transposed(self, x: Array) -> Iterator[Array]:
        """Yield the costs (len(x), block) block by block of columns."""
        step = max(1, BLOCK // len(x))
        for start in range(0, len(self.y), step):
            yield cost_matrix(x, self.y[start : start + step], self.cost)


def _simplex(a: Array, b: Array, costs: Any) -> _Solved:
    """Run POT's network simplex on dense costs (k, l), or on sparse costs, whose missing pairs are forbidden.

    POT treats sums of masses that differ by 1e-8 as unequal, however large they are, so rounding makes large masses
    infeasible. We divide the masses by a power of two, which is exact, so that their sum is between 1/2 and 1.
    """
    from scipy.sparse import coo_matrix

    from fairness_audits.transport.pot import ot

    scale = 2.0 ** math.frexp(float(a.sum()))[1]
    with warnings.catch_warnings():
        # The solver's log repeats its warning, which raises an error below.
        warnings.simplefilter("ignore")
        found, log = ot.emd(
            a / scale, b / scale, costs, numItermax=ITERATIONS_PER_ATOM * (len(a) + len(b)), log=True, center_dual=False
        )
    if log["warning"]:
        problem = f"exact transport of {len(a)} to {len(b)} distinct points did not converge: {log['warning']}"
        raise InvalidInput(problem, option="x", remedy="Map fewer points")
    flows = coo_matrix(found)
    mass = flows.data * scale
    if a.dtype.kind == "i":
        mass = np.rint(mass).astype(np.int64)
    carried = mass > 0
    cost = float(log["cost"]) * scale
    return _Solved(flows.row[carried], flows.col[carried], mass[carried], cost, log["u"], log["v"])


def _evenly(chosen: Array) -> Array:
    """Return flat indices of up to :data:`NEIGHBOURS` true entries of each row (n, m), evenly spread.

    The most negative entries would be close together and correct the potentials in one place only.
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
    r"""Assign each person one level of a category, with the level frequencies of the target group.

    A smooth map gives each person i a weight w_il for each level l, the mean of indicators. Choosing the level with
    the largest weight would make common levels more common: everyone at (.6, .4) gets the first level. We solve

    .. math:: \max_{l(1), \dots, l(n)} \sum_i w_{i\,l(i)} \quad \text{with} \quad \#\{i : l(i) = l\} = n_l,

    a transport problem whose counts n_l have the shares of the target group, up to rounding. It has an integer
    solution, which the network simplex finds.

    Parameters
    ----------
    weights : ndarray of shape (n, L)
        Weight of each level for each person.
    shares : ndarray of shape (L,)
        Shares of the levels in the target group.

    Returns
    -------
    ndarray of shape (n,)
        Index of each person's level.

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
    # Costs start at 0 and people have mass 1: with integer masses every vertex is an integer assignment.
    costs = np.ascontiguousarray(weights.max(axis=1, keepdims=True) - weights[:, present], dtype=np.float64)
    plan = ot.emd(np.ones(len(weights)), counts[present].astype(np.float64), costs, numItermax=100_000_000)
    return np.asarray(present[plan.argmax(axis=1)])


def whole_counts(shares: Array, n: int) -> Array:
    """Return integers (L,) with sum n that are closest to n times ``shares``, by the largest remainders."""
    exact = n * np.asarray(shares, dtype=np.float64) / np.sum(shares)
    counts = np.floor(exact).astype(np.int64)
    order = np.argsort(counts - exact, kind="stable")
    counts[order[: n - counts.sum()]] += 1
    return counts
