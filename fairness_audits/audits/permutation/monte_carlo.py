r"""Compute p-values with their interval and error from draws of a statistic, and stop when the decision is safe.

With S of B permuted statistics at least as extreme as the observed one, p = (1 + S) / (B + 1). The observed labelling
is itself one of the permutations, so P(p <= alpha) <= alpha under exchangeability, for every B.

With D the difference of the metric between the groups and D* the difference after a permutation of their labels:

- ``studentized``: T = D / sqrt(v_A + v_B) against T* = D* / sqrt(v*_A + v*_B), with variances estimated anew in every
  permutation (Algorithm 1). T is asymptotically pivotal, so the level is asymptotically alpha if only the metric, and
  nothing else, is equal in the groups (theorems 2 and 3).
- ``unstudentized``: D against D*. D* has the variance of two samples of the mixture, so the level is not controlled.

Each test is inverted for its interval: the values d that it would not reject if D - d were compared instead of D.
Source: DiCiccio et al. 2020.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, Literal

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from fairness_audits.audits.inference import wilson_interval
from fairness_audits.audits.permutation.draws import BLOCK, Resampler
from fairness_audits.audits.permutation.statistics import MetricEstimate, studentized
from fairness_audits.validation import Checked, Count, Share, at_least, finite
from fairness_audits.values import Array

Method = Literal["auto", "exact", "studentized", "unstudentized"]
"""``auto`` is exact for rates of unclustered rows, else studentized."""
Alternative = Literal["two-sided", "equal-tailed", "greater", "less"]
"""``greater``: the metric of the first group is the larger one. ``two-sided``: |T| is large, as published.

