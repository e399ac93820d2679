r"""Equivalence: is the difference of two metrics shown to be within bounds, shown to be beyond them, or neither?

Two one-sided tests (Schuirmann 1987) show that the difference, or the ratio, is above the lower bound and below the
upper bound. Rates of unclustered rows have score tests, which are exact if there are few outcomes
(:mod:`fairness_audits.audits.permutation.score_tests`). Other metrics, and rates with clusters or weights, are
studentised. For a difference d and a ratio r,

.. math:: \frac{f_A - f_B - d}{\sqrt{v_A + v_B}} \quad\text{and}\quad \frac{f_A - r f_B}{\sqrt{v_A + r^2 v_B}}

are compared with the permutations of the studentised difference: all of them are asymptotically standard normal
(Fieller 1954).
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
    crossing,
    is_enumerated,
    score_interval,
    score_test,
)
from fairness_audits.audits.permutation.statistics import MetricEstimate
from fairness_audits.values import Array


@dataclass(frozen=True)
class Bounds:
    """Bounds within which a ``comparison`` of two metrics, first to second, counts as equivalent.

    With ``lowest_first``, the lower metric is the first. The bounds are then symmetric: the order changes only how the
    comparison is stated.
    """

    low: float
    high: float
    comparison: Comparison = "difference"
    lowest_first: bool = False

    @classmethod
    def margin(cls, margin: float) -> "Bounds":
        """Return the bounds of an absolute difference of at most ``margin``."""
        return cls(-margin, margin)

    @classmethod
    def at_least(cls, ratio: float, lowest_first: bool) -> "Bounds":
        """Return the bounds of a ratio of at least ``ratio`` in both directions."""
        return cls(ratio, 1 / ratio, "ratio", lowest_first)


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
    if bounds.lowest_first and rates.difference > 0:
        rates = Rates(rates.x_b, rates.m_b, rates.x_a, rates.m_a)
    estimate: float | None = rates.difference
    if bounds.comparison == "ratio":
        estimate = rates.x_a / rates.m_a / (rates.x_b / rates.m_b) if rates.x_b else None
    within, beyond = _tested(lambda at: score_test(rates, at, bounds.comparison), bounds)
    interval = _agreeing(score_interval(rates, 2 * alpha, bounds.comparison), bounds, within <= alpha)
    method = "exact" if is_enumerated(rates) else "score"
    return Equivalence(bounds, estimate, interval, within, beyond, method)


def of_draws(
    found: MonteCarlo, observed: MetricEstimate, bounds: Bounds, alpha: float, doubts: Array, off: tuple[float, float]
) -> Equivalence:
    """Test the bounds of the ``observed`` metrics by the studentised draws of their difference.

    ``doubts`` (2, 2) holds standard deviations of the metric of each group, downwards and upwards, beyond the estimated
    ones (infinite: that side cannot be shown). ``off`` bounds the errors of the difference and of its standard error.
    All of them increase the p-values and widen the interval. With a doubt, a p-value is at least the normal one,
    because the draws of groups without variance may all be equal.
    """
    if bounds.lowest_first and found.difference > 0:
        found = replace(found, difference=-found.difference, reference=-found.reference)
        observed, doubts = MetricEstimate(observed.value[::-1], observed.variance[::-1]), doubts[:, ::-1]
    ratio = bounds.comparison == "ratio"
    (f_a, f_b), (v_a, v_b) = observed.value.tolist(), observed.variance.tolist()

    def p(at: float, side: Alternative) -> float:
        sign, (down, up) = (1, doubts) if side == "greater" else (-1, doubts[::-1])
        factor = at if ratio else 1.0
        distance = sign * (f_a - at * f_b if ratio else found.difference - at) - off[0]
        scale = float(np.sqrt(v_a + at**2 * v_b)) if ratio else found.scale
        doubt = float(np.hypot(down[0], factor * up[1]))
        scale = np.hypot(scale + off[1], doubt) if distance > 0 else max(scale - off[1], 0.0)
        if np.isinf(doubt):
            return 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = float(np.nan_to_num(np.divide(distance, scale), nan=0.0, posinf=inf, neginf=-inf))
        least = float(ndtr(-statistic)) if doubt > 0 else 0.0
        return max(replace(found, statistic=sign * statistic).p(side), least)

    within, beyond = _tested(lambda at: OneSided(p(at, "greater"), p(at, "less")), bounds)
    if ratio:
        low = crossing(lambda at: p(at, "greater") <= alpha)
        interval = low, crossing(lambda at: p(at, "less") > alpha)
        estimate = f_a / f_b if f_b else None
    else:
        ends = np.array(found.interval(2 * alpha, "equal-tailed"))
        beside = np.hypot(doubts[:, 0], doubts[::-1, 1])
        reach = np.hypot(ends - found.difference, beside * ndtri(1 - alpha)) + off[0]
        interval = found.difference - float(reach[0]), found.difference + float(reach[1])
        estimate = found.difference
    return Equivalence(bounds, estimate, _agreeing(interval, bounds, within <= alpha), within, beyond, "studentized")


def _tested(test: Callable[[float], OneSided], bounds: Bounds) -> tuple[float, float]:
    """Return the p-values of the hypotheses "outside the bounds" and "within the bounds"."""
    low, high = test(bounds.low), test(bounds.high)
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
