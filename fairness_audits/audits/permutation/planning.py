r"""Plan a comparison of two groups: its power, the required number of rows, and the detectable gap.

For rates, every probable outcome (x_A, x_B) is tested as in the audit, and the power is the probability of the rejected
outcomes,

.. math:: \sum_{x_A, x_B} P(x_A; m_A, f_A) \, P(x_B; m_B, f_B) \, 1[\text{rejected}].

Other metrics, and rates with too many probable outcomes, use the normal approximation with the variance of one row,
:mod:`fairness_audits.audits.permutation.power`. For rates, the test's own variance under the hypothesis multiplies its
critical value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from fairness_audits.audits.inference import unseen
from fairness_audits.audits.permutation.draws import window
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.exact import ALIKE
from fairness_audits.audits.permutation.score_tests import (
    ENUMERATED,
    chances,
    nuisance,
    outcome_statistics,
    score_statistic,
)
from fairness_audits.audits.permutation.statistics import EQUAL
from fairness_audits.audits.permutation.units import LEAST_UNITS
from fairness_audits.values import Array

MOST_OUTCOMES, MOST_EVENTS = 1_000_000, 6_000
"""Largest number of probable outcomes, and of different sums of events, that are tested one by one."""
TAIL = 1e-9
"""Largest probability of the numbers of events that are left out at either end."""
MOST_ROWS = 10**9
STEPS = 25


@dataclass(frozen=True)
class Planned:
    """Two groups: their ``shares`` of all rows and the share of each group's rows that the metric is computed on.

    ``variance`` maps the metric's value to the variance contributed by one such row; None for a rate. ``rarer`` is the
    share of rows of the rarer label (1 without labels). A test that is not exact needs LEAST_UNITS such rows
    in each group. The events are ``answers`` if they are the model's answers in all rows. The audit concludes nothing
    if all answers are the same.
    """

    shares: tuple[float, float]
    of_rows: tuple[float, float]
    alpha: float
    variance: Callable[[float], float] | None = None
    margin: float | None = None
    rarer: float = 1.0
    answers: bool = False

    def units(self, rows: int) -> tuple[int, int]:
        """Return the number of rows of each group that the metric is computed on."""
        a, b = (round(rows * share * of) for share, of in zip(self.shares, self.of_rows, strict=True))
        return a, b

    def is_exact(self, rows: int, f_a: float, f_b: float) -> bool:
        """Return whether the power at these values is exact but for the TAIL."""
        if self.variance is not None:
            return False
        a, b = (len(probable(m, f)) for m, f in zip(self.units(rows), (f_a, f_b), strict=True))
        return a * b <= MOST_OUTCOMES and a + b <= MOST_EVENTS

    def power(self, rows: int, f_a: float, f_b: float) -> float:
        """Return the probability of rejecting equality, or of showing the margin, at these values of the metric."""
        if self.variance is not None:
            return self._studentized(rows, f_a, f_b, self.variance)
        if min(self.units(rows)) < 1:
            return 0.0
        return self._enumerated(rows, f_a, f_b) if self.is_exact(rows, f_a, f_b) else self._normal(rows, f_a, f_b)

    def _studentized(self, rows: int, f_a: float, f_b: float, variance: Callable[[float], float]) -> float:
        """Return the power of the test of an AUC or a mean."""
        m_a, m_b = self.units(rows)
        fewest = float(np.floor(min(m_a, m_b) * self.rarer + EQUAL))
        if fewest < LEAST_UNITS:
            return 0.0
        error = float(np.sqrt(variance(f_a) / m_a + variance(f_b) / m_b))
        if error > 0:
            return normal_power(f_a - f_b, error, self.alpha, self.margin)
        # Both AUCs are 0 or 1. As in the audit, one group bounds the difference in each direction.
        if self.margin is None:
            return float(f_a != f_b)
        reach = unseen(fewest, self.alpha / 2) * ndtri(1 - self.alpha) / ndtri(1 - self.alpha / 2)
        return float(abs(f_a - f_b) + reach < self.margin)

    def _enumerated(self, rows: int, f_a: float, f_b: float) -> float:
        """Return the probability of all outcomes of two rates that the exact test rejects, or that show the margin."""
        m_a, m_b = self.units(rows)
        a, b = probable(m_a, f_a), probable(m_b, f_b)
        if self.margin is None:
            outcomes = rejected(m_a, m_b, self.alpha, a, b)
        else:
            outcomes = shown(m_a, m_b, self.margin, self.alpha, a, b)
        if self.answers:
            events = np.add.outer(np.array(a), np.array(b))
            outcomes = outcomes & (events > 0) & (events < m_a + m_b)
        return float(binom.pmf(a, m_a, f_a) @ outcomes @ binom.pmf(b, m_b, f_b))

    def _normal(self, rows: int, f_a: float, f_b: float) -> float:
        """Return the power of the score test of two rates by the normal approximation."""
        m_a, m_b = self.units(rows)
        error = float(np.sqrt(f_a * (1 - f_a) / m_a + f_b * (1 - f_b) / m_b))
        ends = [0.0] if self.margin is None else [-self.margin, self.margin]
        z = [float(score_statistic(f_a * m_a, m_a, f_b * m_b, m_b, at, "difference")) for at in ends]
        under = [(f_a - f_b - at) / one if one else error for at, one in zip(ends, z, strict=True)]
        return normal_power(f_a - f_b, error, self.alpha, self.margin, (under[0], under[-1]))


def probable(m: int, f: float) -> range:
    """Return the numbers of events among m rows with rate f, without TAIL of the probability at either end."""
    return range(max(0, int(binom.ppf(TAIL, m, f))), min(m, int(binom.isf(TAIL, m, f))) + 1)


def normal_power(
    difference: float,
    error: float,
    alpha: float,
    margin: float | None = None,
    under: tuple[float, float] | None = None,
) -> float:
    """Compute the normal-approximation power of a test of no difference, or of two one-sided tests of a margin.

    ``under`` are the standard errors under the hypotheses at the lower and the upper end, by default the ``error``.
    """
    low, high = under or (error, error)
    if margin is None:
        reach = float(ndtri(1 - alpha / 2)) * low
        return float(ndtr((difference - reach) / error) + ndtr((-difference - reach) / error))
    z = float(ndtri(1 - alpha))
    above = ndtr((margin - difference - z * high) / error)
    return max(0.0, float(above - ndtr((-margin - difference + z * low) / error)))


@lru_cache(maxsize=4)
def rejected(m_a: int, m_b: int, alpha: float, a: range, b: range) -> Array:
    """Return which outcomes, in ``a`` and ``b``, Fisher's two-sided exact test rejects at level alpha: (len a, len b).

    Examples
    --------
    >>> every = range(11)
    >>> rejected(10, 10, 0.05, every, every)[8, 2].item(), rejected(10, 10, 0.05, every, every)[7, 2].item()
    (True, False)
    """
    found = np.zeros((len(a), len(b)), dtype=bool)
    for events in range(a[0] + b[0], a[-1] + b[-1] + 1):
        x, log_weight = window(events, m_a + m_b, m_a)
        weight = np.exp(log_weight)
        weight /= weight.sum()
        rarest = np.sort(weight)
        p = np.cumsum(rarest)[np.searchsorted(rarest, weight * (1 + ALIKE), side="right") - 1]
        least, most = max(a[0], events - b[-1]), min(a[-1], events - b[0])
        # Outcomes outside the window are too rare for a double, so they are rejected.
        every = np.arange(least, most + 1)
        reject = np.ones(len(every), dtype=bool)
        inside = (x >= least) & (x <= most)
        reject[x[inside] - least] = p[inside] <= alpha
        found[every - a[0], events - every - b[0]] = reject
    return found


def shown(m_a: int, m_b: int, margin: float, alpha: float, a: range, b: range) -> Array:
    """Return which outcomes, in ``a`` and ``b``, show a difference of at most ``margin``: (len a, len b)."""
    if (m_a + 1) * (m_b + 1) <= ENUMERATED:
        return _every_shown(m_a, m_b, margin, alpha)[a[0] : a[-1] + 1, b[0] : b[-1] + 1]
    bounds, x_a, x_b = Bounds.margin(margin), np.array(a)[:, None], np.array(b)
    low, high = (score_statistic(x_a, m_a, x_b, m_b, at, "difference") for at in (bounds.low, bounds.high))
    return np.asarray((low >= ndtri(1 - alpha)) & (-high >= ndtri(1 - alpha)))


@lru_cache(maxsize=4)
def _every_shown(m_a: int, m_b: int, margin: float, alpha: float) -> Array:
    bounds = Bounds.margin(margin)
    above = _beyond(outcome_statistics(m_a, m_b, bounds.low, "difference"), bounds.low, alpha)
    return above & _beyond(-outcome_statistics(m_a, m_b, bounds.high, "difference"), bounds.high, alpha)


def _beyond(statistics: Array, at: float, alpha: float) -> Array:
    """Return which statistics of all outcomes the exact score test rejects."""
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
    else:
        # Far from equality, outcomes of large groups are many, and their tests take long.
        high = min(most, most / max(1.0, float(np.sqrt(rows))))
        while not found(high):
            if high == most:
                return None
            low, high = high, min(most, 2 * high)
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
