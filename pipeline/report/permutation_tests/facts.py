"""Numbers of the study that no audit writes down: its configuration and its data, as tidy rows like an audit's.

So a published constant is found by the same kind of setting as a measured statistic. ``origin`` is ``configuration``
for what no data enter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from pipeline.report.inputs import Inputs
from pipeline.report.numbers import MINUS
from pipeline.report.settings import configured_facts


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows and the study's facts, in one frame."""
    facts = [*configured_facts(inputs.points, implied=_percentile), *_data(inputs)]
    frame = pd.DataFrame(facts).drop_duplicates().assign(study=inputs.study, scale=inputs.scale, repetition=0)
    return pd.concat([inputs.rows, frame, _of_everyone(inputs.rows)], ignore_index=True)


def difference_of(inputs: Inputs, dataset: str, attribute: str) -> str:
    """Which group is taken from which: ``male \u2212 female``; by levels where the dataset does not name them."""
    for name, prepared in sorted(inputs.datasets.items()):
        if name.partition("@")[0] == dataset and attribute in prepared.levels:
            low, high = prepared.levels[attribute]
            return f"{high} {MINUS} {low}"
    return f"level 1 {MINUS} level 0"


def _of_everyone(rows: pd.DataFrame) -> pd.DataFrame:
    """The AUC of all test rows under a name of its own: a setting cannot ask for rows without an attribute."""
    if "attribute" not in rows:
        return rows.iloc[:0]
    everyone = rows[(rows["block"] == "auc") & (rows["statistic"] == "auc") & rows["attribute"].isna()]
    return everyone.assign(statistic="auc_everyone")


def _percentile(values: Mapping[str, Any]) -> dict[str, float]:
    """The percentile of the permutation distribution that a test of this level holds a statistic against."""
    return {"percentile": 100 * (1 - float(values["audit.alpha"]))} if "audit.alpha" in values else {}


def _data(inputs: Inputs) -> Iterator[dict[str, Any]]:
    for name, dataset in inputs.datasets.items():
        place = {"block": "data", "dataset": name, "origin": dataset.origin}
        values = {
            "rows": dataset.rows,
            "features": len(dataset.feature_names),
            "train_share": round(dataset.train_rows / dataset.rows, 4),
            "test_rows": dataset.test_rows,
        }
        for statistic, value in values.items():
            yield {**place, "statistic": statistic, "value": float(value)}
