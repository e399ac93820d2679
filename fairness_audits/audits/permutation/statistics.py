r"""Compute a metric and the variance of its estimate from counts of kinds of units.

A *unit* is what a permutation moves: a row, or all rows of a person. Units of one kind are equal in everything that the
metric uses, so a sample is described by its counts of each kind, an array (..., U), and a statistic is a function of
them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from fairness_audits.values import Array

CANCELLED = 1e-13
"""A difference that is a smaller share of its terms is rounding error and counts as 0."""
EQUAL = 1e-9
"""Statistics and numbers of units that are closer than this count as equal."""


class MetricEstimate(NamedTuple):
    """A metric and the estimated variance of its estimate, arrays of one shape; NaN if they do not exist."""

    value: Array
    variance: Array

    @property
    def difference(self) -> Array:
        """Compute the first group minus the second, 0 if only rounding makes it differ: (2, ...) -> (...)."""
        size = np.abs(self.value).max(axis=0)
        with np.errstate(invalid="ignore"):
            difference = self.value[0] - self.value[1]
            return np.where((np.abs(difference) <= CANCELLED * size) & np.isfinite(size), 0.0, difference)


def freedom(n: Array) -> Array:
    """Return n - 1, the denominator of a sample variance; NaN if a sample of n has none."""
    return np.where(n > 1, n - 1, np.nan)


Statistic = Callable[[Array], MetricEstimate]
"""Function from counts of each kind of unit (..., U) to metric and variance (...)."""


@dataclass(frozen=True)
class Proportion:
    r"""Function from counts (events x, non-events z, units outside the rate) to f = x / m, m = x + z, with variance

    .. math:: v = \tilde f (1 - \tilde f) / (m + 2c), \qquad \tilde f = (x + c) / (m + 2c).

    c is the ``smoothing``: this many events and non-events are added to the counts, only in the variance. Wald's
    variance, c = 0, is that of DiCiccio et al. (2020), theorem 3. It is 0 if x = 0 or z = 0, and then any difference is
    infinitely significant. c = 1 is the choice of Agresti and Caffo (2000). Both have the same limit.
    """

    smoothing: float

    def __call__(self, counts: Array) -> MetricEstimate:
        events, trials = counts[..., 0], counts[..., 0] + counts[..., 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth = (events + self.smoothing) / (trials + 2 * self.smoothing)
            variance = smooth * (1 - smooth) / (trials + 2 * self.smoothing)
            return MetricEstimate(events / trials, np.where(trials > 0, variance, np.nan))


@dataclass(frozen=True)
class RatioOfSums:
    r"""A ratio of sums f = sum a / sum b over units with parts (a_u, b_u), with the delta-method variance

    .. math:: v = \frac{n}{n-1} \frac{\sum (a_u - f b_u)^2}{(\sum b_u)^2}, \qquad n = \#\{b_u \ne 0\}.

    With b = 1 this is the variance of a mean, s^2 / n with n - 1 in s^2. If (a, b) are sums over the rows of a person,
    it is the cluster-robust variance. ``parts`` (U, 2) holds (a_u, b_u).
    """

    parts: Array

    @property
    def centre(self) -> float:
        """A value near all estimates; sums are centred at it, so that the squares do not cancel."""
        total, base = self.parts.sum(axis=0)
        return float(total / base) if base and np.isfinite(total) else 0.0

    def moments(self) -> Array:
        """The columns whose sums over a sample determine the estimate: a, b, a a, a b, b b, 1[b != 0], a centred."""
        b = self.parts[:, 1]
        a = self.parts[:, 0] - self.centre * b
        return np.stack([a, b, a * a, a * b, b * b, b != 0], axis=-1).astype(float)

    def of_sums(self, sums: Array) -> MetricEstimate:
        """Compute the estimate from the sums (..., 6) of the moments over each sample."""
        a, b, aa, ab, bb, n = np.moveaxis(sums, -1, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            f = a / b
            squares = aa - 2 * f * ab + f * f * bb
            squares = np.where(squares < CANCELLED * (aa + f * f * bb), 0.0, squares)
            return MetricEstimate(self.centre + f, n / freedom(n) * squares / b**2)

    def __call__(self, counts: Array) -> MetricEstimate:
        moments = self.moments()
        if np.isfinite(moments).all():
            return self.of_sums(counts @ moments)
        # An infinite part concerns only the samples that have it: 0 times infinity would be NaN.
        each = np.multiply(counts[..., None], moments, where=counts[..., None] > 0, out=np.zeros((*counts.shape, 6)))
        return self.of_sums(each.sum(axis=-2))


def without_rounding(estimate: MetricEstimate) -> MetricEstimate:
    """Set the variance to 0 if only rounding makes it differ from 0."""
    noise = (CANCELLED * estimate.value) ** 2
    return MetricEstimate(estimate.value, np.where(estimate.variance <= noise, 0.0, estimate.variance))


def studentized(estimate: MetricEstimate) -> Array:
    """Compute T = (f_A - f_B) / sqrt(v_A + v_B) from estimates (2, ...) of the two groups: (...).

    If one variance is 0, the other one is used. T is 0 if the difference is 0, infinite if it is not but both variances
    are 0, and NaN if a metric or a variance does not exist.
    """
    difference, scale = estimate.difference, np.sqrt(without_rounding(estimate).variance.sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(difference == 0, np.where(np.isnan(scale), np.nan, 0.0), difference / scale)


@dataclass(frozen=True)
class BinnedAuc:
    r"""Counts (..., 2 K), negatives then positives in each of K cells of ascending score -> AUC and its variance (...).

    With m positives, n negatives and the placements

    .. math:: V_{10}(i) = \frac{1}{n} \#\{j : s_j < s_i\}, \qquad V_{01}(j) = \frac{1}{m} \#\{i : s_i > s_j\}

    of positives i and negatives j (equal scores count one half), AUC is the mean of either, and

    .. math:: v = \frac{S_{10}}{m} + \frac{S_{01}}{n},

    with the sample variances S (m - 1 and n - 1 in the denominators), by DeLong, DeLong and Clarke-Pearson 1988. Scores
    of one cell count as equal: this is exact if a cell is one score, and otherwise the AUC of the binned score.
    """

    cells: int

    def __call__(self, counts: Array) -> MetricEstimate:
        negative, positive = counts[..., : self.cells].astype(float), counts[..., self.cells :].astype(float)
        m, n = positive.sum(axis=-1, keepdims=True), negative.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            v10 = (np.cumsum(negative, axis=-1) - negative / 2) / n
            v01 = 1 - (np.cumsum(positive, axis=-1) - positive / 2) / m
            auc = (positive * v10).sum(axis=-1, keepdims=True) / m
            s10 = (positive * (v10 - auc) ** 2).sum(axis=-1, keepdims=True) / freedom(m)
            s01 = (negative * (v01 - auc) ** 2).sum(axis=-1, keepdims=True) / freedom(n)
            return MetricEstimate(auc[..., 0], (s10 / m + s01 / n)[..., 0])


def auc_of(label: Array, score: Array) -> MetricEstimate:
    """Compute the AUC and its variance by DeLong from labels 0 and 1 and scores (n,); equal scores count one half.

    Examples
    --------
    >>> float(auc_of(np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.4, 0.9])).value)
    0.875
    """
    cells, cell = np.unique(score, return_inverse=True)
    return BinnedAuc(len(cells))(np.bincount(label * len(cells) + cell, minlength=2 * len(cells)))


def of_moments(
    m: Array, n: Array, lower: Array, lower_squared: Array, under: Array, under_squared: Array
) -> MetricEstimate:
    """Compute AUC and variance from sums over a sample of m positives and n negatives, arrays of one shape.

    ``lower`` is the sum over positives of the number of negatives below, ``under`` the sum over negatives of the number
    of positives below, and the other arguments are the sums of the squares of these numbers. (The number of positives
    above a negative is m minus the number below, so V_01 has the variance of the number below.)
    """
    m, n = m.astype(float), n.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        auc = lower / (m * n)
        # Whole numbers: equal placements have a spread of exactly 0.
        s10 = np.maximum(m * lower_squared - lower**2, 0) / (m * n**2) / freedom(m)
        s01 = np.maximum(n * under_squared - under**2, 0) / (n * m**2) / freedom(n)
        return MetricEstimate(auc, s10 / m + s01 / n)
