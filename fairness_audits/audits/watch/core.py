r"""E-processes and confidence sequences for the rates of two groups, from counts of batches.

Batch t has n_{At} and n_{Bt} rows of two groups; x_{At} and x_{Bt} of them are events. Given the past and the sizes of
the groups in a batch, its rows are independent. Rates may change from batch to batch, and the share of each group may
too. All statements therefore compare the groups *within* batches, with the weights of Mantel and Haenszel:

.. math:: w_t = \frac{n_{At} n_{Bt}}{n_{At} + n_{Bt}}, \qquad
          \Delta_T = \frac{\sum_{t \le T} w_t (\theta_{At} - \theta_{Bt})}{\sum_{t \le T} w_t}.

Everything is a function of counts, so a batch may have any size, and an audit that stops and resumes computes the same
bytes as one that does not. Arrays have the shape (..., T, 2): batches, then groups.

An *e-process* is nonnegative, begins at 1, and has expectation at most 1 at every stopping time if its null hypothesis
holds. By Ville's inequality, it ever reaches 1 / alpha with probability at most alpha.

One e-process, :func:`log_gains`, exists for every value of the difference. Its value at 0 is the evidence against equal
rates. The values of the difference at which it stays below 1 / alpha are the confidence sequence. So the sequence of a
single comparison contains 0 exactly as long as its e-value is below 1 / alpha.

References
----------
Ville, "Étude critique de la notion de collectif", 1939.

Ramdas, Grünwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid inference", Statistical Science,
2023.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from fairness_audits.values import Array

STEPS = 2.0 ** (-np.arange(21) / 2)
BETS = np.concatenate([-STEPS, STEPS[::-1]])
"""The bets: -1, -0.7, -0.5, ..., -0.001, 0.001, ..., 1."""
SHARES = 1 / (4.0 + np.arange(len(STEPS)))
LOG_SHARES = np.log(np.concatenate([SHARES, SHARES[::-1]]) / (2 * SHARES.sum()))
"""Logarithm of each bet's share of the capital at the beginning: small bets matter only in many rows."""
NEWTON = 50
"""Largest number of Newton steps; the function is convex, so they converge from outside."""
CLOSE = 1e-12
"""Logarithm of an e-value, as a share of its threshold, that makes no difference."""
LARGEST = 690.0
"""Logarithm of 1e299. Larger e-values count as this one, so that they stay finite."""


@dataclass(frozen=True)
class Sequence:
    """Estimates (...) after each batch and their confidence sequence; NaN, and the whole range, without rows."""

    estimate: Array
    low: Array
    high: Array


@dataclass(frozen=True)
class Watched:
    """What is known about two groups after each of T batches.

    ``rates`` (..., T, 2) are averages over batches with the weights w. ``difference`` (..., T) is the first rate minus
    the second one. ``log_e`` (..., T) is the logarithm of the e-process of equal rates.
    """

    rates: Sequence
    difference: Sequence
    log_e: Array


def watched(events: Array, trials: Array, alpha: float) -> Watched:
    """Return rates, difference and evidence after each batch.

    Parameters
    ----------
    events, trials : array (..., T, 2)
        Number of events, and of rows that the rate is computed on, in each batch and group.
    alpha : float
        Probability that a confidence sequence ever misses its parameter.
    """
    weights, gains = row_weights(trials), log_gains(events, trials)
    total = np.cumsum(weights * events, axis=-2)
    size = np.cumsum((weights * trials)[..., 0], axis=-1)
    contrast = contrasted(gains)
    rates = mean_sequence(gains, total, size[..., None], alpha, (0.0, 1.0))
    difference = mean_sequence(contrast, total[..., 0] - total[..., 1], size, alpha, (-1.0, 1.0))
    return Watched(rates, difference, log_mean(contrast))


def row_weights(trials: Array) -> Array:
    """Return w_t / n_{gt}, the weight of a row in the comparison: the share of the other group in the batch."""
    return trials[..., ::-1] / np.maximum(trials.sum(axis=-1, keepdims=True), 1)


def predicted(events: Array, trials: Array) -> Array:
    """Return rates predicted from the batches before each: (x + 1/2) / (n + 1), and 1/2 for the first batch."""
    before = [np.cumsum(counts, axis=-2) - counts for counts in (events, trials)]
    return (before[0] + 0.5) / (before[1] + 1)


