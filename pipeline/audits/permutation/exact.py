r"""Exact tests of two equal rates by enumeration, with no Monte Carlo.

Permuting x events among m = m_A + m_B rows leaves X_A, the events in group A, hypergeometric:

.. math:: P(X_A = x) = \binom{m_A}{x} \binom{m_B}{K - x} \Big/ \binom{m}{K}, \qquad K = x_A + x_B.

If the rates are equal, the events are exchangeable among the rows and this is the law of X_A given K, so the test has
at most its level in every sample: for TPR, FNR, FPR and TNR within a label, for precision and NPV within a prediction,
for accuracy and selection rate among all rows. It is Fisher's exact test of the right fourfold table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from pipeline.audits.permutation.hypergeometric import window
from pipeline.audits.permutation.result import SIDED, Alternative
from pipeline.types import Array

EQUAL = 1e-7
"""Probabilities within this relative distance are equal: the convention of Fisher's test in R."""

SMALLEST = float(np.finfo(float).tiny)
"""Reported in place of probabilities too small for a double."""


TAIL_DEPTH = 80.0
"""Of the laws that put the observation in a tail of alpha / 2, exp(-TAIL_DEPTH) is about what may be left out."""

LARGEST_LOG_ODDS = 700.0
"""exp of this is still a double."""


class Rates(NamedTuple):
    """Events and trials in groups A and B."""

    x_a: int
    m_a: int
    x_b: int
    m_b: int

    @property
    def events(self) -> int:
        return self.x_a + self.x_b

    @property
    def trials(self) -> int:
        return self.m_a + self.m_b

    @property
    def difference(self) -> float:
        return self.x_a / self.m_a - self.x_b / self.m_b


class ExactP(NamedTuple):
    """p-values of the two one-sided tests and of the two-sided one."""

    greater: float
    less: float
    two_sided: float

    def of(self, alternative: Alternative) -> float:
        """The one that the alternative asks for."""
        equal_tailed = min(1.0, 2 * min(self.greater, self.less))
        known = {"greater": self.greater, "less": self.less, "two-sided": self.two_sided, "equal-tailed": equal_tailed}
        return known[alternative]


def exact_p(rates: Rates) -> ExactP:
    """P(X_A >= x_A), P(X_A <= x_A), and the probability of all outcomes no more probable than the one observed.

    The cost grows with the square root of the number of rows. Source: Fisher 1934; DiCiccio et al. 2020, section 3.1.
    """
    x, log_weight = window(rates.events, rates.trials, rates.m_a)
    weight = np.exp(log_weight)
    weight /= weight.sum()
    if not x[0] <= rates.x_a <= x[-1]:
        far = SMALLEST, 1.0
        greater, less = far if rates.x_a > x[-1] else far[::-1]
        return ExactP(greater, less, SMALLEST)
    at = rates.x_a - int(x[0])
    as_rare = weight <= weight[at] * (1 + EQUAL)
    # Each tail is summed from its thin end, so that small terms are not lost.
    sums = weight[at:][::-1].sum(), weight[: at + 1].sum(), np.sort(weight[as_rare]).sum()
    greater, less, two_sided = (min(1.0, max(SMALLEST, float(total))) for total in sums)
    return ExactP(greater, less, two_sided)


def statistic(rates: Rates) -> float:
    r"""T = D / sd(D), with the standard deviation of D = X_A / m_A - (K - X_A) / m_B over all permutations.

    .. math:: Var(D) = \frac{K (m - K)}{m (m - 1)} \frac{m}{m_A m_B}
    """
    variance = rates.events * (rates.trials - rates.events) / ((rates.trials - 1) * rates.m_a * rates.m_b)
    return 0.0 if rates.difference == 0 else rates.difference / float(np.sqrt(variance))


def odds_ratio(rates: Rates, alpha: float, alternative: Alternative) -> tuple[float, float, float]:
    r"""Conditional estimate of the odds ratio psi and its exact interval of level 1 - alpha, by test inversion.

    Given K, P(X_A = x) is proportional to :math:`\binom{m_A}{x} \binom{m_B}{K - x} \psi^x`. The interval holds the psi
    that neither one-sided test rejects at alpha / 2 (a one-sided alternative: at alpha); psi = 1 is equal rates.
    Source: Cornfield 1956.
    """
    low, high = max(0, rates.events - rates.m_b), min(rates.m_a, rates.events)
    x, log_weight = window(rates.events, rates.trials, rates.m_a, centre=rates.x_a, depth=TAIL_DEPTH)
    at = rates.x_a - int(x[0])

    def tilted(log_psi: float) -> Array:
        exponent = log_weight + (x - rates.x_a) * log_psi
        weight = np.exp(exponent - exponent.max())
        return weight / weight.sum()

    def mean(log_psi: float) -> float:
        return float((x * tilted(log_psi)).sum())

    def at_least(log_psi: float) -> float:
        return float(tilted(log_psi)[at:].sum())

    def more(log_psi: float) -> float:
        return float(tilted(log_psi)[at + 1 :].sum())

    if low == high:
        return np.nan, 0.0, np.inf
    tail = alpha if alternative in SIDED else alpha / 2
    lowest, highest = rates.x_a == low, rates.x_a == high
    estimate = 0.0 if lowest else np.inf if highest else _odds(mean, rates.x_a)
    lower = 0.0 if lowest or alternative == "less" else _odds(at_least, tail)
    upper = np.inf if highest or alternative == "greater" else _odds(more, 1 - tail)
    return estimate, lower, upper


def _odds(rising: Callable[[float], float], target: float) -> float:
    """The psi at which a function that rises in log psi reaches a target."""
    from scipy.optimize import brentq

    ends = -LARGEST_LOG_ODDS, LARGEST_LOG_ODDS
    return float(np.exp(brentq(lambda log_psi: rising(log_psi) - target, *ends, xtol=1e-12)))
