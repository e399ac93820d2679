r"""Equivalence: is the difference of two metrics shown to be within bounds, shown to be beyond them, or neither?

Two one-sided tests (Schuirmann 1987) show that the difference, or the ratio, is above the lower bound and below the
upper bound. Rates of unclustered rows have score tests, which are exact if there are few outcomes
(:mod:`fairness_audits.audits.permutation.score_tests`). Other metrics, and rates with clusters or weights, are
studentised. For a difference d and a ratio r,

.. math:: \frac{f_A - f_B - d}{\sqrt{v_A + v_B}} \quad\text{and}\quad \frac{f_A - r f_B}{\sqrt{v_A + r^2 v_B}}

are compared with the permutations of the studentised difference: all of them are asymptotically standard normal
(Fieller 1954).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import inf
from typing import Literal

import numpy as np
from scipy.special import ndtr

from fairness_audits.audits.permutation import intervals
from fairness_audits.audits.permutation.doubts import Doubt
from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.monte_carlo import Alternative, MonteCarlo
from fairness_audits.audits.permutation.score_tests import Comparison, OneSided, is_enumerated, score_test
from fairness_audits.audits.permutation.statistics import MetricEstimate
from fairness_audits.errors import InvalidInput

Conclusion = Literal["exceeded", "not shown", "shown"]
CONCLUSIONS: Mapping[Conclusion, str] = {
    "exceeded": "beyond the margin",
    "not shown": "cannot tell",
    "shown": "within the margin",
}
"""The conclusions about a margin in words, in the order of a table."""


def check_margin(margin: float | None, metric: str, option: str = "margin") -> None:
    """Raise InvalidInput for a margin that no difference of a rate or an AUC exceeds."""
    if margin is not None and margin >= 1:
        remedy = "Use a margin below 1" if margin == 1 else f"{margin:g} points are {option}={margin / 100:g}"
        raise InvalidInput(f"{option}={margin:g} allows every difference of {metric}", option=option, remedy=remedy)


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

    @property
    def ends(self) -> tuple[float, float]:
        return self.low, self.high

    @property
    def conclusions(self) -> Mapping[Conclusion, str]:
        """The conclusions about these bounds in words."""
        if self.comparison == "difference":
            return CONCLUSIONS
        beyond, within = "below {:g}", "at least {:g}"
        if not self.lowest_first:
            beyond, within = "outside {:g} to {:g}", "within {:g} to {:g}"
        return {**CONCLUSIONS, "exceeded": beyond.format(*self.ends), "shown": within.format(*self.ends)}

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
    within, beyond = tested(lambda at: score_test(rates, at, bounds.comparison), bounds)
    interval = intervals.score_interval(rates, 2 * alpha, bounds.comparison)
    stated = intervals.within(interval, bounds.ends, within <= alpha)
    method = "exact" if is_enumerated(rates) else "score"
    return Equivalence(bounds, estimate, stated, within, beyond, method)


def of_draws(found: MonteCarlo, observed: MetricEstimate, bounds: Bounds, alpha: float, doubt: Doubt) -> Equivalence:
    """Test the bounds of the ``observed`` metrics by the studentised draws of their difference.

    The ``doubt`` increases the p-values and widens the interval; a side with an infinite margin cannot be
    shown. With a margin, a p-value is at least the normal one, because the draws of groups without variance may all be
    equal.
    """
    if bounds.lowest_first and found.difference > 0:
        found = replace(found, difference=-found.difference, reference=-found.reference)
        observed, doubt = MetricEstimate(observed.value[::-1], observed.variance[::-1]), doubt.turned()
    ratio = bounds.comparison == "ratio"
    (f_a, f_b), (v_a, v_b) = observed.value.tolist(), observed.variance.tolist()
    deviations = doubt.deviations

    def p(at: float, side: Alternative) -> float:
        sign, (down, up) = (1, deviations) if side == "greater" else (-1, deviations[::-1])
        factor = at if ratio else 1.0
        distance = sign * (f_a - at * f_b if ratio else found.difference - at)
        scale = float(np.sqrt(v_a + at**2 * v_b)) if ratio else found.scale
        beside = float(np.hypot(down[0], factor * up[1]))
        scale = float(np.hypot(scale, beside)) if distance > 0 else scale
        if np.isinf(beside):
            return 1.0
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = float(np.nan_to_num(np.divide(distance, scale), nan=0.0, posinf=inf, neginf=-inf))
        least = float(ndtr(-statistic)) if beside > 0 else 0.0
        return max(replace(found, statistic=sign * statistic).p(side), least)

    within, beyond = tested(lambda at: OneSided(p(at, "greater"), p(at, "less")), bounds)
    estimate: float | None = found.difference
    if ratio:
        estimate = f_a / f_b if f_b else None
    interval = intervals.of_ratio(p, alpha) if ratio else intervals.of_equivalence(found, doubt, alpha)
    stated = intervals.within(interval, bounds.ends, within <= alpha)
    return Equivalence(bounds, estimate, stated, within, beyond, "studentized")


def tested(test: Callable[[float], OneSided], bounds: Bounds) -> tuple[float, float]:
    """Return the p-values of the hypotheses "outside the bounds" and "within the bounds"."""
    low, high = test(bounds.low), test(bounds.high)
    return max(low.above, high.below), min(1.0, 2 * min(low.below, high.above))
