"""Upper bounds of the distance to another decision for any model, from its decisions alone.

1. *Segments.* Go from the row towards its nearest reference rows of other decisions, switch columns back to the row's
   own values where the other decision remains, and bisect the change of the numbers.
2. *Single columns.* Move each number alone to quantiles of the reference rows, and switch each switch alone.
3. *Walk.* Estimate the normal of the boundary from the decisions at random points near the closest point, step along
   it, and bisect back to the row (HopSkipJump). This works well for smooth boundaries in any direction.
4. *Coordinates.* Move each number back to the row's own value as far as the other decision remains. This works well
   for boundaries along the axes, such as those of trees.
5. *Switches.* Switch a column of the closest point, which may allow its numbers to move back.

The model decides otherwise at every returned point, so its length bounds the distance from above.

Source: Chen, Jordan and Wainwright 2020, "HopSkipJumpAttack: a query-efficient decision-based attack" (the walk).
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from fairness_audits.attacks.changes import Changes
from fairness_audits.progress import track
from fairness_audits.values import Array

STARTS = 20
"""Nearest reference rows of other decisions from which each row's search starts."""
GRID, GRID_VALUES = 100, 1000
"""Largest number of values at which each number is tried, and of all numbers together."""
HALVINGS = 12
"""Bisections of a segment. They locate the boundary to a 4096th of its length."""
COORDINATE_HALVINGS = 6
PHASES = 2
"""Times that the search walks, moves coordinates back and switches."""
ROUNDS = 10
"""Steps along the boundary in each phase."""
DRAWS = 24
"""Random points from which each step estimates the boundary's normal."""
RADIUS = 0.2
"""Distance of these points from the boundary point, as a share of that point's distance from the row."""
STEP_HALVINGS = 4
TINY = 1e-12


@dataclass(frozen=True)
class Bounds:
    """Upper bounds ``length`` (n,), infinite if no other decision was found, and the closest ``points`` (n, d).

    ``evaluations`` counts decisions.
    """

    length: Array
    points: Array
    evaluations: int


