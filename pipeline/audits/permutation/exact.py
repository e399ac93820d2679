r"""Exact tests of two equal rates by enumeration, with no Monte Carlo.

Permuting x events among m = m_A + m_B rows leaves X_A, the events in group A, hypergeometric:

.. math:: P(X_A = x) = \binom{m_A}{x} \binom{m_B}{K - x} \Big/ \binom{m}{K}, \qquad K = x_A + x_B.

If the rates are equal, the events are exchangeable among the rows and this is the law of X_A given K, so the test has
at most its level in every sample: for TPR, FNR, FPR and TNR within a label, for precision and NPV within a prediction,
for accuracy and selection rate among all rows. It is Fisher's exact test of the right fourfold table.
"""

from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

from pipeline.audits.permutation.draws import window
from pipeline.audits.permutation.monte_carlo import SIDED, Alternative

EQUAL = 1e-7
"""Probabilities within this relative distance are equal: the convention of Fisher's test in R."""

SMALLEST = float(np.finfo(float).tiny)
"""Reported in place of probabilities too small for a double."""

NUDGE = 1e-12
"""The likelihood is looked at this near to the ends of its domain, relative to its length."""


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


def score(rates: Rates, d: float) -> float:
    r"""The statistic of the score test of f_A - f_B = d, falling in d.

    .. math:: z(d) = \frac{\hat f_A - \hat f_B - d}{\sqrt{\Big(\frac{\tilde f_A (1 - \tilde f_A)}{m_A} +
              \frac{\tilde f_B (1 - \tilde f_B)}{m_B}\Big) \frac{m}{m - 1}}}

    with the rates :math:`\tilde f` that are likeliest among those that differ by d, and m = m_A + m_B. Its square at
    d = 0 is (m - 1) / m times Pearson's chi-square.
    """
    f_a, f_b = restricted(rates, d)
    m_a, m_b = rates.m_a, rates.m_b
    variance = (f_a * (1 - f_a) / m_a + f_b * (1 - f_b) / m_b) * rates.trials / (rates.trials - 1)
    gap = rates.difference - d
    return 0.0 if gap == 0 else gap / np.sqrt(variance) if variance > 0 else np.copysign(np.inf, gap)


def restricted(rates: Rates, d: float) -> tuple[float, float]:
    """The likeliest rates with f_A - f_B = d: where the slope of the log-likelihood, falling in f_B, changes its sign.

    The slope times f_A (1 - f_A) f_B (1 - f_B) is a polynomial without poles, whose root is soon found.
    """
    low, high = max(0.0, -d), min(1.0, 1.0 - d)
    inside = NUDGE * (high - low)

    def slope(f_b: float) -> float:
        f_a = f_b + d
        rising = rates.x_a * (1 - f_a) - (rates.m_a - rates.x_a) * f_a
        return rising * f_b * (1 - f_b) + (rates.x_b * (1 - f_b) - (rates.m_b - rates.x_b) * f_b) * f_a * (1 - f_a)

    if slope(low + inside) <= 0:
        f_b = low
    elif slope(high - inside) >= 0:
        f_b = high
    else:
        f_b = float(brentq(slope, low + inside, high - inside, xtol=1e-300, rtol=1e-14))
    return min(1.0, max(0.0, f_b + d)), f_b


def score_interval(rates: Rates, alpha: float, alternative: Alternative) -> tuple[float, float]:
    """[low, high] of level 1 - alpha; an end that a one-sided alternative leaves open is -1 or 1.

    It holds the d with |z(d)| <= z_{1 - alpha/2}, so it inverts the score test, not the exact one: its coverage is near
    1 - alpha, not at least that in every sample, and in small samples it may leave out 0 where the exact test does not
    reject (``run.agreeing`` then extends it). Source: Miettinen and Nurminen 1985.
    """
    z = float(ndtri(1 - alpha / (1 if alternative in SIDED else 2)))
    low = -1.0 if alternative == "less" else _edge(rates, -1.0, z)
    high = 1.0 if alternative == "greater" else _edge(rates, 1.0, z)
    return low, high


def _edge(rates: Rates, end: float, z: float) -> float:
    """Where |z(d)| reaches z between the estimate and an end of the domain."""
    if rates.difference == end or abs(score(rates, end)) <= z:
        return end
    return float(brentq(lambda d: min(abs(score(rates, d)), 2 * z) - z, rates.difference, end, xtol=1e-14))
