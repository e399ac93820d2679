r"""The worst subgroup: compare a rate in every intersection of columns with all other rows, in one family of tests.

With N rows in the denominator of the rate, K of them events, and n_S rows with x_S events in subgroup S, x_S is
hypergeometric under permutations of the events, so

.. math:: T_S = \frac{x_S - n_S K / N}{\sqrt{n_S (N - n_S) K (N - K) / (N^2 (N - 1))}}

has mean 0 and variance 1. All subgroups are permuted together, and each subgroup is compared with the largest \|T\| of
them all. If the events are exchangeable, that is, if the rate does not depend on the columns, the probability that any
subgroup is rejected is at most alpha in every sample, for any number of subgroups and any overlap.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.sparse import csr_array

from fairness_audits.audits.permutation.intervals import score_intervals
from fairness_audits.audits.permutation.monte_carlo import blocks
from fairness_audits.audits.permutation.pairs import stepped_down
from fairness_audits.audits.permutation.statistics import EQUAL
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

BLOCK = 64
"""Number of permutations drawn together: a block of them and the counts of all subgroups are held in memory."""
MOST = 200_000
"""Largest number of subgroups."""


@dataclass(frozen=True)
class Coded:
    """A column as codes (n,) of its ``levels``."""

    codes: Array
    levels: tuple[str, ...]


@dataclass(frozen=True)
class Subgroups:
    """Subgroups as a sparse matrix ``members`` (S, n) with a 1 for each row of a subgroup.

    A name lists the columns and levels of a subgroup.
    """

    names: tuple[tuple[tuple[str, str], ...], ...]
    members: csr_array
    too_small: int

    @property
    def sizes(self) -> Array:
        """Number of rows of each subgroup, (S,)."""
        return np.diff(self.members.indptr)


@dataclass(frozen=True)
class Tested:
    """Results of S subgroups, arrays (S,).

    ``rest`` is the rate of all other rows, [``low``, ``high``] the simultaneous interval of the difference of the two
    rates, and ``p`` the p-value adjusted for all subgroups.
    """

    sizes: Array
    events: Array
    rate: Array
    rest: Array
    low: Array
    high: Array
    statistic: Array
    p: Array


def intersections(columns: Mapping[str, Coded], depth: int, least: int) -> Subgroups:
    """Return the subgroups of all levels of up to ``depth`` columns with at least ``least`` rows inside and outside.

    Among subgroups with the same rows we keep only the first, which has the fewest columns.

    Raises
    ------
    InvalidInput
        If there are more than :data:`MOST`.
    """
    n = len(next(iter(columns.values())).codes)
    marks = np.random.default_rng(0).integers(0, 2**62, n)
    seen: set[tuple[int, int]] = set()
    names: list[tuple[tuple[str, str], ...]] = []
    rows: list[Array] = []
    too_small = 0
    for chosen in (one for size in range(1, depth + 1) for one in combinations(columns, size)):
        for levels, members in _cells([columns[name] for name in chosen]):
            if not least <= len(members) <= n - least:
                too_small += len(members) < least
                continue
            mark = len(members), int(marks[members].sum())
            if mark not in seen:
                seen.add(mark)
                names.append(tuple(zip(chosen, levels, strict=True)))
                rows.append(members)
        if len(names) > MOST:
            raise InvalidInput(
                f"There are more than {MOST:,} subgroups",
                option="depth",
                remedy="Use fewer columns or a smaller depth",
            )
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.concatenate([np.zeros(0, dtype=np.int64), *rows])
    members = csr_array((np.ones(len(indices), dtype=np.float32), indices, indptr), shape=(len(names), n))
    return Subgroups(tuple(names), members, too_small)


def _cells(columns: list[Coded]) -> Iterator[tuple[tuple[str, ...], Array]]:
    """Yield the levels and the rows of each combination of levels that occurs."""
    shape = tuple(len(column.levels) for column in columns)
    flat = np.ravel_multi_index(tuple(column.codes for column in columns), shape)
    order = np.argsort(flat, kind="stable")
    kinds, first = np.unique(flat[order], return_index=True)
    for kind, members in zip(kinds, np.split(order, first)[1:], strict=True):
        codes = np.unravel_index(kind, shape)
        yield tuple(column.levels[code] for column, code in zip(columns, codes, strict=True)), members


def worst_subgroups(
    event: Array, subgroups: Subgroups, *, draws: int, alpha: float, rng: np.random.Generator
) -> Tested:
    r"""Test the rate of every subgroup against all other rows, with one family-wise error rate.

    Parameters
    ----------
    event : array (n,)
        0 or 1 for each row in the denominator of the rate.
    subgroups : Subgroups
    draws : int
        Joint permutations of the events.
    alpha : float
        Level of the family; the intervals hold simultaneously with probability about 1 - alpha.
    rng : numpy.random.Generator

    Returns
    -------
    Tested
        With p-values of the step-down method: the largest \|T\| is compared with the largest of all subgroups, the next
        with the largest of the remaining subgroups.

    References
    ----------
    Westfall and Young 1993, algorithm 4.1.

    Examples
    --------
    >>> sex = np.repeat([0, 1], 200)
    >>> event = np.r_[np.arange(200) % 2, np.arange(200) % 5 == 0].astype(int)
    >>> columns = {"sex": Coded(sex, ("f", "m")), "town": Coded(np.arange(400) % 3, ("a", "b", "c"))}
    >>> found = intersections(columns, depth=2, least=20)
    >>> tested = worst_subgroups(event, found, draws=199, alpha=0.05, rng=np.random.default_rng(0))
    >>> found.names[int(np.argmin(tested.p))], bool(tested.p.min() <= 0.05)
    ((('sex', 'f'),), True)
    """
    members, sizes = subgroups.members, subgroups.sizes.astype(float)
    n, total = len(event), float(event.sum())
    counted = members @ event.astype(np.float32)
    events = counted.astype(float)
    rate, rest = events / sizes, (total - events) / (n - sizes)
    if total in (0, n) or not len(sizes):
        same = np.zeros(len(sizes))
        return Tested(sizes.astype(int), events.astype(int), rate, rest, same - 1, same + 1, same, same + 1)
    mean, deviation = sizes * total / n, np.sqrt(sizes * (n - sizes) * total * (n - total) / (n**2 * (n - 1)))
    statistic = (events - mean) / deviation
    drawn = (rng.permuted(np.tile(event.astype(np.float32), (size, 1)), axis=1).T for _, size in blocks(draws, BLOCK))
    t = (np.abs((members @ block - mean[:, None]) / deviation[:, None]) for block in drawn)
    p, largest = stepped_down(np.abs(statistic), t)
    # The largest of all |T| is significant if it exceeds this value.
    critical = np.sort(largest)[::-1][max(0, math.floor(alpha * (draws + 1) + EQUAL) - 1)]
    low, high = score_intervals(events, sizes, total - events, n - sizes, float(critical) * (1 + EQUAL))
    return Tested(sizes.astype(int), events.astype(int), rate, rest, low, high, statistic, p)


def binned(values: Array, number: int, most: int) -> Coded | None:
    """Cut numbers (n,) into at most ``number`` groups of equal counts; None for up to ``most`` distinct numbers."""
    if len(np.unique(values)) <= most:
        return None
    cuts = np.unique(np.quantile(values, np.arange(1, number) / number, method="lower"))
    codes = np.searchsorted(cuts, values, side="left")
    used, codes = np.unique(codes, return_inverse=True)
    ends = [(values[codes == code].min(), values[codes == code].max()) for code in range(len(used))]
    names = [tuple(f"{low:{form}} to {high:{form}}" for low, high in ends) for form in ("g", ".12g", ".17g")]
    return Coded(codes, min(names, key=lambda own: (len(set(own)) < len(own), any("e" in name for name in own))))
