r"""The interval for a difference of two rates that inverts the score test.

The test of f_A - f_B = d has the statistic

.. math:: z(d) = \frac{\hat f_A - \hat f_B - d}{\sqrt{\Big(\frac{\tilde f_A (1 - \tilde f_A)}{m_A} +
          \frac{\tilde f_B (1 - \tilde f_B)}{m_B}\Big) \frac{m}{m - 1}}}

with the rates :math:`\tilde f` that are likeliest among those that differ by d, and m = m_A + m_B. Its square at d = 0
is (m - 1) / m times Pearson's chi-square. The interval holds the d with |z(d)| <= z_{1 - alpha/2}. It inverts the score
test, not the exact one: its coverage is near 1 - alpha, not at least that in every sample, and in small samples it may
leave out 0 where the exact test does not reject (``verdict.agreeing`` then extends it).
Source: Miettinen and Nurminen 1985.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from pipeline.audits.permutation.exact import Rates
from pipeline.audits.permutation.result import SIDED, Alternative

NUDGE = 1e-12
"""The likelihood is looked at this near to the ends of its domain, relative to its length."""


def score(rates: Rates, d: float) -> float:
    """z(d), falling in d."""
    f_a, f_b = restricted(rates, d)
    m_a, m_b = rates.m_a, rates.m_b
    variance = (f_a * (1 - f_a) / m_a + f_b * (1 - f_b) / m_b) * rates.trials / (rates.trials - 1)
    gap = rates.difference - d
    return 0.0 if gap == 0 else gap / np.sqrt(variance) if variance > 0 else np.copysign(np.inf, gap)


def restricted(rates: Rates, d: float) -> tuple[float, float]:
    """The likeliest rates with f_A - f_B = d: where the slope of the log-likelihood, falling in f_B, changes its sign.

    The slope times f_A (1 - f_A) f_B (1 - f_B) is a polynomial without poles, whose root is soon found.
    """
    from scipy.optimize import brentq

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
    """[low, high] of level 1 - alpha; an end that a one-sided alternative leaves open is -1 or 1."""
    z = float(ndtri(1 - alpha / (1 if alternative in SIDED else 2)))
    low = -1.0 if alternative == "less" else _edge(rates, -1.0, z)
    high = 1.0 if alternative == "greater" else _edge(rates, 1.0, z)
    return low, high


def _edge(rates: Rates, end: float, z: float) -> float:
    """Where |z(d)| reaches z between the estimate and an end of the domain."""
    from scipy.optimize import brentq

    if rates.difference == end or abs(score(rates, end)) <= z:
        return end
    return float(brentq(lambda d: min(abs(score(rates, d)), 2 * z) - z, rates.difference, end, xtol=1e-14))
