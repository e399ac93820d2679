"""Where the level of which test holds, of rates, AUCs and correlations; power and how many rows it needs."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import ndtr, ndtri

from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.correlation import correlation_p, correlation_test, pooled_shuffle_p
from fairness_audits.audits.permutation.monte_carlo import Alternative, extreme, monte_carlo_p
from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.audits.permutation.power import detectable, power_of, rate_variance, sample_size
from fairness_audits.audits.permutation.rows import SummedRows
from fairness_audits.audits.permutation.samples import Permuted, groups_of, table_p
from fairness_audits.audits.permutation.statistics import RatioOfSums, studentized
from fairness_audits.seeds import generators
from fairness_audits.values import Array
from pipeline.audits import levels as simulated
from pipeline.audits.levels import sampled
from pipeline.datasets import none as no_data
from pipeline.methods import none as no_model
from pipeline.values import AuditResult
from pipeline.workflow import plugins
from tests.audits.permutation.builders import at_most, near, wins
from tests.builders import number as value
from tests.builders import shipped
from tests.errors import invalid


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

    def level(test: str) -> float:
        return float((table_p(drawn, "fnr", test, 399, rng) <= 0.05).mean())

    published, smoothed = level("studentized"), level("studentized_smoothed")
    assert smoothed < published - 0.015
    assert near(published, 0.090, 2000)
    for test, expected in (("unstudentized", 0.314), ("bootstrap", 0.101), ("exact", 0.032)):
        assert near(level(test), expected, 2000), test


def test_section_2_3_the_wrong_group_is_named_with_probability_at_most_half_alpha() -> None:
    """A tiny effect of one sign, and spreads that make the unstudentised test reject often, half the time wrongly."""
    plain, studentised, _ = rejected(np.random.default_rng(6), 800, (50, 200), (3.0, 1.0), 0.01, "less", 0.025)
    assert plain > 0.08
    assert at_most(studentised, 0.025, 800)


@pytest.mark.parametrize("test", ["exact", "studentized_smoothed", "unstudentized"])
def test_many_tables_at_once_are_the_tests_one_by_one(test: str) -> None:
    drawn = sampled((300, 100), (0.5, 0.3), (0.8, 0.7), 0.75, 5, np.random.default_rng(8))
    together = table_p(drawn, "precision", test, 4000, np.random.default_rng(1))
    for table, p in zip(drawn, together, strict=True):
        counts, rng = Counts.of_decisions(table, ("a", "b")), np.random.default_rng(2)
        alone = permutation_test(counts, "precision", rng=rng, method=test.removesuffix("_smoothed"), draws=4000)
        assert alone.p_value == pytest.approx(p, abs=1e-12 if test == "exact" else 0.045)


@pytest.mark.parametrize("alpha", [0.05, 0.3])
def test_the_unstudentised_test_of_each_table_rejects_beyond_its_bound(alpha: float) -> None:
    drawn = sampled((60, 40), (0.5, 0.5), (0.85, 0.6), 0.75, 40, np.random.default_rng(3))
    found = Permuted.of(groups_of(drawn, "tpr"), 199, np.random.default_rng(4))
    rejected = found.p("unstudentized") <= alpha
    assert 0 < rejected.mean() < 1
    assert (rejected == (np.abs(found.observed.difference) > found.bound(alpha) + 1e-12)).all()


@pytest.mark.parametrize("method", ["lift", "bootstrap"])
def test_the_shortcut_and_the_basic_bootstrap_of_a_table_are_those_of_its_rows(method: Any) -> None:
    rng, (n_a, n_b) = np.random.default_rng(8), (300, 100)
    tables = sampled((n_a, n_b), (0.5, 0.3), (0.8, 0.7), 0.75, 3, rng)
    for table, p in zip(tables, table_p(tables, "precision", method, 4000, rng), strict=True):
        group, label, decision = (np.repeat(part, table.ravel()) for part in np.indices(table.shape).reshape(3, -1))

        def difference(rows: Array, group: Array, label: Array = label, decision: Array = decision) -> float:
            a, b = (label[rows][(group == g) & (decision[rows] == 1)].mean() for g in (0, 1))
            return float(a - b)

        rows = np.arange(n_a + n_b)
        observed = difference(rows, group)
        if method == "lift":
            pooled = (rng.integers(n_a + n_b, size=n_a + n_b) for _ in range(2000))
            observed /= float(np.std([difference(some, group[some]) for some in pooled]))
            permuted = np.array([difference(rows, rng.permutation(group)) for _ in range(2000)])
            reference = permuted / permuted.std()
        else:
            within = (np.append(rng.integers(n_a, size=n_a), n_a + rng.integers(n_b, size=n_b)) for _ in range(2000))
            reference = np.array([difference(some, group) for some in within]) - observed
        assert (np.abs(reference) >= abs(observed)).mean() == pytest.approx(p, abs=0.045)


def test_studentised_correlation_holds_its_level_where_value_and_attribute_are_uncorrelated_but_dependent() -> None:
    """y = x z has Var(y | x) = x^2: the level of r is 2 Phi(-1.96 / tau) with tau^2 = E x^4 / (E x^2)^2 = 3."""
    rng, simulations = np.random.default_rng(1), 1000
    x, z = rng.normal(size=(2, simulations, 400))
    studentised, plain = (
        (correlation_p(x, x * z, rng=rng, method=method, draws=199) <= 0.05).mean()
        for method in ("studentized", "unstudentized")
    )
    assert near(studentised, 0.05, simulations)
    assert near(plain, 2 * stats.norm.cdf(-1.96 / np.sqrt(3)), simulations, deviations=6)


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
        x, noise = rng.normal(size=(2, 200))
        result: Any = correlation_test(x, rho * x + np.sqrt(1 - rho**2) * noise, rng=rng, draws=199)
        covered += result.ci_low <= rho <= result.ci_high
    assert near(covered / simulations, 0.95, simulations, deviations=3)
    assert covered < simulations - 4


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e-310), (0.0, 1e300), (2.0**60, 2.0**20), (-300.0, 1.0)])
def test_a_correlation_does_not_depend_on_the_scale_of_the_scores(offset: float, scale: float) -> None:
    rng = np.random.default_rng(6)
    x = rng.integers(0, 1000, 60).astype(float)
    y = x + rng.normal(size=60) * 500
    plain, scaled = (
        correlation_test(values, y, rng=np.random.default_rng(1), draws=199) for values in (x, offset + scale * x)
    )
    assert scaled.difference == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert (scaled.p_value, scaled.statistic) == (plain.p_value, pytest.approx(plain.statistic))


def test_points_on_a_line_are_correlated_and_show_no_error() -> None:
    x = np.arange(30.0)
    result: Any = correlation_test(x, 2 * x + 1, rng=np.random.default_rng(1), draws=199)
    assert (result.difference, result.p_value, result.ci_high) == (pytest.approx(1), 1 / 200, 1)
    assert 0 < result.ci_low < 0.5


def test_a_constant_has_no_correlation() -> None:
    result = correlation_test(np.ones(9), np.arange(9.0), rng=np.random.default_rng(1), names=("score", "age"))
    assert result.undefined is not None
    assert result.undefined.startswith("score ")
    assert result.p_value is None


# Audits that draw their own populations: Table 1, the levels of six tests of rates and two of AUCs, and power.
TESTS = ["unstudentized", "studentized", "bootstrap", "lift", "exact"]
LEVELS = {"tests": TESTS, "n_a": [1000, 1000], "n_b": [1000, 60], "rate": [0.75, 0.8], "draws": 199, "simulations": 500}
AUC = {"n_a": [1000, 1000], "n_b": [1000, 10], "draws": 199, "simulations": 800}
RNGS = generators("t", repetitions=1)
DATA = no_data.prepare(None, no_data.Config(first_repetition=0), RNGS, "simulated")
NOTHING = DATA, no_model.fit(DATA, no_model.Config(), RNGS)


def configured(audit: str, **changes: Any) -> Any:
    """The settings of an audit's file but for changes."""
    return plugins.configure(simulated, shipped("audit", audit) | changes)


