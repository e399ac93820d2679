"""The two ratio tests: their formulas, dualities and invariances, and their level and coverage under simulation."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import binom, norm

from pipeline.audits.loss_ratio.ratio_tests import error_rate_ratio_test, loss_ratio_test, loss_ratios, misclassified

LOSSES = arrays.arrays(float, (2, 30), elements=st.floats(1e-6, 1e3))
ERRORS = arrays.arrays(int, (2, 40), elements=st.integers(0, 1))
ALPHA = 0.05


def draws_beyond(probability: float, draws: int) -> tuple[float, float]:
    """The shares between which a binomial share lies except once in a million times."""
    return tuple(binom.ppf([5e-7, 1 - 5e-7], draws, probability) / draws)


@given(LOSSES)
@settings(deadline=None)
def test_the_statistics_are_those_of_the_mean_of_the_ratios(losses: np.ndarray) -> None:
    original, attacked = losses
    ratio = attacked / original
    result = loss_ratio_test(original, attacked, 1.25, ALPHA)
    mean, error = ratio.mean(), ratio.std(ddof=1) / np.sqrt(30)
    assert result.mean == pytest.approx(mean)
    assert result.std == pytest.approx(ratio.std(ddof=1), rel=1e-6, abs=1e-9 * mean)
    assert result.statistic == pytest.approx(mean - 1.6448536269514722 * error, rel=1e-6, abs=1e-6 * mean)
    assert result.ci_low == pytest.approx(mean - 1.959963984540054 * error, rel=1e-6, abs=1e-6 * mean)
    assert result.ci_high == pytest.approx(mean + 1.959963984540054 * error, rel=1e-6, abs=1e-6 * mean)
    assert result.below_one == (attacked < original).sum()
    assert (result.n, result.non_finite, result.clipped, result.undefined) == (30, 0, 0, 0)


@given(LOSSES, st.floats(0.5, 3), st.floats(0.001, 0.5))
@settings(deadline=None)
def test_rejecting_is_a_bound_above_delta_is_a_p_value_below_alpha(
    losses: np.ndarray, delta: float, alpha: float
) -> None:
    result = loss_ratio_test(losses[0], losses[1], delta, alpha)
    assume(abs(result.statistic - delta) > 1e-9 * abs(delta))
    assert bool(result.rejected) == bool(result.statistic > delta) == bool(result.p_value < alpha)
    # The p-value is the level at which the bound meets delta.
    if 1e-6 < result.p_value < 1 - 1e-6:
        at = loss_ratio_test(losses[0], losses[1], delta, float(result.p_value)).statistic
        assert at == pytest.approx(delta, rel=1e-6, abs=1e-9 * float(result.mean))


@given(LOSSES, st.floats(1e-3, 1e3))
@settings(deadline=None)
def test_the_loss_ratio_is_free_of_the_scale_of_the_loss(losses: np.ndarray, factor: float) -> None:
    original, attacked = losses
    one = loss_ratio_test(original, attacked, 1.25, ALPHA)
    other = loss_ratio_test(factor * original, factor * attacked, 1.25, ALPHA)
    np.testing.assert_allclose([other.statistic, other.ci_high], [one.statistic, one.ci_high], rtol=1e-7, atol=1e-7)


def test_a_model_that_treats_attacked_points_the_same_has_statistic_one() -> None:
    loss = np.random.default_rng(0).exponential(size=50)
    result = loss_ratio_test(loss, loss, 1.0, ALPHA)
    assert (result.statistic, result.p_value, bool(result.rejected)) == (1, 1, False)
    assert loss_ratio_test(loss, 2 * loss, 1.25, ALPHA).p_value == 0


def test_losses_down_to_the_smallest_number_keep_their_ratio() -> None:
    original = np.array([1e-300, 2e-200, 1e-5, 0.5])
    result = loss_ratios(original, 3 * original)
    np.testing.assert_allclose(result.values, 3, rtol=1e-14)
    assert not result.clipped.any()


def test_a_loss_that_underflowed_is_held_at_the_bound_kept_and_counted() -> None:
    original, attacked = np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1e-3, 2.0, 0.0])
    ratios = loss_ratios(original, attacked)
    np.testing.assert_array_equal(ratios.clipped, [True, True, False, True])
    np.testing.assert_allclose(ratios.values, [1, 1e-3 / np.finfo(float).tiny, 2, np.finfo(float).tiny])
    result = loss_ratio_test(original, attacked, 1.25, ALPHA)
    assert (result.n, result.clipped) == (4, 3)
    assert np.isfinite([result.mean, result.std]).all()
    # One exploding ratio among few raises the spread with the mean, so alone it cannot reject.
    assert not result.rejected


def test_a_ratio_beyond_the_largest_number_is_held_at_the_bound() -> None:
    result = loss_ratio_test(np.array([1e-300, 1e-300, 1.0]), np.array([1e10, 1e100, 1.0]), 1.25, ALPHA)
    assert result.clipped == 2
    assert np.isfinite([result.mean, result.std, result.ci_high]).all()


def test_points_without_a_finite_loss_are_left_out_and_counted() -> None:
    original, attacked = np.array([1, 1, np.nan, 1, 2.0]), np.array([1.5, np.inf, 1, np.nan, 4.0])
    result = loss_ratio_test(original, attacked, 1.25, ALPHA)
    assert (result.n, result.non_finite) == (2, 3)
    assert result.statistic == loss_ratio_test(np.array([1, 2.0]), np.array([1.5, 4.0]), 1.25, ALPHA).statistic
    nothing = loss_ratio_test(np.full(3, np.nan), np.ones(3), 1.25, ALPHA)
    assert (nothing.n, nothing.non_finite, nothing.undefined, bool(nothing.rejected)) == (0, 3, 1, False)
    assert np.isnan([nothing.statistic, nothing.p_value]).all()


def test_leading_axes_are_separate_tests() -> None:
    rng = np.random.default_rng(1)
    original, attacked = rng.exponential(size=(3, 1, 20)), rng.exponential(size=(3, 4, 20))
    result = loss_ratio_test(original, attacked, 1.25, ALPHA)
    wrong = error_rate_ratio_test(original > 1, attacked > 1, 1.25, ALPHA)
    assert result.statistic.shape == wrong.statistic.shape == (3, 4)
    for i in range(3):
        for j in range(4):
            alone = loss_ratio_test(original[i, 0], attacked[i, j], 1.25, ALPHA)
            np.testing.assert_allclose(result.statistic[i, j], alone.statistic, rtol=1e-14)
            alone = error_rate_ratio_test(original[i, 0] > 1, attacked[i, j] > 1, 1.25, ALPHA)
            np.testing.assert_allclose(wrong.statistic[i, j], alone.statistic, rtol=1e-14)


@given(ERRORS)
@settings(deadline=None)
def test_the_error_ratio_has_the_delta_method_variance_of_either_moment(errors: np.ndarray) -> None:
    before, after = errors
    assume(before.any())
    result = error_rate_ratio_test(before, after, 1.25, ALPHA)
    a, b = after.mean(), before.mean()
    pair = np.stack([after, before])
    second_moment, covariance = pair @ pair.T / 40, np.cov(pair, ddof=0)
    forms = [a**2 * v[1, 1] + b**2 * v[0, 0] - 2 * a * b * v[0, 1] for v in (second_moment, covariance)]
    assert forms[0] == pytest.approx(forms[1], abs=1e-12)
    assert result.mean == pytest.approx(a / b)
    assert result.std == pytest.approx(np.sqrt(max(forms[0], 0)) / b**2, abs=1e-6)
    assert result.statistic == pytest.approx(a / b - 1.6448536269514722 * result.std / np.sqrt(40), abs=1e-12)
    assert result.below_one == ((before == 1) & (after == 0)).sum()


def test_without_an_original_error_the_ratio_is_undefined_not_infinite() -> None:
    before, after = np.array([[0, 0, 0], [0, 1, 0]]), np.array([[1, 0, 1], [1, 1, 0]])
    result = error_rate_ratio_test(before, after, 1.25, ALPHA)
    assert result.undefined.tolist() == [1, 0]
    assert result.rejected.tolist() == [False, False]
    np.testing.assert_array_equal(result.mean, [np.nan, 2])


def test_an_error_that_is_not_known_is_left_out_and_counted() -> None:
    result = error_rate_ratio_test(np.array([1, 0, 1, np.nan]), np.array([1, 1, np.nan, 1]), 1.25, ALPHA)
    assert (result.n, result.non_finite, result.mean) == (2, 2, 2)


def test_misclassified_is_a_loss_beyond_log_two_with_ties_to_label_zero() -> None:
    loss = np.array([0.1, np.log(2), np.log(2), 0.7, np.nan])
    np.testing.assert_array_equal(misclassified(loss, np.array([0, 0, 1, 1, 1])), [0, 0, 1, 1, np.nan])


@pytest.mark.parametrize("sigma", [0.3, 0.8])
def test_level_power_and_coverage_of_the_loss_ratio_test(sigma: float) -> None:
    # Ratios are lognormal with mean exp(mu + sigma^2 / 2) = 1.3.
    rng, draws, n, truth = np.random.default_rng(7), 4000, 1000, 1.3
    original = rng.exponential(size=(draws, n))
    attacked = original * np.exp(np.log(truth) - sigma**2 / 2 + sigma * rng.standard_normal((draws, n)))
    result = loss_ratio_test(original, attacked, truth, ALPHA)
    low, high = draws_beyond(0.05, draws)
    # Skewness moves the level of a one-sided test by Edgeworth's term, skewness / (6 sqrt(n)) phi(z) (2 z^2 + 1).
    spread = np.exp(sigma**2)
    skewness = (spread + 2) * np.sqrt(spread - 1)
    shift = skewness / (6 * np.sqrt(n)) * norm.pdf(1.645) * (2 * 1.645**2 + 1)
    assert low - shift <= result.rejected.mean() <= high
    covered = (result.ci_low <= truth) & (truth <= result.ci_high)
    assert 1 - high - shift <= covered.mean() <= 1 - low + shift
    assert loss_ratio_test(original, attacked, 1.2, ALPHA).rejected.mean() > 0.8
    assert loss_ratio_test(original, attacked, 1.4, ALPHA).rejected.mean() < 0.001
    standardized = np.sqrt(n) * (result.mean - truth) / result.std
    assert abs(standardized.mean()) < 0.1
    assert standardized.std() == pytest.approx(1, abs=0.06)


def test_level_power_and_coverage_of_the_error_ratio_test() -> None:
    # P(wrong before) = .2; the attack makes 30 % of them right and 17.5 % of the others wrong: .14 + .14 = .28.
    rng, draws, n, truth = np.random.default_rng(8), 4000, 1000, 1.4
    before = rng.random((draws, n)) < 0.2
    after = np.where(before, rng.random((draws, n)) < 0.7, rng.random((draws, n)) < 0.175)
    result = error_rate_ratio_test(before, after, truth, ALPHA)
    low, high = draws_beyond(0.05, draws)
    assert low - 0.015 <= result.rejected.mean() <= high + 0.015
    covered = (result.ci_low <= truth) & (truth <= result.ci_high)
    assert 1 - high - 0.01 <= covered.mean() <= 1 - low + 0.01
    assert error_rate_ratio_test(before, after, 1.1, ALPHA).rejected.mean() > 0.9
    assert error_rate_ratio_test(before, after, 1.7, ALPHA).rejected.mean() < 0.001


@pytest.mark.parametrize(
    ("losses", "delta", "alpha", "message"),
    [
        (np.ones(1), 1.25, ALPHA, r"at least 2 audit points, found shape \(1,\)"),
        (-np.ones(3), 1.25, ALPHA, "losses >= 0, found original loss -1: pass losses, not log-probabilities"),
        (np.ones(3), 0.0, ALPHA, "tolerance delta > 0, found 0.0"),
        (np.ones(3), 1.25, 1.0, "alpha between 0 and 1, found 1.0"),
    ],
)
def test_bad_input_is_refused(losses: np.ndarray, delta: float, alpha: float, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        loss_ratio_test(losses, losses, delta, alpha)


def test_errors_other_than_zero_and_one_are_refused() -> None:
    with pytest.raises(ValueError, match="other values among the attacked errors"):
        error_rate_ratio_test(np.zeros(3), np.full(3, 0.5), 1.25, ALPHA)
