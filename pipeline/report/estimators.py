"""Estimators by name: how a number and its interval follow from the tidy rows of a quantity.

A claim, a published number, a table and a figure name an estimator of this list. They therefore print the same interval
of a quantity. An estimator takes one row per repetition (``repetition``, ``value``), and further columns that it names.
With the rows of a second quantity, it estimates the difference. An interval that does not exist has NaN ends.

* ``mean``: the mean over the repetitions, or of the paired differences, because repetitions share splits, with
  Student's interval. If all values are equal, the interval is that value from ``ENOUGH`` repetitions on. There is no
  interval if a value is infinite or undefined, because the mean of the others says nothing about it.
* ``mean of log``: exp of the mean logarithm, that is the geometric mean, or the ratio of two, with exp of Student's
  interval. It suits positive ratios that are sometimes very large. It has no correction for overlapping splits.
* ``mean of shares``: as ``mean``, for shares of ``groups`` of one network. The standard deviation is at least that of
  chance.
* ``mean with error``: the mean with the normal interval of the mean ``error``, a standard error over points that the
  repetitions share. The interval holds under any dependence of the repetitions.
* ``share``: k of n with Wilson's interval. A row is a share of as many trials as its column ``simulations`` says, or
  one trial. Two shares have Newcombe's interval, which ignores a pairing.
* ``paired share``: (b - c) / J for two shares of the same J repetitions, where b and c count the discordant pairs, with
  Tango's score interval.
* ``spread of log``: the standard deviation of the logarithm, or the ratio of two, with the percentiles of
  ``RESAMPLES`` bootstrap samples of the repetitions.
* ``mean square``: mean squares over their expectations (Cochran's Q over its degrees of ``freedom``), pooled, with the
  interval from the chi-squared distribution.
* ``median``: the median over the repetitions with the interval of the sign test, which is valid for any distribution.
* ``median p``: one p-value for the p-values of dependent splits. It has no interval: the number is compared itself.
* ``variance``, ``value``: a number without an interval.

A mean over J splits of the same rows has the corrected variance of Nadeau and Bengio, (1 / J + overlap) s^2 with
``overlap`` = test rows / train rows, if it is to hold for new data (Machine Learning 52, 2003).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import bdtr, stdtrit
from scipy.stats import chi2, norm

from fairness_audits.audits.inference import Ends, wilson_interval
from fairness_audits.audits.permutation.paired import score_interval
from fairness_audits.errors import InvalidInput
from fairness_audits.results.estimate import Estimate
from fairness_audits.values import Array
from pipeline.report.selection import check_repetitions

LEVEL = 0.95
EVERY = (-math.inf, math.inf)
EQUAL = 1e-12
"""Rounding error of equal values, relative to the largest."""
ENOUGH = 5
"""Fewer equal values show nothing: if half of all values differ, four are equal with probability .5 ** 4 > .05."""
RESAMPLES = 10_000
Sides = Sequence[pd.DataFrame]
"""The rows of a quantity, or of two quantities whose difference is estimated."""


def estimate(name: str, *sides: pd.DataFrame | Array, level: float = LEVEL, **options: Any) -> Estimate:
    """Estimate a quantity, or the difference of two, by the estimator ``name``, with its interval at ``level``.

    Rows may be given as an array of values, one per repetition. Raises InvalidInput if the rows lack a column that the
    estimator needs, or have several values for a repetition.
    """
    chosen = ESTIMATORS[name]
    frames = [*map(_tidy, sides)]
    if absent := [column for column in chosen.needs for one in frames if column not in one]:
        raise InvalidInput(f"the estimator {name!r} needs the column {absent[0]!r}", column=absent[0])
    return chosen.of(frames, level, **options)


def _tidy(rows: pd.DataFrame | Array) -> pd.DataFrame:
    """Return one row per repetition, in their order."""
    if not isinstance(rows, pd.DataFrame):
        rows = pd.DataFrame({"repetition": np.arange(len(rows)), "value": rows})
    check_repetitions(rows)
    rows = rows if rows["repetition"].is_monotonic_increasing else rows.sort_values("repetition")
    return rows if rows["value"].dtype == float else rows.astype({"value": float})


def _mean(sides: Sides, level: float, **how: Any) -> Estimate:
    return _student(_paired(sides), level, 0.0, **how)


def _mean_of_log(sides: Sides, level: float) -> Estimate:
    found = _student(_paired([*map(_logarithms, sides)]), level, 0.0)
    return Estimate(math.exp(found.value), n=found.n, low=math.exp(found.low), high=math.exp(found.high))


def _logarithms(rows: pd.DataFrame) -> pd.DataFrame:
    """Take logarithms. A value that has none is undefined, and so is the mean."""
    values = rows["value"].where(rows["value"] > 0)
    return rows.assign(value=np.log(values))


def _spread_of_log(sides: Sides, level: float) -> Estimate:
    values = pd.concat([_logarithms(rows).set_index("repetition")["value"] for rows in sides], axis=1, join="inner")
    logs = values.to_numpy()
    if len(logs) < 2 or not np.isfinite(logs).all():
        return Estimate(math.nan, n=len(logs))
    drawn = logs[np.random.default_rng(0).integers(len(logs), size=(RESAMPLES, len(logs)))]
    spreads = np.concatenate([logs[None].std(axis=1, ddof=1), drawn.std(axis=1, ddof=1)])
    with np.errstate(divide="ignore", invalid="ignore"):
        found = spreads[:, 0] / spreads[:, 1] if len(sides) > 1 else spreads[:, 0]
    low, high = np.nanquantile(found[1:], [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(found[0]), n=len(logs), low=float(low), high=float(high))


def _mean_of_shares(sides: Sides, level: float, **how: Any) -> Estimate:
    return _student(_paired(sides), level, math.hypot(*map(_by_chance, sides)), **how)


def _paired(sides: Sides) -> Array:
    """Return one value per repetition, or the differences of the repetitions that both sides have."""
    one, *others = (rows.set_index("repetition")["value"] for rows in sides)
    if others:
        one, other = one.align(others[0], join="inner")
        one = one - other
    return one.to_numpy()


def _student(
    values: Array, level: float, chance: float, limits: Sequence[float] = EVERY, overlap: float = 0.0
) -> Estimate:
    """Estimate a mean whose standard deviation is at least ``chance``. The interval is clipped to the possible
    ``limits``.
    """
    found = Estimate.mean(values)
    equal = found.n > 0 and np.ptp(values) <= EQUAL * max(1.0, np.abs(values).max())
    if found.n < max(2, len(values)) or (equal and not chance > 0 and found.n < ENOUGH):
        return found
    deviation = max(found.std, chance)
    spread = deviation * math.sqrt(1 + found.n * overlap)
    half = float(stdtrit(found.n - 1, (1 + level) / 2)) * spread / math.sqrt(found.n)
    least, most = map(float, limits)
    return replace(found, low=max(found.value - half, least), high=min(found.value + half, most))


def _by_chance(rows: pd.DataFrame) -> float:
    """Return the standard deviation of shares of ``groups`` with one common probability."""
    share = float(np.average(rows["value"], weights=rows["groups"]))
    return math.sqrt(share * (1 - share) * float((1 / rows["groups"]).mean()))


def _mean_with_error(sides: Sides, level: float) -> Estimate:
    value, *others = (float(rows["value"].mean()) for rows in sides)
    errors = [float(rows["error"].mean(skipna=False)) for rows in sides]
    half = float(norm.ppf((1 + level) / 2)) * math.hypot(*errors)
    value -= sum(others)
    # The number of draws behind the error of a row counts, if it is known.
    n = int(sides[0]["draws"].sum()) if "draws" in sides[0] else 0
    return Estimate(value, n=n or len(sides[0]), low=value - half, high=value + half)


def _share(sides: Sides, level: float, trials: str = "simulations") -> Estimate:
    one, *others = (_pooled([rows], level, trials) for rows in sides)
    return difference_of_shares(one, others[0], level) if others else with_wilson(one, level)


def _pooled(sides: Sides, level: float, trials: str = "simulations") -> Estimate:
    """Pool the finite values, weighted by the numbers of trials."""
    (rows,) = sides
    values = rows["value"].to_numpy()
    counted = trials in rows and rows[trials].notna().all()
    number = rows[trials].to_numpy(float) if counted else np.ones(len(rows))
    known = np.isfinite(values)
    if not known.any():
        return Estimate(math.nan)
    return Estimate(float(np.average(values[known], weights=number[known])), n=int(number[known].sum()))


def _paired_share(sides: Sides, level: float) -> Estimate:
    """Count each repetition as 0 or 1 on both sides."""
    difference = _paired(sides)
    if len(sides) < 2 or not np.isin(difference, (-1, 0, 1)).all():
        return Estimate(math.nan)
    up, down, n = int((difference > 0).sum()), int((difference < 0).sum()), len(difference)
    low, high = score_interval(up, down, n, (1 - level) / 2)
    return Estimate((up - down) / n, n=n, low=low, high=high)


def with_wilson(share: Estimate, level: float = LEVEL) -> Estimate:
    """Add Wilson's interval to a share of n."""
    low, high = wilson_interval(share.value, share.n, level)
    return replace(share, low=low, high=high)


