"""The audits: every metric on every attribute of every repetition, by threshold and by sample size."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from pipeline.audits.correction import corrected
from pipeline.audits.permutation import auc, permutation, sample_size, thresholds
from pipeline.audits.permutation.permutation import Config, run
from pipeline.audits.permutation.scores import scores_of, threshold_tables
from pipeline.seeds import generators
from pipeline.types import Dataset
from tests.builders import chosen, dataset, logistic

EVERY = Config(["tpr", "fpr", "auc", "log_loss"], None, 0.5, ["auto", "lift"], 99, 0.05, 1.0, 99)


def people(n: int = 2000) -> Dataset:
    """Two splits in halves; more men, with a larger x on which y depends; race and z say nothing."""
    rng = np.random.default_rng(0)
    sex, race = ((rng.random(n) < share).astype(np.int64) for share in (0.6, 0.2))
    x = rng.normal(size=(n, 2)) + np.column_stack([0.8 * sex, np.zeros(n)])
    y = (rng.random(n) < expit(x[:, 0])).astype(np.int64)
    order, levels = np.stack([rng.permutation(n) for _ in range(2)]), {"sex": ("women", "men"), "race": ("b", "w")}
    return dataset(x, y, {"sex": sex, "race": race}, order[:, : n // 2], order[:, n // 2 :], levels=levels)


DATA, CLASSIFIER = people(), logistic(1.0, 0.0, repetitions=2)
RNGS = generators("audit", repetitions=2)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return run(DATA, CLASSIFIER, EVERY, RNGS).rows


def one(rows: pd.DataFrame, **where: object) -> pd.Series:
    return chosen(rows, **where).set_index("statistic")["value"]


def test_every_metric_attribute_and_test_has_one_row_a_statistic(rows: pd.DataFrame) -> None:
    key = ["repetition", "attribute", "metric", "test", "statistic"]
    assert not rows.duplicated(subset=key).any()
    assert rows.groupby(["repetition", "attribute", "metric", "test"]).ngroups == 2 * 2 * 4 * 2
    assert set(rows["attribute"]) == {"sex", "race"}
    assert rows["value"].dtype == float


def test_who_is_in_neither_group_has_no_part_in_the_tests_of_that_attribute() -> None:
    """The tests are those of the data without these rows, and so is the other attribute with them."""
    outside = np.arange(len(DATA.label)) % 4 == 0
    some = replace(DATA, protected={**DATA.protected, "race": np.where(outside, -1, DATA.protected["race"])})
    config = replace(EVERY, metrics=["tpr", "fpr"], tests=["exact"])
    found = run(some, CLASSIFIER, config, RNGS).rows
    whole = run(DATA, CLASSIFIER, config, RNGS).rows
    test, score = scores_of(DATA, CLASSIFIER, "test")
    group = ~outside[DATA.test[0]] & (test.protected["race"][0] == 1)
    positive = group & (test.label[0] == 1)
    mine = one(found, repetition=0, attribute="race", metric="tpr")
    assert (mine["n_a"], mine["estimate_a"]) == (group.sum(), pytest.approx((score[0][positive] >= 0.5).mean()))
    for metric in ("tpr", "fpr"):
        sides = (one(rows, repetition=1, attribute="sex", metric=metric) for rows in (found, whole))
        pd.testing.assert_series_equal(*(side.drop("p_adjusted") for side in sides))


def test_scores_that_are_no_probabilities_are_refused() -> None:
    parameters = {"coef": np.ones((2, 2)), "intercept": np.zeros(2), "threshold": np.zeros(2)}
    regression = replace(CLASSIFIER, architecture="linear", parameters=parameters)
    with pytest.raises(ValueError, match=r"'given' \(architecture 'linear'\) are no probabilities"):
        scores_of(DATA, regression, "test")


def test_recall_is_fishers_test_on_the_test_rows(rows: pd.DataFrame) -> None:
    test, score = scores_of(DATA, CLASSIFIER, "test")
    positive, accepted = test.label[1] == 1, score[1] >= 0.5
    table = [
        [
            (positive & accepted & (test.protected["sex"][1] == g)).sum(),
            (positive & ~accepted & (test.protected["sex"][1] == g)).sum(),
        ]
        for g in (1, 0)
    ]
    found = one(rows, repetition=1, attribute="sex", metric="tpr", test="auto")
    assert found["p_value"] == pytest.approx(stats.fisher_exact(table).pvalue)
    assert found["difference"] == pytest.approx(table[0][0] / sum(table[0]) - table[1][0] / sum(table[1]))
    assert (found["exact"], found["draws"], found["undefined"]) == (1, 0, 0)


def test_p_values_are_adjusted_over_the_tests_of_a_repetition(rows: pd.DataFrame) -> None:
    wide = rows[(rows["repetition"] == 1) & (rows["test"] == "auto")].pivot_table(
        index=["attribute", "metric"], columns="statistic", values="value"
    )
    np.testing.assert_allclose(wide["p_adjusted"], corrected(wide["p_value"].to_numpy(), "holm"))


@pytest.mark.parametrize("test", ["auto", "lift"])
def test_rates_that_are_equal_together_are_one_hypothesis(test: str, rows: pd.DataFrame) -> None:
    """With FNR and TNR beside TPR and FPR, the other p-values are adjusted as without them."""
    config = replace(EVERY, metrics=["tpr", "fpr", "fnr", "tnr", "log_loss"], attributes=["sex"], tests=[test])
    found = run(DATA, CLASSIFIER, config, RNGS).rows
    wide = found[found["repetition"] == 0].pivot_table(index="metric", columns="statistic", values="value")
    p = wide["p_value"]
    largest = [max(p["tpr"], p["fnr"]), max(p["fpr"], p["tnr"]), p["log_loss"]]
    expected = corrected(np.array(largest), "holm")
    np.testing.assert_allclose(wide["p_adjusted"][["tpr", "fpr", "log_loss"]], expected)
    np.testing.assert_allclose(wide["p_adjusted"][["fnr", "tnr"]], expected[:2])


def test_a_threshold_that_accepts_nobody_leaves_precision_undefined() -> None:
    config = replace(EVERY, metrics=["precision", "tpr"], threshold=1.0, tests=["auto"])
    rows = run(DATA, CLASSIFIER, config, RNGS).rows
    undefined = one(rows, repetition=0, attribute="sex", metric="precision", test="auto")
    assert undefined["undefined"] == 1
    assert undefined[["p_value", "p_adjusted", "difference", "ci_low"]].isna().all()
    assert one(rows, repetition=0, attribute="sex", metric="tpr", test="auto")["p_value"] == 1


def test_exact_tests_are_of_rates_alone() -> None:
    rows = run(DATA, CLASSIFIER, replace(EVERY, tests=["exact"]), RNGS).rows
    assert set(rows["metric"]) == {"tpr", "fpr"}


# Rates, their tests and the least difference detected, by threshold; the AUC of the test rows.


CONFIG = thresholds.Config(["tpr", "fpr"], ["sex"], 11, 999, 0.05)
SIZES = sample_size.Config(["tpr"], ["sex"], ["exact"], [200, 800], 5, "test", 9, 0.1, 0.9, 5, 99, 0.05)


@pytest.fixture(scope="module")
def by_thresholds() -> pd.DataFrame:
    return thresholds.run(DATA, CLASSIFIER, CONFIG, RNGS).rows


def by_threshold(rows: pd.DataFrame, statistic: str, test: str, metric: str = "tpr") -> np.ndarray:
    found = chosen(rows, statistic=statistic, test=test, metric=metric, repetition=0)
    return found.sort_values("threshold")["value"].to_numpy()


def test_tables_are_those_of_each_decision_with_the_threshold_itself_accepted() -> None:
    rng = np.random.default_rng(1)
    label, protected = rng.integers(2, size=(2, 300))
    score, at = rng.integers(11, size=300) / 10, np.arange(11) / 10
    for threshold, table in zip(at, threshold_tables(label, score, protected, at), strict=True):
        for group, y, decision in np.ndindex(2, 2, 2):
            expected = (protected == 1 - group) & (label == y) & ((score >= threshold) == decision)
            assert table[group, y, decision] == expected.sum()


def test_the_difference_is_of_men_and_women_and_vanishes_where_all_or_none_are_accepted(
    by_thresholds: pd.DataFrame,
) -> None:
    test = DATA.test[0]
    positive, men = DATA.label[test] == 1, DATA.protected["sex"][test] == 1
    accepted = expit(DATA.features[test, 0]) >= 0.5
    expected = accepted[positive & men].mean() - accepted[positive & ~men].mean()
    difference = by_threshold(by_thresholds, "difference", "")
    assert difference[5] == pytest.approx(expected)
    np.testing.assert_allclose(difference[[0, -1]], 0)
    assert by_threshold(by_thresholds, "p_value", "studentized")[[0, -1]].tolist() == [1, 1]
    np.testing.assert_allclose(by_threshold(by_thresholds, "equalized_odds", ""), np.abs(difference))


@pytest.mark.parametrize("test", ["unstudentized", "studentized", "studentized_smoothed"])
def test_a_difference_is_rejected_exactly_where_it_exceeds_the_bound(by_thresholds: pd.DataFrame, test: str) -> None:
    for metric in ("tpr", "fpr"):
        beyond = np.abs(by_threshold(by_thresholds, "difference", "", metric)) > by_threshold(
            by_thresholds, "critical", test, metric
        )
        rejected = by_threshold(by_thresholds, "rejected", test, metric)
        np.testing.assert_array_equal(beyond, rejected == 1)
        assert set(rejected) == {0, 1}


def test_the_bounds_are_those_of_the_normal_limit(by_thresholds: pd.DataFrame) -> None:
    """At threshold .5: the permutation's variance pools the groups (unstudentized), the test's own does not."""
    a, b, n_a, n_b = (by_threshold(by_thresholds, s, "")[5] for s in ("estimate_a", "estimate_b", "n_a", "n_b"))
    z = stats.norm.isf(0.025)
    own = np.sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b)
    pooled = (n_a * a + n_b * b) / (n_a + n_b)
    assert by_threshold(by_thresholds, "critical", "studentized")[5] == pytest.approx(z * own, rel=0.1)
    # Positives move between the groups with the rows: as many as the shares of rows, not of positives.
    assert by_threshold(by_thresholds, "percentile_95", "")[5] == pytest.approx(
        z * np.sqrt(pooled * (1 - pooled) / ((n_a + n_b) * 0.6 * 0.4)), rel=0.1
    )


def test_larger_samples_detect_smaller_differences() -> None:
    config = replace(SIZES, samples=10)
    found = sample_size.run(DATA, CLASSIFIER, config, RNGS).rows
    least = found[found["statistic"] == "minimum_difference"].groupby("n")["value"].median()
    assert least[800] < least[200]
    corrected = found[found["statistic"] == "minimum_difference_corrected"]["value"].to_numpy()
    plain = found[found["statistic"] == "minimum_difference"]["value"].to_numpy()
    known = ~np.isnan(corrected)
    assert (corrected[known] >= plain[known]).all()
    ratio = found[found["statistic"] == "detectable"].groupby("n")["value"].mean()
    assert ratio[200] / ratio[800] == pytest.approx(2, rel=0.1)


def test_a_threshold_with_an_empty_cell_is_not_tested() -> None:
    tables = np.array([[[[[9, 9], [9, 9]], [[9, 9], [4, 9]]], [[[9, 9], [30, 5]], [[9, 9], [5, 30]]]]])
    found = sample_size.minima(tables, "tpr", "exact", SIZES, np.random.default_rng(0))
    assert found["thresholds_tested"].tolist() == [1]
    assert found["minimum_difference"][0] == pytest.approx(25 / 35)


def test_the_auc_and_its_error_are_delongs() -> None:
    found = auc.run(DATA, CLASSIFIER, auc.Config(["sex"]), RNGS).rows
    test = DATA.test[1]
    men = DATA.protected["sex"][test] == 1
    for group, inside in (("", np.ones(len(test), dtype=bool)), ("men", men), ("women", ~men)):
        score, label = DATA.features[test, 0][inside], DATA.label[test][inside]
        wins = score[label == 1][:, None] > score[label == 0]
        own = found[(found["repetition"] == 1) & (found["group"] == group)]
        values = own.set_index("statistic")["value"]
        assert values["auc"] == pytest.approx(wins.mean())
        variance = wins.mean(axis=1).var(ddof=1) / wins.shape[0] + wins.mean(axis=0).var(ddof=1) / wins.shape[1]
        assert values["auc_std_error"] == pytest.approx(np.sqrt(variance))
        assert (values["n"], values["positives"]) == (len(label), label.sum())


@pytest.mark.parametrize(
    ("audit", "config", "message"),
    [
        (
            permutation,
            replace(EVERY, attributes=["age"]),
            r"audit\.attributes among \['race', 'sex'\], found \['age'\]",
        ),
        (
            thresholds,
            replace(CONFIG, attributes=["age"]),
            r"audit\.attributes among \['race', 'sex'\], found \['age'\]",
        ),
        (
            sample_size,
            replace(SIZES, sizes=[2000]),
            r"audit\.sizes of at most 1000, the test rows of 'toy'; found 2000",
        ),
    ],
)
def test_what_is_not_there_is_named(audit: Any, config: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        audit.run(DATA, CLASSIFIER, config, RNGS)
