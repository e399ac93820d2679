"""Correlation with a continuous attribute: zero correlation without independence."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.correlation import correlation_p, correlation_test, pooled_shuffle_p

Near = Callable[..., bool]


def test_studentised_correlation_holds_its_level_where_value_and_attribute_are_uncorrelated_but_dependent(
    near: Near,
) -> None:
    """y = x z has Var(y | x) = x^2: the level of r is 2 Phi(-1.96 / tau) with tau^2 = E x^4 / (E x^2)^2 = 3."""
    rng, simulations = np.random.default_rng(1), 1000
    x = rng.normal(size=(simulations, 400))
    y = x * rng.normal(size=x.shape)
    studentized = correlation_p(x, y, rng=rng, method="studentized", draws=199)
    plain = correlation_p(x, y, rng=rng, method="unstudentized", draws=199)
    assert near((studentized <= 0.05).mean(), 0.05, simulations)
    assert near((plain <= 0.05).mean(), 2 * stats.norm.cdf(-1.96 / np.sqrt(3)), simulations, deviations=6)


def test_the_power_of_the_studentised_correlation_is_that_of_the_normal_limit(near: Near) -> None:
    """A normal pair with correlation rho has T near N(sqrt(n) rho / sqrt(1 + 2 rho^2), 1) for small rho."""
    rng, simulations, n, rho = np.random.default_rng(12), 600, 400, 0.1
    x = rng.normal(size=(simulations, n))
    y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=x.shape)
    power = stats.norm.sf(1.96 - np.sqrt(n) * rho / np.sqrt(1 + 2 * rho**2))
    assert near((correlation_p(x, y, rng=rng, method="studentized", draws=199) <= 0.05).mean(), power, simulations)


@pytest.mark.parametrize("n", [5, 60])
def test_the_pooled_shuffle_is_a_shuffle_of_all_numbers(n: int) -> None:
    rng = np.random.default_rng(3)
    x, y = rng.exponential(size=(4, n)), rng.normal(size=(4, n)) + 1
    found = pooled_shuffle_p(x, y, rng=rng, draws=20_000)
    for u, v, p in zip(x, y, found, strict=True):
        halves = rng.permuted(np.tile(np.concatenate([u, v]), (20_000, 1)), axis=1).reshape(-1, 2, n)
        halves -= halves.mean(axis=-1, keepdims=True)
        r = halves.prod(axis=1).sum(axis=-1) / np.sqrt((halves**2).sum(axis=-1).prod(axis=-1))
        assert p == pytest.approx((np.abs(r) > abs(np.corrcoef(u, v)[0, 1])).mean(), abs=0.02)


def test_the_correlation_is_pearsons_and_its_test_agrees_with_scipys_permutations() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=80)
    y = 0.25 * x + rng.normal(size=80)
    result = correlation_test(x, y, rng=rng, method="unstudentized", draws=5000)
    expected = stats.pearsonr(x, y, method=stats.PermutationMethod(n_resamples=5000, rng=rng))
    assert result.difference == pytest.approx(expected.statistic)
    assert result.p_value == pytest.approx(expected.pvalue, abs=0.02)


def test_the_interval_of_the_studentised_test_covers_a_correlation_that_is_not_zero(near: Near) -> None:
    rng, rho, simulations, covered = np.random.default_rng(5), 0.6, 300, 0
    for _ in range(simulations):
        x = rng.normal(size=200)
        y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=200)
        result: Any = correlation_test(x, y, rng=rng, draws=199)
        covered += result.ci_low <= rho <= result.ci_high
    assert near(covered / simulations, 0.95, simulations, deviations=3)
    assert covered < simulations - 4


def test_units_and_signs_do_not_matter() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=50), rng.normal(size=50)
    one: Any = correlation_test(x, y, rng=np.random.default_rng(1), draws=500)
    other = correlation_test(3 * x - 7, 5 - 2 * y, rng=np.random.default_rng(1), draws=500)
    assert one.p_value == other.p_value
    assert other.difference == pytest.approx(-one.difference)


def test_a_constant_has_no_correlation() -> None:
    result = correlation_test(np.ones(9), np.arange(9.0), rng=np.random.default_rng(1), names=("score", "age"))
    assert result.undefined == "score has one value only, so no correlation exists"
    assert result.p_value is None


def test_bad_arrays_and_methods_are_named() -> None:
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="expected age as 3 finite numbers"):
        correlation_test(np.arange(3.0), np.array([1.0, np.nan, 2]), rng=rng, names=("score", "age"))
    with pytest.raises(
        ValueError, match="expected method studentized or unstudentized for a correlation, found 'lift'"
    ):
        correlation_test(np.arange(3.0), np.arange(3.0), rng=rng, method="lift")
