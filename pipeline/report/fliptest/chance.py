"""How many members two flipsets would share if neither knew of the other."""

from __future__ import annotations

import numpy as np

from pipeline.report import words as w
from pipeline.report.fliptest.trials import FirstTrial
from pipeline.report.numbers import Estimate
from pipeline.types import Array


def shared_members(one: FirstTrial, other: FirstTrial, flipset: str) -> int:
    """How many people, by their rows, are in the flipsets of both."""
    sets = [set(first.rows[first.members(flipset)].tolist()) for first in (one, other)]
    return len(sets[0] & sets[1])


def shared_by_chance(people: int, first: int, second: int, level: float = 0.95) -> Estimate:
    r"""Members that two sets of ``first`` and ``second`` of the same ``people`` share where each is a random draw.

    .. math:: K \sim \text{Hypergeometric}(N, k, n), \qquad E\,K = k n / N

    with N people, k and n members. ``low`` and ``high`` are the quantiles of (1 - level) / 2 and (1 + level) / 2, whole
    numbers. Raises ValueError for sets that are larger than the people.
    """
    from scipy.stats import hypergeom

    if not 0 <= max(first, second) <= people or min(first, second) < 0:
        raise ValueError(
            f"expected two sets among {people} people, found {first} and {second} members: count those who can be in "
            "the flipset"
        )
    if people == 0:
        return Estimate(0.0, low=0.0, high=0.0)
    drawn = hypergeom(people, first, second)
    low, high = (float(drawn.ppf(q)) for q in ((1 - level) / 2, (1 + level) / 2))
    return Estimate(first * second / people, low=low, high=high)


def of_first_trials(one: FirstTrial, other: FirstTrial, flipset: str) -> Estimate:
    """:func:`shared_by_chance` of two maps' flipsets: drawn among those whom the model decides about alike.

    A map of fewer people than another shares with it what it has of these: only people whom both maps moved count. In
    F- can only be who is decided against, in F+ who is decided for. Raises ValueError where no person is under both.
    """
    both = np.intersect1d(one.rows, other.rows)
    if not len(both):
        raise ValueError(
            f"expected people under both maps, found {len(one.rows)} and {len(other.rows)}, none of whom is in both: "
            "audit them on one split"
        )
    eligible = int((one.decision[np.isin(one.rows, both)] == (flipset == w.POSITIVE)).sum())
    return shared_by_chance(eligible, *(members_among(first, both, flipset) for first in (one, other)))


def members_among(one: FirstTrial, rows: Array, flipset: str) -> int:
    """How many of these people, by their rows, are in the flipset."""
    return int((one.members(flipset) & np.isin(one.rows, rows)).sum())
