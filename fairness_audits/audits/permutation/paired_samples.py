r"""The same rows under two versions: changes of metrics that are not means over fixed rows, such as the AUC.

The AUC compares rows with each other, and the rows of a precision are those that a version selects. Their changes have
influences: row i moves the change of the metric by psi_i, and the variance of the change is that of a sum of
independent psi_i.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from fairness_audits.audits.permutation.monte_carlo import ROUNDING, monte_carlo_p
from fairness_audits.audits.permutation.statistics import freedom
from fairness_audits.values import Array

NAN = float("nan")
ENUMERATED = 1_000_000
"""Largest number of outcomes that are enumerated."""


@dataclass(frozen=True)
class SampleChange:
    """A metric under both versions, with the variance of the change and its two-sided p-value.

    ``n`` counts the rows behind it: those of the rarer label for the AUC, those that a version selects for a precision.
    Values that do not exist are NaN.
    """

    first: float
    second: float
    variance: float
    p_value: float
    n: int
    exact: bool

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the normal interval of the change, of level 1 - alpha."""
        reach = float(ndtri(1 - alpha / 2) * np.sqrt(self.variance))
        change = self.second - self.first
        return max(-1.0, change - reach), min(1.0, change + reach)


def normal_p(change: float, variance: float) -> float:
    """Return the two-sided p-value of a normal change; 1 if nothing changes."""
    return 1.0 if change == 0 else float(2 * ndtr(-abs(change) / np.sqrt(variance))) if variance > 0 else NAN


def auc_change(label: Array, first: Array, second: Array) -> SampleChange:
    r"""Compare the AUCs of two scores of the same rows (n,) by the test of DeLong, DeLong and Clarke-Pearson (1988).

    .. math:: v = S_{10} / m + S_{01} / n,

    with the sample variances S of the differences of the placements of m positives and n negatives.

    Examples
    --------
    >>> label = np.array([0, 0, 0, 1, 1, 1])
    >>> found = auc_change(label, np.array([1, 2, 3, 2, 3, 4]), np.array([1, 2, 3, 4, 5, 6]))
    >>> round(found.first, 3), found.second, round(found.p_value, 3)
    (0.778, 1.0, 0.285)
    """
    positives, negatives = int((label == 1).sum()), int((label == 0).sum())
    fewest = min(positives, negatives)
    if fewest < 2:
        return SampleChange(NAN, NAN, NAN, NAN, fewest, exact=False)
    means, placements = [], []
    for score in (first, second):
        below = np.sort(score[label == 0]), np.sort(score[label == 1])
        # The share of the other label below, equal scores counting one half.
        own = [
            sum(np.searchsorted(other, score[label == y], side) for side in ("left", "right")) / (2 * len(other))
            for y, other in ((1, below[0]), (0, below[1]))
        ]
        means.append(float(own[0].mean()))
        placements.append(own)
    v10, v01 = (placements[1][k] - placements[0][k] for k in (0, 1))
    variance = float(v10.var(ddof=1) / positives + v01.var(ddof=1) / negatives)
    p = normal_p(means[1] - means[0], variance)
    return SampleChange(means[0], means[1], variance, p, fewest, exact=False)


def precision_change(
    label: Array, first: Array, second: Array, *, draws: int, rng: np.random.Generator
) -> SampleChange:
    r"""Compare the precisions of two decisions about the same rows: label, first and second (n,) in {0, 1}.

    If the versions are exchangeable in each row, a row that only one version selects belongs to either with probability
    1/2. Of the D_1 such rows with label 1 and the D_0 with label 0, version 2 then has two independent binomial
    numbers. The p-value is the probability of a studentised change at least as large, enumerated if there are at most a
    million outcomes. Studentised by its influences, the test also holds in large groups for equal precisions alone.

    Examples
    --------
    >>> label, first = np.repeat([1, 0], 20), np.tile([1, 0], 20)
    >>> second = np.where(np.arange(40) < 20, 1, 0)
    >>> found = precision_change(label, first, second, draws=99, rng=np.random.default_rng(0))
    >>> found.first, found.second, round(found.p_value, 6)
    (0.5, 1.0, 2e-06)
    """
    table = np.array(
        [[((label == y) & (first == a) & (second == b)).sum() for a, b in ((1, 1), (1, 0), (0, 1))] for y in (0, 1)]
    )
    n = int(table.sum())
    if (table[:, :2].sum() == 0) or (table[:, [0, 2]].sum() == 0):
        return SampleChange(NAN, NAN, NAN, NAN, n, exact=False)
    both, apart = table[:, 0], table[:, 1:].sum(axis=1)
    values, variance = _precisions(both, apart, table[:, 2])
    observed = abs(_studentised(values, variance)) * (1 - ROUNDING)
    exact = bool((apart + 1).prod() <= ENUMERATED)
    if exact:
        moved = np.stack(np.meshgrid(*(np.arange(d + 1) for d in apart), indexing="ij"), axis=-1)
        chance = np.multiply.outer(*(binom.pmf(np.arange(d + 1), d, 0.5) for d in apart))
        p = float(chance[np.abs(_studentised(*_precisions(both, apart, moved))) >= observed].sum())
    else:
        moved = rng.binomial(apart, 0.5, size=(draws, 2))
        p = float(monte_carlo_p((np.abs(_studentised(*_precisions(both, apart, moved))) >= observed).sum(), draws))
    # In the variance of the interval, add half a row of each kind that only one version selects.
    _, smooth = _precisions(both, apart + 1.0, table[:, 2] + 0.5)
    return SampleChange(float(values[0]), float(values[1]), float(smooth), min(1.0, p), n, exact)


def _precisions(both: Array, apart: Array, moved: Array) -> tuple[Array, Array]:
    """Return both precisions (2, ...) and the variance of the change.

    ``both`` (2,) counts the rows that both versions select, by label, ``apart`` (2,) those that one selects, and
    ``moved`` (..., 2) those of them that version 2 selects.
    """
    only = np.stack([apart - moved, moved])
    counts = both + only
    with np.errstate(divide="ignore", invalid="ignore"):
        total = counts.sum(axis=-1)
        value = counts[..., 1] / total
        influence = (np.array([0, 1]) - value[..., None]) / total[..., None]
        squares = (only * influence**2).sum(axis=(0, -1)) + (both * (influence[1] - influence[0]) ** 2).sum(axis=-1)
        n = both.sum() + apart.sum()
        return value, squares * n / freedom(np.asarray(n))


def _studentised(value: Array, variance: Array) -> Array:
    """Return the change over its standard error: infinite without a variance, or if a version selects nobody."""
    change = value[1] - value[0]
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.where(change == 0, 0.0, change / np.sqrt(variance))
    return np.where(np.isnan(statistic), np.inf, statistic)
