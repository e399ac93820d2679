"""What the study says of its published numbers and its settings, those that the paper states and those that it lost."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report.comparison_table import as_table
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.settings_table import settings_table
from pipeline.report.table import StampedTable


def measurements(inputs: Inputs) -> pd.DataFrame:
    """The audits' rows and the study's facts, in one frame."""
    facts = configured_facts(inputs.points, implied=_percentile)
    return with_facts(inputs, facts, [_of_everyone(inputs.rows)])


def _of_everyone(rows: pd.DataFrame) -> pd.DataFrame:
    """The AUC of all test rows under a name of its own: a setting cannot ask for rows without an attribute."""
    if "attribute" not in rows:
        return rows.iloc[:0]
    everyone = rows[(rows["block"] == "auc") & (rows["statistic"] == "auc") & rows["attribute"].isna()]
    return everyone.assign(statistic="auc_everyone")


def _percentile(values: Mapping[str, Any]) -> dict[str, float]:
    """The percentile of the permutation distribution that a test of this level holds a statistic against."""
    return {"percentile": 100 * (1 - float(values["audit.alpha"]))} if "audit.alpha" in values else {}


@artefact(
    "Each number that the paper prints beside ours, with a verdict where the settings match; many of its numbers "
    "survive nowhere in its text.",
)
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    return as_table(found, inputs.stamp(("null_rejection", "p_values", "thresholds", "auc")))


@artefact("Settings of every part. What the paper's text lost is proposed here.")
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, inputs.stamp())
