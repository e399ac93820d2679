r"""The area under the ROC curve and DeLong's variance of it, from counts of scores.

With m positives, n negatives and the placements

.. math:: V_{10}(i) = \frac{1}{n} \#\{j : s_j < s_i\}, \qquad V_{01}(j) = \frac{1}{m} \#\{i : s_i > s_j\}

of positives i and negatives j (equal scores count one half), AUC is the mean of either, and

.. math:: v = \frac{S_{10}}{m} + \frac{S_{01}}{n},

with the sample variances S (m - 1 and n - 1 in the denominators). Source: DeLong, DeLong and Clarke-Pearson 1988.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.audits.permutation.statistics import MetricEstimate
from pipeline.types import Array


@dataclass(frozen=True)
class BinnedAuc:
    """Counts (..., 2 K), negatives then positives in each of K cells of ascending score -> AUC and its variance (...).

    Scores of one cell count as equal: exact where a cell is one score, and else the AUC of the binned score.
    """

    cells: int

    def __call__(self, counts: Array) -> MetricEstimate:
        negative, positive = counts[..., : self.cells].astype(float), counts[..., self.cells :].astype(float)
        m, n = positive.sum(axis=-1, keepdims=True), negative.sum(axis=-1, keepdims=True)
        with np.errstate(divide="ignore", invalid="ignore"):
            v10 = (np.cumsum(negative, axis=-1) - negative / 2) / n
            v01 = 1 - (np.cumsum(positive, axis=-1) - positive / 2) / m
            auc = (positive * v10).sum(axis=-1, keepdims=True) / m
            s10 = (positive * (v10 - auc) ** 2).sum(axis=-1, keepdims=True) / (m - 1)
            s01 = (negative * (v01 - auc) ** 2).sum(axis=-1, keepdims=True) / (n - 1)
            return MetricEstimate(auc[..., 0], (s10 / m + s01 / n)[..., 0])


def of_moments(
    m: Array, n: Array, lower: Array, lower_squared: Array, under: Array, under_squared: Array
) -> MetricEstimate:
    """AUC and variance from sums over a sample of m positives and n negatives, arrays of one shape.

    ``lower`` is the sum over positives of the number of negatives below, ``under`` the sum over negatives of the number
    of positives below, and the others are the sums of the squares of these numbers. (A negative has m minus that number
    above it, so V_01 has the variance of the number below.)
    """
    m, n = m.astype(float), n.astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        auc = lower / (m * n)
        s10 = np.maximum(lower_squared / n**2 - m * auc**2, 0) / (m - 1)
        s01 = np.maximum(under_squared / m**2 - n * (1 - auc) ** 2, 0) / (n - 1)
        return MetricEstimate(auc, s10 / m + s01 / n)