def difference_of_shares(one: Estimate, other: Estimate, level: float = LEVEL) -> Estimate:
    """Return the difference of two shares, with Newcombe's interval and the number of the first."""
    first, second = (Ends(side.value, *wilson_interval(side.value, side.n, level)) for side in (one, other))
    difference, low, high = first.minus(second)
    return Estimate(difference, n=one.n, low=low, high=high)


def wilson_band(values: Array, n: int, level: float = LEVEL) -> Array:
    """Return Wilson's intervals (2, k) of shares (k,) of n each; NaN for n = 0."""
    return np.array([wilson_interval(float(value), n, level) for value in values], float).reshape(-1, 2).T


def _mean_square(sides: Sides, level: float) -> Estimate:
    (rows,) = sides
    freedom = rows["freedom"].to_numpy(float)
    square, total = float((rows["value"].to_numpy() * freedom).sum()), float(freedom.sum())
    low, high = (square / float(chi2.ppf((1 + sign * level) / 2, total)) for sign in (1, -1))
    return Estimate(square / total, n=len(rows), low=low, high=high)


def _median(sides: Sides, level: float) -> Estimate:
    """Estimate the median of the n finite values.

    The ends are the j-th smallest and the j-th largest value, where j is the largest number with
    P(Binomial(n, 1/2) < j) <= (1 - level) / 2. There are none for n < 6 at level .95.
    """
    (rows,) = sides
    finite = np.sort(rows["value"].to_numpy()[np.isfinite(rows["value"])])
    if not len(finite):
        return Estimate(math.nan)
    j = int(np.count_nonzero(bdtr(np.arange(len(finite)), len(finite), 0.5) < (1 - level) / 2))
    low, high = (float(finite[j - 1]), float(finite[-j])) if j else (math.nan, math.nan)
    return Estimate(float(np.median(finite)), n=len(finite), low=low, high=high)


