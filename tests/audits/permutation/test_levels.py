"""Where the level of which test holds, of rates, AUCs and correlations; power and how many rows it needs."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from pipeline.audits.permutation import auc_levels, correlation_levels, rate_levels, rate_power
from pipeline.audits.permutation.correlation import correlation_p, correlation_test, pooled_shuffle_p
from pipeline.audits.permutation.monte_carlo import Alternative, extreme, monte_carlo_p
from pipeline.audits.permutation.outcomes import Counts
from pipeline.audits.permutation.rate_power import detectable, power_of, rate_variance, sample_size
from pipeline.audits.permutation.rows import SummedRows
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.simulations import sampled, table_p
from pipeline.audits.permutation.statistics import RatioOfSums, studentized
from pipeline.datasets import none as no_data
from pipeline.methods import none as no_model
from pipeline.seeds import generators
from tests.audits.permutation.builders import near
from tests.builders import number as value


def rejected(
    rng: np.random.Generator,
    simulations: int,
    sizes: tuple[int, int],
    spreads: tuple[float, float],
    shift: float = 0.0,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> tuple[float, float, float]:
    """Shares of samples in which D and T of two means are rejected, and the mean variance of permuted D.

    Group A is normal with the first spread and the mean ``shift``, group B with the second and the mean 0.
    """
    group, found = np.repeat([0, 1], sizes), []
    for simulation in range(simulations):
        values = rng.normal(size=len(group)) * np.array(spreads)[group] + np.where(group == 0, shift, 0.0)
        rows = SummedRows(RatioOfSums(np.stack([values, np.ones(len(group))], axis=-1)), group, sizes, simulation)
        observed, drawn = rows.observed, rows.permuted(0, 199)
        permuted = drawn.value[0] - drawn.value[1]
        tests = (observed.value[0] - observed.value[1], permuted), (studentized(observed), studentized(drawn))
        p = [monte_carlo_p(extreme(reference, own, alternative).sum(), 199) for own, reference in tests]
        found.append([p[0] <= alpha, p[1] <= alpha, permuted.var()])
    return tuple(np.mean(found, axis=0))


def test_means_section_2_2_the_weights_of_the_variances_swap() -> None:
    """N Var D = s_A^2 / lambda + s_B^2 / (1 - lambda), but s_A^2 / (1 - lambda) + s_B^2 / lambda when permuted."""
    simulations, (n_a, n_b), (s_a, s_b) = 600, (200, 50), (1.0, 3.0)
    plain, studentised, variance = rejected(np.random.default_rng(1), simulations, (n_a, n_b), (s_a, s_b))
    sampling, swapped = s_a**2 / n_a + s_b**2 / n_b, s_a**2 / n_b + s_b**2 / n_a
    assert variance == pytest.approx(swapped, rel=0.03)
    expected = float(2 * ndtr(-ndtri(0.975) * np.sqrt(swapped / sampling)))
    assert expected > 0.2
    assert near(plain, expected, simulations)
    assert near(studentised, 0.05, simulations)


def test_with_few_positives_studentising_fails_and_within_outcome_holds() -> None:
    """1000 against 100 rows, 80 % and 20 % positive: about 20 positives in B."""
    rng = np.random.default_rng(3)
    drawn = sampled((1000, 100), (0.8, 0.2), (0.8, 0.8), 0.8, 2000, rng)

    def level(method: str, smoothing: float = 0.0) -> float:
        p = table_p(drawn, "fnr", method=method, rng=rng, draws=399, smoothing=smoothing)  # type: ignore[arg-type]
        return float((p <= 0.05).mean())

    published, smoothed = level("studentized"), level("studentized", 1.0)
    assert near(published, 0.090, 2000)
    assert smoothed < published - 0.015
    assert near(level("unstudentized"), 0.314, 2000)
    assert near(level("bootstrap"), 0.101, 2000)
    assert near(level("exact"), 0.032, 2000)


def test_at_an_extreme_threshold_walds_variance_rejects_and_the_smoothed_one_does_not() -> None:
    rng = np.random.default_rng(4)
    drawn = sampled((1000, 100), (0.8, 0.2), (0.95, 0.95), 0.95, 500, rng)
    published = table_p(drawn, "fnr", method="studentized", rng=rng, draws=399, smoothing=0.0)
    smoothed = table_p(drawn, "fnr", method="studentized", rng=rng, draws=399, smoothing=1.0)
    assert (published <= 0.05).mean() > 0.25
    assert (smoothed <= 0.05).mean() <= 0.03


def test_section_2_3_the_wrong_group_is_named_with_probability_at_most_half_alpha() -> None:
    """A tiny effect of one sign, and spreads that make the unstudentised test reject often, half the time wrongly."""
    plain, studentised, _ = rejected(np.random.default_rng(6), 800, (50, 200), (3.0, 1.0), 0.01, "less", 0.025)
    assert plain > 0.08
    assert studentised < 0.025 + 4 * np.sqrt(0.025 * 0.975 / 800)


def test_many_tables_at_once_are_the_tests_one_by_one() -> None:
    drawn = sampled((300, 100), (0.5, 0.3), (0.8, 0.7), 0.75, 5, np.random.default_rng(8))
    for method in ("exact", "studentized", "unstudentized", "lift", "bootstrap"):
        together = table_p(drawn, "precision", method=method, rng=np.random.default_rng(1), draws=4000)  # type: ignore[arg-type]
        for table, p in zip(drawn, together, strict=True):
            counts = Counts.of_decisions(table, ("a", "b"))
            alone = permutation_test(
                counts,
                "precision",
                rng=np.random.default_rng(2),
                method=method,  # type: ignore[arg-type]
                draws=4000,
                bootstraps=4000,
            )
            assert alone.p_value == pytest.approx(p, abs=1e-12 if method == "exact" else 0.045)


def test_a_group_without_positives_has_no_p_value_among_many() -> None:
    table = np.array([[[5, 5], [3, 4]], [[5, 5], [0, 0]]])
    for method in ("exact", "studentized", "bootstrap"):
        p = table_p(table[None], "tpr", method=method, rng=np.random.default_rng(1), draws=9)  # type: ignore[arg-type]
        assert np.isnan(p).all()
    with pytest.raises(ValueError, match="expected a rate, found auc"):
        table_p(table[None], "auc", method="exact", rng=np.random.default_rng(1))


# Correlation with a continuous attribute: zero correlation without independence.


def test_studentised_correlation_holds_its_level_where_value_and_attribute_are_uncorrelated_but_dependent() -> None:
    """y = x z has Var(y | x) = x^2: the level of r is 2 Phi(-1.96 / tau) with tau^2 = E x^4 / (E x^2)^2 = 3."""
    rng, simulations = np.random.default_rng(1), 1000
    x = rng.normal(size=(simulations, 400))
    y = x * rng.normal(size=x.shape)
    studentized = correlation_p(x, y, rng=rng, method="studentized", draws=199)
    plain = correlation_p(x, y, rng=rng, method="unstudentized", draws=199)
    assert near((studentized <= 0.05).mean(), 0.05, simulations)
    assert near((plain <= 0.05).mean(), 2 * stats.norm.cdf(-1.96 / np.sqrt(3)), simulations, deviations=6)


def test_the_power_of_the_studentised_correlation_is_that_of_the_normal_limit() -> None:
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


def test_the_interval_of_the_studentised_test_covers_a_correlation_that_is_not_zero() -> None:
    rng, rho, simulations, covered = np.random.default_rng(5), 0.6, 300, 0
    for _ in range(simulations):
        x = rng.normal(size=200)
        y = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=200)
        result: Any = correlation_test(x, y, rng=rng, draws=199)
        covered += result.ci_low <= rho <= result.ci_high
    assert near(covered / simulations, 0.95, simulations, deviations=3)
    assert covered < simulations - 4


def test_units_and_signs_do_not_matter_and_a_constant_has_no_correlation() -> None:
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=50), rng.normal(size=50)
    one: Any = correlation_test(x, y, rng=np.random.default_rng(1), draws=500)
    other = correlation_test(3 * x - 7, 5 - 2 * y, rng=np.random.default_rng(1), draws=500)
    assert one.p_value == other.p_value
    assert other.difference == pytest.approx(-one.difference)
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


# Audits that draw their own populations: Table 1, the levels of six tests of rates and two of AUCs, and power.


LEVELS = rate_levels.Config(
    "fnr",
    ["unstudentized", "studentized", "bootstrap", "lift", "exact"],
    [1000, 1000],
    [1000, 60],
    [0.75, 0.8],
    0.8,
    0.2,
    199,
    500,
    0.05,
    20,
)
POWER = rate_power.Config(
    "tpr", ["exact", "studentized_smoothed"], [400, 3200], 0.5, 0.6, [0.0, 0.1], 0.5, 0.5, 199, 500, 0.05
)
AUC = auc_levels.Config([1000, 1000], [1000, 10], 0.8, 0.8, 0.2, 199, 800, 0.05)
CORRELATION = correlation_levels.Config(
    ["uncorrelated", "independent"], ["fairtest", "unstudentized", "studentized"], 2000, 199, 240, 0.05, 1e-5
)


RNGS = generators("t", repetitions=1)
DATA = no_data.prepare(None, no_data.Config(), RNGS, "simulated")
NOTHING = DATA, no_model.fit(DATA, no_model.Config(), RNGS)


@pytest.fixture(scope="module")
def levels() -> pd.DataFrame:
    return rate_levels.run(*NOTHING, LEVELS, generators("levels", repetitions=1)).rows


def test_samples_have_the_rates_asked_for() -> None:
    tables = sampled((5000, 300), (0.8, 0.2), (0.7, 0.9), 0.6, 2000, np.random.default_rng(0))
    assert (tables.sum(axis=(2, 3)) == [5000, 300]).all()
    mean = tables.mean(axis=0)
    np.testing.assert_allclose(mean[:, 1].sum(axis=-1) / [5000, 300], [0.8, 0.2], rtol=0.01)
    np.testing.assert_allclose(mean[:, 1, 1] / mean[:, 1].sum(axis=-1), [0.7, 0.9], rtol=0.01)
    np.testing.assert_allclose(mean[:, 0, 0] / mean[:, 0].sum(axis=-1), [0.6, 0.6], rtol=0.01)


def test_the_studentised_test_has_its_level_and_the_unstudentised_that_of_the_formula(levels: pd.DataFrame) -> None:
    large = levels[levels["n_b"] == 1000]
    limit = value(large, statistic="limit_rejection_rate")
    # Equal groups: rho = pi (1 / pi_A + 1 / pi_B) / 2 with pi = 1/2.
    assert limit == pytest.approx(2 * stats.norm.cdf(-stats.norm.isf(0.025) / np.sqrt(0.25 * (1 / 0.8 + 1 / 0.2))))
    assert near(value(large, statistic="rejection_rate", test="unstudentized"), limit, 500)
    for test in ("studentized", "bootstrap", "lift"):
        assert near(value(large, statistic="rejection_rate", test=test), 0.05, 500)
    assert near(value(large, statistic="rejection_rate", test="exact"), 0.047, 500)
    assert value(levels[levels["n_b"] == 60], statistic="expected_positives") == 12


def test_the_histogram_is_of_all_p_values(levels: pd.DataFrame) -> None:
    shares = levels[(levels["statistic"] == "p_share") & (levels["n_b"] == 1000)]
    totals = shares.groupby("test")["value"].sum()
    np.testing.assert_allclose(totals, 1)
    np.testing.assert_allclose(shares["bin_high"] - shares["bin_low"], 0.05)


def test_a_group_without_positives_is_counted_as_undefined() -> None:
    config = replace(LEVELS, n_a=[50], n_b=[5], rate=[0.8], tests=["exact"], simulations=400)
    rows = rate_levels.run(*NOTHING, config, generators("few", repetitions=1)).rows
    assert near(value(rows, statistic="undefined", test="exact"), 0.8**5, 400)


def test_samples_of_scores_have_the_auc_and_the_shares_asked_for() -> None:
    label, group = auc_levels.sample((500, 300), AUC, 400, np.random.default_rng(0))
    for g, positives in ((0, 0.8), (1, 0.2)):
        own = [y[of == g] for y, of in zip(label, group, strict=True)]
        assert np.mean(own) == pytest.approx(positives, abs=0.01)
        # Rows are in ascending order of score: the negatives below each positive.
        wins = [(y * np.cumsum(1 - y)).sum() / (y.sum() * (1 - y).sum()) for y in own]
        assert np.mean(wins) == pytest.approx(0.8, abs=0.005)


def test_delongs_test_has_its_level_and_the_unstudentised_that_of_the_formula() -> None:
    rows = auc_levels.run(*NOTHING, AUC, generators("auc", repetitions=1)).rows
    large, few = (rows[rows["n_b"] == n] for n in (1000, 10))
    limit = value(large, statistic="limit_rejection_rate")
    # 1000 rows of .8 and .2: (1/.16 + 1/.16) / (2/.25) = 1.5625, the square of 1.25.
    assert limit == pytest.approx(2 * stats.norm.cdf(-stats.norm.isf(0.025) / 1.25))
    assert near(value(large, statistic="rejection_rate", test="unstudentized"), limit, 800)
    assert near(value(large, statistic="rejection_rate", test="studentized"), 0.05, 800)
    assert value(few, statistic="expected_positives") == 2
    # Without positives there is no AUC, with one or with a perfect AUC no variance.
    assert near(value(few, statistic="undefined", test="unstudentized"), 0.8**10, 800)
    assert value(few, statistic="undefined", test="studentized") > 0.8**10 + 10 * 0.2 * 0.8**9


def test_table_1_by_all_three_tests() -> None:
    result = correlation_levels.run(*NOTHING, CORRELATION, generators("table 1", repetitions=1))
    rows = result.rows[result.rows["statistic"] == "rejection_rate"]
    expected = {("uncorrelated", "fairtest"): 0.735, ("independent", "fairtest"): 0.0082}
    expected |= {("uncorrelated", "studentized"): 0.043, ("independent", "studentized"): 0.047}
    # X ~ 1 + Exp(1): r has tau^2 = E (1 - 2/X)^2 / E X^-2 in the limit.
    x = 1 + np.random.default_rng(0).exponential(size=10**6)
    tau = np.sqrt(np.mean((1 - 2 / x) ** 2) / np.mean(x**-2.0))
    expected["independent", "unstudentized"] = 2 * stats.norm.cdf(-1.96 / tau)
    for (case, test), rate in expected.items():
        assert near(value(rows, case=case, test=test), rate, CORRELATION.simulations), (case, test)
    # Of 240 samples hardly two: more of them, so that a test that rejects half or twice as often would not pass. Of
    # 30,000 samples .0106 are rejected.
    many = replace(CORRELATION, cases=["independent"], tests=["fairtest"], simulations=4000)
    found = correlation_levels.run(*NOTHING, many, generators("fairtest", repetitions=1)).rows
    assert near(value(found, statistic="rejection_rate"), 0.0106, 4000)
    assert result.arrays["p_values"].shape == (2, 3, 240)


def test_power_is_the_level_without_a_difference_and_the_formulas_with_one() -> None:
    rows = rate_power.run(*NOTHING, POWER, generators("power", repetitions=1)).rows
    for n in POWER.n:
        assert near(value(rows, statistic="power", n=n, difference=0.0, test="studentized_smoothed"), 0.05, 500)
        # Two binomial rates of n / 4 rows each, .7 and .6.
        spread = np.sqrt((0.7 * 0.3 + 0.6 * 0.4) / (n / 4))
        predicted = value(rows, statistic="predicted_power", n=n, difference=0.1)
        assert predicted == pytest.approx(stats.norm.cdf(0.1 / spread - stats.norm.isf(0.025)))
        assert near(value(rows, statistic="power", n=n, difference=0.1, test="studentized_smoothed"), predicted, 500)
    assert value(rows, statistic="power", n=3200, difference=0.1, test="exact") > 0.9


# How many rows a test needs.


def test_with_power_one_half_the_difference_sits_on_the_bound() -> None:
    n_a, n_b = sample_size(0.05, (0.21, 0.21), ratio=0.5)
    deviation = np.sqrt(0.21 / n_a + 0.21 / n_b)
    assert deviation * ndtri(0.975) == pytest.approx(0.05, rel=1e-3)
    one_sided = sample_size(0.05, (0.21, 0.21), ratio=0.5, alternative="greater").n_a
    assert one_sided == pytest.approx(n_a * (1.645 / 1.96) ** 2, rel=1e-3)


def test_size_power_and_difference_are_inverses_and_four_times_the_rows_see_half_the_difference() -> None:
    variances = (float(rate_variance(0.3, 0.8)), float(rate_variance(0.2, 0.2)))
    sizes = sample_size(0.1, variances, power=0.9, ratio=2)
    assert power_of(0.1, variances, sizes) == pytest.approx(0.9, abs=1e-3)
    assert detectable(variances, sizes, power=0.9) == pytest.approx(0.1, rel=1e-3)
    assert power_of(-0.1, variances, sizes) == power_of(0.1, variances, sizes)
    rows = np.array([500, 2000, 8000])
    seen = detectable((0.25, 0.25), (rows, rows))
    np.testing.assert_allclose(seen[:-1] / seen[1:], 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"difference": 0.0}, "a difference other than 0"),
        ({"power": 1.0}, "power between 0 and 1"),
        ({"ratio": 0.0}, "expected ratio > 0"),
        ({"alpha": 1.5}, "expected alpha between 0 and 1"),
        ({"power": 0.01}, "power 0.01 is below the level"),
    ],
)
def test_impossible_wishes_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        sample_size(variances=(0.2, 0.2), **{"difference": 0.1, **arguments})
    with pytest.raises(ValueError, match=r"expected a rate in \[0, 1\] and a share in \(0, 1\]"):
        rate_variance(0.5, 0.0)