``equal-tailed``: T is extreme on its own side, p = min(1, 2 min(p_greater, p_less)). If a small group is compared with
a large one, T has a long tail on one side only. For an AUC near 1, few rows are often ranked perfectly, and their
estimated variance is then near 0. With |T| this tail hides a difference on the other side. If T* is symmetric, as it is
asymptotically, both tests agree.
"""

SIDED = ("greater", "less")
STATISTICS: Mapping[str, Callable[[MetricEstimate], Array]] = {
    "studentized": studentized,
    "unstudentized": attrgetter("difference"),
}
"""The statistic of each method: a function from the estimates (2, ...) of two groups to (...)."""

ROUNDING = 1e-12
"""Relative difference within which two numbers count as equal: their sums may run in another order."""

TIED = 1e-10
"""Statistics with a standard deviation near 1 that differ by less count as equal: the difference is rounding error."""

MONTE_CARLO_LEVEL = 0.95
"""Confidence level for the p-value of infinitely many draws."""


def tails(alternative: Alternative) -> int:
    """Return the number of one-sided tests that share the level."""
    return 2 if alternative == "equal-tailed" else 1


def extreme(permuted: Array, observed: Array | float, alternative: Alternative, slack: float = TIED) -> Array:
    """Return whether each permuted statistic (..., B) is at least as extreme as the observed one (...).

    Statistics that differ by at most ``slack``, or by the share ROUNDING, tie. The default is for statistics with a
    standard deviation near 1. An undefined statistic (NaN), permuted or observed, counts as extreme, which makes
    rejection less likely.
    """
    observed = np.asarray(observed, dtype=np.float64)[..., None]
    missing = np.isnan(permuted) | np.isnan(observed)
    if alternative == "two-sided":
        permuted, observed = np.abs(permuted), np.abs(observed)
    elif alternative == "less":
        permuted, observed = -permuted, -observed
    # An infinite statistic has no rounding error: only its equal matches +inf, and everything matches -inf.
    near = np.where(np.isinf(observed), 0.0, slack + ROUNDING * np.abs(observed))
    return (permuted >= observed - near) | missing


def monte_carlo_p(extremes: Array | int, draws: int) -> Array:
    """Return (1 + S) / (B + 1)."""
    return (1 + np.asarray(extremes)) / (draws + 1)


def two_sided_p(reference: Array, observed: Array) -> Array:
    """Compute the two-sided p-values of observed statistics (...), each from its own draws (..., B)."""
    return monte_carlo_p(extreme(reference, observed, "two-sided").sum(axis=-1), reference.shape[-1])


def furthest(signed: Array, alpha: float) -> Array:
    """Return the k-th largest of draws (..., B), k = floor(alpha (B + 1)); infinite for k = 0 and for k or more NaN.

    p <= alpha if fewer than k draws are as extreme, that is, if the statistic lies beyond this value.
    """
    k = int(np.floor(alpha * (signed.shape[-1] + 1) * (1 + 1e-12)))
    known = np.where(np.isnan(signed), np.inf, signed)
    return np.sort(known, axis=-1)[..., -k] if k else np.full(signed.shape[:-1], np.inf)


def bound(units: Array | float, scale: Array | float) -> Array:
    """Multiply ``units`` >= 0 by ``scale``. With scale 0 the result is 0, or infinite for infinitely many units."""
    with np.errstate(invalid="ignore"):
        return np.where((np.asarray(scale) == 0) & np.isinf(units), np.inf, np.multiply(units, scale))


@dataclass(frozen=True)
class SafeStop(Checked):
    r"""Stop drawing as soon as the decision p <= alpha is the one after infinitely many draws.

    After n draws with S extreme ones, stop when

    .. math:: (n + 1) \binom{n}{S} \alpha^S (1 - \alpha)^{n - S} \le \varepsilon.

    Robbins (1970): if the p-value is alpha, the probability that this ever happens is at most epsilon. Whatever the
    p-value, a stopped test therefore decides differently from all draws with probability at most epsilon, the ``risk``,
    and its level is at most alpha + epsilon. Solved for the probability instead of alpha, the inequality gives an
    interval that covers the p-value at all times simultaneously, with probability 1 - epsilon.
    """

    alpha: float
    risk: Share

    @property
    def fewest(self) -> int:
        """Minimum number of draws, 10 / alpha, enough for an interval of the effect. Stopping late is also safe."""
        return int(np.ceil(10 / self.alpha))

    def first_stop(self, extremes: Array, drawn: int, earlier: int) -> int | None:
        """Return the index at which to stop in the next block of draws, None if drawing goes on.

        ``extremes`` (b,) marks the extreme draws of the block. ``drawn`` draws precede it, ``earlier`` of them extreme.
        """
        n = drawn + np.arange(1, len(extremes) + 1)
        stop = self._log_evidence(n, earlier + np.cumsum(extremes), self.alpha) <= np.log(self.risk)
        stop &= n >= self.fewest
        return int(np.argmax(stop)) if stop.any() else None

    def interval(self, extremes: int, draws: int) -> tuple[float, float]:
        """Return the interval of all probabilities consistent with the draws so far."""

        def edge(inside: float, outside: float) -> float:
            for _ in range(60):
                middle = (inside + outside) / 2
                possible = self._log_evidence(np.array(draws), np.array(extremes), middle) > np.log(self.risk)
                inside, outside = (middle, outside) if possible else (inside, middle)
            return outside

        share = extremes / draws
        return (0.0 if extremes == 0 else edge(share, 0.0)), (1.0 if extremes == draws else edge(share, 1.0))

    @staticmethod
    def _log_evidence(n: Array, s: Array, p: float) -> Array:
        log_binomial = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1) + xlogy(s, p) + xlog1py(n - s, -p)
        return np.log(n + 1) + log_binomial


@dataclass(frozen=True)
class Settings(Checked):
    """The settings of a test.

    ``method``: ``auto`` enumerates if that is exact (rates of unclustered rows) and otherwise studentises; ``exact``,
    ``studentized`` and ``unstudentized`` by name. ``alternative``: ``greater`` tests whether the metric is larger in A.
    ``alpha``: level of the test; the interval has level 1 - alpha. ``draws``: B, the number of permutations.
    ``smoothing``: events and non-events added to each group in the variance of a studentised rate (0: as published).
    ``bootstraps``: samples with replacement for a user metric's variance. ``resampling_risk``: stop drawing when the
    decision is safe up to this risk (see ``SafeStop``); None draws all B.
    """

    method: Method = "auto"
    alternative: Alternative = "two-sided"
    alpha: Share = 0.05
    draws: Count = 10_000
    smoothing: Annotated[float, at_least(0), finite] = 1.0
    bootstraps: Annotated[int, at_least(2)] = 200
    resampling_risk: Share | None = None

    @property
    def level(self) -> float:
        """The level of one side of the test."""
        return self.alpha if self.alternative in SIDED else self.alpha / 2

    @property
    def stop(self) -> SafeStop | None:
        """The rule for when to stop drawing."""
        level = self.alpha / tails(self.alternative)
        return None if self.resampling_risk is None else SafeStop(level, self.resampling_risk)


@dataclass(frozen=True)
class MonteCarlo:
    """An observed statistic and its ``reference`` (B,) draws; one unit of it is ``scale`` units of the metric.

    ``stopped`` says whether drawing ended early because the decision was safe. Statistics within ``slack`` tie.
    """

    difference: float
    statistic: float
    scale: float
    reference: Array
    stopped: bool
    slack: float = TIED

    def p(self, alternative: Alternative) -> float:
        """Return (1 + S) / (B + 1); for an equal-tailed test twice the p-value of the nearer tail, at most 1."""
        return min(1.0, tails(alternative) * float(monte_carlo_p(self.extremes(alternative), len(self.reference))))

    def extremes(self, alternative: Alternative) -> int:
        """Return S, the number of draws at least as extreme as the observed one (equal-tailed: on the nearer side)."""
        sides: tuple[Alternative, ...] = ("greater", "less") if alternative == "equal-tailed" else (alternative,)
        return min(int(extreme(self.reference, self.statistic, side, self.slack).sum()) for side in sides)

    @property
    def undefined_draws(self) -> int:
        """The number of draws with an undefined statistic."""
        return int(np.isnan(self.reference).sum())

    def p_interval(self, settings: Settings) -> tuple[float, float]:
        """Return an interval for the p-value of infinitely many draws: Wilson's, or one for every stopping time."""
        extremes, draws = self.extremes(settings.alternative), len(self.reference)
        low, high = (
            settings.stop.interval(extremes, draws)
            if settings.stop
            else wilson_interval(extremes / draws, draws, MONTE_CARLO_LEVEL)
        )
        return min(1.0, tails(settings.alternative) * low), min(1.0, tails(settings.alternative) * high)


