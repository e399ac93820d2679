r"""Score tests of two rates f_A and f_B: of their difference, f_A - f_B = d, or of their ratio, f_A = r f_B.

.. math:: Z_d = \frac{f_A - f_B - d}{\sqrt{V}}, \qquad
          V = \frac{m}{m - 1}
          \Big(\frac{\tilde f_A (1 - \tilde f_A)}{m_A} + \frac{\tilde f_B (1 - \tilde f_B)}{m_B}\Big),

with the maximum-likelihood rates under the hypothesis in the variance. For a ratio the gap is f_A - r f_B, and the
second term of V is multiplied by r^2. Inverting the tests gives the intervals of Miettinen and Nurminen (1985). If
there are few outcomes, the p-value is the exact unconditional one: the largest probability of a Z at least as extreme,
over all pairs of rates under the hypothesis (Chan 1998).
"""

from typing import Literal, NamedTuple

import numpy as np
from scipy.special import gammaln, ndtr, xlog1py, xlogy

from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.statistics import EQUAL
from fairness_audits.values import Array

Comparison = Literal["difference", "ratio"]
ENUMERATED = 100_000
"""Largest number of outcomes (pairs of counts) with exact p-values."""
NUISANCE = 400
"""Number of pairs of rates over which the exact p-value is maximised."""


class OneSided(NamedTuple):
    """p-values: a small ``above`` (``below``) shows that the comparison is above (below) a value."""

    above: float
    below: float


def score_statistic(
    x_a: Array | float,
    m_a: Array | int,
    x_b: Array | float,
    m_b: Array | int,
    at: Array | float,
    comparison: Comparison,
) -> Array:
    """Compute Z of events x and trials m for a difference or a ratio ``at``; arrays broadcast.

    If the variance is 0, Z is 0 if the rates fit the hypothesis, else infinite.
    """
    gap, variance, _ = score(x_a, m_a, x_b, m_b, at, comparison)
    return standardized(gap, variance)


def score(
    x_a: Array | float,
    m_a: Array | int,
    x_b: Array | float,
    m_b: Array | int,
    at: Array | float,
    comparison: Comparison,
) -> tuple[Array, Array, Array]:
    """Return the gap, its variance V, and the rate of B under the hypothesis; arrays broadcast."""
    f_a, f_b, at = np.asarray(x_a) / m_a, np.asarray(x_b) / m_b, np.asarray(at, dtype=float)
    restricted = _equal_but_for if comparison == "difference" else _in_ratio
    r_a, r_b = restricted(f_a, m_a, f_b, m_b, at)
    scale = np.ones_like(at) if comparison == "difference" else at
    gap = f_a - f_b - at if comparison == "difference" else f_a - at * f_b
    variance = (r_a * (1 - r_a) / m_a + scale**2 * r_b * (1 - r_b) / m_b) * (m_a + m_b) / np.maximum(m_a + m_b - 1, 1)
    return np.where(np.abs(gap) <= EQUAL, 0.0, gap), np.maximum(variance, 0), r_b


