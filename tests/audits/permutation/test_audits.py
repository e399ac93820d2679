"""The audits: every metric on every attribute of every repetition, by threshold and by sample size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from pipeline.audits.correction import corrected
from pipeline.audits.permutation import auc, sample_size, thresholds
from pipeline.audits.permutation.permutation import Config, run
from pipeline.audits.permutation.scores import scores_of, threshold_tables
from pipeline.models import architecture
from pipeline.seeds import generators
from pipeline.types import Classifier, Dataset
from tests.builders import dataset as dataset_of
from tests.builders import logistic

EVERY = Config(["tpr", "fpr", "auc", "log_loss"], None, 0.5, ["auto", "lift"], 99, 0.05, 1.0, 99)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(600, 2))
    protected = {"sex": (rng.random(600) < 0.5).astype(np.int64), "race": (rng.random(600) < 0.2).astype(np.int64)}
    label = (features[:, 0] + 1.5 * protected["sex"] * rng.normal(size=600) > 0).astype(np.int64)
    order = np.stack([rng.permutation(600) for _ in range(3)])
    levels = {"sex": ("f", "m"), "race": ("b", "w")}
    return dataset_of(features, label, protected, order[:, :300], order[:, 300:], levels=levels)


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    return logistic(2.0, 0.1, repetitions=3)


@pytest.fixture(scope="module")
def rows(dataset: Dataset, classifier: Classifier) -> pd.DataFrame:
    return run(dataset, classifier, EVERY, generators("audit", repetitions=3)).rows


def one(rows: pd.DataFrame, **where: object) -> pd.Series:
    chosen = rows
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return chosen.set_index("statistic")["value"]


def test_scores_are_the_models_probabilities(dataset: Dataset, classifier: Classifier) -> None:
    import torch

    features = dataset.batch("test").features
    parameters = {name: torch.from_numpy(values) for name, values in classifier.parameters.items()}
    expected = architecture("logistic_mixture").log_probabilities(parameters, torch.from_numpy(features)).exp()
    np.testing.assert_allclose(scores_of(dataset, classifier, "test")[1], expected[..., 1].numpy())


def test_every_metric_attribute_and_test_has_one_row_a_statistic(rows: pd.DataFrame) -> None:
    key = ["repetition", "attribute", "metric", "test", "statistic"]
    assert not rows.duplicated(subset=key).any()
    assert rows.groupby(["repetition", "attribute", "metric", "test"]).ngroups == 3 * 2 * 4 * 2
    assert set(rows["attribute"]) == {"sex", "race"}
    assert rows["value"].dtype == float


def test_recall_is_fishers_test_on_the_test_rows(rows: pd.DataFrame, dataset: Dataset, classifier: Classifier) -> None:
    test, score = scores_of(dataset, classifier, "test")
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
    wide = rows[(rows["repetition"] == 2) & (rows["test"] == "auto")].pivot_table(
        index=["attribute", "metric"], columns="statistic", values="value"
    )
    np.testing.assert_allclose(wide["p_adjusted"], corrected(wide["p_value"].to_numpy(), "holm"))


@pytest.mark.parametrize("test", ["auto", "lift"])
def test_rates_that_are_equal_together_are_one_hypothesis(
    test: str, rows: pd.DataFrame, dataset: Dataset, classifier: Classifier
) -> None:
    """With FNR and TNR beside TPR and FPR, the other p-values are adjusted as without them."""
    config = replace(EVERY, metrics=["tpr", "fpr", "fnr", "tnr", "log_loss"], attributes=["sex"], tests=[test])
    found = run(dataset, classifier, config, generators("audit", repetitions=3)).rows
    wide = found[found["repetition"] == 0].pivot_table(index="metric", columns="statistic", values="value")
    p = wide["p_value"]
    largest = [max(p["tpr"], p["fnr"]), max(p["fpr"], p["tnr"]), p["log_loss"]]
    expected = corrected(np.array(largest), "holm")
    np.testing.assert_allclose(wide["p_adjusted"][["tpr", "fpr", "log_loss"]], expected)
    np.testing.assert_allclose(wide["p_adjusted"][["fnr", "tnr"]], expected[:2])


def test_the_same_generators_give_the_same_rows(rows: pd.DataFrame, dataset: Dataset, classifier: Classifier) -> None:
    again = run(dataset, classifier, EVERY, generators("audit", repetitions=3)).rows
    pd.testing.assert_frame_equal(again, rows)


def test_a_threshold_that_accepts_nobody_leaves_precision_undefined(dataset: Dataset, classifier: Classifier) -> None:
    config = replace(EVERY, metrics=["precision", "tpr"], threshold=1.0, tests=["auto"])
    rows = run(dataset, classifier, config, generators("audit", repetitions=3)).rows
    undefined = one(rows, repetition=0, attribute="sex", metric="precision", test="auto")
    assert undefined["undefined"] == 1
    assert undefined[["p_value", "p_adjusted", "difference", "ci_low"]].isna().all()
    assert one(rows, repetition=0, attribute="sex", metric="tpr", test="auto")["p_value"] == 1


def test_exact_tests_are_of_rates_alone(dataset: Dataset, classifier: Classifier) -> None:
    rows = run(dataset, classifier, replace(EVERY, tests=["exact"]), generators("audit", repetitions=3)).rows
    assert set(rows["metric"]) == {"tpr", "fpr"}


def test_an_attribute_that_is_not_there_is_named(dataset: Dataset, classifier: Classifier) -> None:
    with pytest.raises(ValueError, match=r"expected audit.attributes among \['race', 'sex'\], found \['age'\]"):
        run(dataset, classifier, replace(EVERY, attributes=["age"]), generators("audit", repetitions=3))


# Rates, their tests and the least difference detected, by threshold; the AUC of the test rows.


CONFIG = thresholds.Config(["tpr", "fpr"], None, 11, 999, 0.05)
SIZES = sample_size.Config(["tpr"], ["sex"], ["exact"], [200, 800], 5, "test", 9, 0.1, 0.9, 5, 99, 0.05)


@pytest.fixture(scope="module")
def data() -> Dataset:
    rng = np.random.default_rng(0)
    n = 2000
    sex = (rng.random(n) < 0.6).astype(np.int64)
    x = rng.normal(size=(n, 1)) + 0.8 * sex[:, None]
    y = (rng.random(n) < expit(x[:, 0])).astype(np.int64)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    return dataset_of(x, y, {"sex": sex}, order[:, :1000], order[:, 1000:], levels={"sex": ("women", "men")})


@pytest.fixture(scope="module")
def at_half() -> Classifier:
    return logistic(1.0, repetitions=2)


@pytest.fixture(scope="module")
def by_thresholds(data: Dataset, at_half: Classifier) -> pd.DataFrame:
    return thresholds.run(data, at_half, CONFIG, generators("t", repetitions=2)).rows


def by_threshold(by_thresholds: pd.DataFrame, statistic: str, test: str, metric: str = "tpr") -> np.ndarray:
    test_is = by_thresholds["test"] == test
    chosen = by_thresholds[
        (by_thresholds["statistic"] == statistic)
        & test_is
        & (by_thresholds["metric"] == metric)
        & (by_thresholds["repetition"] == 0)
    ]
    return chosen.sort_values("threshold")["value"].to_numpy()


def test_tables_are_those_of_each_decision_with_the_threshold_itself_accepted() -> None:
    rng = np.random.default_rng(1)
    label, protected = rng.integers(2, size=(2, 300))
    score, at = rng.integers(11, size=300) / 10, np.arange(11) / 10
    for threshold, table in zip(at, threshold_tables(label, score, protected, at), strict=True):
        for group, y, decision in np.ndindex(2, 2, 2):
            expected = (protected == 1 - group) & (label == y) & ((score >= threshold) == decision)
            assert table[group, y, decision] == expected.sum()


def test_the_difference_is_of_men_and_women_and_vanishes_where_all_or_none_are_accepted(
    by_thresholds: pd.DataFrame, data: Dataset
) -> None:
    test = data.test[0]
    positive, men = data.label[test] == 1, data.protected["sex"][test] == 1
    accepted = expit(data.features[test, 0]) >= 0.5
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


def test_larger_samples_detect_smaller_differences(data: Dataset, at_half: Classifier) -> None:
    config = replace(SIZES, attributes=None, samples=10)
    found = sample_size.run(data, at_half, config, generators("s", repetitions=2)).rows
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


def test_the_auc_and_its_error_are_delongs(data: Dataset, at_half: Classifier) -> None:
    found = auc.run(data, at_half, auc.Config(None), generators("a", repetitions=2)).rows
    test = data.test[1]
    men = data.protected["sex"][test] == 1
    for group, chosen in (("", np.ones(len(test), dtype=bool)), ("men", men), ("women", ~men)):
        score, label = data.features[test, 0][chosen], data.label[test][chosen]
        wins = score[label == 1][:, None] > score[label == 0]
        own = found[(found["repetition"] == 1) & (found["group"] == group)]
        values = own.set_index("statistic")["value"]
        assert values["auc"] == pytest.approx(wins.mean())
        variance = wins.mean(axis=1).var(ddof=1) / wins.shape[0] + wins.mean(axis=0).var(ddof=1) / wins.shape[1]
        assert values["auc_std_error"] == pytest.approx(np.sqrt(variance))
        assert (values["n"], values["positives"]) == (len(label), label.sum())


def test_bad_settings_are_refused(data: Dataset, at_half: Classifier) -> None:
    with pytest.raises(ValueError, match=r"audit\.attributes among \['sex'\], found \['age'\]"):
        thresholds.run(data, at_half, replace(CONFIG, attributes=["age"]), generators("t", repetitions=1))
    with pytest.raises(ValueError, match=r"audit\.sizes of at most 1000, the test rows of 'toy'; found 2000"):
        sample_size.run(data, at_half, replace(SIZES, sizes=[2000]), generators("t", repetitions=1))
