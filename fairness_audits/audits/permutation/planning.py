r"""Plan a comparison of two groups: its power, the required number of rows, and the detectable gap.

Rates with few outcomes are exact: every outcome (x_A, x_B) is tested, and the power is the probability of the rejected
outcomes,

.. math:: \sum_{x_A, x_B} P(x_A; m_A, f_A) \, P(x_B; m_B, f_B) \, 1[\text{rejected}].

Other metrics, and rates of many rows, use the normal approximation with the variance of one row,
:mod:`fairness_audits.audits.permutation.power`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.audits.permutation.draws import window
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.exact import EQUAL
from fairness_audits.audits.permutation.score_tests import ENUMERATED, chances, nuisance, outcome_statistics
from fairness_audits.values import Array

MOST_OUTCOMES = 4_000_000
"""Largest number of outcomes for an exact calculation; beyond it rates use the normal approximation."""
MOST_ROWS = 10**9
STEPS = 40


@dataclass(frozen=True)
class Planned:
    """Two groups: their ``shares`` of all rows and the share of each group's rows that the metric is computed on.

    ``variance`` maps the metric's value to the variance contributed by one such row; None for a rate, which is exact if
    possible.
    """

    shares: tuple[float, float]
    of_rows: tuple[float, float]
    alpha: float
    variance: Callable[[float], float] | None = None
    margin: float | None = None

    def units(self, rows: int) -> tuple[int, int]:
        """Return the number of rows of each group that the metric is computed on."""
        a, b = (round(rows * share * of) for share, of in zip(self.shares, self.of_rows, strict=True))
        return a, b

    def is_exact(self, rows: int) -> bool:
        """Return whether the power is exact."""
        a, b = self.units(rows)
        return self.variance is None and (a + 1) * (b + 1) <= MOST_OUTCOMES

    def power(self, rows: int, f_a: float, f_b: float) -> float:
        """Return the probability of rejecting equality, or of showing the margin, at these values of the metric."""
        m_a, m_b = self.units(rows)
        if min(m_a, m_b) < 1:
            return 0.0
        if self.is_exact(rows):
            equal, margin = self.margin is None, self.margin or 0.0
            outcomes = rejected(m_a, m_b, self.alpha) if equal else shown(m_a, m_b, margin, self.alpha)
            return float(chances(outcomes, np.array([f_a]), np.array([f_b]))[0])
        variance = self.variance or (lambda f: f * (1 - f))
        error = float(np.sqrt(variance(f_a) / m_a + variance(f_b) / m_b))
        return normal_power(f_a - f_b, error, self.alpha, self.margin)


def normal_power(difference: float, error: float, alpha: float, margin: float | None = None) -> float:
    """Compute the normal-approximation power of a test of no difference, or of two one-sided tests of a margin."""
    if error == 0:
        return float(difference != 0 if margin is None else abs(difference) < margin)
    if margin is None:
        z, shift = float(ndtri(1 - alpha / 2)), difference / error
        return float(ndtr(shift - z) + ndtr(-shift - z))
    z = float(ndtri(1 - alpha))
    return max(0.0, float(ndtr((margin - difference) / error - z) - ndtr((-margin - difference) / error + z)))


@lru_cache(maxsize=4)
def rejected(m_a: int, m_b: int, alpha: float) -> Array:
    """Return which outcomes (m_a + 1, m_b + 1) Fisher's two-sided exact test rejects at level alpha.

    Examples
    --------
    >>> rejected(10, 10, 0.05)[8, 2].item(), rejected(10, 10, 0.05)[7, 2].item()
    (True, False)
    """
    found = np.zeros((m_a + 1, m_b + 1), dtype=bool)
    for events in range(m_a + m_b + 1):
        x, log_weight = window(events, m_a + m_b, m_a)
        weight = np.exp(log_weight)
        weight /= weight.sum()
        rarest = np.sort(weight)
        p = np.cumsum(rarest)[np.searchsorted(rarest, weight * (1 + EQUAL), side="right") - 1]
        least, most = max(0, events - m_b), min(m_a, events)
        # Outcomes outside the window are too rare for a double, so they are rejected.
        every = np.arange(least, most + 1)
        reject = np.ones(len(every), dtype=bool)
        inside = (x >= least) & (x <= most)
        reject[x[inside] - least] = p[inside] <= alpha
        found[every, events - every] = reject
    return found


@lru_cache(maxsize=4)
def shown(m_a: int, m_b: int, margin: float, alpha: float) -> Array:
    """Return which outcomes (m_a + 1, m_b + 1) show a difference of at most ``margin`` at level alpha."""
    bounds = Bounds.margin(margin)
    above = _beyond(outcome_statistics(m_a, m_b, bounds.low, "difference"), bounds.low, alpha)
    return above & _beyond(-outcome_statistics(m_a, m_b, bounds.high, "difference"), bounds.high, alpha)


def _beyond(statistics: Array, at: float, alpha: float) -> Array:
    """Return which statistics the score test rejects: exactly for few outcomes, else by the normal approximation."""
    if statistics.size > ENUMERATED:
        return statistics >= ndtri(1 - alpha)
    order, pairs = np.unique(statistics), nuisance(at, "difference")
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        fits = chances(statistics >= order[middle] - EQUAL, *pairs).max() <= alpha
        low, high = (low, middle) if fits else (middle + 1, high)
    return statistics >= order[low] - EQUAL if low < len(order) else np.zeros(statistics.shape, dtype=bool)


def rows_needed(plan: Planned, f_a: float, f_b: float, power: float) -> int | None:
    """Return the number of rows that reaches this power while one row fewer does not; None if no number does.

    The power of an exact test fluctuates slightly as rows are added: a few more rows may have slightly less power.
    """
    rows, before = 8, 8
    while plan.power(rows, f_a, f_b) < power:
        before, rows = rows, 2 * rows
        if rows > MOST_ROWS:
            return None
    while rows - before > 1:
        middle = (rows + before) // 2
        before, rows = (before, middle) if plan.power(middle, f_a, f_b) >= power else (middle, rows)
    return rows


def detectable_gap(plan: Planned, f_b: float, rows: int, power: float, side: int, most: float = 1.0) -> float | None:
    """Return the smallest gap on one ``side`` (+1, -1) of f_b that is detected with this power; None if there is none.

    With a margin, return the largest true gap for which the margin is still shown.
    """

    def found(gap: float) -> bool:
        return plan.power(rows, f_b + side * gap, f_b) >= power

    low, high = 0.0, most
    if plan.margin is not None:
        if not found(0.0):
            return None
        high = min(most, plan.margin)
    elif not found(most):
        return None
    for _ in range(STEPS):
        middle = (low + high) / 2
        beyond = found(middle) == (plan.margin is None)
        low, high = (low, middle) if beyond else (middle, high)
    return high if plan.margin is None else low


def auc_variance(auc: float, positives: float) -> float:
    r"""Return the variance of an AUC times the number of rows, for this share of ``positives`` and many rows per label.

    .. math:: \sigma^2 = \frac{Q_1 - A^2}{1 - \pi} + \frac{Q_2 - A^2}{\pi}, \quad Q_1 = \frac{A}{2 - A},
              \quad Q_2 = \frac{2 A^2}{1 + A}

    :math:`Q_1` is the probability that two positives have higher scores than a negative, and :math:`Q_2` that a
    positive has a higher score than two negatives.

    References
    ----------
    Hanley and McNeil 1982: exact for exponential scores, and approximate for normal scores.
    """
    q1, q2 = auc / (2 - auc), 2 * auc**2 / (1 + auc)
    return (q1 - auc**2) / (1 - positives) + (q2 - auc**2) / positives
