"""An estimate over repetitions with its spread."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import bdtr, stdtrit


@dataclass(frozen=True)
class Estimate:
    """A mean or median over ``n`` repetitions with their spread, a share of ``n``, or an interval's ends.

    What an estimate lacks is NaN (``n`` is 0). ``std`` is the sample standard deviation, with n - 1. A ``text`` is
    printed as it is, in place of the numbers.
    """

    value: float
    std: float = math.nan
    n: int = 0
    low: float = math.nan
    high: float = math.nan
    text: str = ""

    @classmethod
    def mean(cls, values: np.ndarray) -> Estimate:
        """Mean and sample standard deviation of finite values; NaN where there is none."""
        finite = np.asarray(values, float)
        finite = finite[np.isfinite(finite)]
        if not len(finite):
            return cls(math.nan)
        spread = float(finite.std(ddof=1)) if len(finite) > 1 else math.nan
        return cls(float(finite.mean()), spread, len(finite))

    @classmethod
    def median(cls, values: np.ndarray, level: float = 0.95) -> Estimate:
        """Median of the n finite values, with the interval that the sign test keeps; NaN ends for n < 6 at level .95.

        Its ends are the j-th smallest and the j-th largest value, j the most with P(Binomial(n, 1/2) < j) <=
        (1 - level) / 2, so it holds for any distribution.
        """
        finite = np.sort(np.asarray(values, float)[np.isfinite(values)])
        if not len(finite):
            return cls(math.nan)
        j = int(np.count_nonzero(bdtr(np.arange(len(finite)), len(finite), 0.5) < (1 - level) / 2))
        low, high = (float(finite[j - 1]), float(finite[-j])) if j else (math.nan, math.nan)
        return cls(float(np.median(finite)), n=len(finite), low=low, high=high)

    @classmethod
    def share(cls, values: np.ndarray) -> Estimate:
        """The share of ones among the finite values; a share has no spread of its own."""
        return replace(cls.mean(values), std=math.nan)

    def with_t_interval(self, level: float = 0.95, least: float = -math.inf, most: float = math.inf) -> Estimate:
        """value -+ t_{(1 + level)/2, n-1} std / sqrt(n): the interval for the mean over repetitions; NaN for n < 2.

        What no mean can be, below ``least`` and above ``most``, is left out of it.
        """
        if self.n < 2:
            return self
        half = float(stdtrit(self.n - 1, (1 + level) / 2)) * self.std / math.sqrt(self.n)
        return Estimate(self.value, self.std, self.n, max(self.value - half, least), min(self.value + half, most))
