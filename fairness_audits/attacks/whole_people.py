"""The unfair map for models without a gradient: the worst of the similar people under a fair metric.

A model of trees has no gradient to follow, and points between people have no meaning for it. Instead, one or two
columns of a row take values of other rows. Candidates come from reference rows that are not audited. The map is
therefore fixed given a row and its label, and Theorem 3.1 of Maity et al. 2021 applies.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds
from fairness_audits.fair_metric import FairMetric
from fairness_audits.values import Array

MOST = 64
"""Maximum number of candidates of a row, including the row itself."""
LEAST_COUNT = 20
"""Minimum number of reference rows with a level of a category, or with a pair of levels."""
QUANTILES = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Quantiles that serve as the values of a column with many different numbers."""
ROUNDING = 1e-6
"""Probabilities that differ by less count as equal."""
LEAST_CELL = 20
"""Minimum number of rows from which the policy chooses a candidate."""

Column = tuple[int, ...]
"""Positions of the features of a column: one for a number, an indicator of each level for a category."""


@dataclass(frozen=True)
class Move:
    """A change of one or two ``columns`` (by number): the features at ``positions`` take the ``values``."""

    columns: tuple[int, ...]
    positions: tuple[int, ...]
    values: tuple[float, ...]

    def of(self, x: Array) -> Array:
        """Return the points (n, d) after the change."""
        moved = x.copy()
        moved[:, list(self.positions)] = self.values
        return moved

    def share(self, x: Array, metric: FairMetric) -> Array:
        r"""Return the share of each change along the sensitive subspace, |U'v|^2 / |v|^2, (n,); 0 without a change.

        The points ``x`` (n, d) and the values are in the units of the metric.
        """
        places = list(self.positions)
        v = np.asarray(self.values) - x[:, places]
        length = (v**2).sum(axis=1)
        along = ((v @ metric.basis[places]) ** 2).sum(axis=1)
        return np.where(length > 0, along / np.where(length > 0, length, 1.0), 0.0)


def column_shares(reference: Array, columns: Sequence[Column], metric: FairMetric, least: int = LEAST_COUNT) -> Array:
    r"""Return the largest share of a move of each column alone along the sensitive subspace, |U'v|^2 / |v|^2.

    A number moves along its axis. A category moves between two levels that occur in at least ``least`` rows of the
    ``reference`` (m, d). All values are in the units of the metric.
    """
    shares = np.zeros(len(columns))
    for place, column in enumerate(columns):
        if len(column) == 1:
            shares[place] = (metric.basis[column[0]] ** 2).sum()
            continue
        levels = [metric.basis[j] for j in _frequent(reference, column, least)]
        shares[place] = max((((a - b) ** 2).sum() / 2 for a, b in combinations(levels, 2)), default=0.0)
    return shares


def candidates(
    reference: Array, columns: Sequence[Column], chosen: Sequence[int], most: int = MOST
) -> tuple[Move, ...]:
    """Return the changes of one or two of the ``chosen`` columns to values of the reference rows.

    Parameters
    ----------
    reference : array (m, d)
        Rows that are not audited.
    columns : sequence of tuples
        The features of each column.
    chosen : sequence of int
        Columns that may change, the most important first.
    most : int
        Maximum number of candidates, including the row itself. Changes of one column come first.

    Returns
    -------
    tuple of Move
        A category takes each level that occurs in at least 20 reference rows. A number takes five quantiles, or its
        values if there are at most five. A pair of levels must also occur in at least 20 reference rows.
    """
    values = {place: list(_values(reference, columns[place])) for place in chosen}
    moves = [Move((place,), columns[place], value) for place in chosen for value in values[place]]
    for first, second in combinations(chosen, 2):
        for one, other in product(values[first], values[second]):
            if len(moves) >= most - 1:
                return tuple(moves[: most - 1])
            pair = Move((first, second), columns[first] + columns[second], one + other)
            if _occurs(reference, columns, (first, second), (one, other)):
                moves.append(pair)
    return tuple(moves[: most - 1])


def within(moves: Sequence[Move], bounds: Bounds | None) -> tuple[Move, ...]:
    """Return the moves to values within the bounds (d,), both in the units of the metric."""
    if bounds is None:
        return tuple(moves)
    low, high = bounds[0] - ROUNDING, bounds[1] + ROUNDING
    return tuple(
        move
        for move in moves
        if all(low[j] <= value <= high[j] for j, value in zip(move.positions, move.values, strict=True))
    )


def moved(points: Array, moves: Sequence[Move], choice: Array) -> Array:
    """Return the points (n, d) after the move ``choice`` (n,), -1 for no move."""
    found = points.copy()
    for place, move in enumerate(moves):
        found[choice == place] = move.of(points[choice == place])
    return found


@dataclass(frozen=True)
class Candidates:
    """The ``moves`` within the bounds of the ``permitted`` columns (by number), and ``every`` move without bounds.

    ``shares`` are the :func:`column_shares` of all ``columns``. ``order`` are the columns by falling share.
    """

    columns: tuple[Column, ...]
    shares: Array
    order: tuple[int, ...]
    permitted: tuple[int, ...]
    every: tuple[Move, ...]
    moves: tuple[Move, ...]


def permitted_moves(
    reference: Array, columns: Sequence[Column], metric: FairMetric, least_share: float, bounds: Bounds | None
) -> Candidates:
    """Return the candidates of columns whose share along the sensitive subspace is at least ``least_share``.

    ``reference`` (m, d) are rows that are not audited. They and the ``bounds`` are in the units of the metric.
    """
    shares = column_shares(reference, columns, metric)
    order = tuple(np.argsort(-shares, kind="stable").tolist())
    permitted = tuple(place for place in order if shares[place] >= least_share)
    every = candidates(reference, columns, permitted)
    return Candidates(tuple(columns), shares, order, permitted, every, within(every, bounds))


