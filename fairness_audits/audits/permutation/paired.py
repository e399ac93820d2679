r"""The same rows under two versions of a model: the change of a metric in each group, and of its gap between groups.

Let delta_i be the value of row i under the second version minus its value under the first. The metric of group g
changes by the mean of delta over its rows, and the gap between two groups by the difference of two such means. If the
versions are exchangeable in each row, the sign of delta_i is random. Rates are tested by McNemar's exact test, other
means by random signs. The change of the gap is tested like any difference of two means, by permutations of delta
between groups.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr, ndtri, stdtrit

from fairness_audits.audits.permutation.intervals import crossing
from fairness_audits.audits.permutation.metrics import Mean, Rate
from fairness_audits.audits.permutation.monte_carlo import TIED, blocks, monte_carlo_p
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

MANY_ROWS = 20_000
"""Largest number of rows whose signs are drawn one by one."""
SIGNS_AT_ONCE = 2**21


@dataclass(frozen=True)
class Change:
    """The mean of delta, its interval of level 1 - alpha and two-sided p-value, which is enumerated if ``exact``."""

    estimate: float
    low: float
    high: float
    p_value: float
    exact: bool


def values(metric: Rate | Mean, label: Array, output: Array) -> tuple[Array, Array]:
    """Return the value of each row (n,), and whether the metric is computed on it (n,).

    Raises
    ------
    InvalidInput
        For a metric whose rows depend on the model, such as f1: its rows have no pairs.
    """
    if isinstance(metric, Rate):
        among, event = np.array(metric.among, dtype=bool), np.array(metric.event, dtype=float)
        if (among[:, 0] == among[:, 1]).all():
            return event[label, output.astype(np.int64)], among[label, 0]
    elif (metric.base(label, output) == 1).all():
        return np.asarray(metric.value(label, output), dtype=float), np.ones(len(output), dtype=bool)
    raise InvalidInput(
        f"Metric {metric.name} uses different rows for each version",
        option="metric",
        remedy="Use a rate, auc, or a mean of scores or errors",
    )


def change(delta: Array, *, rate: bool, alpha: float, draws: int, rng: np.random.Generator) -> Change:
    """Test whether the mean of paired differences (n,) is 0.

    In larger data, the signs of the MANY_ROWS largest differences are drawn, and the sum of all others is normal. None
    of these is large, so the error of the normal distribution is far below that of the draws.

    Parameters
    ----------
    delta : array (n,)
        Second version minus first: -1, 0 and 1 for a rate.
    rate : bool
        Whether the values are 0 and 1, so that McNemar's test applies.
    alpha : float
        Level of the test.
    draws : int
        Number of random signs, if the test is not McNemar's.
    rng : numpy.random.Generator

    Returns
    -------
    Change
        With the interval of Agresti and Min for a rate, else Student's; NaN as ends if no value changes.

    References
    ----------
    McNemar 1947; Agresti and Min 2005.

    Examples
    --------
    >>> delta = np.r_[np.ones(12), -np.ones(3), np.zeros(85)]
    >>> found = change(delta, rate=True, alpha=0.05, draws=99, rng=np.random.default_rng(0))
    >>> round(found.estimate, 2), round(found.p_value, 4)
    (0.09, 0.0352)
    """
    n, estimate = len(delta), float(delta.mean())
    if rate:
        up, down = int((delta == 1).sum()), int((delta == -1).sum())
        p = min(1.0, 2 * float(bdtr(min(up, down), up + down, 0.5)))
        # Add half a pair of each kind.
        middle = (up - down) / (n + 2)
        error = np.sqrt(((up + down + 1) / (n + 2) - middle**2) / (n + 2))
        reach = float(ndtri(1 - alpha / 2)) * float(error)
        return Change(estimate, max(-1.0, middle - reach), min(1.0, middle + reach), float(p), exact=True)
    if not delta.any():
        return Change(0.0, np.nan, np.nan, 1.0, exact=False)
    few = max(0, n - MANY_ROWS)
    ordered = delta[np.argpartition(np.abs(delta), few)] if few else delta
    rest, largest = float(np.linalg.norm(ordered[:few])), ordered[few:]
    # Sums that differ by rounding are equal.
    observed, extremes = abs(delta.sum()) - TIED * float(np.linalg.norm(delta)), 0
    for _, size in blocks(draws, max(1, SIGNS_AT_ONCE // len(largest))):
        sums = (2.0 * rng.integers(0, 2, (size, len(largest))) - 1) @ largest
        if rest:
            sums += rest * rng.standard_normal(size)
        extremes += int((np.abs(sums) >= observed).sum())
    reach = float(stdtrit(n - 1, 1 - alpha / 2) * delta.std(ddof=1) / np.sqrt(n)) if n > 1 else np.inf
    p = float(monte_carlo_p(extremes, draws))
    return Change(estimate, estimate - reach, estimate + reach, p, exact=False)


def score_interval(up: int, down: int, n: int, alpha: float) -> tuple[float, float]:
    r"""Compute the interval of level 1 - 2 alpha for the change of a rate over n pairs: up - down over n.

    It holds every change that neither one-sided test by :func:`score_statistic` rejects at level alpha. Unlike the
    interval of Agresti and Min, it is not too short if few pairs change.

    References
    ----------
    Tango 1998, "Equivalence test and confidence interval for the difference in proportions for the paired-sample
    design", Statistics in Medicine 17.

    Examples
    --------
    >>> low, high = score_interval(12, 3, 100, 0.025)
    >>> round(low, 3), round(high, 3)
    (0.016, 0.174)
    """

    def beyond(side: float) -> Callable[[float], bool]:
        return lambda d: score_statistic(up, down, n, d) > side

    z = float(ndtri(1 - alpha))
    return crossing(beyond(z), "difference"), crossing(beyond(-z), "difference")


def score_statistic(up: int, down: int, n: int, d: float) -> float:
    r"""Compute the score statistic of a change d of a rate, if u = ``up`` of n pairs go up and w = ``down`` go down.

    .. math:: Z_d = \frac{u - w - n d}{\sqrt{n (2 q + d (1 - d))}},

    where q is the maximum-likelihood share of pairs that go down if the change is d. Source: Tango 1998.
    """
    b, c = (2 * n - up + down) * d - up - down, -down * d * (1 - d)
    q = max(0.0, -d, (float(np.sqrt(max(b * b - 8 * n * c, 0.0))) - b) / (4 * n))
    gap, variance = up - down - n * d, n * (2 * q + d * (1 - d))
    return 0.0 if gap == 0 else gap / float(np.sqrt(variance)) if variance > 0 else float(np.copysign(np.inf, gap))
