"""Tests of the hypothesis that an unfair map raises the loss, or the error rate, by at most a tolerated factor.

The functions are pure statistics over arrays of per-point losses and errors, independent of models and attacks. Every
function takes arrays of shape (..., n) and reduces the last axis. Repetitions, settings and recorded steps are leading
axes.

Source: Maity et al. 2021, "Statistical inference for individual fairness", sections 3.1 and 3.2, appendix C.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

SMALLEST_LOSS = float(np.finfo(np.float64).tiny)
LARGEST_RATIO = float(np.finfo(np.float64).max) / 4


@dataclass(frozen=True)
class RatioTest:
    """Outcome of the test of H0: ratio <= delta against H1: ratio > delta. Every array has the leading shape (...).

    ``mean`` is the estimated ratio S_n. ``std`` is the standard deviation V_n for which sqrt(n) (mean - ratio) / std is
    asymptotically standard normal. ``statistic`` is T_n = S_n - z_{1-alpha} V_n / sqrt(n), the lower end of the
    one-sided interval [T_n, infinity) of level 1 - alpha (eq. 3.8, 3.10). H0 is ``rejected`` if T_n > delta, which is
    equivalent to ``p_value`` < alpha. [``ci_low``, ``ci_high``] is the two-sided interval of level 1 - alpha.

    Counts: ``n`` points are in the statistics and ``non_finite`` points are not; their sum is the number of points
    passed. ``clipped`` ratios were set to the bounds of floating-point numbers. ``below_one`` points have a smaller
    loss after the attack than before. ``undefined`` is 1 if no ratio exists, otherwise 0; the statistics are then NaN,
    and ``rejected`` is False although there was no test.
    """

    statistic: Array
    mean: Array
    std: Array
    ci_low: Array
    ci_high: Array
    p_value: Array
    rejected: Array
    n: Array
    non_finite: Array
    clipped: Array
    below_one: Array
    undefined: Array
    delta: float
    alpha: float


@dataclass(frozen=True)
class ErrorRateRatioTest(RatioTest):
    """Outcome of the test for error rates: ``wrong_before`` and ``wrong_after`` of the n points are misclassified."""

    wrong_before: Array
    wrong_after: Array


@dataclass(frozen=True)
class LossRatios:
    """Per-point ratios (..., n), NaN if a loss is not finite, and a mask of the clipped ratios."""

    values: Array
    clipped: Array


def loss_ratios(original_loss: Array, attacked_loss: Array) -> LossRatios:
    r"""Divide losses after an attack by losses before it, whatever their size.

    .. math:: r_i = \ell(f(\Phi(x_i)), y_i) / \ell(f(x_i), y_i)

    A loss below the smallest normal double (2.2e-308; a logistic margin beyond 708) is replaced by this number. A ratio
    that would overflow is replaced by a quarter of the largest double. Both stay in the sample and count as
    ``clipped``. If a loss is NaN or infinite, the ratio is NaN.

    Parameters
    ----------
    original_loss, attacked_loss : array
        Non-negative, with shapes that broadcast to (..., n).

    Raises
    ------
    InvalidInput
        If a loss is negative.
    """
    original, attacked = np.broadcast_arrays(np.asarray(original_loss, float), np.asarray(attacked_loss, float))
    for name, loss in (("original", original), ("attacked", attacked)):
        if (loss < 0).any():
            raise InvalidInput(
                f"expected losses >= 0, found {name} loss {np.nanmin(loss):.6g}",
                option=f"{name}_loss",
                remedy="Pass losses, not log-probabilities",
            )
    finite = np.isfinite(original) & np.isfinite(attacked)
    original, attacked = np.where(finite, original, 1.0), np.where(finite, attacked, 1.0)
    with np.errstate(over="ignore"):
        values = np.maximum(attacked, SMALLEST_LOSS) / np.maximum(original, SMALLEST_LOSS)
    held = (original < SMALLEST_LOSS) | (attacked < SMALLEST_LOSS) | (values > LARGEST_RATIO)
    return LossRatios(np.where(finite, np.minimum(values, LARGEST_RATIO), np.nan), held & finite)


def misclassified(loss: Array, label: Array) -> Array:
    """Compute the 0-1 loss (..., n) of a two-class classifier from its cross-entropy l = -log P(y|x): 1 if l > log 2.

    A tie P(y|x) = 1/2 counts as label 0, as in argmax. NaN if the loss is not finite.

    Examples
    --------
    >>> misclassified(np.array([0.1, 0.7, np.inf]), np.array([1, 1, 0])).tolist()
    [0.0, 1.0, nan]
    """
    loss, label = np.asarray(loss, float), np.asarray(label)
    wrong = (loss > np.log(2.0)) | ((loss == np.log(2.0)) & (label == 1))
    return np.where(np.isfinite(loss), wrong, np.nan)


def flow_tests(
    original_loss: Array,
    losses: Array,
    label: Array,
    delta: float,
    alpha: float,
    errors: tuple[Array, Array] | None = None,
) -> tuple[RatioTest, ErrorRateRatioTest]:
    """Test the loss ratio and the error-rate ratio at each of the L recorded steps of an attack.

    ``original_loss`` (..., n) are the losses before it, ``losses`` (..., L, n) those after each step, and ``label``
    (..., n) the classes 0 and 1. ``errors`` are 0-1 losses of the same shapes. By default they are derived from the
    losses, which is possible for two classes. The tests have the leading shape (..., L). Other arguments and errors are
    those of :func:`loss_ratio_test` and :func:`error_rate_ratio_test`.
    """
    before, after = errors or (misclassified(original_loss, label), misclassified(losses, label[..., None, :]))
    return (
        loss_ratio_test(original_loss[..., None, :], losses, delta, alpha),
        error_rate_ratio_test(before[..., None, :], after, delta, alpha),
    )


def loss_ratio_test(original_loss: Array, attacked_loss: Array, delta: float, alpha: float) -> RatioTest:
    r"""Test whether an unfair map multiplies the loss by more than a tolerated factor on average.

    .. math:: S_n = \bar r, \qquad V_n^2 = \frac{1}{n - 1} \sum (r_i - S_n)^2, \qquad
              T_n = S_n - z_{1 - \alpha} V_n / \sqrt n,

    with the ratios r_i of :func:`loss_ratios`. The hypothesis is rejected if T_n > delta. Points without a finite ratio
    are excluded from S_n, V_n and n, and counted in ``non_finite``.

    Parameters
    ----------
    original_loss, attacked_loss : array
        Losses before and after the map, of shapes that broadcast to (..., n).
    delta : float
        The tolerated mean ratio.
    alpha : float
        The level.

    Raises
    ------
    InvalidInput
        If n < 2, a loss is negative, or delta or alpha is out of range.

    References
    ----------
    Maity et al. 2021, eq. 3.4, 3.6, 3.8, 3.10.

    Examples
    --------
    >>> test = loss_ratio_test(np.ones(4), np.array([1.0, 2.0, 2.0, 3.0]), delta=1.25, alpha=0.05)
    >>> float(test.mean), round(float(test.statistic), 3), bool(test.rejected)
    (2.0, 1.328, True)
    """
    ratios = loss_ratios(original_loss, attacked_loss)
    _check(ratios.values.shape, delta, alpha)
    finite = np.isfinite(ratios.values)
    n = finite.sum(axis=-1)
    scale = np.max(ratios.values, axis=-1, initial=1.0, where=finite)
    scaled = np.where(finite, ratios.values, 0.0) / scale[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = scaled.sum(axis=-1) / n
        deviation = np.where(finite, scaled - mean[..., None], 0.0)
        std = np.sqrt((deviation**2).sum(axis=-1) / (n - 1))
    return _decide(
        mean * scale,
        std * scale,
        n,
        delta,
        alpha,
        non_finite=(~finite).sum(axis=-1),
        clipped=ratios.clipped.sum(axis=-1),
        below_one=(ratios.values < 1).sum(axis=-1),
    )


def error_rate_ratio_test(
    original_error: Array, attacked_error: Array, delta: float, alpha: float
) -> ErrorRateRatioTest:
    r"""Test whether an unfair map multiplies the error rate by more than a tolerated factor.

    With the mean 0-1 losses A_n after the map and B_n before it,

    .. math:: S_n = \frac{A_n}{B_n}, \qquad T_n = S_n - \frac{z_{1 - \alpha}}{B_n^2}
              \sqrt{(A_n^2 V_{22} + B_n^2 V_{11} - 2 A_n B_n V_{12}) / n},

    by the delta method, V = mean of e e' with e = (attacked error, original error). V is the second moment, not the
    covariance. The two differ by m m', m = (A_n, B_n). The gradient in the quadratic form has direction (B_n, -A_n),
    which is orthogonal to m, so both give the same number. We evaluate the form as the mean of squares mean((B e_1 - A
    e_2)^2), which cannot become negative by rounding.

    ``std`` is the root of the form over B_n^2. ``below_one`` counts the points that are wrong before the map and right
    after it. If no point is misclassified before the map, the ratio does not exist and ``undefined`` is 1.

    Parameters
    ----------
    original_error, attacked_error : array
        0, 1 or NaN, of shapes that broadcast to (..., n). NaN marks a point without a finite loss, which is excluded
        and counted in ``non_finite``.
    delta, alpha : float
        As in :func:`loss_ratio_test`.

    Raises
    ------
    InvalidInput
        If there are other values, n < 2, or delta or alpha is out of range.

    References
    ----------
    Maity et al. 2021, eq. 3.12, 3.13; theorem C.1.
    """
    before, after = np.broadcast_arrays(np.asarray(original_error, float), np.asarray(attacked_error, float))
    _check(before.shape, delta, alpha)
    finite = np.isfinite(before) & np.isfinite(after)
    before, after = np.where(finite, before, 0.0), np.where(finite, after, 0.0)
    for name, error in (("original", before), ("attacked", after)):
        if not np.isin(error, (0.0, 1.0)).all():
            raise InvalidInput(
                f"expected 0-1 losses, found other values among the {name} errors",
                option=f"{name}_error",
                remedy="Pass 0 and 1",
            )
    n, below_one = finite.sum(axis=-1), (after < before).sum(axis=-1)
    wrong_before, wrong_after = (error.sum(axis=-1).astype(int) for error in (before, after))
    both = wrong_before - below_one
    with np.errstate(divide="ignore", invalid="ignore"):
        a, b = wrong_after / n, wrong_before / n
        form = (b**2 * (wrong_after - both) + a**2 * below_one + (b - a) ** 2 * both) / n
        mean, std = a / b, np.sqrt(form) / b**2
    undefined = wrong_before == 0
    test = _decide(
        np.where(undefined, np.nan, mean),
        np.where(undefined, np.nan, std),
        n,
        delta,
        alpha,
        non_finite=(~finite).sum(axis=-1),
        clipped=np.zeros_like(n),
        below_one=below_one,
    )
    return ErrorRateRatioTest(**vars(test), wrong_before=wrong_before, wrong_after=wrong_after)


def _check(shape: tuple[int, ...], delta: float, alpha: float) -> None:
    if not shape or shape[-1] < 2:
        raise InvalidInput(f"expected at least 2 audit points, found shape {shape}: one point has no spread")
    if not delta > 0:
        raise InvalidInput(f"expected a tolerance delta > 0, found {delta}: the paper uses 1.25", option="delta")
    if not 0 < alpha < 1:
        raise InvalidInput(f"expected a level alpha between 0 and 1, found {alpha}: 0.05 is usual", option="alpha")


def _decide(mean: Array, std: Array, n: Array, delta: float, alpha: float, **counts: Array) -> RatioTest:
    """Test with an asymptotically normal estimate: (mean - truth) sqrt(n) / std -> N(0, 1)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        error = std / np.sqrt(n)
        # Without spread, the estimate is its own bound.
        p_value = np.where(error > 0, ndtr((delta - mean) / error), np.where(mean > delta, 0.0, 1.0))
        statistic = mean - ndtri(1 - alpha) * error
        half_width = ndtri(1 - alpha / 2) * error
    undefined = ~np.isfinite(statistic)
    return RatioTest(
        statistic=statistic,
        mean=mean,
        std=std,
        ci_low=mean - half_width,
        ci_high=mean + half_width,
        p_value=np.where(undefined, np.nan, p_value),
        rejected=statistic > delta,
        n=n,
        **counts,
        undefined=undefined.astype(np.int64),
        delta=delta,
        alpha=alpha,
    )
