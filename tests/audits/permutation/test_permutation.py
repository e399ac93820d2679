"""The audit: every metric on every attribute of every repetition."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pipeline.audits.correction import corrected
from pipeline.audits.permutation.permutation import Config, run
from pipeline.audits.permutation.scores import scores_of
from pipeline.models import architecture
from pipeline.seeds import generators
from pipeline.types import Classifier, Dataset

CONFIG = Config(["tpr", "fpr", "auc", "log_loss"], None, 0.5, ["auto", "lift"], 99, 0.05, 1.0, 99)


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(600, 2))
    protected = {"sex": (rng.random(600) < 0.5).astype(np.int64), "race": (rng.random(600) < 0.2).astype(np.int64)}
    label = (features[:, 0] + 1.5 * protected["sex"] * rng.normal(size=600) > 0).astype(np.int64)
    order = np.stack([rng.permutation(600) for _ in range(3)])
    levels = {"sex": ("f", "m"), "race": ("b", "w")}
    return Dataset(
        "toy", "simulated", features, ("x", "z"), (), label, "y", protected, levels, order[:, :300], order[:, 300:]
    )


@pytest.fixture(scope="module")
def classifier() -> Classifier:
    parameters = {"weight": np.ones((3, 1)), "coef": np.tile([2.0, 0.1], (3, 1, 1)), "intercept": np.zeros((3, 1))}
    return Classifier("given", "toy", "simulated", "logistic_mixture", parameters)


@pytest.fixture(scope="module")
def rows(dataset: Dataset, classifier: Classifier) -> pd.DataFrame:
    return run(dataset, classifier, CONFIG, generators("audit", repetitions=3)).rows


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
    config = replace(CONFIG, metrics=["tpr", "fpr", "fnr", "tnr", "log_loss"], attributes=["sex"], tests=[test])
    found = run(dataset, classifier, config, generators("audit", repetitions=3)).rows
    wide = found[found["repetition"] == 0].pivot_table(index="metric", columns="statistic", values="value")
    p = wide["p_value"]
    largest = [max(p["tpr"], p["fnr"]), max(p["fpr"], p["tnr"]), p["log_loss"]]
    expected = corrected(np.array(largest), "holm")
    np.testing.assert_allclose(wide["p_adjusted"][["tpr", "fpr", "log_loss"]], expected)
    np.testing.assert_allclose(wide["p_adjusted"][["fnr", "tnr"]], expected[:2])


def test_the_same_generators_give_the_same_rows(rows: pd.DataFrame, dataset: Dataset, classifier: Classifier) -> None:
    again = run(dataset, classifier, CONFIG, generators("audit", repetitions=3)).rows
    pd.testing.assert_frame_equal(again, rows)


def test_a_threshold_that_accepts_nobody_leaves_precision_undefined(dataset: Dataset, classifier: Classifier) -> None:
    config = replace(CONFIG, metrics=["precision", "tpr"], threshold=1.0, tests=["auto"])
    rows = run(dataset, classifier, config, generators("audit", repetitions=3)).rows
    undefined = one(rows, repetition=0, attribute="sex", metric="precision", test="auto")
    assert undefined["undefined"] == 1
    assert undefined[["p_value", "p_adjusted", "difference", "ci_low"]].isna().all()
    assert one(rows, repetition=0, attribute="sex", metric="tpr", test="auto")["p_value"] == 1


def test_exact_tests_are_of_rates_alone(dataset: Dataset, classifier: Classifier) -> None:
    rows = run(dataset, classifier, replace(CONFIG, tests=["exact"]), generators("audit", repetitions=3)).rows
    assert set(rows["metric"]) == {"tpr", "fpr"}


def test_an_attribute_that_is_not_there_is_named(dataset: Dataset, classifier: Classifier) -> None:
    with pytest.raises(ValueError, match=r"expected audit.attributes among \['race', 'sex'\], found \['age'\]"):
        run(dataset, classifier, replace(CONFIG, attributes=["age"]), generators("audit", repetitions=3))
