"""Each estimator agrees with its closed form, and has no interval where the rows say nothing."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, chi2, norm
from statsmodels.stats.proportion import proportion_confint

from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.intervals import newcombe
from fairness_audits.results.estimate import Estimate
from pipeline.report.estimators import ESTIMATORS, combined, estimate, wilson_band
from tests.errors import invalid

Z = 1.959963984540054


def rows(values: Any, **columns: Any) -> pd.DataFrame:
    return pd.DataFrame({"repetition": range(len(values)), "value": np.asarray(values, float), **columns})


def test_the_mean_of_two_values_is_twelve_times_as_wide_as_their_standard_error() -> None:
    """With one degree of freedom Student's t is a Cauchy variable: its 97.5 % quantile is tan(0.475 pi) = 12.706."""
    found = estimate("mean", np.array([0.0, 2.0]))
    assert (found.value, found.std, found.n) == (1.0, pytest.approx(math.sqrt(2)), 2)
    assert found.high - 1.0 == pytest.approx(np.tan(0.475 * np.pi))
    assert found.low + found.high == pytest.approx(2.0)
    clipped = estimate("mean", np.array([0.0, 2.0]), limits=(0, math.inf))
    assert (clipped.low, clipped.high) == (0.0, found.high)
    # With as many test rows as train rows, the variance of the mean is (1 / 2 + 1) s^2.
    wide = estimate("mean", np.array([0.0, 2.0]), overlap=1.0)
    assert wide.high - 1.0 == pytest.approx(math.sqrt(3) * (found.high - 1.0))


def test_differences_are_paired_by_repetition() -> None:
    one, other = rows([1.0, 5.0, 4.0]), rows([3.0, 1.0, 0.5]).iloc[::-1].assign(repetition=[2, 1, 3])
    assert estimate("mean", one, other) == estimate("mean", np.array([4.0, 3.5]))


def test_ratios_have_the_mean_and_the_spread_of_their_logarithms() -> None:
    ones, twos = rows([1.0, 2.0, 4.0]), rows([4.0, 4.0, 4.0])
    logs = estimate("mean", np.log([1.0, 2.0, 4.0]), level=0.9)
    found = estimate("mean of log", ones, level=0.9)
    assert (found.value, found.n) == (pytest.approx(2.0), 3)
    assert (found.low, found.high) == (pytest.approx(math.exp(logs.low)), pytest.approx(math.exp(logs.high)))
    assert estimate("mean of log", ones, twos).value == pytest.approx(0.5)
    assert math.isnan(estimate("mean of log", rows([1.0, 0.0, 4.0])).low)
    wide, narrow = (rows(np.exp(scale * norm.ppf((np.arange(400) + 0.5) / 400))) for scale in (1.0, 0.1))
    spread = estimate("spread of log", wide, narrow.sample(frac=1.0, random_state=1), level=0.9)
    assert spread.value == pytest.approx(10.0)
    assert spread.low == pytest.approx(10.0)  # A repetition is drawn on both sides: here the ratio is the same in all.
    alone = estimate("spread of log", wide, level=0.9)
    # The standard error of a standard deviation of n normal values is its value over sqrt(2 n).
    assert alone.high - alone.low == pytest.approx(2 * 1.645 / math.sqrt(800), rel=0.1)


def test_two_shares_of_the_same_repetitions_have_the_interval_of_their_discordant_pairs() -> None:
    one, other = rows([1.0] * 12 + [0.0] * 3 + [1.0] * 85), rows([0.0] * 12 + [1.0] * 3 + [1.0] * 85)
    found = estimate("paired share", one, other)
    # Tango (1998), as in the docstring of score_interval.
    assert (found.value, found.n) == (pytest.approx(0.09), 100)
    assert (round(found.low, 3), round(found.high, 3)) == (0.016, 0.174)
    assert math.isnan(estimate("paired share", one, rows([0.5] * 100)).value)


@pytest.mark.parametrize("values", [[2.0], [1.0, np.nan, 3.0], [1.0, np.inf, 3.0], [0.1 + 0.2, 0.3, 0.3, 0.3]])
def test_a_mean_that_the_values_do_not_bound_has_no_interval(values: list[float]) -> None:
    found = estimate("mean", np.array(values))
    assert found.n == np.isfinite(values).sum()
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_equal_shares_of_few_groups_have_the_spread_of_chance() -> None:
    equal = rows([0.5] * 4, groups=25.0)
    found = estimate("mean of shares", equal)
    assert found.high - 0.5 == pytest.approx(3.182446 * 0.1 / 2)
    assert math.isnan(estimate("mean", equal).low)
    with invalid(column="groups"):
        estimate("mean of shares", rows([0.5] * 4))


