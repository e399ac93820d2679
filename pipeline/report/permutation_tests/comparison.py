"""The comparison with the published numbers, and the settings, including those missing from our copy."""

import math
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
    """Return the rows of the audits and the facts of the study in one frame."""
    facts = configured_facts(inputs.points, implied=_percentile)
    return with_facts(inputs, facts, [_of_everyone(inputs.rows), _in_larger_samples(inputs.rows)])


def _of_everyone(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the AUC of all test rows under a separate name, because a setting cannot select a missing attribute."""
    if "attribute" not in rows:
        return rows.iloc[:0]
    everyone = rows[(rows["block"] == "auc") & (rows["statistic"] == "auc") & rows["attribute"].isna()]
    return everyone.assign(statistic="auc_everyone")


SIZES = (1000, 4000)
"""Rows of the samples that are compared."""


def _in_larger_samples(rows: pd.DataFrame) -> pd.DataFrame:
    """Return ``detects_smaller``: 1 in a split whose larger samples have a smaller median of the smallest detected
    difference than its smaller samples, else 0. A sample without a detected difference counts as infinite.
    """
    if not {"n", "sample"} <= set(rows.columns):
        return rows.iloc[:0]
    found = rows[(rows["statistic"] == "minimum_difference") & rows["n"].isin(SIZES)]
    keys = ["study", "scale", "origin", "block", "dataset", "method", "attribute", "metric", "test", "repetition"]
    found = found.assign(value=found["value"].fillna(math.inf))
    medians = found.groupby([*keys, "n"], observed=True)["value"].median().unstack("n")
    if not set(SIZES) <= set(medians.columns):
        return rows.iloc[:0]
    smaller = (medians[SIZES[1]] < medians[SIZES[0]]).astype(float)
    return smaller.rename("value").reset_index().assign(statistic="detects_smaller")


def _percentile(values: Mapping[str, Any]) -> dict[str, float]:
    """Return the percentile of the permutation distribution that is the critical value at this level."""
    return {"percentile": 100 * (1 - float(values["audit.alpha"]))} if "audit.alpha" in values else {}


@artefact(
    "Each published number beside ours. Numbers with matching settings have a verdict. Many numbers are missing "
    "from our copy of the paper.",
)
def comparison(inputs: Inputs, found: pd.DataFrame) -> StampedTable:
    return as_table(found, inputs.stamp(("null_rejection", "p_values", "thresholds", "auc")))


@artefact("We chose the settings that are missing from our copy of the paper.")
def table_settings(inputs: Inputs) -> StampedTable:
    return settings_table(inputs, inputs.stamp())