def standardized(gap: Array | float, variance: Array | float) -> Array:
    """Return the gap in standard deviations: 0 if there is no gap, infinite if there is no variance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gap == 0, 0.0, np.divide(gap, np.sqrt(variance)))


def _equal_but_for(f_a: Array, m_a: Array | int, f_b: Array, m_b: Array | int, d: Array) -> tuple[Array, Array]:
    """Return the maximum-likelihood rates with difference d, a root of a cubic. Source: Farrington and Manning 1990."""
    t = m_b / m_a
    b = -(1 + t + f_a + t * f_b + d * (t + 2)) / (3 * (1 + t))
    c = (d * d + d * (2 * f_a + t + 1) + f_a + t * f_b) / (3 * (1 + t))
    v = b**3 - 1.5 * b * c - f_a * d * (1 + d) / (2 * (1 + t))
    u = np.where(v < 0, -1.0, 1.0) * np.sqrt(np.maximum(b * b - c, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        angle = np.where(u == 0, 0.0, np.arccos(np.clip(v / u**3, -1, 1)))
    root = np.clip(2 * u * np.cos((np.pi + angle) / 3) - b, np.maximum(d, 0), np.minimum(1 + d, 1))
    return root, np.clip(root - d, 0, 1)


def _in_ratio(f_a: Array, m_a: Array | int, f_b: Array, m_b: Array | int, r: Array) -> tuple[Array, Array]:
    """Return the maximum-likelihood rates with ratio r, a root of a quadratic. Source: Miettinen and Nurminen 1985."""
    m = m_a + m_b
    b, c = m_a * r + m_a * f_a + m_b + m_b * f_b * r, m_a * f_a + m_b * f_b
    # Multiply by the conjugate, so that nothing cancels for small rates.
    root = 2 * c / (b + np.sqrt(np.maximum(b * b - 4 * m * r * c, 0)))
    return np.clip(r * root, 0, 1), np.clip(root, 0, 1)


def score_test(rates: Rates, at: float, comparison: Comparison = "difference") -> OneSided:
    """Test whether the comparison of two rates is above or below a value.

    Parameters
    ----------
    rates : Rates
        Events and trials of both groups.
    at : float
        The difference in [-1, 1], or the ratio above 0.
    comparison : {"difference", "ratio"}

    Returns
    -------
    OneSided
        Exact unconditional p-values for up to :data:`ENUMERATED` outcomes, else normal approximations.

    References
    ----------
    Farrington and Manning 1990; Chan 1998.

    Examples
    --------
    >>> p = score_test(Rates(45, 50, 46, 50), -0.2)
    >>> round(p.above, 3)
    0.005
    """
    observed = float(score_statistic(rates.x_a, rates.m_a, rates.x_b, rates.m_b, at, comparison))
    if not is_enumerated(rates):
        return OneSided(float(ndtr(-observed)), float(ndtr(observed)))
    outcomes = outcome_statistics(rates.m_a, rates.m_b, at, comparison)
    slack = EQUAL * max(1.0, abs(observed)) if np.isfinite(observed) else 0.0
    as_high, as_low = outcomes >= observed - slack, outcomes <= observed + slack
    f_a, f_b = nuisance(at, comparison)
    above, below = (float(chances(each, f_a, f_b).max()) for each in (as_high, as_low))
    return OneSided(min(1.0, above), min(1.0, below))


def is_enumerated(rates: Rates) -> bool:
    """Return whether p-values are exact."""
    return (rates.m_a + 1) * (rates.m_b + 1) <= ENUMERATED


def outcome_statistics(m_a: int, m_b: int, at: float, comparison: Comparison) -> Array:
    """Compute Z of every outcome: (m_a + 1, m_b + 1)."""
    return score_statistic(np.arange(m_a + 1)[:, None], m_a, np.arange(m_b + 1), m_b, at, comparison)


def nuisance(at: float, comparison: Comparison) -> tuple[Array, Array]:
    """Return pairs of rates with this difference or ratio: two arrays, denser near 0 and 1."""
    share = (1 - np.cos(np.linspace(0, np.pi, NUISANCE + 1))) / 2
    if comparison == "difference":
        low, high = max(0.0, -at), min(1.0, 1.0 - at)
        f_b = low + (high - low) * share
        return np.clip(f_b + at, 0, 1), f_b
    f_b = min(1.0, 1 / at) * share
    return np.clip(at * f_b, 0, 1), f_b


def chances(outcomes: Array, f_a: Array, f_b: Array) -> Array:
    """Compute the probability of a set of outcomes, a mask (m_a + 1, m_b + 1), for pairs of rates (k,): (k,)."""
    m_a, m_b = outcomes.shape[0] - 1, outcomes.shape[1] - 1
    p_a, p_b = _binomial(m_a, np.asarray(f_a)), _binomial(m_b, np.asarray(f_b))
    return ((p_a @ outcomes.astype(float)) * p_b).sum(axis=1)


def _binomial(m: int, f: Array) -> Array:
    """Return the probability of each number of events among m rows, for rates (k,): (k, m + 1)."""
    x, share = np.arange(m + 1), f[:, None]
    ways = gammaln(m + 1) - gammaln(x + 1) - gammaln(m - x + 1)
    return np.exp(ways + xlogy(x, share) + xlog1py(m - x, -share))