@dataclass(frozen=True)
class Search:
    """The probability of each row's own label: ``own`` (n,), and ``probability`` (n, C) after each of the C moves.

    It is ``own`` if a move changes nothing or is not permitted. ``evaluations`` counts evaluated rows.
    """

    moves: tuple[Move, ...]
    own: Array
    probability: Array
    evaluations: int

    @property
    def worst(self) -> Array:
        """The number of the move with the smallest probability of the own label (n,), -1 if no move lowers it.

        The first of equal moves, up to rounding.
        """
        return self.worst_of(len(self.moves))

    def worst_of(self, count: int) -> Array:
        """Return the same among the first ``count`` moves."""
        found, lowest = np.full(len(self.own), -1), self.own.copy()
        for place in range(count):
            lower = self.probability[:, place] < lowest - ROUNDING
            found[lower], lowest[lower] = place, self.probability[lower, place]
        return found

    def at(self, choice: Array) -> Array:
        """Return the probability of the own label after the chosen move ``choice`` (n,), -1 for none."""
        every = np.column_stack([self.probability, self.own])
        return every[np.arange(len(self.own)), choice]


def search(
    probability: Callable[[Array, Array], Array],
    x: Array,
    moves: Sequence[Move],
    metric: FairMetric,
    least_share: float,
) -> Search:
    """Evaluate a model at points x (n, d) after each move, both in the units of the metric.

    ``probability`` maps points (m, d) and their row numbers (m,) to the probability of the rows' own labels (m,). A
    move is permitted if at least ``least_share`` of it is along the sensitive subspace.
    """
    everyone = np.arange(len(x))
    own, evaluations = probability(x, everyone), len(x)
    found = np.repeat(own[:, None], len(moves), axis=1)
    for place, move in enumerate(moves):
        permitted = np.flatnonzero(move.share(x, metric) >= least_share)
        if len(permitted):
            found[permitted, place] = probability(move.of(x[permitted]), permitted)
            evaluations += len(permitted)
    return Search(tuple(moves), own, found, evaluations)


def policy(ratio: Array, cell: Array, half: Array) -> Array:
    """Return one move for each cell of rows, chosen on one half of the rows and applied to the other half.

    Parameters
    ----------
    ratio : array (n, C)
        Ratio of the losses after and before each move; 1 means no change.
    cell : array (n,)
        Rows of one cell have the same label and the same current values, and get the same move.
    half : array (n,) of bool
        The two halves. Each serves once for the choice and once for the application.

    Returns
    -------
    array (n,)
        The number of the move with the largest mean ratio in the same cell of the other half. -1 for no move, if no
        mean is above 1 or the cell has fewer than 20 rows in the other half.

    Examples
    --------
    >>> half = np.arange(80) % 2 == 0
    >>> policy(np.column_stack([np.full(80, 0.9), np.full(80, 1.2)]), np.zeros(80), half)[:3].tolist()
    [1, 1, 1]
    """
    choice = np.full(len(ratio), -1)
    for value in np.unique(cell):
        for side in (False, True):
            among, others = (cell == value) & (half == side), (cell == value) & (half != side)
            if ratio.shape[1] and among.sum() >= LEAST_CELL:
                mean = ratio[among].mean(axis=0)
                if mean.max() > 1:
                    choice[others] = mean.argmax()
    return choice


def cells(x: Array, label: Array, moves: Sequence[Move], columns: Sequence[Column]) -> Array:
    """Number the combinations of label and current values in all columns that a move changes: (n,).

    Numbers are grouped by the intervals between the values of the moves.
    """
    keys = [label]
    for place in sorted({one for move in moves for one in move.columns}):
        column = columns[place]
        if len(column) > 1:
            keys.append(x[:, list(column)].argmax(axis=1))
        else:
            ends = sorted({move.values[0] for move in moves if move.columns == (place,)})
            keys.append(np.searchsorted(ends, x[:, column[0]]))
    return np.unique(np.column_stack(keys), axis=0, return_inverse=True)[1].ravel()


def _frequent(reference: Array, column: Column, least: int = LEAST_COUNT) -> list[int]:
    """Return the positions of a category's frequent levels."""
    return [j for j in column if (reference[:, j] == 1).sum() >= least]


def _values(reference: Array, column: Column) -> Iterator[tuple[float, ...]]:
    """Yield the possible values of a column's features."""
    if len(column) > 1:
        yield from (tuple(float(j == level) for j in column) for level in _frequent(reference, column))
        return
    own = reference[:, column[0]]
    distinct, counts = np.unique(own, return_counts=True)
    if len(distinct) > len(QUANTILES):
        distinct = np.unique(np.quantile(own, QUANTILES, method="inverted_cdf"))
    else:
        distinct = distinct[counts >= LEAST_COUNT]
    yield from ((float(value),) for value in distinct)


def _occurs(
    reference: Array, columns: Sequence[Column], pair: tuple[int, int], values: tuple[tuple[float, ...], ...]
) -> bool:
    """Return whether two categories have these levels together in enough rows; numbers are not restricted."""
    together = np.ones(len(reference), dtype=bool)
    for place, value in zip(pair, values, strict=True):
        column = columns[place]
        if len(column) > 1 or len(np.unique(reference[:, column[0]])) <= len(QUANTILES):
            together &= (reference[:, list(column)] == value).all(axis=1)
    return bool(together.sum() >= LEAST_COUNT)
