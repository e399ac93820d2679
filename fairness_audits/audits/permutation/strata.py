r"""Two rates compared within strata, such as occupations: a test, a common difference or ratio, and its homogeneity.

Stratum s has m_A and m_B rows of groups A and B, n in all, with x_A and x_B events, K in all. If the rates are equal in
every stratum, each X_A is hypergeometric given K. The exact test compares the sum of x_A over strata with its
distribution, the convolution of the hypergeometric distributions. With many possible sums, it is the test of Cochran,
Mantel and Haenszel,

.. math:: Z = \frac{\sum (x_A - m_A K / n)}{\sqrt{\sum m_A m_B K (n - K) / (n^2 (n - 1))}} .

The common difference and the common ratio are those of the rates averaged over strata with the weights m_A m_B / n of
Mantel and Haenszel. Their standard errors are consistent for few large strata and for many small ones.

References
----------
Mantel and Haenszel 1959; Sato 1989 (difference); Greenland and Robins 1985 (ratio); Gart and Nam 1990 (homogeneity).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri

from fairness_audits.audits.permutation.draws import window
from fairness_audits.audits.permutation.equivalence import Bounds, Equivalence, tested
from fairness_audits.audits.permutation.exact import ExactP, p_at
from fairness_audits.audits.permutation.intervals import Interval, agreeing, crossing, within
from fairness_audits.audits.permutation.monte_carlo import SIDED, Settings
from fairness_audits.audits.permutation.score_tests import Comparison, OneSided, score, standardized
from fairness_audits.audits.permutation.statistics import EQUAL
from fairness_audits.values import Array

SUMS = 20_000
"""Largest number of possible sums of events that are enumerated."""


LARGE = 50
"""Smallest number of units of a group, over all strata, with intervals from a standard error."""


class Strata(NamedTuple):
    """Events and trials of groups A and B in each stratum, (S,) each; both groups have trials."""

    x_a: Array
    m_a: Array
    x_b: Array
    m_b: Array

    @property
    def n(self) -> Array:
        return self.m_a + self.m_b

    @property
    def weight(self) -> Array:
        """Return the weight of each stratum."""
        return self.m_a * (self.m_b / self.n)

    @property
    def rates(self) -> Array:
        """Return the rates of both groups, averaged over strata, (2,)."""
        each = np.stack([self.x_a / self.m_a, self.x_b / self.m_b])
        return np.asarray(each @ self.weight / self.weight.sum())

    def swapped(self) -> Strata:
        """Return the strata with A and B exchanged."""
        return Strata(self.x_b, self.m_b, self.x_a, self.m_a)


class StratifiedP(NamedTuple):
    """p-values of equal rates in every stratum, the statistic Z, and whether the p-values are ``exact``."""

    p: ExactP
    statistic: float
    exact: bool


def stratified_p(strata: Strata) -> StratifiedP:
    """Test equal rates in every stratum.

    Examples
    --------
    >>> one = Strata(*map(np.array, ([8], [10], [2], [10])))
    >>> round(stratified_p(one).p.two_sided, 4)
    0.023
    """
    events, n = strata.x_a + strata.x_b, strata.n
    expected = strata.m_a * (events / n)
    variance = strata.weight * (events / n) * ((n - events) / np.maximum(n - 1, 1))
    z = float(standardized((strata.x_a - expected).sum() if variance.any() else 0.0, variance.sum()))
    each = [window(*map(int, one)) for one in zip(events, n, strata.m_a, strict=True)]
    if 1 + sum(len(x) - 1 for x, _ in each) > SUMS:
        greater, less = float(ndtr(-z)), float(ndtr(z))
        return StratifiedP(ExactP(greater, less, min(1.0, 2 * min(greater, less))), z, False)
    weight = np.ones(1)
    for _, log_weight in each:
        own = np.exp(log_weight)
        weight = np.convolve(weight, own / own.sum())
    return StratifiedP(p_at(int(strata.x_a.sum()) - sum(int(x[0]) for x, _ in each), weight), z, True)


@dataclass(frozen=True)
class Common:
    """The common difference or ratio of two rates over strata.

    With fewer than :data:`LARGE` units in a group, or without a variance, tests and intervals come from the score of
    the average gap (Miettinen and Nurminen 1985). It needs no standard error and covers better in small samples.
    """

    strata: Strata
    comparison: Comparison

    @property
    def estimate(self) -> float | None:
        """Return the estimate; None for a ratio without events in group B."""
        a, b = self.strata.rates.tolist()
        if self.comparison == "difference":
            return float(a - b)
        return a / b if b else None

    @cached_property
    def error(self) -> float:
        """Return the standard error of a difference (Sato), or of a ratio's logarithm (Greenland and Robins).

        It is 0 if the score takes its place.
        """
        x_a, m_a, x_b, m_b = (one.astype(float) for one in self.strata)
        n, weight = m_a + m_b, self.strata.weight
        if self.comparison == "difference":
            p = (m_a**2 * x_b - m_b**2 * x_a + m_a * m_b * (m_b - m_a) / 2) / n**2
            q = (x_a * (m_b - x_b) + x_b * (m_a - x_a)) / (2 * n)
            variance = ((self.estimate or 0.0) * p.sum() + q.sum()) / weight.sum() ** 2
        else:
            numerator = ((m_a * m_b * (x_a + x_b) - x_a * x_b * n) / n**2).sum()
            parts = (x_a * m_b / n).sum() * (x_b * m_a / n).sum()
            variance = numerator / parts if parts else 0.0
        large = min(m_a.sum(), m_b.sum()) >= LARGE and variance > EQUAL**2
        return float(np.sqrt(variance)) if large else 0.0

    def statistic(self, at: float) -> float:
        """Return the standardised distance of the estimate from a difference or ratio."""
        estimate = self.estimate
        if self.error and estimate is not None:
            ratio = self.comparison == "ratio"
            return float((np.log(estimate / at) if ratio else estimate - at) / self.error)
        gap, variance, _ = score(*self.strata, at, self.comparison)
        weight = self.strata.weight
        return float(standardized((weight * gap).sum(), (weight**2 * variance).sum()))

    def test(self, at: float) -> OneSided:
        """Test whether the common difference or ratio is above or below a value."""
        z = self.statistic(at)
        return OneSided(float(ndtr(-z)), float(ndtr(z)))

    def interval(self, alpha: float) -> Interval:
        """Compute the interval of level 1 - alpha; an open end of a ratio is infinite, without events both are NaN."""
        z, estimate = float(ndtri(1 - alpha / 2)), self.estimate
        reach = z * self.error
        if self.error and estimate is not None:
            if self.comparison == "ratio":
                return estimate * float(np.exp(-reach)), estimate * float(np.exp(reach))
            return max(-1.0, estimate - reach), min(1.0, estimate + reach)
        if self.comparison == "ratio" and not (self.strata.x_a.any() or self.strata.x_b.any()):
            return np.nan, np.nan
        low = crossing(lambda at: self.statistic(at) > z, self.comparison)
        high = crossing(lambda at: self.statistic(at) > -z, self.comparison)
        return low, np.inf if estimate is None else high

    def stated(self, settings: Settings, rejected: bool) -> Interval:
        """Return the interval of a difference in agreement with the test; one end is open for a one-sided test."""
        low, high = self.interval(2 * settings.alpha if settings.alternative in SIDED else settings.alpha)
        low, high = -1.0 if settings.alternative == "less" else low, 1.0 if settings.alternative == "greater" else high
        return agreeing((low, high), self.estimate or 0.0, rejected)

    def equivalence(self, bounds: Bounds, alpha: float) -> Equivalence:
        """Test bounds of the common difference or ratio."""
        strata = self.strata
        if bounds.lowest_first and strata.rates[0] > strata.rates[1]:
            return Common(strata.swapped(), self.comparison).equivalence(bounds, alpha)
        p_within, p_beyond = tested(self.test, bounds)
        stated = within(self.interval(2 * alpha), bounds.ends, p_within <= alpha)
        return Equivalence(bounds, self.estimate, stated, p_within, p_beyond, "mantel-haenszel")

    def homogeneity(self) -> Homogeneity | None:
        r"""Test whether the difference or ratio is the same in all strata; None if fewer than two strata can tell.

        .. math:: \sum \frac{g^2}{V} - \frac{(\sum g h / V)^2}{\sum h^2 / V}

        with the score's gap g in each stratum at the common estimate and its variance V; h is 1 for a difference, and
        the rate of B for a ratio. It is asymptotically chi-squared.
        """
        if not self.estimate and (self.estimate is None or self.comparison == "ratio"):
            return None
        assert self.estimate is not None
        gap, variance, rate_b = score(*self.strata, self.estimate, self.comparison)
        seen = variance > 0
        gap, variance, slope = gap[seen], variance[seen], (rate_b if self.comparison == "ratio" else 0 * gap + 1)[seen]
        if len(gap) < 2:
            return None
        spread = (gap**2 / variance).sum() - (gap * slope / variance).sum() ** 2 / (slope**2 / variance).sum()
        return Homogeneity(float(spread), len(gap) - 1, float(chdtrc(len(gap) - 1, max(spread, 0.0))))


class Homogeneity(NamedTuple):
    """The test of equal differences, or ratios, in all strata."""

    statistic: float
    degrees_of_freedom: int
    p_value: float
