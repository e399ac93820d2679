"""Estimates over repetitions with their spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtr, stdtrit


@dataclass(frozen=True)
class Estimate:
    """A mean or median over ``n`` repetitions with its spread, a share of ``n``, or the ends of an interval.

    Missing parts are NaN (``n`` is 0). ``std`` is the sample standard deviation with denominator n - 1. A ``text`` is
    printed unchanged in place of the numbers.
    """

    value: float
    std: float = math.nan
    n: int = 0
    low: float = math.nan
    high: float = math.nan
    text: str = ""

    @classmethod
    def mean(cls, values: np.ndarray) -> Estimate:
        """Compute the mean and sample standard deviation of the finite values; NaN if there are none."""
        finite = np.asarray(values, float)
        finite = finite[np.isfinite(finite)]
        if not len(finite):
            return cls(math.nan)
        spread = float(finite.std(ddof=1)) if len(finite) > 1 else math.nan
        return cls(float(finite.mean()), spread, len(finite))

    @classmethod
    def median(cls, values: np.ndarray) -> Estimate:
        """Compute the median of the n finite values, with the 95 % confidence interval of the sign test.

        The ends are the j-th smallest and the j-th largest value, where j is the largest number with
        P(Binomial(n, 1/2) < j) <= 0.025. The interval is valid for any distribution. Its ends are NaN for n < 6.
        """
        finite = np.sort(np.asarray(values, float)[np.isfinite(values)])
        if not len(finite):
            return cls(math.nan)
        j = int(np.count_nonzero(bdtr(np.arange(len(finite)), len(finite), 0.5) < (1 - 0.95) / 2))
        low, high = (float(finite[j - 1]), float(finite[-j])) if j else (math.nan, math.nan)
        return cls(float(np.median(finite)), n=len(finite), low=low, high=high)

    @classmethod
    def share(cls, values: np.ndarray) -> Estimate:
        """Compute the share of ones among the finite values, without a standard deviation."""
        return replace(cls.mean(values), std=math.nan)

    def with_t_interval(self, level: float = 0.95, least: float = -math.inf, most: float = math.inf) -> Estimate:
        """Add the interval value -+ t_{(1 + level)/2, n-1} std / sqrt(n) of the mean over repetitions; NaN for n < 2.

        The interval is clipped to the possible means, from ``least`` to ``most``.
        """
        if self.n < 2:
            return self
        half = float(stdtrit(self.n - 1, (1 + level) / 2)) * self.std / math.sqrt(self.n)
        return Estimate(self.value, self.std, self.n, max(self.value - half, least), min(self.value + half, most))