def _median_p(sides: Sides, level: float) -> Estimate:
    (rows,) = sides
    return Estimate(combined(rows["value"].to_numpy()), n=len(rows))


def combined(p_values: Array) -> float:
    """Combine the p-values of m dependent splits: (m / k) p_(k), k = ceil(m / 2), at most 1.

    p_(k) is the k-th smallest p-value. If every hypothesis holds, the expected number of p-values of at most t k / m is
    at most t k. By Markov's inequality, k of them are that small with probability at most t (Rueger 1978). The
    dependence of the splits does not matter. A split without a test (NaN) counts as p = 1; the result is NaN if no
    split has a test. For p-values adjusted by Holm's method within each split, the same argument, applied to the
    smallest p-value of the true hypotheses, bounds the family-wise error.
    """
    p = np.asarray(p_values, float)
    if not np.isfinite(p).any():
        return math.nan
    ordered = np.sort(np.where(np.isnan(p), 1.0, p))
    k = -(-len(ordered) // 2)
    return float(min(1.0, len(ordered) / k * ordered[k - 1]))


def _value(sides: Sides, level: float) -> Estimate:
    """Return the number of all repetitions. The mean of equal values may differ from them by rounding."""
    (rows,) = sides
    values = rows["value"].to_numpy()
    return Estimate(float(values[0] if (values == values[0]).all() else values.mean()))


@dataclass(frozen=True)
class Estimator:
    """A function of rows and a level, what it estimates, the columns that it needs, and its options.

    ``equal`` is the value of a comparison of two equal sides. A ``decisive`` number is compared itself, because it has
    no interval.
    """

    of: Callable[..., Estimate]
    target: str
    needs: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    equal: float = 0.0
    decisive: bool = False


OF_MEANS = ("limits", "overlap")
ESTIMATORS: Mapping[str, Estimator] = {
    "mean": Estimator(_mean, "the expectation over repetitions", options=OF_MEANS),
    "mean of log": Estimator(_mean_of_log, "the geometric mean over repetitions", equal=1.0),
    "spread of log": Estimator(_spread_of_log, "the standard deviation of the logarithm over repetitions", equal=1.0),
    "mean of shares": Estimator(_mean_of_shares, "the expected share of groups of a network", ("groups",), OF_MEANS),
    "mean with error": Estimator(_mean_with_error, "the value without the sampling of points", ("error",)),
    "share": Estimator(_share, "the probability in a repetition or simulation", options=("trials",)),
    "paired share": Estimator(_paired_share, "the difference of two probabilities in a repetition"),
    "mean square": Estimator(_mean_square, "the ratio of a variance to its expectation", ("freedom",)),
    "median": Estimator(_median, "the median over repetitions"),
    "median p": Estimator(_median_p, "a p-value that is valid for dependent splits", decisive=True),
    "variance": Estimator(_pooled, "the variance over groups"),
    "value": Estimator(_value, "the number itself"),
}
