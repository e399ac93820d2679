r"""A line of a transparency report over T trials, each with a map of its own: its interval and its p-value.

A trial's line is v_t = theta + m_t + e_t, where m_t is what its map (and its classifier) adds and e_t what its people
add. Their variances are sigma^2 and omega^2; the e_t of two trials have the correlation rho, the share of people that
the trials have in common: 0 where each draws its own, 1 where all audit everybody. The mean over the trials then has

.. math:: \operatorname{Var} \bar v = \frac{\sigma^2 + (1 - \rho) \omega^2}{T} + \rho\, \omega^2,

and the first numerator is the expectation of the variance s^2 between the trials (with T - 1). With w, the mean over
the trials of the variances that their own intervals stand for, ((high - low) / 2 z)^2, the interval is

.. math:: \bar v \pm \sqrt{t_{1-\alpha/2, T-1}^2 A + z_{1-\alpha/2}^2 B}, \qquad
          A = \frac{\max(s^2, (1 - \rho) w)}{T}, \quad B = \rho\, w,

each variance with the quantile of its own degrees of freedom, which covers with probability 1 - alpha at least for
normal errors (Banerjee 1960). Degrees of freedom pooled after Satterthwaite do not: of two trials that agree by luck
they make many, and cover in 88 of 100 cases. The maximum keeps such trials from an interval shorter than that of their
people alone. Assumed: what maps and classifiers add is independent between the trials and 0 on average; where trials
train on rows in common, what these do to all of them alike is in no interval.

With T = 1 nothing is known of other maps: the interval is the trial's own, of people alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipeline.types import Array


@dataclass(frozen=True)
class OverTrials:
    """``value``, the mean over the ``trials`` that have one, with the ends ``low`` and ``high``; NaN where none is."""

    value: float
    low: float
    high: float
    trials: int


def over_trials(value: Array, low: Array, high: Array, shared: float, alpha: float) -> OverTrials:
    """The mean of a line's values (T,) with its interval of level 1 - alpha, from the trials' own ends (T,).

    NaN marks a trial without members, or with too few for an interval; where no trial has an interval there is none.
    ``shared`` is rho. Raises ValueError for arrays of unequal length and for a rho outside [0, 1].
    """
    if not value.shape == low.shape == high.shape or value.ndim != 1:
        raise ValueError(
            f"expected a value and two ends for each trial, found shapes {value.shape}, {low.shape} and {high.shape}"
        )
    there = np.isfinite(value)
    trials = int(there.sum())
    known = there & np.isfinite(low) & np.isfinite(high)
    if trials and not 0 <= shared <= 1:
        raise ValueError(f"expected the share of people in common in [0, 1], found {shared}")
    mean = float(value[there].mean()) if trials else float("nan")
    if not known.any():
        return OverTrials(mean, float("nan"), float("nan"), trials)
    if trials == 1:
        return OverTrials(mean, float(low[known][0]), float(high[known][0]), trials)
    half = _half_width(value[there], high[known] - low[known], shared, alpha)
    return OverTrials(mean, mean - half, mean + half, trials)


def _half_width(value: Array, widths: Array, shared: float, alpha: float) -> float:
    from scipy.special import ndtri, stdtrit

    trials = len(value)
    people = float(np.mean((widths / (2 * ndtri(1 - alpha / 2))) ** 2))
    apart = max(float(value.var(ddof=1)), (1 - shared) * people) / trials
    together = shared * people
    t, z = stdtrit(trials - 1, 1 - alpha / 2), ndtri(1 - alpha / 2)
    return float((t**2 * apart + z**2 * together) ** 0.5)


def twice_the_median(p: Array) -> float:
    """One p-value of those of T trials (T,), NaN left out: min(1, 2 median), and the value itself of a single trial.

    At most alpha with probability at most alpha under the null, however the trials depend on each other. Source:
    Meinshausen, Meier and Buehlmann 2009, "P-values for high-dimensional regression", equation 2.2 at gamma = 1/2.
    """
    known = p[np.isfinite(p)]
    if not len(known):
        return float("nan")
    return float(known[0]) if len(known) == 1 else min(1.0, 2 * float(np.median(known)))