def nearest_rows(reference: Array, decision: Array, z: Array, own: Array, changes: Changes) -> Array:
    """Return the nearest reference rows of other decisions of each row (n, STARTS, d), repeated if there are fewer.

    Rows without any are NaN. The ``reference`` (m, d) has decisions (m,).
    """
    from scipy.spatial.distance import cdist

    found = np.full((len(z), STARTS, z.shape[1]), np.nan)
    known, rows = changes.stretched(reference), changes.stretched(z)
    for y in np.unique(own):
        others, here = np.flatnonzero(decision != y), np.flatnonzero(own == y)
        if not len(others):
            continue
        for part in np.array_split(here, max(1, len(here) // 1000)):
            order = np.argsort(cdist(rows[part], known[others]), axis=1, kind="stable")[:, :STARTS]
            found[part] = reference[others[np.resize(order.T, (STARTS, len(part))).T]]
    return found


def nearest_decisions(
    decide: Callable[[Array, Array], Array],
    z: Array,
    own: Array,
    starts: Array,
    reference: Array,
    changes: Changes,
    rng: np.random.Generator,
    forecast: Callable[[float, int], None] = lambda seconds, evaluations: None,
) -> Bounds:
    """Search for the shortest change of each row to another decision.

    Parameters
    ----------
    decide : callable
        Decisions (m,) of points (m, d), which are changes of the rows with the numbers (m,).
    z, own : array (n, d) and (n,)
        The rows and their decisions.
    starts : array (n, s, d)
        Points at which each row's search starts, such as reference rows; those of the own decision are ignored.
    reference : array (m, d)
        Rows whose quantiles are tried.
    changes : Changes
        What may change, and how long it is.
    rng : numpy.random.Generator
        Draws the random points.
    forecast : callable
        Called after the first start, with the largest time in seconds and number of evaluations that the search needs
        at the speed of this start.
    """
    search, begun = _Search(decide, z, own, changes), perf_counter()
    for number, start in enumerate(track("starting the search", list(starts.swapaxes(0, 1)))):
        search.come_from(start)
        if number == 0 and search.evaluations:
            speed = (perf_counter() - begun) / search.evaluations
            evaluations = starts.shape[1] * search.evaluations + len(z) * most_after_starts(changes)
            forecast(speed * evaluations, evaluations)
    search.alone(reference)
    for _ in track("searching along the boundary", range(PHASES)):
        search.walk(rng)
        search.pull_coordinates(search.best, search.everyone)
        search.switch()
    return Bounds(search.length, search.best, search.evaluations)


def most_after_starts(changes: Changes) -> int:
    """Return the largest number of evaluations for a row after its starts, if few single columns turn its decision."""
    numbers, switches = len(changes.numbers), len(changes.switches)
    levels, bisection = sum(len(one.levels) for one in changes.switches), HALVINGS + (1 + switches if switches else 0)
    alone = min(GRID * numbers, GRID_VALUES) + levels
    step = DRAWS + (1 + bool(switches)) * (1 + bisection) + STEP_HALVINGS + bisection
    coordinates = (1 + COORDINATE_HALVINGS) * numbers
    return alone + PHASES * (ROUNDS * step + coordinates + levels * (1 + bisection))


class _Search:
    """The closest points ``best`` (n, d) so far, and their ``length`` (n,)."""

    def __init__(self, decide: Callable[[Array, Array], Array], z: Array, own: Array, changes: Changes) -> None:
        self.decide, self.z, self.own, self.changes = decide, z, own, changes
        self.everyone = np.arange(len(z))
        self.best, self.length = z.copy(), np.full(len(z), np.inf)
        self.evaluations = 0

    def offer(self, points: Array, rows: Array) -> Array:
        """Return which points (m, d) of ``rows`` (m,) have another decision, and keep those that are closer."""
        if not len(rows):
            return np.zeros(0, dtype=bool)
        self.evaluations += len(rows)
        other = self.decide(points, rows) != self.own[rows]
        length = self.changes.length(points - self.z[rows])
        better = other & (length < self.length[rows])
        self.best[rows[better]], self.length[rows[better]] = points[better], length[better]
        return other

    def come_from(self, start: Array) -> None:
        """Search from a start (n, d) of each row, NaN for none; fixed features keep the row's own values."""
        point, rows = self.z.copy(), np.flatnonzero(np.isfinite(start).all(axis=1))
        for places in (self.changes.numbers, *(one.positions for one in self.changes.switches)):
            point[np.ix_(rows, places)] = start[np.ix_(rows, places)]
        rows = rows[self.offer(point[rows], rows)]
        self.pull(point[rows], rows)
        self.pull(self.switched_back(point[rows], rows), rows)
        self.pull_coordinates(point[rows], rows)

    def alone(self, reference: Array) -> None:
        """Change one column at a time: each number to quantiles of the reference, each switch to any level."""
        places = self.changes.numbers
        count = min(GRID, max(1, GRID_VALUES // max(1, len(places))))
        for place in places:
            for value in np.unique(np.quantile(reference[:, place], (np.arange(count) + 0.5) / count)):
                point = self.z.copy()
                point[:, place] = value
                rows = np.flatnonzero(self.changes.length(point - self.z) < self.length)
                self.pull_if(point[rows], rows)
        for one in self.changes.switches:
            for level in one.levels:
                point = self.z.copy()
                point[:, one.positions] = level
                self.offer(point, self.everyone)

    def switch(self) -> None:
        """Switch one column of the closest points, and move their numbers back as far as the switch allows."""
        for one in self.changes.switches:
            for level in one.levels:
                rows = np.flatnonzero(np.isfinite(self.length) & (self.length > (1.0 if self.changes.plain else 0.0)))
                point = self.best[rows].copy()
                point[:, one.positions] = level
                self.pull_if(point, rows)

    def pull_if(self, points: Array, rows: Array) -> None:
        """Bisect those of the points that have another decision."""
        other = self.offer(points, rows)
        self.pull(points[other], rows[other])

    def switched_back(self, points: Array, rows: Array) -> Array:
        """Return the points after setting back, one after the other, the switches without which they decide alike."""
        points = points.copy()
        for one in self.changes.switches:
            back = points.copy()
            back[:, one.positions] = self.z[rows][:, one.positions]
            changed = np.flatnonzero((back != points).any(axis=1))
            kept = changed[self.offer(back[changed], rows[changed])]
            points[kept] = back[kept]
        return points

    def pull(self, points: Array, rows: Array) -> None:
        """Bisect the numbers of points of other decisions towards the rows."""
        places = self.changes.numbers
        way = points[:, places] - self.z[rows][:, places]

        def at(t: Array) -> Array:
            moved = points.copy()
            moved[:, places] = self.z[rows][:, places] + t[:, None] * way
            return moved

        low, high = np.zeros(len(rows)), np.ones(len(rows))
        if self.changes.switches:
            high[self.offer(at(low), rows)] = 0.0
        for _ in range(HALVINGS):
            some = np.flatnonzero(high > low)
            middle = (low + high) / 2
            other = np.zeros(len(rows), dtype=bool)
            other[some] = self.offer(at(middle)[some], rows[some])
            low, high = np.where(other, low, middle), np.where(other, middle, high)
            low = np.minimum(low, high)
        if self.changes.switches:
            self.switched_back(at(high), rows)

    def walk(self, rng: np.random.Generator) -> None:
        """Step along the boundary, as in HopSkipJump, in coordinates in which lengths are Euclidean."""
        places, unit_length = self.changes.numbers, self.changes.isotropic
        normals = np.zeros((len(self.z), len(places)))
        for number in range(1, ROUNDS + 1):
            rows = np.flatnonzero(np.isfinite(self.length) & (self.length > 0))
            if not len(rows):
                return
            point, reach = self.best[rows].copy(), self.length[rows]
            # All rows have the same directions, so that the search of a row does not depend on the others.
            e = np.repeat(_unit(rng.normal(size=(1, DRAWS, len(places)))), len(rows), axis=0)
            near = np.repeat(point[:, None], DRAWS, axis=1)
            near[..., places] += RADIUS / np.sqrt(number) * reach[:, None, None] * (e @ unit_length)
            other = self.offer(near.reshape(-1, near.shape[2]), np.repeat(rows, DRAWS)).reshape(len(rows), DRAWS)
            sign = 2.0 * other - 1
            mean = sign.mean(axis=1, keepdims=True)
            normal = _unit(np.einsum("nb,nbk->nk", np.where(np.abs(mean) < 1, sign - mean, sign), e))
            normals[rows] += normal
            for ray in (point.copy(), self.z[rows]) if self.changes.switches else (point.copy(),):
                ray[:, places] = self.z[rows][:, places] + reach[:, None] * (_unit(normals[rows]) @ unit_length)
                self.pull_if(ray, rows)
            step, waiting = reach / np.sqrt(number), np.arange(len(rows))
            for _ in range(STEP_HALVINGS):
                ahead = point[waiting].copy()
                ahead[:, places] += step[waiting, None] * (normal[waiting] @ unit_length)
                done = self.offer(ahead, rows[waiting])
                self.pull(ahead[done], rows[waiting[done]])
                waiting = waiting[~done]
                step /= 2

    def pull_coordinates(self, points: Array, rows: Array) -> None:
        """Move each number back to the row's own value as far as the decision stays another; the longest move first."""
        known = np.isfinite(self.length[rows])
        rows, point = rows[known], points[known].copy()
        own = self.z[rows]
        moves = np.abs(point - own)[:, self.changes.numbers]
        order = self.changes.numbers[np.argsort(-moves, axis=1, kind="stable")]
        for place in order.T:
            every = np.arange(len(rows))
            low, high = own[every, place], point[every, place].copy()
            some = every[low != high]
            value = low.copy()
            for _ in range(1 + COORDINATE_HALVINGS):
                trial = point[some].copy()
                trial[np.arange(len(some)), place[some]] = value[some]
                other = self.offer(trial, rows[some])
                high[some[other]] = value[some[other]]
                low[some[~other]] = value[some[~other]]
                some = some[low[some] != high[some]]
                value = (low + high) / 2
            point[every, place] = high


def _unit(v: Array) -> Array:
    """Return vectors of length 1 in the same directions, 0 for 0."""
    return v / np.maximum(np.linalg.norm(v, axis=-1, keepdims=True), TINY)
