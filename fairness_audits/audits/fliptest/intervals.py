r"""Intervals for the sizes of flipsets and for the lines of their transparency reports.

Under one map they say how far a number would move with other people of the same population, under the same map and the
same classifier. What other maps do to it is in :func:`over_trials`; a map that was fitted on the audited rows
themselves would move with them, which is left out here.

- A size is a count k among n people. Its interval is that of Clopper and Pearson (1934), all shares p that the count
  does not refute: low and high solve P(K >= k; p) = alpha / 2 and P(K <= k; p) = alpha / 2. It covers with probability
  1 - alpha at least, whatever n and p; nobody among n still has an upper end, n (1 - (alpha / 2)^{1/n}), near 3.7 at
  level .95.
- The net size is a difference of two counts of the same n people, b = |F+| and c = |F-|. Its interval is the score
  interval of Tango (1998): all differences delta of the two shares with

  .. math:: |b - c - n \delta| \le z_{1-\alpha/2} \sqrt{n (2 \tilde q + \delta (1 - \delta))}, \qquad
            \tilde q = \frac{\sqrt{B^2 - 4 A C} - B}{2 A},

  where A = 2 n, B = -b - c + (2 n - b + c) delta, C = -c delta (1 - delta), and q~ is the likeliest share of F- given
  delta. At delta = 0 it is McNemar's test; where nobody flips it is n times +- z^2 / (n + z^2).
- A mean sign is such a difference too, of the members whose feature is larger and smaller than their counterpart's.
- A mean shift is resampled. Member i enters W_i ~ Poisson(1) times, the limit of the multinomial count of one row:

  .. math:: \frac{\sum_{i \in F} W_i v_i}{\sum_{i \in F} W_i}

  Resamples without members are left out. The ends are quantiles, at the level Phi(-t_{1-alpha/2, k-1} sqrt(k/(k-1)))
  that makes them as far apart as Student's for k members (Hesterberg 2015, "expanded percentiles").

Members that all agree say little where there are few of them: if shifts were as often up as down, k members would all
go one way with probability 2^{1-k}. Below the k with which that is at most alpha (:func:`fewest`) no line has an
interval.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr, ndtri, stdtrit

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

WEIGHTS_AT_ONCE = 2**22
"""Poisson weights held in memory at a time."""
HALVINGS = 60
"""Of the range of a difference of shares, [-1, 1]: to the last digit."""

Interval = tuple[float, float]
NONE: Interval = (float("nan"), float("nan"))


@dataclass(frozen=True)
class SizeIntervals:
    """Lower and upper end for |F+|, |F-| and |F+| - |F-|, in people; NaN among nobody."""

    positive: Interval
    negative: Interval
    net: Interval


def size_intervals(positive: int, negative: int, n: int, alpha: float) -> SizeIntervals:
    """Intervals of level 1 - alpha for flipsets of these sizes among n people.

    Raises InvalidInput for sizes that are not counts of n people.
    """
    if min(positive, negative) < 0 or positive + negative > n:
        problem = f"expected sizes of two disjoint flipsets of {n} people, found {positive} and {negative}"
        raise InvalidInput(problem, option="negative" if negative < 0 else "positive")
    if n == 0:
        return SizeIntervals(NONE, NONE, NONE)
    low, high = difference_intervals(np.array([positive]), np.array([negative]), n, alpha)
    return SizeIntervals(
        count_interval(positive, n, alpha), count_interval(negative, n, alpha), (n * float(low[0]), n * float(high[0]))
    )


def count_interval(count: int, n: int, alpha: float) -> Interval:
    """The interval of Clopper and Pearson for the expected count k among n people."""
    low = betaincinv(count, n - count + 1, alpha / 2) if count else 0.0
    high = betainccinv(count + 1, n - count, alpha / 2) if count < n else 1.0
    return n * float(low), n * float(high)


def difference_intervals(more: Array, fewer: Array, n: int, alpha: float) -> tuple[Array, Array]:
    """Tango's intervals for the difference of two shares of the same n people: counts (c,) to both ends, (c,) each."""
    z = float(ndtri(1 - alpha / 2))
    low = _lower_end(more, fewer, n, z)
    return low, -_lower_end(fewer, more, n, z)


def fewest(alpha: float) -> int:
    r"""The members from which on a line has an interval of level 1 - alpha: the least k with 2^{1-k} <= alpha."""
    return math.ceil(1 + math.log2(1 / alpha))


def sign_intervals(signs: Array, alpha: float) -> tuple[Array, Array]:
    """Intervals for the column means of a flipset's signs (k, c) in {-1, 0, 1}: lower and upper ends, (c,) each."""
    k, columns = signs.shape
    if k < fewest(alpha):
        return np.full(columns, np.nan), np.full(columns, np.nan)
    return difference_intervals((signs > 0).sum(axis=0), (signs < 0).sum(axis=0), k, alpha)