def monte_carlo(source: Resampler, method: Method, settings: Settings, doubt: float = 0.0) -> MonteCarlo:
    """Draw the reference distribution of a method for two groups, with at most ``settings.draws`` permutations.

    ``doubt`` is a standard deviation of the observed difference beyond its estimated one. It makes T smaller, and
    rejection less likely.
    """
    observed = source.observed
    difference = float(observed.difference)
    scale = float(np.sqrt(observed.variance.sum())) if method == "studentized" else 1.0
    statistic = float(STATISTICS[method](observed))
    if doubt:
        statistic = difference / float(np.hypot(scale, doubt))

    def block(number: int, size: int) -> Array:
        return STATISTICS[method](source.permuted(number, size))

    slack = TIED if method == "studentized" else ROUNDING * float(np.abs(observed.value).max())
    reference, stopped = until_safe(block, statistic, settings, slack)
    return MonteCarlo(difference, statistic, scale, reference, stopped, slack)


def until_safe(
    block: Callable[[int, int], Array], statistic: float, settings: Settings, slack: float = TIED
) -> tuple[Array, bool]:
    """Return the draws of successive ``block(number, size)``, and whether they ended early with a safe decision."""
    parts: list[Array] = []
    drawn = earlier = 0
    alternative, stop = settings.alternative, settings.stop
    if alternative == "equal-tailed":
        alternative = "greater" if statistic > 0 else "less"
    for number, size in blocks(settings.draws):
        parts.append(block(number, size))
        beyond = extreme(parts[-1], statistic, alternative, slack)
        last = None if stop is None else stop.first_stop(beyond, drawn, earlier)
        if last is not None:
            parts[-1] = parts[-1][: last + 1]
            return np.concatenate(parts), True
        drawn, earlier = drawn + size, earlier + int(beyond.sum())
    return np.concatenate(parts), False


def blocks(draws: int, size: int = BLOCK) -> list[tuple[int, int]]:
    """Return the number and the size of each block of draws."""
    return [(number, min(size, draws - first)) for number, first in enumerate(range(0, draws, size))]
