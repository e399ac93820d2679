"""Rates, their tests and the least difference detected, by threshold; the AUC of the test rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from pipeline.audits.permutation import auc, sample_size, thresholds
from pipeline.audits.permutation.scores import threshold_tables
from pipeline.seeds import generators
from pipeline.types import Classifier, Dataset

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
    protected, levels = {"sex": sex}, {"sex": ("women", "men")}
    return Dataset("toy", "simulated", x, ("x",), (), y, "y", protected, levels, order[:, :1000], order[:, 1000:])


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    parameters = {"weight": np.ones((2, 1)), "coef": np.ones((2, 1, 1)), "intercept": np.zeros((2, 1))}
    return Classifier("given", "toy", "simulated", "logistic_mixture", parameters)


@pytest.fixture(scope="module")
def rows(data: Dataset, classifier: Classifier) -> pd.DataFrame:
    return thresholds.run(data, classifier, CONFIG, generators("t", repetitions=2)).rows


def by_threshold(rows: pd.DataFrame, statistic: str, test: str, metric: str = "tpr") -> np.ndarray:
    test_is = rows["test"] == test
    chosen = rows[(rows["statistic"] == statistic) & test_is & (rows["metric"] == metric) & (rows["repetition"] == 0)]
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
    rows: pd.DataFrame, data: Dataset
) -> None:
    test = data.test[0]
    positive, men = data.label[test] == 1, data.protected["sex"][test] == 1
    accepted = expit(data.features[test, 0]) >= 0.5
    expected = accepted[positive & men].mean() - accepted[positive & ~men].mean()
    difference = by_threshold(rows, "difference", "")
    assert difference[5] == pytest.approx(expected)
    np.testing.assert_allclose(difference[[0, -1]], 0)
    assert by_threshold(rows, "p_value", "studentized")[[0, -1]].tolist() == [1, 1]
    np.testing.assert_allclose(by_threshold(rows, "equalized_odds", ""), np.abs(difference))


@pytest.mark.parametrize("test", ["unstudentized", "studentized", "studentized_smoothed"])
def test_a_difference_is_rejected_exactly_where_it_exceeds_the_bound(rows: pd.DataFrame, test: str) -> None:
    for metric in ("tpr", "fpr"):
        beyond = np.abs(by_threshold(rows, "difference", "", metric)) > by_threshold(rows, "critical", test, metric)
        rejected = by_threshold(rows, "rejected", test, metric)
        np.testing.assert_array_equal(beyond, rejected == 1)
        assert set(rejected) == {0, 1}


def test_the_bounds_are_those_of_the_normal_limit(rows: pd.DataFrame) -> None:
    """At threshold .5: the permutation's variance pools the groups (unstudentized), the test's own does not."""
    a, b, n_a, n_b = (by_threshold(rows, s, "")[5] for s in ("estimate_a", "estimate_b", "n_a", "n_b"))
    z = stats.norm.isf(0.025)
    own = np.sqrt(a * (1 - a) / n_a + b * (1 - b) / n_b)
    pooled = (n_a * a + n_b * b) / (n_a + n_b)
    assert by_threshold(rows, "critical", "studentized")[5] == pytest.approx(z * own, rel=0.1)
    # Positives move between the groups with the rows: as many as the shares of rows, not of positives.
    assert by_threshold(rows, "percentile_95", "")[5] == pytest.approx(
        z * np.sqrt(pooled * (1 - pooled) / ((n_a + n_b) * 0.6 * 0.4)), rel=0.1
    )


def test_larger_samples_detect_smaller_differences(data: Dataset, classifier: Classifier) -> None:
    config = replace(SIZES, attributes=None, samples=10)
    found = sample_size.run(data, classifier, config, generators("s", repetitions=2)).rows
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


def test_the_auc_and_its_error_are_delongs(data: Dataset, classifier: Classifier) -> None:
    found = auc.run(data, classifier, auc.Config(None), generators("a", repetitions=2)).rows
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


def test_bad_settings_are_refused(data: Dataset, classifier: Classifier) -> None:
    with pytest.raises(ValueError, match=r"audit\.attributes among \['sex'\], found \['age'\]"):
        thresholds.run(data, classifier, replace(CONFIG, attributes=["age"]), generators("t", repetitions=1))
    with pytest.raises(ValueError, match=r"audit\.sizes of at most 1000, the test rows of 'toy'; found 2000"):
        sample_size.run(data, classifier, replace(SIZES, sizes=[2000]), generators("t", repetitions=1))
