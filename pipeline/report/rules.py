"""How a published number of each kind is held against ours: a p-value or equality, and the interval of the difference.

Ours less published, d, of two estimates (mean or share, standard deviation s, number n) at a level such as .95. A
printed number stands for all that round to it: tests take d to the nearest of them, and intervals are widened by
``rounding``.

* ``mean``: Welch's test, t = d / sqrt(s1^2 / n1 + s2^2 / n2) with the Welch-Satterthwaite degrees of freedom f, and its
  interval d -+ t_{(1 + level)/2, f} sqrt(s1^2 / n1 + s2^2 / n2), which holds 0 exactly where the test does not reject.
* ``run``, one number x without a spread against n repetitions: t = d / (s sqrt(1 + 1/n)), n - 1 degrees of freedom. For
  independent normal draws with the same law x - mean has the variance sigma^2 (1 + 1/n). The interval is that of our
  mean less one more draw like ours, about the difference that was found.
* ``proportion`` of repetitions or simulations: Fisher's exact test, and Newcombe's hybrid score interval (Statistics in
  Medicine 17, 1998, method 10) from Wilson's intervals [l_i, u_i] of both shares: d - sqrt((p1 - l1)^2 + (u2 - p2)^2),
  d + sqrt((u1 - p1)^2 + (p2 - l2)^2).
* ``variance`` over n groups or draws: the F test of two variances, F = s^2 / s'^2 with the degrees of freedom of both;
  the interval is that of their ratio, times the published one.
* ``constant`` (a row count, a hyperparameter), ``reading`` off a figure: equal within the rounding, or within the error
  of reading.

A share of so few that Fisher's test could reject for none of its values is not compared.

Equivalence: the whole interval lies within a margin about 0, for a mean one published standard deviation, for a share
``SHARE_MARGIN``. One number without a spread has no margin: one more draw cannot be shown to be equal.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from scipy.stats import f as fisher
from scipy.stats import fisher_exact, norm, ttest_ind_from_stats
from scipy.stats import t as student

from fairness_audits.results.estimate import Estimate

SHARE_MARGIN = 0.1
"""The largest difference of two shares that counts as agreement."""


@dataclass(frozen=True)
class Outcome:
    """A p-value before adjustment or, for constants and readings, equality; the difference and its interval's ends."""

    p: float = math.nan
    equal: bool | None = None
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan


def means(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Welch's test and interval. Without any spread on both sides p is 1 for d = 0 and 0 otherwise."""
    sides = (published, ours)
    squares = [side.std**2 / side.n for side in sides]
    gap = ours.value - published.value
    nearest = max(abs(gap) - rounding, 0.0)
    if sum(squares) == 0:
        return Outcome(float(nearest == 0), None, gap, gap - rounding, gap + rounding)
    p = ttest_ind_from_stats(nearest, published.std, published.n, 0.0, ours.std, ours.n, equal_var=False).pvalue
    freedom = sum(squares) ** 2 / sum(s**2 / (side.n - 1) for s, side in zip(squares, sides, strict=True))
    half = rounding + float(student.ppf((1 + level) / 2, freedom)) * math.sqrt(sum(squares))
    return Outcome(float(p), None, gap, gap - half, gap + half)


def one_run(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """One draw against our n others."""
    gap = ours.value - published.value
    nearest = max(abs(gap) - rounding, 0.0)
    half = rounding + float(student.ppf((1 + level) / 2, ours.n - 1)) * ours.std * math.sqrt(1 + 1 / ours.n)
    if ours.std == 0:
        p = float(nearest == 0)
    else:
        p = float(2 * student.sf(nearest / (ours.std * math.sqrt(1 + 1 / ours.n)), ours.n - 1))
    return Outcome(p, None, gap, gap - half, gap + half)


def shares(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Fisher's exact test on k of n of both sides, and Newcombe's interval; what was printed is k of n, not rounded."""
    events = [(round(share.value * share.n), share.n) for share in (published, ours)]
    p, q = ours.value, published.value
    (low, high), (below, above) = wilson(ours, level), wilson(published, level)
    ends = (p - q - math.hypot(p - low, above - q), p - q + math.hypot(high - p, q - below))
    return Outcome(float(fisher_exact([[k, n - k] for k, n in events]).pvalue), None, p - q, *ends)


def could_differ(published: Estimate, ours: Estimate, level: float) -> bool:
    """Whether Fisher's exact test would reject at level 1 - ``level`` for some share of our n: all of them, or none."""
    events = round(published.value * published.n), published.n
    tables = ([[k, n - k] for k, n in (events, (extreme, ours.n))] for extreme in (0, ours.n))
    return min(float(fisher_exact(table).pvalue) for table in tables) <= 1 - level


def variances(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """The two-sided F test of equal variances of normal draws."""
    freedom = ours.n - 1, published.n - 1
    printed, low, high = published.value, published.value - rounding, published.value + rounding
    ratio = ours.value / min(max(ours.value, low), high)
    p = 2 * min(fisher.cdf(ratio, *freedom), fisher.sf(ratio, *freedom))
    ends = (ours.value / float(fisher.ppf((1 + sign * level) / 2, *freedom)) for sign in (1, -1))
    return Outcome(min(float(p), 1.0), None, ours.value - printed, next(ends) - high, next(ends) - low)


def wilson(share: Estimate, level: float) -> tuple[float, float]:
    """(p + z^2 / 2n -+ z sqrt(p (1 - p) / n + z^2 / 4n^2)) / (1 + z^2 / n), z the normal (1 + level) / 2 quantile."""
    z, n, p = float(norm.ppf((1 + level) / 2)), share.n, share.value
    half = z * math.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    middle, size = p + z**2 / (2 * n), 1 + z**2 / n
    # At shares of 0 and 1 an end is that share, but for rounding.
    return max((middle - half) / size, 0.0), min((middle + half) / size, 1.0)


def with_wilson(share: Estimate, level: float) -> Estimate:
    """The share with its Wilson interval."""
    low, high = wilson(share, level)
    return replace(share, low=low, high=high)


def equality(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Equal within ``rounding``, or to nine digits."""
    tolerance = max(0.0 if math.isnan(rounding) else rounding, 1e-9 * abs(published.value))
    return Outcome(equal=bool(abs(ours.value - published.value) <= tolerance * (1 + 1e-9)))


@dataclass(frozen=True)
class Rule:
    """What the rule of a kind is called, which columns of a published number it reads, and how it compares."""

    called: str
    needs: tuple[str, ...]
    compare: Callable[[Estimate, Estimate, float, float], Outcome]
    spread: bool = False
    """Whether ours must have one."""
    margin: Callable[[Estimate], float] = lambda published: math.nan
    """The largest difference that is agreement; NaN where none can be shown."""
    decides: Callable[[Estimate, Estimate, float], bool] = lambda published, ours, level: True
    """Whether, at that level, some outcome of ours would differ: else not to differ means nothing."""


RULES = {
    "mean": Rule(
        "Welch's test", ("value", "std", "n", "rounding"), means, spread=True, margin=lambda published: published.std
    ),
    "run": Rule("one more repetition", ("value", "rounding"), one_run, True),
    "proportion": Rule(
        "Fisher's exact test", ("value", "n"), shares, margin=lambda published: SHARE_MARGIN, decides=could_differ
    ),
    "variance": Rule("F test", ("value", "n", "rounding"), variances),
    "constant": Rule("equality", ("value",), equality),
    "reading": Rule("reading error", ("value", "rounding"), equality),
}
