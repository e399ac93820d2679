"""How far apart two numbers may be: confidence intervals of the difference, ours less published.

* Means: Welch's interval d -+ t_{(1 + level)/2, f} sqrt(s1^2 / n1 + s2^2 / n2) with the Welch-Satterthwaite degrees of
  freedom f, widened by ``rounding`` on both sides, since a printed number stands for all that round to it. It holds 0
  exactly where Welch's test at 1 - level does not reject.
* Shares: Newcombe's hybrid score interval (Statistics in Medicine 17, 1998, method 10), from Wilson's intervals
  [l_i, u_i] of both shares: d - sqrt((p1 - l1)^2 + (u2 - p2)^2), d + sqrt((u1 - p1)^2 + (p2 - l2)^2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.stats import norm
from scipy.stats import t as student

from pipeline.report.numbers import Estimate


@dataclass(frozen=True)
class Difference:
    """A difference with the ends of its interval."""

    value: float
    low: float
    high: float


UNKNOWN = Difference(math.nan, math.nan, math.nan)


def of_means(published: Estimate, ours: Estimate, rounding: float, level: float) -> Difference:
    """Welch's interval for two means with their standard deviations; without any spread, the rounding alone."""
    gap = ours.value - published.value
    errors = [estimate.std**2 / estimate.n for estimate in (published, ours)]
    half = rounding
    if sum(errors) > 0:
        parts = (error**2 / (estimate.n - 1) for error, estimate in zip(errors, (published, ours), strict=True))
        freedom = sum(errors) ** 2 / sum(parts)
        half += float(student.ppf((1 + level) / 2, freedom)) * math.sqrt(sum(errors))
    return Difference(gap, gap - half, gap + half)


def of_shares(published: Estimate, ours: Estimate, level: float) -> Difference:
    """Newcombe's interval for two shares."""
    p, q = ours.value, published.value
    (low, high), (below, above) = wilson(ours, level), wilson(published, level)
    return Difference(p - q, p - q - math.hypot(p - low, above - q), p - q + math.hypot(high - p, q - below))


def wilson(share: Estimate, level: float) -> tuple[float, float]:
    """(p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), z the normal (1 + level) / 2 quantile."""
    z, n, p = float(norm.ppf((1 + level) / 2)), share.n, share.value
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    middle, size = p + z**2 / (2 * n), 1 + z**2 / n
    # At shares of 0 and 1 an end is that share, but for rounding.
    return max((middle - half) / size, 0.0), min((middle + half) / size, 1.0)