def mean_intervals(values: Array, draws: int, alpha: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Bootstrap intervals for the column means of a flipset's values (k, c): lower and upper ends, (c,) each."""
    k, columns = values.shape
    unknown = np.full(columns, np.nan), np.full(columns, np.nan)
    if k < fewest(alpha):
        return unknown
    means = np.empty((draws, columns))
    at_once = max(1, WEIGHTS_AT_ONCE // k)
    for start in range(0, draws, at_once):
        weights = rng.poisson(1.0, size=(min(at_once, draws - start), k)).astype(float)
        total = weights.sum(axis=1, keepdims=True)
        means[start : start + at_once] = weights @ values / np.where(total > 0, total, np.nan)
    means = means[np.isfinite(means).all(axis=1)]
    if not len(means):
        return unknown
    tail = expanded(k, alpha)
    low, high = np.quantile(means, [tail, 1 - tail], axis=0)
    return low, high


def expanded(k: int, alpha: float) -> float:
    """The level of the lower quantile that replaces alpha / 2 with k members."""
    return float(ndtr(stdtrit(k - 1, alpha / 2) * math.sqrt(k / (k - 1))))


def _lower_end(more: Array, fewer: Array, n: int, z: float) -> Array:
    """The least difference of shares, (c,), that Tango's score does not refute, by bisection."""
    b, c = more.astype(float), fewer.astype(float)
    low, high = np.full(b.shape, -1.0), (b - c) / n
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        half = -b - c + (2 * n - b + c) * middle
        root = np.sqrt(np.maximum(half**2 + 8 * n * c * middle * (1 - middle), 0.0))
        variance = n * ((root - half) / (2 * n) + middle * (1 - middle))
        refuted = b - c - n * middle > z * np.sqrt(np.maximum(variance, 0.0))
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return low


@dataclass(frozen=True)
class OverTrials:
    """``value``, the mean over the ``trials`` that have one, with the ends ``low`` and ``high``; NaN where none is."""

    value: float
    low: float
    high: float
    trials: int


def over_trials(value: Array, low: Array, high: Array, shared: float, alpha: float) -> OverTrials:
    r"""The mean of a line's values (T,) with its interval of level 1 - alpha, from the trials' own ends (T,).

    Each trial has a map of its own. Its line is v_t = theta + m_t + e_t, where m_t is what its map (and its classifier)
    adds and e_t what its people add. Their variances are sigma^2 and omega^2; the e_t of two trials have the
    correlation rho, the share of people that the trials have in common: 0 where each draws its own, 1 where all audit
    everybody. The mean over the trials then has

    .. math:: \operatorname{Var} \bar v = \frac{\sigma^2 + (1 - \rho) \omega^2}{T} + \rho\, \omega^2,

    and the first numerator is the expectation of the variance s^2 between the trials (with T - 1). With w, the mean
    over the trials of the variances that their own intervals stand for, ((high - low) / 2 z)^2, the interval is

    .. math:: \bar v \pm \sqrt{t_{1-\alpha/2, T-1}^2 A + z_{1-\alpha/2}^2 B}, \qquad
              A = \frac{\max(s^2, (1 - \rho) w)}{T}, \quad B = \rho\, w,

    each variance with the quantile of its own degrees of freedom, which covers with probability 1 - alpha at least for
    normal errors (Banerjee 1960). Degrees of freedom pooled after Satterthwaite do not: of two trials that agree by
    luck they make many, and cover in 88 of 100 cases. The maximum keeps such trials from an interval shorter than that
    of their people alone. Assumed: what maps and classifiers add is independent between the trials and 0 on average;
    where trials train on rows in common, what these do to all of them alike is in no interval.

    With T = 1 nothing is known of other maps: the interval is the trial's own, of people alone. NaN marks a trial
    without members, or with too few for an interval; where no trial has an interval there is none. ``shared`` is rho.
    Raises InvalidInput for arrays of unequal length and for a rho outside [0, 1].
    """
    if not value.shape == low.shape == high.shape or value.ndim != 1:
        raise InvalidInput(
            f"expected a value and two ends for each trial, found shapes {value.shape}, {low.shape} and {high.shape}",
            option="value",
        )
    there = np.isfinite(value)
    trials = int(there.sum())
    known = there & np.isfinite(low) & np.isfinite(high)
    if trials and not 0 <= shared <= 1:
        raise InvalidInput(f"expected the share of people in common in [0, 1], found {shared}", option="shared")
    mean = float(value[there].mean()) if trials else float("nan")
    if not known.any():
        return OverTrials(mean, float("nan"), float("nan"), trials)
    if trials == 1:
        return OverTrials(mean, float(low[known][0]), float(high[known][0]), trials)
    t, z = stdtrit(trials - 1, 1 - alpha / 2), ndtri(1 - alpha / 2)
    people = float(np.mean(((high[known] - low[known]) / (2 * z)) ** 2))
    apart = max(float(value[there].var(ddof=1)), (1 - shared) * people) / trials
    together = shared * people
    half = float((t**2 * apart + z**2 * together) ** 0.5)
    return OverTrials(mean, mean - half, mean + half, trials)
