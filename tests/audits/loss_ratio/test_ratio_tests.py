"""The two ratio tests: their formulas, dualities and invariances, and their level and coverage under simulation."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.stats import binom

from fairness_audits.audits.admissible import Admissible, check_categories, range_of
from fairness_audits.audits.loss_ratio.ratio_tests import (
    error_rate_ratio_test,
    loss_ratio_test,
    loss_ratios,
    misclassified,
)
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline.audits import loss_ratio_validity
from pipeline.values import AuditResult
from tests.builders import dataset, logistic, number, shipped
from tests.errors import invalid

LOSSES = arrays.arrays(float, (2, 30), elements=st.floats(1e-6, 1e3))
ERRORS = arrays.arrays(int, (2, 40), elements=st.integers(0, 1))
ALPHA = 0.05


@given(LOSSES)
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
def test_rejecting_is_a_bound_above_delta_and_a_p_value_below_alpha(
    losses: np.ndarray, delta: float, alpha: float
) -> None:
    result = loss_ratio_test(losses[0], losses[1], delta, alpha)
    assume(abs(result.statistic - delta) > 1e-9 * abs(delta))
    assert bool(result.rejected) == bool(result.statistic > delta) == bool(result.p_value < alpha)
    # The p-value is the level at which the bound meets delta.
    if 1e-6 < result.p_value < 1 - 1e-6:
        at = loss_ratio_test(losses[0], losses[1], delta, float(result.p_value)).statistic
        assert at == pytest.approx(delta, rel=1e-6, abs=1e-9 * float(result.mean))


def test_a_model_that_treats_attacked_points_the_same_has_statistic_one() -> None:
    loss = np.random.default_rng(0).exponential(size=50)
    result = loss_ratio_test(loss, loss, 1.0, ALPHA)
    assert (result.statistic, result.p_value, bool(result.rejected)) == (1, 1, False)
    assert loss_ratio_test(loss, 2 * loss, 1.25, ALPHA).p_value == 0


def test_losses_down_to_the_smallest_number_keep_their_ratio_and_one_too_large_is_held_at_the_bound() -> None:
    original = np.array([1e-300, 2e-200, 1e-5, 0.5])
    result = loss_ratios(original, 3 * original)
    np.testing.assert_allclose(result.values, 3, rtol=1e-14)
    assert not result.clipped.any()
    held = loss_ratio_test(np.array([1e-300, 1e-300, 1.0]), np.array([1e10, 1e100, 1.0]), 1.25, ALPHA)
    assert held.clipped == 2
    assert np.isfinite([held.mean, held.std, held.ci_high]).all()


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
    for test, before, after in (
        (loss_ratio_test, original, attacked),
        (error_rate_ratio_test, original > 1, attacked > 1),
    ):
        found = test(before, after, 1.25, ALPHA).statistic
        alone = [[test(before[i, 0], after[i, j], 1.25, ALPHA).statistic for j in range(4)] for i in range(3)]
        np.testing.assert_allclose(found, alone, rtol=1e-14, strict=True)


@given(ERRORS)
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


def test_without_an_original_error_the_ratio_is_undefined_and_an_unknown_one_is_left_out_and_counted() -> None:
    before, after = np.array([[0, 0, 0], [0, 1, 0]]), np.array([[1, 0, 1], [1, 1, 0]])
    result = error_rate_ratio_test(before, after, 1.25, ALPHA)
    assert result.undefined.tolist() == [1, 0]
    assert result.rejected.tolist() == [False, False]
    np.testing.assert_array_equal(result.mean, [np.nan, 2])
    result = error_rate_ratio_test(np.array([1, 0, 1, np.nan]), np.array([1, 1, np.nan, 1]), 1.25, ALPHA)
    assert (result.n, result.non_finite, result.mean) == (2, 2, 2)


def test_misclassified_is_a_loss_beyond_log_two_with_ties_to_label_zero() -> None:
    loss = np.array([0.1, np.log(2), np.log(2), 0.7, np.nan])
    np.testing.assert_array_equal(misclassified(loss, np.array([0, 0, 1, 1, 1])), [0, 0, 1, 1, np.nan])


# Theorem 3.1 and corollaries 3.2, 3.3 and C.2 as the validity audit shows them.
ATTACK = {"regularization": 50.0, "step_size": 0.01, "steps": 100, "schedule": "constant", "power": 0.0}
TRUTHS = {"sample_sizes": [50, 3200], "draws": 4000, "delta_over_truth": [0.9, 1.0, 1.1]}
CONFIG = loss_ratio_validity.Config(**shipped("audit", "loss_ratio_validity") | ATTACK | TRUTHS)
LARGE = 3200
BAND = binom.ppf([1e-6, 1 - 1e-6], CONFIG.draws, CONFIG.alpha) / CONFIG.draws
"""Where a share of the draws with probability alpha lies except twice in a million times: .035 to .067."""


def population(n: int = 20_000) -> Dataset:
    """Two overlapping classes in the plane; a logistic regression on both coordinates is unfair in the first."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 2)) + np.stack([np.zeros(n), 2.0 * label - 1], axis=1)
    return dataset(x, label, {"g": label})


