r"""From permuted statistics to a p-value, to its Monte-Carlo error, and to the moment when a decision is safe.

With S of B permuted statistics at least as extreme as the observed one, p = (1 + S) / (B + 1): the observed labelling
is itself one of the permutations, so that P(p <= alpha) <= alpha under exchangeability, for every B.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammaln, xlog1py, xlogy

from pipeline.fields import Checked, Share
from pipeline.types import Array

Alternative = Literal["two-sided", "equal-tailed", "greater", "less"]
"""``greater``: the metric of the first group is the larger one. ``two-sided``: |T| is large, as published.

``equal-tailed``: T is far out on its own side, p = min(1, 2 min(p_greater, p_less)). Where a small group is set
against a large one, T has a long tail on one side only: for an AUC near 1, few rows are often ranked without a fault,
and their estimated variance is then near 0. Against |T| that tail hides a difference on the other side. Where T* is
symmetric, as it is in the limit, both are one.
"""

SIDED = ("greater", "less")

ROUNDING = 1e-12
"""Relative difference below which two statistics count as equal: sums in another order."""

MONTE_CARLO_LEVEL = 0.95
"""Level of the interval for the p-value of infinitely many draws."""


def tails(alternative: Alternative) -> int:
    """How many one-sided tests the level is shared among."""
    return 2 if alternative == "equal-tailed" else 1


def extreme(permuted: Array, observed: Array | float, alternative: Alternative) -> Array:
    """Whether each permuted statistic (..., B) is at least as extreme as the observed one (...).

    A statistic that does not exist (NaN), permuted or observed, counts as extreme, against the rejection.
    """
    observed = np.asarray(observed, dtype=np.float64)[..., None]
    missing = np.isnan(permuted) | np.isnan(observed)
    if alternative == "two-sided":
        permuted, observed = np.abs(permuted), np.abs(observed)
    elif alternative == "less":
        permuted, observed = -permuted, -observed
    # An infinite one has no rounding: it is matched by its equal, and its opposite by everything.
    slack = np.where(np.isinf(observed), 0.0, ROUNDING * np.abs(observed))
    return (permuted >= observed - slack) | missing


def monte_carlo_p(extremes: Array | int, draws: int) -> Array:
    """(1 + S) / (B + 1)."""
    return (1 + np.asarray(extremes)) / (draws + 1)


def wilson(extremes: int, draws: int, level: float = MONTE_CARLO_LEVEL) -> tuple[float, float]:
    """The score interval for a probability of which S successes in B trials were seen. Source: Wilson 1927."""
    from scipy.stats import binomtest

    # Its ends at 0 and B successes are exactly 0 and 1; those of statsmodels miss them by a rounding.
    low, high = binomtest(extremes, draws).proportion_ci(level, "wilson")
    return float(low), float(high)


def furthest(signed: Array, alpha: float) -> Array:
    """The k-th largest of draws (..., B), k = floor(alpha (B + 1)), infinite for k = 0 and where so many are NaN.

    p <= alpha if fewer than k draws are as extreme, that is if the statistic lies beyond it.
    """
    k = int(np.floor(alpha * (signed.shape[-1] + 1) * (1 + 1e-12)))
    known = np.where(np.isnan(signed), np.inf, signed)
    return np.sort(known, axis=-1)[..., -k] if k else np.full(signed.shape[:-1], np.inf)


def bound(units: Array | float, scale: Array | float) -> Array:
    """``units`` >= 0 of this ``scale``: where that is 0 nothing, or infinitely much of infinitely many units."""
    with np.errstate(invalid="ignore"):
        return np.where((np.asarray(scale) == 0) & np.isinf(units), np.inf, np.multiply(units, scale))


@dataclass(frozen=True)
class SafeStop(Checked):
    r"""Stop drawing as soon as the decision p <= alpha is as it would be after infinitely many draws.

    After n draws with S extreme ones, stop when

    .. math:: (n + 1) \binom{n}{S} \alpha^S (1 - \alpha)^{n - S} \le \varepsilon.

    Robbins (1970): if the p-value is alpha, the chance that this ever happens is at most epsilon. So, whatever the
    p-value, a test that stops decides otherwise than all draws would with probability at most epsilon, the
    ``risk``; and its level is at most alpha + epsilon. The same inequality, solved for the probability in the place of
    alpha, is an interval that holds the p-value at all times together, with probability 1 - epsilon.
    """

    alpha: float
    risk: Share

    @property
    def fewest(self) -> int:
        """Draws made in any case, 10 / alpha, so that there is an interval for the effect: stopping late is as safe."""
        return int(np.ceil(10 / self.alpha))

    def first_stop(self, extremes: Array, drawn: int, earlier: int) -> int | None:
        """The index at which to stop in the next block of draws, None if it holds none.

        ``extremes`` (b,) says which of the block's draws are extreme, after ``drawn`` with ``earlier`` extreme ones.
        """
        n = drawn + np.arange(1, len(extremes) + 1)
        stop = self._log_evidence(n, earlier + np.cumsum(extremes), self.alpha) <= np.log(self.risk)
        stop &= n >= self.fewest
        return int(np.argmax(stop)) if stop.any() else None

    def interval(self, extremes: int, draws: int) -> tuple[float, float]:
        """All probabilities that the draws so far do not contradict."""

        def edge(inside: float, outside: float) -> float:
            for _ in range(60):
                middle = (inside + outside) / 2
                kept = self._log_evidence(np.array(draws), np.array(extremes), middle) > np.log(self.risk)
                inside, outside = (middle, outside) if kept else (inside, middle)
            return outside

        share = extremes / draws
        return (0.0 if extremes == 0 else edge(share, 0.0)), (1.0 if extremes == draws else edge(share, 1.0))

    @staticmethod
    def _log_evidence(n: Array, s: Array, p: float) -> Array:
        log_binomial = gammaln(n + 1) - gammaln(s + 1) - gammaln(n - s + 1) + xlogy(s, p) + xlog1py(n - s, -p)
        return np.log(n + 1) + log_binomial