def test_a_share_has_wilsons_interval_and_a_difference_newcombes() -> None:
    ones = estimate("share", np.array([1.0, np.nan, 0.0, 0.0]))
    assert (ones.value, ones.n) == (pytest.approx(1 / 3), 3)
    assert (ones.low, ones.high) == pytest.approx(proportion_confint(1, 3, method="wilson"))
    pooled = rows([0.75, 0.1], simulations=[1000, 3000])
    assert estimate("share", pooled).n == 4000
    assert estimate("share", pooled).value == pytest.approx(0.2625)
    assert estimate("share", pooled.assign(draws=10), trials="draws").value == pytest.approx(0.425)
    sides = (rows([56 / 70], simulations=70), rows([48 / 80], simulations=80))
    found = estimate("share", *sides)
    assert (found.low, found.high) == newcombe(Rates(56, 70, 48, 80), 0.05, "two-sided")
    band = wilson_band(np.array([0.25, 1.0]), 8)
    assert pytest.approx(np.array([proportion_confint(k, 8, method="wilson") for k in (2, 8)])) == band.T


def test_an_error_over_points_has_the_normal_interval() -> None:
    """The mean, 1.5, with the normal interval of the mean error .3; and its difference to .5, whose error is .5."""
    one, other = rows([1.0, 2.0], error=[0.5, 0.1]), rows([0.5], error=0.4)
    found = estimate("mean with error", one)
    assert (found.value, found.high - found.value, found.n) == (1.5, pytest.approx(0.3 * Z), 2)
    gap = estimate("mean with error", one, other, level=0.9)
    assert (gap.value, gap.value - gap.low) == (1.0, pytest.approx(0.5 * 1.644853627))
    assert estimate("mean with error", one.assign(draws=40)).n == 80
    assert math.isnan(estimate("mean with error", one.assign(error=[0.1, np.nan])).low)


def test_mean_squares_are_pooled_with_their_degrees_of_freedom() -> None:
    found = estimate("mean square", rows([1.0, 4.0], freedom=[2, 1]))
    assert found.value == 2.0
    assert (found.low, found.high) == pytest.approx((6 / chi2.ppf(0.975, 3), 6 / chi2.ppf(0.025, 3)))


def test_the_interval_of_a_median_is_that_of_the_sign_test() -> None:
    """Of ten values the second and the ninth, which leave out a tail of 11/1024; five have no two that would do."""
    values = np.array([7.0, 1, 3, 2, 9, 1e6, 4, 8, 5, 6, np.nan])
    found = estimate("median", values)
    assert (found.value, found.low, found.high, found.n) == (5.5, 2.0, 9.0, 10)
    assert binomtest(1, 10).pvalue <= 0.05 < binomtest(2, 10).pvalue
    assert np.isnan(estimate("median", values[:5]).low)
    assert np.isnan(estimate("median", values[-1:]).value)


def test_one_split_keeps_its_p_value_equal_ones_are_doubled_and_one_without_a_test_counts_against_rejection() -> None:
    """Of .01 and three splits without a test the second smallest is 1; without any test there is no p-value."""
    assert combined(np.array([0.03])) == 0.03
    assert combined(np.full(10, 0.01)) == pytest.approx(0.02)
    assert combined(np.full(3, 0.01)) == pytest.approx(0.015)
    assert combined(np.array([0.9, 0.8])) == 1.0
    assert combined(np.array([0.01, np.nan, np.nan, np.nan])) == 1.0
    assert np.isnan(combined(np.array([np.nan, np.nan])))


def test_the_combination_keeps_the_level_where_its_bound_is_sharp() -> None:
    """The worst dependence: with chance t half of the splits, drawn at random, have a common p below t / 2.

    Each p is uniform below t / 2, P(p_i <= u) = t / 2 * u / (t / 2) = u, and the combination rejects with chance t.
    """
    rng = np.random.default_rng(3)
    draws, m, t = 20_000, 10, 0.1
    low = rng.random(draws) < t
    p = np.where(low, rng.random(draws) * t / 2, 1.0)
    found = np.array([combined(np.r_[np.full(m // 2, value), np.ones(m - m // 2)]) for value in p])
    assert abs((found <= t).mean() - t) < 4 * np.sqrt(t * (1 - t) / draws)


def test_a_number_alone_is_that_of_all_repetitions() -> None:
    assert estimate("value", np.array([-50.0, -20, -20, -20, -20])) == Estimate(-26.0)
    assert estimate("value", np.full(5, 0.1)).value == 0.1


@pytest.mark.parametrize("name", ESTIMATORS)
def test_several_values_for_a_repetition_are_an_error_that_names_the_column(name: str) -> None:
    twice = rows([0.5, 0.5], sample=[0, 1], groups=5.0, error=0.1, freedom=2).assign(repetition=0)
    with invalid(column="sample"):
        estimate(name, twice)
