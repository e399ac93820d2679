"""How far apart two numbers may be: confidence intervals of the difference, ours less published.

* Means: Welch's interval d -+ t_{(1 + level)/2, f} sqrt(s1^2 / n1 + s2^2 / n2) with the Welch-Satterthwaite degrees of
  freedom f, widened by ``rounding`` on both sides, since a printed number stands for all that round to it. It holds 0
  exactly where Welch's test at 1 - level does not reject.
* One run against n repetitions: the prediction interval d -+ t_{(1 + level)/2, n - 1} s sqrt(1 + 1/n), widened
  likewise.
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


def of_one_run(published: Estimate, ours: Estimate, rounding: float, level: float) -> Difference:
    """The prediction interval of our mean less one more draw like ours, about the difference that was found."""
    gap = ours.value - published.value
    half = rounding + float(student.ppf((1 + level) / 2, ours.n - 1)) * ours.std * math.sqrt(1 + 1 / ours.n)
    return Difference(gap, gap - half, gap + half)


def one_more(published: Estimate, ours: Estimate, rounding: float = 0.0) -> float:
    """Two-sided p-value of t = d / (s sqrt(1 + 1/n)), n - 1 degrees of freedom: one draw x against n others.

    For independent normal draws with the same law x - mean has the variance sigma^2 (1 + 1/n). d, ``rounding`` and the
    limit without any spread as in Welch's test. Raises ValueError for fewer than two repetitions of ours.
    """
    if ours.n < 2:
        raise ValueError(f"one run is held against at least two repetitions, found {ours.n}")
    gap = max(abs(ours.value - published.value) - rounding, 0.0)
    if ours.std == 0:
        return 1.0 if gap == 0 else 0.0
    return float(2 * student.sf(gap / (ours.std * math.sqrt(1 + 1 / ours.n)), ours.n - 1))


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