def audited(audit: str, stream: str, **changes: Any) -> AuditResult:
    """The audit of nothing, with the settings of its file but for changes."""
    return simulated.run(*NOTHING, configured(audit, **changes), generators(stream, repetitions=1))


@pytest.fixture(scope="module")
def levels() -> pd.DataFrame:
    return audited("rate_levels", "levels", **LEVELS).rows


def test_samples_have_the_rates_asked_for() -> None:
    tables = sampled((5000, 300), (0.8, 0.2), (0.7, 0.9), 0.6, 2000, np.random.default_rng(0))
    assert (tables.sum(axis=(2, 3)) == [5000, 300]).all()
    mean = tables.mean(axis=0)
    np.testing.assert_allclose(mean[:, 1].sum(axis=-1) / [5000, 300], [0.8, 0.2], rtol=0.01)
    np.testing.assert_allclose(mean[:, 1, 1] / mean[:, 1].sum(axis=-1), [0.7, 0.9], rtol=0.01)
    np.testing.assert_allclose(mean[:, 0, 0] / mean[:, 0].sum(axis=-1), [0.6, 0.6], rtol=0.01)


def test_the_studentised_test_has_its_level_and_the_unstudentised_that_of_the_formula(levels: pd.DataFrame) -> None:
    large = levels[levels["n_b"] == 1000]
    # Equal groups, half of all positive: the variances of D and of permuted D have the ratio (1 / pi_A + 1 / pi_B) / 4.
    limit = 2 * stats.norm.cdf(-stats.norm.isf(0.025) / np.sqrt(0.25 * (1 / 0.8 + 1 / 0.2)))
    for test, level in zip(TESTS, (limit, 0.05, 0.05, 0.05, 0.047), strict=True):
        assert near(value(large, statistic="rejection_rate", test=test), level, 500), test