def log_gains(events: Array, trials: Array) -> Array:
    r"""Return the logarithm of the capital of each bet on each group's rate, (..., T, 2, K).

    A row X is 1 with probability theta and 0 otherwise. The rate predicted from earlier batches is q. A bet a, with
    |a| <= 1, multiplies the capital by

    .. math:: \big(1 + a (X - q)\big) \, e^{-a (\theta - q)}, \qquad
              \text{with expectation } \big(1 + a (\theta - q)\big) \, e^{-a (\theta - q)} \le 1.

    The bet on a row of group g is b w_t / n_{gt}. The product over all rows of batches 1 to T is

    .. math:: \exp\Big(G_{gT}(b) - b \sum_{t \le T} w_t \theta_{gt}\Big), \qquad
              G_{gT}(b) = \sum_{t \le T} x_{gt} \log(1 + a (1 - q)) + (n_{gt} - x_{gt}) \log(1 - a q) + a q n_{gt}.

    This is a bet of Waudby-Smith and Ramdas, with the predicted rate in the place of the rate that is tested. The
    theta of a batch may be anything, and people in a batch may differ: only the sum of their rates matters. A bet on
    the difference is the product of a bet b on the first group and -b on the second one (:func:`contrasted`). A
    weighted mean over bets is a supermartingale too, and needs no choice of a bet.

    Returns G.

    References
    ----------
    Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", Journal of the Royal Statistical
    Society B 86, 2024.

    Howard, Ramdas, McAuliffe and Sekhon, "Time-uniform, nonparametric, nonasymptotic confidence sequences", Annals of
    Statistics 49, 2021 (averages of means that change; their empirical Bernstein bound is a lower bound of G).

    Robbins, "Statistical methods related to the law of the iterated logarithm", Annals of Mathematical Statistics 41,
    1970 (mixtures over bets).
    """
    bets = row_weights(trials)[..., None] * BETS
    guess, x, n = predicted(events, trials)[..., None], events[..., None], trials[..., None]
    gains = x * np.log1p(bets * (1 - guess)) + (n - x) * np.log1p(-bets * guess) + bets * guess * n
    return np.cumsum(gains, axis=-3)


def contrasted(gains: Array) -> Array:
    """Return the logarithm of the capital of each bet on the difference of the groups: (..., 2, K) -> (..., K)."""
    return gains[..., 0, :] + gains[..., 1, ::-1]


def log_mean(gains: Array) -> Array:
    """Return the logarithm of the capital of all bets together: (..., K) -> (...)."""
    return np.asarray(logsumexp(gains + LOG_SHARES, axis=-1))


def mean_sequence(gains: Array, total: Array, size: Array, alpha: float, limits: tuple[float, float]) -> Sequence:
    r"""Return a confidence sequence of an average m of the rates, or of their differences.

    .. math:: P\Big(\exists T : \sum_b s_b \, e^{G_T(b) - b W_T m_T} \ge \frac{1}{\alpha}\Big) \le \alpha, \qquad
              m_T = \frac{1}{W_T} \sum_{t \le T} w_t \theta_t.

    s_b is the share of bet b. The sum is a convex function of m, so the sequence is an interval, and Newton's method
    finds its ends from outside.

    Parameters
    ----------
    gains : array (..., K)
        G.
    total, size : array (...)
        Weighted sum of the rows, and W.
    alpha : float
        Probability that the sequence ever misses the average.
    limits : (float, float)
        Smallest and largest possible average.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        estimate = total / size
        low, high = -_reach(gains[..., ::-1], alpha) / size, _reach(gains, alpha) / size
    # If the sequence misses the average, it may be empty; the estimate always belongs to it.
    low, high = np.fmin(low, estimate), np.fmax(high, estimate)
    return Sequence(
        estimate,
        np.clip(np.nan_to_num(low, nan=limits[0]), *limits),
        np.clip(np.nan_to_num(high, nan=limits[1]), *limits),
    )


def _reach(gains: Array, alpha: float) -> Array:
    """Return the largest u with a mean of exp(G - b u) below 1 / alpha: (..., K) -> (...)."""
    needed, gains = -np.log(alpha), gains + LOG_SHARES
    # A single bet reaches the threshold here, so the mean of all of them reaches it earlier.
    found = ((needed - gains) / -BETS)[..., BETS < 0].min(axis=-1)
    for _ in range(NEWTON):
        height = gains - BETS * found[..., None]
        top = logsumexp(height, axis=-1, keepdims=True)
        slope = (np.exp(height - top) * -BETS).sum(axis=-1)
        excess = top[..., 0] - needed
        # Each element stops on its own, so that its digits do not depend on other batches.
        if not (moves := (excess > CLOSE * needed) & (slope > 0)).any():
            break
        found = np.where(moves, found - excess / np.where(moves, slope, 1.0), found)
    return found


def closed(log_e: Array) -> Array:
    r"""Return e-values (K, ...) that are valid together, from the logarithms (K, ...) of e-values of K hypotheses.

    .. math:: e^*_k = \min_{S \ni k} \frac{1}{|S|} \sum_{j \in S} e_j.

    The mean of e-values is an e-value of the intersection of their hypotheses, whatever their dependence. Closed
    testing with these means gives the minimum over all sets S, which is attained by k and the smallest other e-values.
    The probability that e* of any true hypothesis ever reaches 1 / alpha is at most alpha: the family-wise error rate.
    The procedure e-BH would control the false discovery rate instead, at one time of stopping but not over time.

    References
    ----------
    Vovk and Wang, "E-values: calibration, combination and applications", Annals of Statistics 49, 2021, algorithm 1.
    """
    e = np.exp(np.minimum(log_e, LARGEST))
    found = []
    for place, own in enumerate(e):
        others = np.sort(np.delete(e, place, axis=0), axis=0)
        sums = own + np.concatenate([np.zeros_like(own)[None], np.cumsum(others, axis=0)])
        number = np.arange(1, len(e) + 1).reshape(-1, *[1] * own.ndim)
        found.append((sums / number).min(axis=0))
    return np.stack(found)
