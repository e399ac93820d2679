r"""Intervals for the sizes of flipsets and for the lines of their transparency reports.

For one map, an interval says how much a number varies with other people from the same population, under the same map
and the same classifier. :func:`over_trials` adds the variation between maps. A map fitted on the audited rows would
vary with them too; these intervals do not include this variation.

- A size is a count k among n people. Its interval is the one of Clopper and Pearson (1934), all shares p that the count
  does not reject: low and high solve P(K >= k; p) = alpha / 2 and P(K <= k; p) = alpha / 2. For all n and p its
  coverage is at least 1 - alpha. Even k = 0 has an upper end, n (1 - (alpha / 2)^{1/n}), near 3.7 at level .95.
- The net size is a difference of two counts among the same n people, b = |F+| and c = |F-|. Its interval is the score
  interval of Tango (1998): all differences delta of the two shares with

  .. math:: |b - c - n \delta| \le z_{1-\alpha/2} \sqrt{n (2 \tilde q + \delta (1 - \delta))}, \qquad
            \tilde q = \frac{\sqrt{B^2 - 4 A C} - B}{2 A},

  where A = 2 n, B = -b - c + (2 n - b + c) delta, C = -c delta (1 - delta), and q~ is the maximum-likelihood share of
  F- given delta. At delta = 0 this is McNemar's test. If nobody flips, the interval is n times +- z^2 / (n + z^2).
- A mean sign is such a difference too: of the members whose feature is larger, and smaller, than their counterpart's.
- A mean shift is bootstrapped. Member i has the weight W_i ~ Poisson(1), the limit of the multinomial count of one row:

  .. math:: \frac{\sum_{i \in F} W_i v_i}{\sum_{i \in F} W_i}

  Resamples without members are left out. The ends are quantiles at the level Phi(-t_{1-alpha/2, k-1} sqrt(k/(k-1))),
  which makes the interval as wide as Student's for k members (Hesterberg 2015, "expanded percentiles").

If there are few members, their agreement means little. If shifts were as often up as down, k members would all go one
way with probability 2^{1-k}. Lines have no interval below the smallest k for which this is at most alpha
(:func:`fewest`).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import betainccinv, betaincinv, ndtr, ndtri, stdtrit

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

WEIGHTS_AT_ONCE = 2**22
"""Number of Poisson weights held in memory at a time."""
HALVINGS = 60
"""Number of bisection steps: enough for the last digit of a difference of shares in [-1, 1]."""

Interval = tuple[float, float]
NONE: Interval = (float("nan"), float("nan"))


@dataclass(frozen=True)
class SizeIntervals:
    """Lower and upper ends for |F+|, |F-| and |F+| - |F-|, in people; NaN without people."""

    positive: Interval
    negative: Interval
    net: Interval


def size_intervals(positive: int, negative: int, n: int, alpha: float) -> SizeIntervals:
    """Return intervals of level 1 - alpha for flipsets of these sizes among n people.

    Raises InvalidInput if the sizes are not counts of n people.
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
    """Return the Clopper-Pearson interval for the expected count k among n people."""
    low = betaincinv(count, n - count + 1, alpha / 2) if count else 0.0
    high = betainccinv(count + 1, n - count, alpha / 2) if count < n else 1.0
    return n * float(low), n * float(high)


def difference_intervals(more: Array, fewer: Array, n: int, alpha: float) -> tuple[Array, Array]:
    """Return Tango's intervals for the difference of two shares of n people, from counts (c,): both ends, (c,) each."""
    z = float(ndtri(1 - alpha / 2))
    low = _lower_end(more, fewer, n, z)
    return low, -_lower_end(fewer, more, n, z)


def fewest(alpha: float) -> int:
    r"""Return the fewest members k for an interval of level 1 - alpha: the least k with 2^{1-k} <= alpha."""
    return math.ceil(1 + math.log2(1 / alpha))


def sign_intervals(signs: Array, alpha: float) -> tuple[Array, Array]:
    """Return intervals for the column means of signs (k, c) in {-1, 0, 1}: lower and upper ends, (c,) each."""
    k, columns = signs.shape
    if k < fewest(alpha):
        return np.full(columns, np.nan), np.full(columns, np.nan)
    return difference_intervals((signs > 0).sum(axis=0), (signs < 0).sum(axis=0), k, alpha)


def mean_intervals(values: Array, draws: int, alpha: float, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return bootstrap intervals for the column means of a flipset's values (k, c): lower and upper ends, (c,) each."""
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
    """Return the level of the lower quantile that replaces alpha / 2 for k members."""
    return float(ndtr(stdtrit(k - 1, alpha / 2) * math.sqrt(k / (k - 1))))


def _lower_end(more: Array, fewer: Array, n: int, z: float) -> Array:
    """Return the least difference of shares, (c,), that Tango's score does not reject, by bisection."""
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
    """Mean ``value`` over the ``trials`` that have one, with ends ``low`` and ``high``; NaN if there is none."""

    value: float
    low: float
    high: float
    trials: int


def over_trials(value: Array, low: Array, high: Array, shared: float, alpha: float) -> OverTrials:
    r"""Return the mean of a line's values (T,) with its interval of level 1 - alpha, from the trials' own ends (T,).

    Each trial has its own map. Its value is v_t = theta + m_t + e_t, where m_t comes from its map (and its classifier)
    and e_t from its people. Their variances are sigma^2 and omega^2. The e_t of two trials have the correlation rho,
    the share of people that the trials have in common: 0 if each trial draws its own people, 1 if all trials audit
    everybody. The mean over the trials then has

    .. math:: \operatorname{Var} \bar v = \frac{\sigma^2 + (1 - \rho) \omega^2}{T} + \rho\, \omega^2,

    and the first numerator is the expectation of the variance s^2 between the trials (with T - 1). Each trial's
    interval implies the variance ((high - low) / 2 z)^2. With w, the mean of these variances over the trials, the
    interval is

    .. math:: \bar v \pm \sqrt{t_{1-\alpha/2, T-1}^2 A + z_{1-\alpha/2}^2 B}, \qquad
              A = \frac{\max(s^2, (1 - \rho) w)}{T}, \quad B = \rho\, w,

    Each variance has the quantile of its own degrees of freedom, which gives a coverage of at least 1 - alpha for
    normal errors (Banerjee 1960). Degrees of freedom pooled after Satterthwaite do not: they are many if two trials
    agree by luck, and the coverage drops to 88 %. The maximum keeps such an interval from being shorter than the
    interval over people alone. We assume that the contributions of maps and classifiers are independent between trials
    with mean 0. If trials share training rows, no interval includes the common effect of these rows.

    With T = 1 nothing is known about other maps, and the interval is the trial's own, over people alone. NaN marks a
    trial without members, or with too few for an interval. If no trial has an interval, there is none. ``shared`` is
    rho. Raises InvalidInput if the arrays differ in length or rho is outside [0, 1].
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