def test_a_group_without_positives_is_counted_as_undefined() -> None:
    few = {**LEVELS, "n_a": [50], "n_b": [5], "rate": [0.8], "simulations": 400}
    rows = audited("rate_levels", "few", **few).rows
    for test in ("exact", "studentized", "bootstrap"):
        assert near(value(rows, statistic="undefined", test=test), 0.8**5, 400), test


def test_samples_of_scores_have_the_auc_and_the_shares_asked_for() -> None:
    label, group = configured("auc_levels").sample((500, 300), 400, np.random.default_rng(0))
    for g, positives in ((0, 0.8), (1, 0.2)):
        own = [y[of == g] for y, of in zip(label, group, strict=True)]
        assert np.mean(own) == pytest.approx(positives, abs=0.01)
        # Rows are in ascending order of score.
        assert np.mean([wins(y, np.arange(len(y))).mean() for y in own]) == pytest.approx(0.8, abs=0.005)


def test_delongs_test_has_its_level_and_the_unstudentised_that_of_the_formula() -> None:
    rows = audited("auc_levels", "auc", **AUC).rows
    large, few = (rows[rows["n_b"] == n] for n in (1000, 10))
    # 1000 rows of .8 and .2: (1/.16 + 1/.16) / (2/.25) = 1.5625, the square of 1.25.
    limit = 2 * stats.norm.cdf(-stats.norm.isf(0.025) / 1.25)
    assert near(value(large, statistic="rejection_rate", test="unstudentized"), limit, 800)
    assert near(value(large, statistic="rejection_rate", test="studentized"), 0.05, 800)
    # Without positives there is no AUC, with one or with a perfect AUC no variance.
    assert near(value(few, statistic="undefined", test="unstudentized"), 0.8**10, 800)
    assert value(few, statistic="undefined", test="studentized") > 0.8**10 + 10 * 0.2 * 0.8**9


def test_table_1_by_all_three_tests() -> None:
    result = audited("correlation_levels", "table 1", draws=199, simulations=240)
    rows = result.rows[result.rows["statistic"] == "rejection_rate"]
    expected = {("uncorrelated", "fairtest"): 0.735, ("independent", "fairtest"): 0.0082}
    expected |= {("uncorrelated", "studentized"): 0.043, ("independent", "studentized"): 0.047}
    # X ~ 1 + Exp(1): r has tau^2 = E (1 - 2/X)^2 / E X^-2 in the limit.
    x = 1 + np.random.default_rng(0).exponential(size=10**6)
    tau = np.sqrt(np.mean((1 - 2 / x) ** 2) / np.mean(x**-2.0))
    expected["independent", "unstudentized"] = 2 * stats.norm.cdf(-1.96 / tau)
    for (case, test), rate in expected.items():
        assert near(value(rows, case=case, test=test), rate, 240), (case, test)
    # Of 240 samples hardly two: more of them, so that a test that rejects half or twice as often would not pass. Of
    # 30,000 samples .0106 are rejected.
    many = {"cases": ["independent"], "tests": ["fairtest"], "draws": 199, "simulations": 4000}
    found = audited("correlation_levels", "fairtest", **many).rows
    assert near(value(found, statistic="rejection_rate"), 0.0106, 4000)


