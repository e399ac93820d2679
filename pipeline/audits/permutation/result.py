"""What a permutation test found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Alternative = Literal["two-sided", "equal-tailed", "greater", "less"]
"""``greater``: the metric of the first group is the larger one. ``two-sided``: |T| is large, as published.

``equal-tailed``: T is far out on its own side, p = min(1, 2 min(p_greater, p_less)). Where a small group is set
against a large one, T has a long tail on one side only: for an AUC near 1, few rows are often ranked without a fault,
and their estimated variance is then near 0. Against |T| that tail hides a difference on the other side. Where T* is
symmetric, as it is in the limit, both are one.
"""

SIDED = ("greater", "less")


def tails(alternative: Alternative) -> int:
    """How many one-sided tests the level is shared among."""
    return 2 if alternative == "equal-tailed" else 1


Method = Literal["auto", "exact", "studentized", "lift", "unstudentized", "bootstrap"]
"""``auto`` is exact where exactness is free, else studentized."""


@dataclass(frozen=True)
class PermutationTest:
    """Test of H0: the metric is equal in groups A = ``groups[0]`` and B = ``groups[1]``.

    ``estimates`` are the metric in A and in B, ``difference`` is A - B with the interval [``ci_low``, ``ci_high``] of
    level 1 - alpha: beside an ``exact`` test the score interval (Miettinen-Nurminen), extended where needed so that it
    agrees with the test (the exact test rejects less, so 0 may lie just outside what the score test keeps); beside the
    others by inversion of the test. The end that a one-sided alternative leaves open is that of the metric's range or
    infinite. ``statistic`` is the studentised difference T. ``p_value`` belongs to ``alternative``; [``p_low``,
    ``p_high``] is the interval for the p of infinitely many draws (equal to it where the test is ``exact``).
    ``rejected`` is p_value <= alpha.

    ``direction`` is +1 where the test concludes that A has the larger metric, -1 for B, 0 where it concludes neither:
    it names a side only if the one-sided p-value of that side is at most alpha / 2 (at most alpha when the
    alternative is one-sided), so the chance of naming the wrong one is at most that (exactly so for an exact test,
    else in the limit; section 2.3).

    ``sizes`` are the rows of the groups, ``units`` what was permuted (rows of the label or prediction concerned,
    clusters, rows). ``draws`` is the number of permutations drawn, 0 when the distribution was enumerated;
    ``undefined_draws`` of them left a group without the rows that the metric needs and count as extreme.
    ``odds_ratio`` is, for an exact test, the conditional estimate of the odds ratio and its exact interval.
    ``guarantee`` says in a sentence what the p-value promises.

    ``undefined`` is the reason why there is no test, empty where there is one; then ``statistic``, p-values and
    interval are None, and so is an estimate that does not exist.
    """

    metric: str
    groups: tuple[str, str]
    method: str
    alternative: Alternative
    alpha: float
    estimates: tuple[float | None, float | None]
    sizes: tuple[int, int]
    units: tuple[int, int]
    difference: float | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    statistic: float | None = None
    p_value: float | None = None
    p_low: float | None = None
    p_high: float | None = None
    rejected: bool = False
    direction: int = 0
    exact: bool = False
    draws: int = 0
    undefined_draws: int = 0
    odds_ratio: tuple[float, float, float] | None = None
    guarantee: str = ""
    undefined: str = ""

    @property
    def higher(self) -> str | None:
        """The group concluded to have the larger metric; None where the test concludes neither."""
        return None if self.direction == 0 else self.groups[0 if self.direction > 0 else 1]


@dataclass(frozen=True)
class PairedTests:
    """Tests of all pairs of groups, with p-values adjusted for their number.

    ``adjusted`` are the p-values after the ``correction``, one for each of ``tests`` (None where undefined; those do
    not count among the comparisons) and ``rejected`` says which are at most alpha. ``guarantee`` says what error the
    correction controls.
    """

    tests: tuple[PermutationTest, ...]
    adjusted: tuple[float | None, ...]
    rejected: tuple[bool, ...]
    correction: str
    alpha: float
    guarantee: str
