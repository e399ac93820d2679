"""What the study says of its published numbers and its settings, those that the paper states and those that it lost."""

from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table
from pipeline.report.facts import configured_facts, with_facts
from pipeline.report.inputs import Inputs
from pipeline.report.settings import setting_label, text_of
from pipeline.report.settings_table import settings_table, span
from pipeline.report.table import Cell, Table

PARTS = {
    "null_rejection": "Table 1",
    "p_values": "Figure 1",
    "fnr_levels": "Levels, section 4.2",
    "few_positives": "Levels, few positives",
    "auc_levels": "Levels, AUC",
    "auc_few_positives": "Levels, AUC, few positives",
    "power": "Power",
    "thresholds": "Figure 2",
    "sample_size": "Figure 3",
    "auc": "Logistic regression",
    "methods": "All methods of the table",
}
WORDS = {
    "audit.alpha": "level",
    "audit.draws": "permutations",
    "audit.n": "rows of both groups",
    "audit.simulations": "simulations",
    "audit.smallest_cell": "least rows in a cell",
    "audit.n_a": "rows of A",
    "audit.n_b": "rows of B",
    "audit.rate": "true positive rate",
    "audit.auc": "AUC of both groups",
    "audit.positives_a": "share of positives in A",
    "audit.positives_b": "share of positives in B",
    "audit.share_a": "share of rows in A",
    "audit.bins": "bins of the histogram",
    "audit.points": "thresholds",
    "audit.low": "first threshold",
    "audit.high": "last threshold",
    "audit.sizes": "rows sampled",
    "audit.samples": "samples of each size and split",
    "dataset.train_fraction": "share of rows to train on",
    "method.validation_fraction": "share of those for validation",
    "method.inverse_penalties": "inverse penalties C",
    "repetitions": "random splits",
}
WORDS_OF_TABLE_1 = {**WORDS, "audit.n": "pairs in a sample", "audit.low": "least value of the uniform attribute"}
LONG = 8
"""A list of more numbers is shown by its first, its last and their count."""


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


@registry.table()
def comparison(inputs: Inputs, found: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match; many of its numbers
    survive nowhere in its text.
    """
    return as_table(found, inputs.stamp(("null_rejection", "p_values", "thresholds", "auc")))


@registry.table(place=5)
def table_settings(inputs: Inputs) -> Table:
    """Settings of every part. What the paper's text lost is proposed here."""
    of = (tuple(PARTS.values()), _part, _label, lambda key, point: w.dataset_label(point["dataset"]["name"]), _cell)
    note = "As configured for this run."
    return settings_table(inputs.points, *of, inputs.stamp(), (note,), alphabetical=False)


def _part(key: str, point: Mapping[str, Any]) -> str:
    """The block; the methods of the first study are described there, and what draws its populations has no splits."""
    method = point["method"]["name"]
    left_out = (key.startswith("method.") and method != w.FOR_THE_PAPER) or (
        key == "repetitions" and method == w.NO_METHOD
    )
    return "" if left_out else PARTS.get(point["block"], "")


def _label(key: str, point: Mapping[str, Any]) -> str:
    return setting_label(key, WORDS_OF_TABLE_1 if point["block"] == "null_rejection" else WORDS)


def _cell(key: str, value: Any) -> Cell:
    """Numbers and lists; tests, metrics and cases by what they are called elsewhere."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, tuple):
        return None
    if len(set(map(repr, value))) == 1:
        return _cell(key, value[0]) or _name(value[0])
    if len(value) > LONG and all(isinstance(item, (int, float)) for item in value):
        return span(value)
    return "; ".join(map(_name, value))


def _name(item: Any) -> str:
    if not isinstance(item, str):
        return text_of(item)
    if item in w.TESTS:
        return w.TESTS[item].label
    return w.METRICS.get(item) or w.NULLS.get(item, w.plainly(item)).lower()
