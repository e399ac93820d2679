"""Audits that draw their own populations: Table 1, the levels of six tests of rates and two of AUCs, and power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline.audits.permutation import auc_levels, correlation_levels, rate_levels, rate_power
from pipeline.audits.permutation.simulations import sampled
from pipeline.datasets import none as no_data
from pipeline.methods import none as no_model
from pipeline.seeds import generators
from pipeline.types import Classifier, Dataset

Near = Callable[..., bool]
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


@pytest.fixture(scope="module")
def nothing() -> tuple[Dataset, Classifier]:
    rngs = generators("t", repetitions=1)
    data = no_data.prepare(None, no_data.Config(), rngs, "simulated")
    return data, no_model.fit(data, no_model.Config(), rngs)


@pytest.fixture(scope="module")
def levels(nothing: tuple[Dataset, Classifier]) -> pd.DataFrame:
    return rate_levels.run(*nothing, LEVELS, generators("levels", repetitions=1)).rows


def value(rows: pd.DataFrame, **where: object) -> float:
    for column, wanted in where.items():
        rows = rows[rows[column] == wanted]
    (found,) = rows["value"]
    return float(found)


def test_samples_have_the_rates_asked_for() -> None:
    tables = sampled((5000, 300), (0.8, 0.2), (0.7, 0.9), 0.6, 2000, np.random.default_rng(0))
    assert (tables.sum(axis=(2, 3)) == [5000, 300]).all()
    mean = tables.mean(axis=0)
    np.testing.assert_allclose(mean[:, 1].sum(axis=-1) / [5000, 300], [0.8, 0.2], rtol=0.01)
    np.testing.assert_allclose(mean[:, 1, 1] / mean[:, 1].sum(axis=-1), [0.7, 0.9], rtol=0.01)
    np.testing.assert_allclose(mean[:, 0, 0] / mean[:, 0].sum(axis=-1), [0.6, 0.6], rtol=0.01)


def test_the_studentised_test_has_its_level_and_the_unstudentised_that_of_the_formula(
    levels: pd.DataFrame, near: Near
) -> None:
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


def test_a_group_without_positives_is_counted_as_undefined(nothing: tuple[Dataset, Classifier], near: Near) -> None:
    config = replace(LEVELS, n_a=[50], n_b=[5], rate=[0.8], tests=["exact"], simulations=400)
    rows = rate_levels.run(*nothing, config, generators("few", repetitions=1)).rows
    assert near(value(rows, statistic="undefined", test="exact"), 0.8**5, 400)


def test_samples_of_scores_have_the_auc_and_the_shares_asked_for() -> None:
    label, group = auc_levels.sample((500, 300), AUC, 400, np.random.default_rng(0))
    for g, positives in ((0, 0.8), (1, 0.2)):
        own = [y[of == g] for y, of in zip(label, group, strict=True)]
        assert np.mean(own) == pytest.approx(positives, abs=0.01)
        # Rows are in ascending order of score: the negatives below each positive.
        wins = [(y * np.cumsum(1 - y)).sum() / (y.sum() * (1 - y).sum()) for y in own]
        assert np.mean(wins) == pytest.approx(0.8, abs=0.005)


def test_delongs_test_of_aucs_has_its_level_and_the_unstudentised_that_of_the_formula(
    nothing: tuple[Dataset, Classifier], near: Near
) -> None:
    rows = auc_levels.run(*nothing, AUC, generators("auc", repetitions=1)).rows
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


def test_table_1_by_all_three_tests(nothing: tuple[Dataset, Classifier], near: Near) -> None:
    result = correlation_levels.run(*nothing, CORRELATION, generators("table 1", repetitions=1))
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
    found = correlation_levels.run(*nothing, many, generators("fairtest", repetitions=1)).rows
    assert near(value(found, statistic="rejection_rate"), 0.0106, 4000)
    assert result.arrays["p_values"].shape == (2, 3, 240)


def test_power_is_the_level_without_a_difference_and_the_formulas_with_one(
    nothing: tuple[Dataset, Classifier], near: Near
) -> None:
    rows = rate_power.run(*nothing, POWER, generators("power", repetitions=1)).rows
    for n in POWER.n:
        assert near(value(rows, statistic="power", n=n, difference=0.0, test="studentized_smoothed"), 0.05, 500)
        # Two binomial rates of n / 4 rows each, .7 and .6.
        spread = np.sqrt((0.7 * 0.3 + 0.6 * 0.4) / (n / 4))
        predicted = value(rows, statistic="predicted_power", n=n, difference=0.1)
        assert predicted == pytest.approx(stats.norm.cdf(0.1 / spread - stats.norm.isf(0.025)))
        assert near(value(rows, statistic="power", n=n, difference=0.1, test="studentized_smoothed"), predicted, 500)
    assert value(rows, statistic="power", n=3200, difference=0.1, test="exact") > 0.9