def test_power_is_the_level_without_a_difference_and_the_formulas_with_one() -> None:
    small = {"n": [400, 3200], "differences": [0.0, 0.1], "draws": 199, "simulations": 500}
    rows = audited("rate_power", "power", tests=["exact", "studentized_smoothed"], **small).rows
    for n in (400, 3200):
        assert near(value(rows, statistic="power", n=n, difference=0.0, test="studentized_smoothed"), 0.05, 500)
        # Two binomial rates of n / 4 rows each, .7 and .6.
        spread = np.sqrt((0.7 * 0.3 + 0.6 * 0.4) / (n / 4))
        predicted = value(rows, statistic="predicted_power", n=n, difference=0.1)
        assert predicted == pytest.approx(stats.norm.cdf(0.1 / spread - stats.norm.isf(0.025)))
        assert near(value(rows, statistic="power", n=n, difference=0.1, test="studentized_smoothed"), predicted, 500)
    assert value(rows, statistic="power", n=3200, difference=0.1, test="exact") > 0.9


@pytest.mark.parametrize(("metric", "difference"), [("tpr", 0.01), ("tpr", -0.01), ("fnr", 0.01)])
def test_the_wrong_group_is_named_as_often_as_a_normal_law_says(metric: str, difference: float) -> None:
    """A rejection with the wrong sign: D is normal about the true difference, and the unstudentised test rejects at
    1.96 deviations of the permuted one."""
    small: dict[str, Any] = {"metric": metric, "differences": [difference], "draws": 199, "simulations": 3000}
    rows = audited("rate_directions", "wrong", tests=["unstudentized", "studentized"], **small).rows
    assert set(rows["statistic"]) == {"wrong_direction", "wrong_direction_std_error", "undefined"}
    deviation = np.sqrt(0.8 * 0.2 * (1 / 8000 + 1 / 200))
    share, pooled = 10 / 11, 8200 / 11000
    permuted = np.sqrt(0.8 * 0.2 / 11000 / (pooled * share * (1 - share)))
    away, bound = abs(difference), stats.norm.isf(0.025)
    for test, reach in (("unstudentized", bound * permuted), ("studentized", bound * deviation)):
        expected = stats.norm.cdf(-(reach + away) / deviation)
        assert near(value(rows, statistic="wrong_direction", test=test), expected, 3000), test


def test_a_direction_needs_a_difference() -> None:
    with invalid(option="differences"):
        configured("rate_directions", differences=[0.0, 0.1])


def test_the_limiting_level_is_that_of_large_samples(levels: pd.DataFrame) -> None:
    """Equal groups, 80 and 20 % positive: the ratio of the variances is (1 / .8 + 1 / .2) / 4."""
    limit = levels[(levels["statistic"] == "limit_rejection_rate") & (levels["n_b"] == 1000)]
    expected = 2 * stats.norm.cdf(-stats.norm.isf(0.025) / np.sqrt((1 / 0.8 + 1 / 0.2) / 4))
    assert limit["value"].to_numpy() == pytest.approx(expected)
    assert set(limit["test"]) == {"unstudentized"}


def test_size_power_and_difference_are_inverses_and_four_times_the_rows_see_half_the_difference() -> None:
    variances = (float(rate_variance(0.3, 0.8)), float(rate_variance(0.2, 0.2)))
    rows = sample_size(0.1, variances, alpha=0.05, power=0.9)
    up, down = (power_of(difference, variances, (rows, rows), alpha=0.05) for difference in (0.1, -0.1))
    assert up == down == pytest.approx(0.9, abs=1e-3)
    half = sample_size(0.1, variances, alpha=0.05, power=0.5)
    assert detectable(variances, (half, half), alpha=0.05) == pytest.approx(0.1, rel=1e-2)
    rows_of_each = np.array([500, 2000])
    seen = detectable(variances, (rows_of_each, rows_of_each), alpha=0.05)
    assert seen[0] / seen[1] == pytest.approx(2)
