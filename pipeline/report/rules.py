"""Rules that compare published numbers with ours: a p-value or equality, and the interval of the difference.

Let d be ours minus published, for two estimates (mean or share, standard deviation s, number n) at a level such as .95.
A printed number represents all values that round to it. Tests take d to the nearest such value, and intervals are
widened by ``rounding``. The rule depends on the kind of number:

* ``mean``: Welch's test, t = d / sqrt(s1^2 / n1 + s2^2 / n2) with the Welch-Satterthwaite degrees of freedom f, and its
  interval d -+ t_{(1 + level)/2, f} sqrt(s1^2 / n1 + s2^2 / n2). The interval contains 0 if and only if the test does
  not reject.
* ``run``, one number x without a spread against n repetitions: a predictive check, t = d / (s sqrt(1 + 1/n)) with
  n - 1 degrees of freedom. For independent draws from one normal distribution, x - mean has the variance
  sigma^2 (1 + 1/n). The interval is the prediction interval of our mean minus one more draw, centred at d.
* ``proportion`` of repetitions or simulations: a predictive check of the published k of n under our rate. With our
  k' of n' and a uniform prior on the rate, k is beta-binomial with parameters n, k' + 1, n' - k' + 1, and
  p = 2 min(P(K <= k), P(K >= k)). The interval is Newcombe's hybrid score interval (Statistics in Medicine 17, 1998,
  method 10) from Wilson's intervals [l_i, u_i] of both shares: d - sqrt((p1 - l1)^2 + (u2 - p2)^2),
  d + sqrt((u1 - p1)^2 + (p2 - l2)^2).
* ``variance`` over n groups or draws: the F test of two variances, F = s^2 / s'^2, with the degrees of freedom of both.
  The interval is the interval of their ratio, multiplied by the published variance.
* ``constant`` (a row count, a hyperparameter) and ``reading`` off a figure: equality within the rounding or within the
  reading error.

A share is not compared if no published count could be rejected.

Equivalence is shown by two one-sided tests (TOST) at level .05: the 90 % interval lies within a margin about 0. For a
mean, the margin is ``MEAN_MARGIN`` published standard deviations, because few repetitions could show a smaller one. The
means themselves differ by at most ``CLOSE`` of them. For a share, it is ``SHARE_MARGIN`` of the published share of
the rarer outcome. A single number without a spread has no margin, because one more draw cannot be shown to be equal.

Each comparison has a power. For means it is the probability that truly equal means are shown to agree. For a predictive
check it is the probability that the check rejects a published number from a shifted distribution. The shift is
``SHARE_SHIFT`` towards the farther end for a rate and ``RUN_SHIFT`` of our standard deviations for a run. If the check
does not reject and has power ``ENOUGH_POWER``, the published number is consistent with ours. Because the shift of a run
is in our standard deviations, its power depends on our number of repetitions only. A predictive check therefore also
has a *detectable* difference, in the units of the number: the smallest shift at which its power is ``ENOUGH_POWER``.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq
from scipy.stats import betabinom, binom, nct, ttest_ind_from_stats
from scipy.stats import f as fisher
from scipy.stats import t as student

from fairness_audits.results.estimate import Estimate
from fairness_audits.values import Array
from pipeline.report.estimators import difference_of_shares

MEAN_MARGIN = 1.5
"""Largest difference of two expectations that agreement leaves possible, in published standard deviations."""
CLOSE = 0.5
"""Largest difference of two means that counts as agreement, in published standard deviations."""
SHARE_MARGIN = 0.25
"""Largest difference of two shares that agreement leaves possible, as a part of the share of the rarer outcome."""
SHARE_SHIFT, RUN_SHIFT = 0.5, 4.0
"""Shifts at which the power of a predictive check is computed: of a rate, and of a run in standard deviations."""
ENOUGH_POWER = 0.8
"""Smallest power at which a passed predictive check is informative."""


@dataclass(frozen=True)
class Outcome:
    """An unadjusted p-value, or equality for constants and readings, with the difference and its interval."""

    p: float = math.nan
    equal: bool | None = None
    difference: float = math.nan
    low: float = math.nan
    high: float = math.nan
    equivalent: bool = False
    """True if TOST shows equivalence."""
    power: float = math.nan
    detectable: float = math.nan
    """Smallest difference that a predictive check detects with power ``ENOUGH_POWER``."""


def means(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Compute Welch's test and interval. If neither side has a spread, p is 1 for d = 0 and 0 otherwise."""
    gap = ours.value - published.value
    nearest = max(abs(gap) - rounding, 0.0)
    error, freedom = _standard_error(published, ours)
    if error == 0:
        return Outcome(float(nearest == 0), None, gap, gap - rounding, gap + rounding)
    p = ttest_ind_from_stats(nearest, published.std, published.n, 0.0, ours.std, ours.n, equal_var=False).pvalue
    half = rounding + float(student.ppf((1 + level) / 2, freedom)) * error
    return Outcome(float(p), None, gap, gap - half, gap + half)


