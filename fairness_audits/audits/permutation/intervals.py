"""The intervals of the permutation tests: one function for each estimator, which returns the interval as reported.

Each interval agrees with its test: it excludes the value of the hypothesis exactly if the test rejects it.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import expit, logit, ndtri

from fairness_audits.audits.inference import Ends, wilson_interval
from fairness_audits.audits.permutation.doubts import NO_DOUBT, Doubt
from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.monte_carlo import (
    SIDED,
    Alternative,
    MonteCarlo,
    Settings,
    bound,
    furthest,
    tails,
)
from fairness_audits.audits.permutation.score_tests import Comparison, score_statistic
from fairness_audits.audits.permutation.statistics import MetricEstimate
from fairness_audits.values import Array

Interval = tuple[float, float]
EVERY: Interval = (-np.inf, np.inf)
LARGEST_RATIO = 1e9
STEPS, HALVINGS = 80, 60
"""Numbers of bisections for the end of an interval: from all values, and from the estimate outwards."""


def of_rates(rates: Rates, settings: Settings, rejected: bool) -> Interval:
    """Compute the interval of a difference of rates for an exact test: :func:`newcombe`, in agreement with the test."""
    interval = newcombe(rates, settings.alpha, settings.alternative)
    return agreeing(interval, rates.difference, rejected)


def newcombe(rates: Rates, alpha: float, alternative: Alternative) -> Interval:
    r"""Compute [low, high] of level 1 - alpha; the open end of a one-sided alternative is -1 or 1.

    .. math:: D - \sqrt{(f_A - l_A)^2 + (u_B - f_B)^2} \quad\text{to}\quad D + \sqrt{(u_A - f_A)^2 + (f_B - l_B)^2}

    with Wilson's interval [l, u] of each rate f. The coverage is near 1 - alpha, but not at least 1 - alpha in every
    sample. In small samples the interval may exclude 0 although the exact test does not reject; :func:`of_rates` then
    extends it.

    References
    ----------
    Newcombe 1998, method 10.
    """
    level = 1 - (2 * alpha if alternative in SIDED else alpha)
    a, b = (Ends(x / m, *wilson_interval(x / m, m, level)) for x, m in ((rates.x_a, rates.m_a), (rates.x_b, rates.m_b)))
    _, low, high = a.minus(b)
    return -1.0 if alternative == "less" else max(-1.0, low), 1.0 if alternative == "greater" else min(1.0, high)


def of_draws(found: MonteCarlo, settings: Settings, doubt: Doubt = NO_DOUBT, limits: Interval = EVERY) -> Interval:
    """Compute the interval of a difference within ``limits``, by inverting a Monte-Carlo test, as the doubt requires.

    The margins of groups without variance are further legs of a right triangle, as in Newcombe's interval. Source: Zou
    and Donner 2008.
    """
    low, high = inverted(found, settings.alpha, settings.alternative)
    if doubt.margins.any():
        (down_a, down_b), (up_a, up_b) = doubt.margins
        low = found.difference - float(np.linalg.norm([found.difference - low, down_a, up_b]))
        high = found.difference + float(np.linalg.norm([high - found.difference, up_a, down_b]))
    low, high = agreeing((low, high), found.difference, found.p(settings.alternative) <= settings.alpha)
    return max(low, limits[0]), min(high, limits[1])


def inverted(found: MonteCarlo, alpha: float, alternative: Alternative) -> Interval:
    """Return the interval of differences not rejected at level alpha, ends included: it holds 0 iff p > alpha."""
    up, down = found.reference, -found.reference
    if alternative == "two-sided":
        up = down = np.abs(found.reference)
    below, above = (float(bound(furthest(side, alpha / tails(alternative)), found.scale)) for side in (up, down))
    low = -np.inf if alternative == "less" else found.difference - below
    high = np.inf if alternative == "greater" else found.difference + above
    return low, high


def agreeing(interval: Interval, difference: float, rejected: bool) -> Interval:
    """Extend or cut the interval so that it holds 0 exactly if the test does not reject.

    Intervals come from tests of D = d whose test at d = 0 is closely related to the test made. If the two disagree, the
    interval is extended to 0, or ends just before it.
    """
    low, high = interval
    if not rejected:
        return min(low, 0.0), max(high, 0.0)
    if low <= 0 <= high:
        step = np.nextafter(0.0, difference)
        return (float(step), high) if difference > 0 else (low, float(step))
    return low, high


def of_groups(estimate: MetricEstimate, alpha: float, odds: bool) -> tuple[Array, Array]:
    """Compute normal intervals of level 1 - alpha of the metric of each group, (G,) each; NaN without a variance.

    With ``odds``, for a metric from 0 to 1, the interval is normal on the log-odds scale.
    """
    error = np.sqrt(np.where(estimate.variance > 0, estimate.variance, np.nan))
    reach = float(ndtri(1 - alpha / 2)) * error
    if not odds:
        return estimate.value - reach, estimate.value + reach
    with np.errstate(divide="ignore", invalid="ignore"):
        middle, wide = logit(estimate.value), reach / (estimate.value * (1 - estimate.value))
    return expit(middle - wide), expit(middle + wide)


def score_interval(rates: Rates, alpha: float, comparison: Comparison = "difference") -> Interval:
    """Compute the interval of values that neither one-sided score test rejects at level alpha / 2.

    For a ratio, an open end is infinite, and both ends are NaN if no group has an event.

    References
    ----------
    Miettinen and Nurminen 1985.

    Examples
    --------
    >>> low, high = score_interval(Rates(30, 100, 45, 100), 0.05, "ratio")
    >>> round(low, 3), round(high, 3)
    (0.458, 0.96)
    """
    z = float(ndtri(1 - alpha / 2))
    if comparison == "ratio" and rates.events == 0:
        return np.nan, np.nan

    def beyond(side: float) -> Callable[[float], bool]:
        return lambda at: bool(score_statistic(rates.x_a, rates.m_a, rates.x_b, rates.m_b, at, comparison) > side)

    low, high = (crossing(beyond(side), comparison) for side in (z, -z))
    if comparison == "difference":
        return low, high
    return 0.0 if rates.x_a == 0 else low, np.inf if rates.x_b == 0 else high


def score_intervals(events: Array, sizes: Array, others: Array, rest: Array, critical: float) -> Array:
    """Compute the differences of k pairs of rates whose score statistic is within +-critical: both ends, (2, k).

    At a difference of 0 the score statistic is T. An interval therefore contains 0 if |T| is at most ``critical``.
    """
    ends = []
    for end in (-1.0, 1.0):
        inside, outside = events / sizes - others / rest, np.full(len(sizes), end)
        for _ in range(HALVINGS):
            middle = (inside + outside) / 2
            within = np.abs(score_statistic(events, sizes, others, rest, middle, "difference")) <= critical
            inside, outside = np.where(within, middle, inside), np.where(within, outside, middle)
        ends.append(inside)
    return np.array(ends)


def crossing(beyond: Callable[[float], bool], comparison: Comparison = "ratio") -> float:
    """Return the difference or ratio up to which ``beyond`` holds; 0 or infinity if this is at no ratio or at all."""
    limit = float(np.log(LARGEST_RATIO))
    low, high = ends = (-1.0, 1.0) if comparison == "difference" else (-limit, limit)
    for _ in range(STEPS):
        middle = (low + high) / 2
        inside = beyond(middle if comparison == "difference" else float(np.exp(middle)))
        low, high = (middle, high) if inside else (low, middle)
    if comparison == "difference":
        return (low + high) / 2
    return 0.0 if low == ends[0] else np.inf if high == ends[1] else float(np.exp((low + high) / 2))


def of_ratio(p: Callable[[float, Alternative], float], alpha: float) -> Interval:
    """Compute the interval of ratios that neither one-sided test rejects at level alpha, from the p-value at each."""
    return crossing(lambda at: p(at, "greater") <= alpha), crossing(lambda at: p(at, "less") > alpha)


def of_equivalence(found: MonteCarlo, doubt: Doubt, alpha: float) -> Interval:
    """Compute the interval of level 1 - 2 alpha of a difference from two one-sided tests."""
    ends = np.array(inverted(found, 2 * alpha, "equal-tailed"))
    beside = np.hypot(doubt.deviations[:, 0], doubt.deviations[::-1, 1])
    reach = np.hypot(ends - found.difference, beside * ndtri(1 - alpha))
    return found.difference - float(reach[0]), found.difference + float(reach[1])


def within(interval: Interval, bounds: Interval, shown: bool) -> tuple[float | None, float | None]:
    """Adjust the interval to be within the bounds exactly if the bounds are shown; None is an open end."""
    (low, high), (least, most) = interval, bounds
    if np.isnan(low):
        return None, None
    if shown:
        low, high = max(low, least), min(high, most)
    elif least < low and high < most:
        low, high = (least, high) if low - least <= most - high else (low, most)
    return low if np.isfinite(low) else None, high if np.isfinite(high) else None