def validity(data: Dataset, **changes: Any) -> AuditResult:
    rngs = generators("validity", repetitions=1)
    return loss_ratio_validity.run(data, logistic(1.0, 2.0), replace(CONFIG, **changes), rngs)


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return validity(population())


def rate(result: AuditResult, statistic: str, test: str, n: int, multiple: float | None = None) -> float:
    where = {} if multiple is None else {"delta_over_truth": multiple}
    return number(result.rows, statistic=statistic, test=test, n_sample=n, **where)


@pytest.mark.parametrize("test", ["loss", "error"])
def test_coverage_and_level_are_nominal_in_samples_of_some_size(result: AuditResult, test: str) -> None:
    low, high = BAND
    assert low <= rate(result, "rejection_rate", test, LARGE, 1.0) <= high
    assert low <= 1 - rate(result, "coverage_two_sided", test, LARGE) <= high
    # The one-sided interval misses the truth exactly where the test at delta = truth rejects.
    assert rate(result, "coverage_one_sided", test, LARGE) == pytest.approx(
        1 - rate(result, "rejection_rate", test, LARGE, 1.0)
    )


@pytest.mark.parametrize("test", ["loss", "error"])
def test_the_test_rejects_what_is_above_delta_and_not_what_is_below(result: AuditResult, test: str) -> None:
    for n in CONFIG.sample_sizes:
        rates = [rate(result, "rejection_rate", test, n, multiple) for multiple in CONFIG.delta_over_truth]
        assert rates == sorted(rates, reverse=True)
    assert rate(result, "rejection_rate", test, LARGE, 0.9) > 0.99
    assert rate(result, "rejection_rate", test, LARGE, 0.9) >= rate(result, "rejection_rate", test, 50, 0.9)
    assert rate(result, "rejection_rate", test, LARGE, 1.1) < 0.001


@pytest.mark.parametrize("test", ["loss", "error"])
def test_standardized_means_approach_the_normal_distribution(result: AuditResult, test: str) -> None:
    # Below .04 is Monte Carlo noise: the loss ratios here are near normal in samples of 50 already.
    noise = 0.04
    assert rate(result, "kolmogorov_distance", test, LARGE) < noise
    assert (rate(result, "kolmogorov_distance", test, 50) > noise) == (test == "error")


def test_a_population_without_errors_is_refused() -> None:
    data = population(100)
    data = replace(data, label=(data.features @ [1, 2] > 0).astype(int))
    with invalid(option="classifier"):
        validity(data, draws=5)


# Age from 17 to 90, a share, and a category of three levels.
PEOPLE = Admissible((np.array([17.0, 0, 0, 0, 0]), np.array([90.0, 1, 1, 1, 1])), whole=(0,), categories=((2, 3, 4),))


def test_nearest_is_the_admissible_point_of_least_distance() -> None:
    rng = np.random.default_rng(0)
    points = np.column_stack([rng.uniform(10, 100, 200), rng.normal(size=(200, 4))])
    ages, shares, corners = np.arange(17, 91), np.linspace(0, 1, 1001), np.eye(3)
    for point, found in zip(points, PEOPLE.nearest(points), strict=True):
        age, share = (values[np.abs(values - own).argmin()] for values, own in zip((ages, shares), point, strict=False))
        corner = corners[((corners - point[2:]) ** 2).sum(axis=1).argmin()]
        np.testing.assert_allclose(found, [age, share, *corner], atol=1e-3)


def test_nearest_changes_nobody_who_is_admissible_and_within_is_of_the_bounds_alone() -> None:
    people = np.array([[age, share, *corner] for age, share, corner in product((17, 40, 90), (0, 0.3, 1), np.eye(3))])
    np.testing.assert_array_equal(PEOPLE.nearest(people), people)
    assert PEOPLE.within(people).all()
    for end, attained in zip(range_of(people), ([17, 0, 0, 0, 0], [90, 1, 1, 1, 1]), strict=True):
        np.testing.assert_array_equal(end, attained)
    points = np.array([[17.0, 0.5, 0.2, 0.2, 0.2], [16.9, 0.5, 1, 0, 0], [40, 0.5, 1, 0, 1.1], [90 + 1e-9, 1, 1, 0, 0]])
    np.testing.assert_array_equal(PEOPLE.within(points), [True, False, False, True])
    assert Admissible((np.full(5, -np.inf), np.full(5, np.inf))).within(points).all()
    check_categories(people, PEOPLE.categories, ["age", "share", *"abc"])
