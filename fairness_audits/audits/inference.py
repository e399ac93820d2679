r"""Precision of an audit's intervals and p-values, and corrections for the number of hypotheses.

- ``holm``: step-down Bonferroni; the family-wise error rate is at most alpha under any dependence.
- ``bonferroni``: the same guarantee, simpler and less powerful.
- ``bh``, ``by``: the false discovery rate is at most alpha (``by`` under any dependence).
- ``none``: no correction.

The largest |T| of several pairs of groups, which accounts for their dependence, is in
:func:`fairness_audits.audits.permutation.pairs.largest_p`.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri

from fairness_audits.validation import Checked, Count, Share
from fairness_audits.values import Array


@dataclass(frozen=True)
class Precision(Checked):
    """Intervals of level 1 - ``alpha`` from ``bootstraps`` resamples; p-values from ``permutations`` draws."""

    alpha: Share
    bootstraps: Count
    permutations: Count


def corrected(p: Array, correction: str) -> Array:
    """Correct the p-values (k,) of k hypotheses, in their order; NaN stays NaN and is not counted.

    References
    ----------
    Holm 1979; Benjamini and Hochberg 1995; Benjamini and Yekutieli 2001.
    """
    known = np.flatnonzero(~np.isnan(p))
    n = len(known)
    if correction == "none" or n == 0:
        return p
    order = known[np.argsort(p[known])]
    rank = np.arange(1, n + 1)
    if correction == "bonferroni":
        raised = p[order] * n
    elif correction == "holm":
        raised = np.maximum.accumulate(p[order] * (n + 1 - rank))
    else:
        dependence = {"bh": 1.0, "by": float(np.sum(1 / rank))}[correction]
        raised = np.minimum.accumulate((p[order] / (rank / n / dependence))[::-1])[::-1]
    adjusted = np.full(p.shape, np.nan)
    adjusted[order] = np.minimum(raised, 1.0)
    return adjusted


def wilson_interval(share: float, trials: int, level: float) -> tuple[float, float]:
    r"""Compute the score interval of this level for a probability; a share of 0 or 1 is exactly one of its ends.

    .. math:: \frac{2 n f + z^2 \mp z \sqrt{4 n f (1 - f) + z^2}}{2 (n + z^2)}

    for a share f of n trials, z the normal quantile at (1 + level) / 2. Both ends are NaN for n = 0.

    References
    ----------
    Wilson 1927.
    """
    if not trials:
        return math.nan, math.nan
    z = float(ndtri(0.5 + 0.5 * level))
    scale = 2 * (trials + z**2)
    centre = (2 * trials * share + z**2) / scale
    reach = z / scale * math.sqrt(4 * trials * share * (1 - share) + z**2)
    return 0.0 if share == 0 else centre - reach, 1.0 if share == 1 else centre + reach


def unseen(n: Array | float, level: float) -> Any:
    """Return the largest share of a population that differs, if n observations agree: 1 - level^(1/n).

    If a larger share differed, the probability that none of them does would be below ``level``.

    References
    ----------
    Clopper and Pearson 1934.
    """
    return 1 - level ** (1 / n)


def least_size(low: Any, high: Any) -> Any:
    """Return the smallest size of a difference in an interval, its distance from 0; an end that is None is infinite."""
    below, above = -math.inf if low is None else low, math.inf if high is None else high
    return np.maximum(np.maximum(below, -above), 0.0)


class Ends(NamedTuple):
    """An estimate and its interval; NaN if they do not exist."""

    estimate: float
    low: float
    high: float

    def shifted(self, by: float) -> "Ends":
        return Ends(*(one + by for one in self))

    def minus(self, other: "Ends") -> "Ends":
        """Return the difference of two independent estimates.

        References
        ----------
        Newcombe 1998, method 10, for two shares; Zou and Donner 2008.
        """
        difference = self.estimate - other.estimate
        below = math.hypot(self.estimate - self.low, other.high - other.estimate)
        above = math.hypot(self.high - self.estimate, other.estimate - other.low)
        return Ends(difference, difference - below, difference + above)


def corrected_once(p: Array, hypotheses: Sequence[Hashable], correction: str) -> Array:
    """Correct the p-values of k tests for the number of hypotheses, each of which may have several tests.

    Equal true positive rates imply equal false negative rates: two tests, one hypothesis. Its p-value is the largest
    p-value of its tests, which is valid because each of them is. After the correction all tests of a hypothesis have
    the same p-value.

    Parameters
    ----------
    p : array (k,)
        The p-values. A test without a p-value is NaN: it stays NaN and is not counted.
    hypotheses : sequence of k hashable values
        The hypothesis of each test.
    correction : {"holm", "bonferroni", "bh", "by", "none"}

    Returns
    -------
    array (k,)

    Examples
    --------
    >>> corrected_once(np.array([0.01, 0.02, 0.04, np.nan]), ["tpr", "tpr", "fpr", "auc"], "holm").tolist()
    [0.04, 0.04, 0.04, nan]
    """
    place = {hypothesis: number for number, hypothesis in enumerate(dict.fromkeys(hypotheses))}
    index = np.array([place[hypothesis] for hypothesis in hypotheses], dtype=np.int64)
    largest = np.full(len(place), np.nan)
    np.fmax.at(largest, index, p)
    return np.where(np.isnan(p), np.nan, corrected(largest, correction)[index])


def least_draws(alpha: float, tails: int = 1, hypotheses: int = 1, correction: str = "none") -> int:
    """Return the smallest number of draws with which a single one of these hypotheses can be rejected at level alpha.

    The smallest p-value of B draws is ``tails`` / (B + 1). The correction multiplies it by the number m of hypotheses
    (Holm, Bonferroni, Benjamini-Hochberg), by m (1 + 1/2 + ... + 1/m) (Benjamini-Yekutieli), or by 1.

    Examples
    --------
    >>> least_draws(0.05), least_draws(0.05, tails=2, hypotheses=780, correction="holm")
    (19, 31199)
    """
    alone = {"none": 1.0, "max_t": 1.0, "by": float(np.sum(hypotheses / np.arange(1, hypotheses + 1)))}
    return math.ceil(alone.get(correction, hypotheses) * tails / alpha - 1e-9) - 1


def adjusted_p(p: Sequence[float | None], hypotheses: Sequence[Hashable], correction: str) -> list[float | None]:
    """Correct p-values by :func:`corrected_once`; None marks a test that could not be made."""
    found = corrected_once(np.array(p, dtype=float), hypotheses, correction)
    return [None if np.isnan(one) else one for one in found.tolist()]
