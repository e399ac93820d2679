r"""The same rows under two versions: changes of metrics that are not means over fixed rows, such as the AUC.

The AUC compares rows with each other, and the rows of a precision are those that a version selects. Their changes have
influences: row i moves the change of the metric by psi_i, and the variance of the change is that of a sum of
independent psi_i.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.audits.permutation.statistics import freedom
from fairness_audits.values import Array

NAN = float("nan")


@dataclass(frozen=True)
class SampleChange:
    r"""A metric under both versions, with the variance of the change and its two-sided p-value.

    ``n`` is the number of rows that limits the normal approximation. For the AUC, it counts the rows of the rarer
    label. For a precision, it counts the rows of the rarer label that either version selects, or all rows that one
    version selects if they are fewer.
    Values that do not exist are NaN.

    If the variance of an AUC is 0, all n disjoint pairs of a positive and a negative have the same change c. If a pair
    has it with probability q, then q^n >= alpha / 2 at level 1 - alpha (Clopper and Pearson 1934), so the mean change
    is in

    .. math:: q c \mp (1 - q), \qquad q = (\alpha / 2)^{1 / n}.

    The two-sided p-value is that of the sign test for c = 1 and -1.
    """

    first: float
    second: float
    variance: float
    p_value: float
    n: int
    exact: bool

    def interval(self, alpha: float) -> tuple[float, float]:
        """Return the interval of the change, of level 1 - alpha: normal, or by the bound of n equal changes."""
        change = self.second - self.first
        if self.variance == 0:
            share = (alpha / 2) ** (1 / self.n)
            return share * change - (1 - share), share * change + (1 - share)
        reach = float(ndtri(1 - alpha / 2) * np.sqrt(self.variance))
        return max(-1.0, change - reach), min(1.0, change + reach)

    def doubt(self, alpha: float) -> float:
        """Return the variance, or that of a normal change with as long an interval."""
        if self.variance != 0:
            return self.variance
        low, high = self.interval(alpha)
        return float(((high - low) / 2 / ndtri(1 - alpha / 2)) ** 2)


def normal_p(change: float, variance: float) -> float:
    """Return the two-sided p-value of a normal change; 1 if nothing changes."""
    return 1.0 if change == 0 else float(2 * ndtr(-abs(change) / np.sqrt(variance))) if variance > 0 else NAN


def auc_change(label: Array, first: Array, second: Array, *, opposite: bool = False) -> SampleChange:
    r"""Compare the AUCs of two scores of the same rows (n,) by the test of DeLong, DeLong and Clarke-Pearson (1988).

    .. math:: v = S_{10} / m + S_{01} / n,

    with the sample variances S of the differences of the placements of m positives and n negatives. With ``opposite``,
    the first AUC is replaced by 1 minus it, the AUC of the opposite score: the change is then AUC_1 + AUC_2 - 1.

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
    for score in (-first if opposite else first, second):
        below = np.sort(score[label == 0]), np.sort(score[label == 1])
        # Twice the number of rows of the other label below, equal scores counting one half.
        own = [
            sum(np.searchsorted(other, score[label == y], side) for side in ("left", "right"))
            for y, other in ((1, below[0]), (0, below[1]))
        ]
        means.append(float(own[0].sum() / (2 * positives * negatives)))
        placements.append(own)
    # Differences of whole numbers: equal ones have a variance of exactly 0.
    v10, v01 = ((placements[1][k] - placements[0][k]) / (2 * n) for k, n in ((0, negatives), (1, positives)))
    variance = float(v10.var(ddof=1) / positives + v01.var(ddof=1) / negatives)
    if variance == 0:
        p = min(1.0, 2 * (1 + abs(means[1] - means[0])) ** -fewest)
        return SampleChange(means[0], means[1], 0.0, p, fewest, exact=True)
    p = normal_p(means[1] - means[0], variance)
    return SampleChange(means[0], means[1], variance, p, fewest, exact=False)


def precision_change(label: Array, first: Array, second: Array, *, opposite: bool = False) -> SampleChange:
    r"""Compare the precisions of two decisions about the same rows: label, first and second (n,) in {0, 1}.

    The weighted generalized score statistic allows for the rows that both versions select,

    .. math:: Z^2 = \frac{(P_2 - P_1)^2}{(P (1 - P) - 2 C) (1 / n_1 + 1 / n_2)}, \quad
              C = \frac{b_1 (1 - P)^2 + b_0 P^2}{n_1 + n_2},

    with the numbers n of selected rows, the share P of positives among all of them, and the numbers b of positives and
    negatives that both versions select. With ``opposite``, the first precision is replaced by 1 minus it: the change is
    then P_1 + P_2 - 1, without a p-value.

    References
    ----------
    Kosinski 2013, "A weighted generalized score statistic for comparison of predictive values of diagnostic tests",
    Statistics in Medicine 32.

    Examples
    --------
    >>> label, first = np.repeat([1, 0], 20), np.tile([1, 0], 20)
    >>> second = np.where(np.arange(40) < 20, 1, 0)
    >>> found = precision_change(label, first, second)
    >>> found.first, found.second, round(found.p_value, 6)
    (0.5, 1.0, 6.3e-05)
    """
    table = np.array(
        [[((label == y) & (first == a) & (second == b)).sum() for a, b in ((1, 1), (1, 0), (0, 1))] for y in (0, 1)]
    )
    both, alone = table[:, 0], table[:, 1:]
    counts = both[:, None] + alone
    selected = counts.sum(axis=0)
    # The normal approximation needs rows of both labels, as the AUC does.
    n = int(min(selected.min(), table.sum(axis=1).min()))
    if selected.min() == 0:
        return SampleChange(NAN, NAN, NAN, NAN, n, exact=False)
    (one, two), pooled = counts[1] / selected, counts[1].sum() / selected.sum()
    shared = (both[1] * (1 - pooled) ** 2 + both[0] * pooled**2) / selected.sum()
    p = normal_p(two - one, (pooled * (1 - pooled) - 2 * shared) * (1 / selected).sum())
    # In the variance of the interval, add half a row of each kind that only one version selects.
    if opposite:
        return SampleChange(float(1 - one), float(two), _variance(both, alone + 0.5, -1), NAN, n, exact=False)
    return SampleChange(float(one), float(two), _variance(both, alone + 0.5, 1), p, n, exact=False)


def _variance(both: Array, alone: Array, sign: int) -> float:
    """Return the variance of P_2 - sign P_1 by its influences.

    ``both`` (2,) counts the rows that both versions select, by label, and ``alone`` (2, 2) those that one selects, by
    label and version.
    """
    counts = both[:, None] + alone
    total = counts.sum(axis=0)
    influence = (np.array([[0], [1]]) - counts[1] / total) / total
    squares = (alone * influence**2).sum() + (both * (influence[:, 1] - sign * influence[:, 0]) ** 2).sum()
    n = both.sum() + alone.sum()
    return float(squares * n / freedom(np.asarray(n)))
