"""What the study derives from its rows and its configuration, as tidy rows: see :mod:`pipeline.report.facts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import MINUS


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows and the study's facts, in one frame."""
    facts = configured_facts(inputs.points, implied=_percentile)
    return with_facts(inputs, facts, [_of_everyone(inputs.rows)])


def difference_of(inputs: Inputs, dataset: str, attribute: str) -> str:
    """Which group is taken from which: ``male \u2212 female``; by levels where the dataset does not name them."""
    for prepared in inputs.datasets.values():
        if prepared.name == dataset and attribute in prepared.levels:
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
