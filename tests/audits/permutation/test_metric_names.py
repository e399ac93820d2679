"""The names of metrics: those of other libraries are understood, and an unknown one gets the nearest."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn.metrics

import fairness_audits as fa
from fairness_audits.audits.permutation.metrics import (
    ALIASES,
    METRICS,
    OTHER_NAMES,
    RELATED,
    Mean,
    Rate,
    metric_named,
    our_name,
)
from tests.errors import invalid

RNG = np.random.default_rng(2)
LABEL, DECISION = RNG.integers(0, 2, 300), RNG.integers(0, 2, 300)


def value(name: str) -> float:
    """A metric of all rows."""
    metric = metric_named(name)
    if isinstance(metric, Rate):
        table = np.zeros((2, 2), dtype=int)
        np.add.at(table, (LABEL, DECISION), 1)
        events, others, _ = metric.split(table)
        return float(events / (events + others))
    assert isinstance(metric, Mean)
    return float(metric.value(LABEL, DECISION).sum() / metric.base(LABEL, DECISION).sum())


@pytest.mark.parametrize(
    "name", ["recall_score", "precision_score", "accuracy_score", "f1_score", "mean_absolute_error", "brier_score_loss"]
)
def test_names_of_scikit_learn_mean_its_metrics(name: str) -> None:
    assert value(name) == pytest.approx(getattr(sklearn.metrics, name)(LABEL, DECISION))


@pytest.mark.parametrize(
    "name",
    ["true_positive_rate", "false_positive_rate", "true_negative_rate", "false_negative_rate", "selection_rate"],
)
def test_names_of_fairlearn_mean_its_metrics(name: str) -> None:
    fairlearn = pytest.importorskip("fairlearn.metrics")
    assert value(name) == pytest.approx(getattr(fairlearn, name)(LABEL, DECISION))


@pytest.mark.parametrize("name", ["equal_opportunity_difference", "demographic_parity_difference"])
def test_gaps_of_fairlearn_are_the_differences(name: str) -> None:
    fairlearn, group = pytest.importorskip("fairlearn.metrics"), RNG.choice(["f", "m"], 300)
    theirs = getattr(fairlearn, name)(LABEL, DECISION, sensitive_features=group)
    found = fa.permutation_test(LABEL, prediction=DECISION, group=group, metric=name).to_frame()
    assert abs(found["difference"][0]) == pytest.approx(theirs)


@pytest.mark.parametrize("name", ["TPR", "True positive rate", "true-positive-rate", " recall "])
def test_case_hyphens_and_spaces_do_not_matter(name: str) -> None:
    assert our_name(name) == "tpr"


def test_no_other_name_is_one_of_ours() -> None:
    assert not set(ALIASES) & set(METRICS)
    assert not set(RELATED) & {*ALIASES, *METRICS}


@pytest.mark.parametrize(
    ("name", "instead"),
    [("acuracy", "accuracy"), ("true_positve_rate", "true_positive_rate"), ("disparate_impact", "ratio")],
)
def test_an_unknown_name_gets_the_nearest(name: str, instead: str) -> None:
    people: dict[str, Any] = {"prediction": DECISION, "group": pd.Series(DECISION, name="sex")}
    with invalid(option="metric") as error:
        fa.permutation_test(LABEL, **people, metric=name)
    assert instead in str(error.value).rpartition("(")[2]


def test_the_guide_lists_all_names() -> None:
    guide = (Path(__file__).parents[3] / "docs" / "guide" / "metrics.md").read_text(encoding="utf-8")
    for name, others in OTHER_NAMES.items():
        assert f"| `{name}` | {', '.join(f'`{other}`' for other in others.split())} |" in guide
