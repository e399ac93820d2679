r"""Equivalence: is the difference of two metrics shown to be within bounds, shown to be beyond them, or neither?

Two one-sided tests (Schuirmann 1987) show that the difference, or the ratio, is above the lower bound and below the
upper bound. Rates of unclustered rows have score tests, which are exact if there are few outcomes
(:mod:`fairness_audits.audits.permutation.score_tests`). Other metrics are studentised: D - d replaces D and is compared
with the permutations of the studentised difference, whose distribution tends to that of (D - d) / sd(D).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.monte_carlo import Alternative, MonteCarlo
from fairness_audits.audits.permutation.score_tests import (
    Comparison,
    OneSided,
    is_enumerated,
    score_interval,
    score_test,
)
from fairness_audits.values import Array


@dataclass(frozen=True)
class Bounds:
    """Bounds within which a ``comparison`` of two metrics counts as equivalent; an infinite ``high`` is no bound."""

    low: float
    high: float
    comparison: Comparison = "difference"

    @classmethod
    def margin(cls, margin: float) -> "Bounds":
        """Return the bounds of an absolute difference of at most ``margin``."""
        return cls(-margin, margin)

    @classmethod
    def at_least(cls, ratio: float, one_sided: bool) -> "Bounds":
        """Return the bounds of a ratio of at least ``ratio``: of the first group to the second, or both ways."""
        return cls(ratio, inf if one_sided else 1 / ratio, "ratio")


@dataclass(frozen=True)
class Equivalence:
    """The test result for a ``comparison`` of two metrics and its bounds.

    ``estimate`` is the difference or ratio. Its ``interval`` of level 1 - 2 alpha is within the bounds exactly if the
    bounds are shown at level alpha. A small ``p_within`` shows that the bounds hold, a small ``p_beyond`` that they do
    not. ``method`` is ``exact``, ``score`` or ``studentized``. Values that do not exist are None.
    """

    bounds: Bounds
    estimate: float | None
    interval: tuple[float | None, float | None]
    p_within: float
    p_beyond: float
    method: str


def of_rates(rates: Rates, bounds: Bounds, alpha: float) -> Equivalence:
    """Test the bounds of two rates.

    Examples
    --------
    >>> of_rates(Rates(450, 500, 455, 500), Bounds.margin(0.05), 0.05).p_within < 0.05
    True
    >>> of_rates(Rates(0, 6, 2, 5), Bounds.margin(0.05), 0.05).p_within < 0.05
    False
    """
    estimate: float | None = rates.difference
    if bounds.comparison == "ratio":
        estimate = rates.x_a / rates.m_a / (rates.x_b / rates.m_b) if rates.x_b else None
    within, beyond = _tested(lambda at: score_test(rates, at, bounds.comparison), bounds)
    interval = _agreeing(score_interval(rates, 2 * alpha, bounds.comparison), bounds, within <= alpha)
    method = "exact" if is_enumerated(rates) else "score"
    return Equivalence(bounds, estimate, interval, within, beyond, method)


def of_draws(found: MonteCarlo, bounds: Bounds, alpha: float, doubts: Array, off: tuple[float, float]) -> Equivalence:
    """Test the bounds of a difference by its studentised draws.

    ``doubts`` (2,) holds standard deviations of the difference, downwards and upwards, beyond the estimated one
    (infinite: that side cannot be shown). ``off`` bounds the errors of the difference and of its standard error. All of
    them increase the p-values and widen the interval. With a doubt, a p-value is at least the normal one, because the
    draws of groups without variance may all be equal.
    """

    def p(at: float, side: Alternative, doubt: float) -> float:
        sign = 1 if side == "greater" else -1
        distance = sign * (found.difference - at) - off[0]
        scale = np.hypot(found.scale + off[1], doubt) if distance > 0 else max(found.scale - off[1], 0.0)
        if np.isinf(doubt):
            return 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = float(np.nan_to_num(np.divide(distance, scale), nan=0.0, posinf=inf, neginf=-inf))
        least = float(ndtr(-statistic)) if doubt > 0 else 0.0
        return max(replace(found, statistic=sign * statistic).p(side), least)

    def test(at: float) -> OneSided:
        return OneSided(p(at, "greater", doubts[0]), p(at, "less", doubts[1]))

    within, beyond = _tested(test, bounds)
    ends = np.array(found.interval(2 * alpha, "equal-tailed"))
    reach = np.hypot(ends - found.difference, doubts * ndtri(1 - alpha)) + off[0]
    interval = found.difference - float(reach[0]), found.difference + float(reach[1])
    return Equivalence(
        bounds, found.difference, _agreeing(interval, bounds, within <= alpha), within, beyond, "studentized"
    )


def _tested(test: Callable[[float], OneSided], bounds: Bounds) -> tuple[float, float]:
    """Return the p-values of the hypotheses "outside the bounds" and "within the bounds"."""
    low = test(bounds.low)
    if np.isinf(bounds.high):
        return low
    high = test(bounds.high)
    return max(low.above, high.below), min(1.0, 2 * min(low.below, high.above))


def _agreeing(interval: tuple[float, float], bounds: Bounds, shown: bool) -> tuple[float | None, float | None]:
    """Adjust the interval to be within the bounds exactly if the bounds are shown; None is an open end."""
    low, high = interval
    if np.isnan(low):
        return None, None
    if shown:
        low, high = max(low, bounds.low), min(high, bounds.high)
    elif bounds.low < low and high < bounds.high:
        low, high = (bounds.low, high) if low - bounds.low <= bounds.high - high else (low, bounds.high)
    return low if np.isfinite(low) else None, high if np.isfinite(high) else None
