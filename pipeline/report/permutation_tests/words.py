"""What the study's tests, metrics, groups and datasets are called, and one colour, marker and line for each test."""

from __future__ import annotations

from pipeline.report.inputs import Inputs
from pipeline.report.numbers import MINUS
from pipeline.report.style import MethodStyle

FOR_THE_PAPER = "logistic"
"""The method that the paper trains: logistic regression."""

NULLS = {"uncorrelated": "Uncorrelated", "independent": "Independence"}
"""The two hypotheses of Table 1."""

FAIRTEST, UNSTUDENTIZED, STUDENTIZED, SMOOTHED = "fairtest", "unstudentized", "studentized", "studentized_smoothed"
LIFT, BOOTSTRAP, EXACT = "lift", "bootstrap", "exact"

TESTS = {
    FAIRTEST: MethodStyle("FairTest", "#000000", "X", "-"),
    UNSTUDENTIZED: MethodStyle("un-studentised", "#555555", "v", (0, (1, 1.2))),
    STUDENTIZED: MethodStyle("studentised", "#D55E00", "s", (0, (5, 1.5))),
    SMOOTHED: MethodStyle("studentised, smoothed", "#D98E04", "P", (0, (5, 1.5, 1, 1.5, 1, 1.5))),
    LIFT: MethodStyle("LiFT's shortcut", "#B5478F", "D", (0, (5, 1.5, 1, 1.5))),
    BOOTSTRAP: MethodStyle("bootstrap", "#00875F", "^", (0, (3, 1, 1, 1, 1, 1))),
    EXACT: MethodStyle("within outcome, exact", "#0072B2", "o", "-"),
}

METRICS = {
    "tpr": "recall (TPR)",
    "fpr": "FPR",
    "fnr": "FNR",
    "tnr": "TNR",
    "precision": "precision",
    "npv": "NPV",
    "accuracy": "accuracy",
    "selection_rate": "selection rate",
    "auc": "AUC",
    "mean_score": "mean score",
    "mean_error": "mean error",
    "log_loss": "log loss",
}

DATASETS = {"adult": "Adult", "adult_all": "Adult", "compas": "COMPAS", "compas_all": "COMPAS"}
ATTRIBUTES = {"sex": "gender", "race": "race"}


def dataset_label(name: str) -> str:
    """``adult_all`` -> ``Adult``; a dataset that is not the paper's goes by its own name."""
    return DATASETS.get(name, name.replace("_", " ").capitalize())


def metric_label(name: str) -> str:
    """``tpr`` -> ``recall (TPR)``."""
    return METRICS.get(name, name.replace("_", " "))


def tests_in(found: list[str]) -> list[str]:
    """The distinct tests in the fixed order of the study, others after them by name."""
    return [test for test in TESTS if test in found] + sorted(set(found) - set(TESTS))


def style_of(test: str) -> MethodStyle:
    """The style of a test; one that the study does not know is drawn in black."""
    return TESTS.get(test, MethodStyle(test.replace("_", " "), "#000000", "x", "-"))


def metrics_in(found: list[str]) -> list[str]:
    """The distinct metrics in the fixed order of the study, others after them by name."""
    return [metric for metric in METRICS if metric in found] + sorted(set(found) - set(METRICS))


def attributes_in(found: list[str]) -> list[str]:
    """The distinct attributes in the fixed order of the study, others after them by name."""
    return [attribute for attribute in ATTRIBUTES if attribute in found] + sorted(set(found) - set(ATTRIBUTES))


def difference_of(inputs: Inputs, dataset: str, attribute: str) -> str:
    """Which group is taken from which: ``male \u2212 female``; by levels where the dataset does not name them."""
    for name, prepared in sorted(inputs.datasets.items()):
        if name.partition("@")[0] == dataset and attribute in prepared.levels:
            low, high = prepared.levels[attribute]
            return f"{high} {MINUS} {low}"
    return f"level 1 {MINUS} level 0"
