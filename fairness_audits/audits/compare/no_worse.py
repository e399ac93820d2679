r"""Non-inferiority: no group gets worse by more than M, and no gap grows by more than M.

A group with a metric that is better if it is high gets worse by :math:`f^{(1)} - f^{(2)}`, and by the opposite if it is
better if it is low. A gap G, and a metric that is best at 0, gets worse by

.. math:: |G^{(2)}| - |G^{(1)}| = \max_{\sigma = \pm 1} \min_{\tau = \pm 1} \sigma G^{(2)} - \tau G^{(1)}.

Each is shown by a one-sided bound of level 1 - alpha. For each sigma, one of two hypotheses about tau must be rejected,
so each is tested at alpha / 2 (Bonferroni); both sigmas must be shown, at no further cost. All parts together need no
correction either: the claim is the intersection of their alternatives (Berger 1982).
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from scipy.stats import t as student

from fairness_audits.audits.inference import Ends, unseen
from fairness_audits.audits.permutation.metrics import better
from fairness_audits.audits.permutation.paired import score_interval
from fairness_audits.audits.permutation.paired_samples import SampleChange
from fairness_audits.audits.permutation.statistics import CANCELLED
from fairness_audits.values import Array

UNKNOWN = Ends(np.nan, np.nan, np.nan)
Combined: TypeAlias = Callable[[Array, int, float], Ends]
"""f2 - sign * f1 in the rows of a mask (n,), for a sign of 1 or -1, with its interval of level 1 - 2 alpha."""


def of_means(pair: Array, rate: bool) -> Combined:
    """Return the change and the sum of a rate or a mean; ``pair`` (2, n) holds the values of both versions."""
    finite = np.isfinite(pair).all()
    width = float(np.ptp(pair)) if finite and pair.size else np.nan

    def ends(own: Array, sign: int, alpha: float) -> Ends:
        first, second = pair[:, own]
        n = len(first)
        if n < 2 or not finite:
            return UNKNOWN
        if rate:
            # A sum of rates is 1 plus the change from the opposite decisions.
            before, shift = (first, 0.0) if sign == 1 else (1 - first, 1.0)
            up, down = int(((before == 0) & (second == 1)).sum()), int(((before == 1) & (second == 0)).sum())
            return Ends((up - down) / n, *score_interval(up, down, n, alpha)).shifted(shift)
        values = second - sign * first
        mean, error = float(values.mean()), float(values.std(ddof=1) / np.sqrt(n))
        reach = float(student.ppf(1 - alpha, n - 1)) * error
        if error <= CANCELLED * np.abs(values).max():
            # All n rows agree. The values of others are in the range of those seen.
            reach = unseen(n, alpha) * width * (2 if values.any() else 1)
        return Ends(mean, mean - reach, mean + reach)

    return ends


def of_samples(found: Callable[[Array, bool], SampleChange]) -> Combined:
    """Return the change and the sum of a metric; ``found`` returns its change from f1, or from 1 - f1, to f2."""

    def ends(own: Array, sign: int, alpha: float) -> Ends:
        one = found(own, sign == -1)
        if np.isnan(one.variance):
            return UNKNOWN
        return Ends(one.second - one.first, *one.interval(2 * alpha)).shifted(0.0 if sign == 1 else 1.0)

    return ends


def growth(changes: Callable[[int, float], Ends], alpha: float, corrected: float) -> Ends:
    """Return by how much an absolute value grows: the estimate, the lower and the upper bound.

    ``changes`` returns G2 - sign * G1 with its interval for a sign and a level. The upper bound has level
    1 - ``alpha``, the lower bound level 1 - ``corrected``.
    """
    change, total = changes(1, alpha / 2), changes(-1, alpha / 2)
    if np.isnan([*change, *total]).any():
        return UNKNOWN
    most = max(min(change.high, total.high), -max(change.low, total.low))
    first, second = (total.estimate - change.estimate) / 2, (total.estimate + change.estimate) / 2
    change, total = changes(1, corrected / 2), changes(-1, corrected / 2)
    least = max(min(change.low, total.low), -max(change.high, total.high))
    return Ends(abs(second) - abs(first), least, most)


def of_group(metric: str, combined: Combined, own: Array, alpha: float, corrected: float) -> Ends | None:
    """Return by how much a group gets worse, with bounds as in :func:`growth`; None if no direction is better."""
    direction = better(metric)
    if direction is None:
        return None
    if direction == "zero":
        return growth(lambda sign, level: combined(own, sign, level), alpha, corrected)
    change, least = combined(own, 1, alpha), combined(own, 1, corrected)
    if direction == "low":
        return Ends(change.estimate, least.low, change.high)
    return Ends(-change.estimate, -least.high, -change.low)


def of_gap(combined: Combined, own: Array, other: Array, alpha: float, corrected: float) -> Ends:
    """Return by how much the gap between the rows of two masks grows, with bounds as in :func:`growth`."""
    return growth(lambda sign, level: combined(own, sign, level).minus(combined(other, sign, level)), alpha, corrected)