def _standard_error(*sides: Estimate) -> tuple[float, float]:
    """Return the standard error of the difference of two means and the Welch-Satterthwaite degrees of freedom."""
    squares = [side.std**2 / side.n for side in sides]
    if sum(squares) == 0:
        return 0.0, math.nan
    freedom = sum(squares) ** 2 / sum(s**2 / (side.n - 1) for s, side in zip(squares, sides, strict=True))
    return math.sqrt(sum(squares)), freedom


def one_run(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Compare one published draw with our n draws."""
    gap = ours.value - published.value
    nearest = max(abs(gap) - rounding, 0.0)
    half = rounding + float(student.ppf((1 + level) / 2, ours.n - 1)) * ours.std * math.sqrt(1 + 1 / ours.n)
    if ours.std == 0:
        p = float(nearest == 0)
    else:
        p = float(2 * student.sf(nearest / (ours.std * math.sqrt(1 + 1 / ours.n)), ours.n - 1))
    return Outcome(p, None, gap, gap - half, gap + half)


def shares(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Test the published k of n under our rate, with Newcombe's interval. The count k is exact, not rounded."""
    gap = difference_of_shares(ours, published, level)
    p = predictive(ours, published.n)[round(published.value * published.n)]
    return Outcome(float(p), None, gap.value, gap.low, gap.high)


def predictive(ours: Estimate, n: int) -> Array:
    """Return the p-values of the published counts 0, ..., n given our share."""
    k = round(ours.value * ours.n)
    chance = betabinom.pmf(np.arange(n + 1), n, k + 1, ours.n - k + 1)
    at_most, at_least = np.cumsum(chance), np.cumsum(chance[::-1])[::-1]
    return np.minimum(1.0, 2 * np.minimum(at_most, at_least))


def could_differ(published: Estimate, ours: Estimate, level: float) -> bool:
    """Return whether the predictive check would reject some published count at level 1 - ``level``."""
    return bool(predictive(ours, published.n).min() <= 1 - level)


def power_of_means(published: Estimate, ours: Estimate, rounding: float, level: float) -> float:
    """Return the probability that equal means with these standard deviations agree."""
    error, freedom = _standard_error(published, ours)
    if error == 0:
        return 1.0
    room = (MEAN_MARGIN * published.std - rounding) / error - float(student.ppf(level, freedom))
    most = min(room, (CLOSE * published.std + rounding) / error)
    return max(0.0, 2 * float(student.cdf(most, freedom)) - 1)


def power_of_shares(
    published: Estimate, ours: Estimate, rounding: float, level: float, shift: float = SHARE_SHIFT
) -> float:
    """Return the probability that the check rejects a count at a rate ``shift`` from ours, to the farther end."""
    rate = ours.value - math.copysign(shift, ours.value - 0.5)
    chance = binom.pmf(np.arange(published.n + 1), published.n, rate)
    return float(chance[predictive(ours, published.n) <= 1 - level].sum())


def detectable_share(published: Estimate, ours: Estimate, rounding: float, level: float) -> float:
    """Return the smallest shift of the rate towards the farther end at which the power is ``ENOUGH_POWER``."""

    def lacking(shift: float) -> float:
        return power_of_shares(published, ours, rounding, level, shift) - ENOUGH_POWER

    farthest = max(ours.value, 1 - ours.value)
    return float(brentq(lacking, 0, farthest)) if lacking(0) < 0 < lacking(farthest) else math.nan


def power_of_run(published: Estimate, ours: Estimate, rounding: float, level: float, shift: float = RUN_SHIFT) -> float:
    """Return the probability that the check rejects a run with a mean ``shift`` of our standard deviations away."""
    freedom, moved = ours.n - 1, shift / math.sqrt(1 + 1 / ours.n)
    bound = float(student.ppf((1 + level) / 2, freedom))
    # The chance of a rejection on the other side is 0 for a large shift, where scipy has no value.
    return float(nct.sf(bound, freedom, moved) + np.nan_to_num(nct.cdf(-bound, freedom, moved)))


def detectable_run(published: Estimate, ours: Estimate, rounding: float, level: float) -> float:
    """Return the smallest difference of a run at which the power is ``ENOUGH_POWER``."""

    def lacking(shift: float) -> float:
        return power_of_run(published, ours, rounding, level, shift) - ENOUGH_POWER

    # With two repetitions the critical value of Student's t is 12.7.
    return rounding + ours.std * float(brentq(lacking, 0, 100))


def variances(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Compute the two-sided F test of equal variances of normal draws."""
    freedom = ours.n - 1, published.n - 1
    printed, low, high = published.value, published.value - rounding, published.value + rounding
    ratio = ours.value / min(max(ours.value, low), high)
    p = 2 * min(fisher.cdf(ratio, *freedom), fisher.sf(ratio, *freedom))
    ends = (ours.value / float(fisher.ppf((1 + sign * level) / 2, *freedom)) for sign in (1, -1))
    return Outcome(min(float(p), 1.0), None, ours.value - printed, next(ends) - high, next(ends) - low)


def equality(published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
    """Test equality within ``rounding``, or to nine digits."""
    tolerance = max(0.0 if math.isnan(rounding) else rounding, 1e-9 * abs(published.value))
    return Outcome(equal=bool(abs(ours.value - published.value) <= tolerance * (1 + 1e-9)))


Compare = Callable[[Estimate, Estimate, float, float], Outcome]


@dataclass(frozen=True)
class Rule:
    """The rule of a kind of number: its name, the estimator of our number (see :mod:`pipeline.report.estimators`), the
    columns of the published number that it needs, and its test.
    """

    called: str
    estimator: str
    needs: tuple[str, ...]
    test: Compare
    spread: bool = False
    """Whether our estimate must have a spread."""
    margin: Callable[[Estimate], float] = lambda published: math.nan
    """Largest difference that agreement leaves possible; NaN if agreement cannot be shown."""
    close: Callable[[Estimate], float] = lambda published: math.inf
    """Largest difference of the numbers themselves that counts as agreement."""
    decides: Callable[[Estimate, Estimate, float], bool] = lambda published, ours, level: True
    """Whether some outcome would be rejected at this level. Otherwise a test that does not reject is uninformative."""
    power: Callable[[Estimate, Estimate, float, float], float] = lambda *sides: math.nan
    detectable: Callable[[Estimate, Estimate, float, float], float] = lambda *sides: math.nan
    predictive: bool = False

    def compare(self, published: Estimate, ours: Estimate, rounding: float, level: float) -> Outcome:
        """Compute the test at level 1 - ``level``, TOST at the same level, the power and the detectable difference."""
        found = self.test(published, ours, rounding, level)
        inner = self.test(published, ours, rounding, 2 * level - 1)
        margin = self.margin(published)
        close = not abs(found.difference) - rounding > self.close(published)
        equivalent = close and -margin <= inner.low and inner.high <= margin
        sides = published, ours, rounding, level
        return replace(found, equivalent=equivalent, power=self.power(*sides), detectable=self.detectable(*sides))


RULES = {
    "mean": Rule(
        "Welch's test", "mean", ("value", "std", "n", "rounding"), means, spread=True,
        margin=lambda published: MEAN_MARGIN * published.std, close=lambda published: CLOSE * published.std,
        power=power_of_means,
    ),
    "run": Rule(
        "one more repetition", "mean", ("value", "rounding"), one_run, spread=True, power=power_of_run,
        detectable=detectable_run, predictive=True,
    ),
    "proportion": Rule(
        "predictive check", "share", ("value", "n"), shares,
        margin=lambda published: SHARE_MARGIN * min(published.value, 1 - published.value),
        decides=could_differ, power=power_of_shares, detectable=detectable_share, predictive=True,
    ),
    "variance": Rule("F test", "variance", ("value", "n", "rounding"), variances),
    "constant": Rule("equality", "value", ("value",), equality),
    "reading": Rule("reading error", "value", ("value", "rounding"), equality),
}  # fmt: skip
