"""The study with numbers by hand, as if every audit had been made of every model."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from pipeline.jobs import Run
from pipeline.report.agreement import measures
from pipeline.report.inputs import Inputs
from pipeline.values import AuditResult, DatasetSummary

REPETITIONS, PEOPLE = 6, 1000
LEVELS = {
    "adult": {"sex": ("Female", "Male"), "race": ("non-White", "White")},
    "compas": {"sex": ("Male", "Female"), "race": ("African-American", "Caucasian")},
    "law": {"race": ("Black", "White"), "sex": ("Female", "Male")},
}
Values = Callable[[str, str, str, str, int], tuple[float, float]]
"""(dataset, attribute, method, measure, repetition) -> effect and p."""


def usual(dataset: str, attribute: str, method: str, measure: str, repetition: int) -> tuple[float, float]:
    """Models get worse in the order of their list, by every audit alike; the first three pass, the others fail."""
    place = measures.METHODS.index(method)
    size = 0.1 * (1 + place) + 0.001 * repetition
    return 1 + size if measure in measures.INDIVIDUAL else size, 0.5 if place < 3 else 1e-6


def rows_of(point: dict[str, Any], values: Values) -> list[dict[str, Any]]:
    """What the audit of a point would have written."""
    dataset, method, audit = (point[part]["name"] for part in ("dataset", "method", "audit"))
    found: list[dict[str, Any]] = []
    for r in range(REPETITIONS):

        def add(statistic: str, value: float, *, of: int = r, **more: Any) -> None:
            found.append({"repetition": of, "statistic": statistic, "value": float(value), **more})

        if audit == "loss_ratio":
            for measure, start in measures.INDIVIDUAL.items():
                effect, p = values(dataset, "sex", method, measure, r)
                for steps in (200, 500):
                    add(f"{start}T_n", effect if steps == 500 else 1.0, steps=steps, metric_split="test")
                    add(f"{start}p_value", p, steps=steps, metric_split="test")
        for attribute, levels in LEVELS[dataset].items():
            if audit == "permutation":
                for measure in measures.GROUP:
                    effect, p = values(dataset, attribute, method, measure, r)
                    for statistic, value in (("difference", effect), ("p_value", p)):
                        add(statistic, value, attribute=attribute, metric=measure)
            elif audit == "tabular_robustness" and method not in ("reductions", "threshold_optimizer"):
                effect, p = values(dataset, attribute, method, measures.ROBUSTNESS, r)
                for level, sign in zip(levels, (-1, 1), strict=True):
                    add("sigma", sign * effect, attribute=attribute, level=level)
                    add("sigma_p", p, attribute=attribute, level=level)
            elif audit == "fliptest" and attribute == point["transport"]["attribute"]:
                measure = measures.CAUSAL if point["transport"]["name"] == measures.CAUSAL else measures.FLIPTEST
                # A tenth of the halves flips, and more people than that: half as many as the effect says, or few.
                effect, p = values(dataset, attribute, method, measure, r)
                for direction in ("forward", "reverse"):
                    place: dict[str, Any] = {"attribute": attribute, "direction": direction}
                    add("n_source", PEOPLE, **place)
                    size = 0.1 + (0.5 if p < 0.05 else 0.02) * effect
                    add("size", round(PEOPLE * size), flipset="positive", **place)
                    add("size", 0, flipset="negative", **place)
                    if r == 0 and measure == measures.FLIPTEST:
                        add("noise_people", PEOPLE // 2, **place)
                        for name in ("noise_size", "noise_size_upper"):
                            add(name, PEOPLE * 0.1, flipset="positive", **place)
                            add(name, 0, flipset="negative", **place)
        if audit == "tabular_robustness":
            add("accuracy", 0.8)
            add("balanced_accuracy", 0.75)
    of = {"block": point["block"], "dataset": dataset, "method": method, "audit": audit}
    return [{**of, "transport": point.get("transport", {}).get("name"), **line} for line in found]


def study(values: Values = usual, origin: Any = "official", scale: str = "paper") -> Inputs:
    """Every point of the study with these values."""
    config = Run(scale=scale, studies=["agreement"]).artefacts("agreement")
    empty = Inputs("agreement", scale, pd.DataFrame({"origin": [], "dataset": []}), config)
    points = empty.points
    rows = pd.DataFrame([row for point in points for row in rows_of(point, values)]).assign(
        study="agreement", scale=scale, origin=origin, feature=None
    )
    datasets = {
        name: DatasetSummary(name, origin, "y", 1000, 800, PEOPLE, levels, {}, {}, positives=0.4)
        for name, levels in LEVELS.items()
    }
    audits = {
        point["keys"].audit: AuditResult(
            point["audit"]["name"], point["dataset"]["name"], point["method"]["name"], origin, rows.iloc[:0]
        )
        for point in points
    }  # fmt: skip
    return replace(empty, rows=rows, datasets=datasets, audits=audits)


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """Where every audit ranks the models alike."""
    return study()


@pytest.fixture(scope="session")
def study_with() -> Callable[..., Inputs]:
    """The study with other values, of another origin or scale."""
    return study
