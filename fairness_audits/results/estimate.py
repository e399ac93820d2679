"""Estimates over repetitions with their spread."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np


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
