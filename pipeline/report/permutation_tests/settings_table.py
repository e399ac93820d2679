"""Every setting of the study as it is configured here, those that the paper states and those that its text lost."""

from __future__ import annotations

from typing import Any

from pipeline.report import registry
from pipeline.report.departures import NO_METHOD
from pipeline.report.departures import value as text_of
from pipeline.report.inputs import Inputs
from pipeline.report.permutation_tests import words as w
from pipeline.report.settings import flat
from pipeline.report.table import Cell, Column, Row, Table

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
WORDS_OF_TABLE_1 = {"audit.n": "pairs in a sample", "audit.low": "least value of the uniform attribute"}
LONG = 8
"""A list of more numbers is shown by its first, its last and their count."""


@registry.table(place=5)
def table_settings(inputs: Inputs) -> Table:
    """Settings of every part. What the paper's text lost is proposed here."""
    body = []
    for block, part in PARTS.items():
        points = [point for point in inputs.points if point["block"] == block]
        keys = dict.fromkeys(key for point in points for key, _ in _settings(point))
        for key in keys:
            found = {point["dataset"]["name"]: dict(_settings(point)).get(key) for point in points}
            same = len({repr(value) for value in found.values()}) == 1
            label = setting_label(block, key)
            for dataset, value in list(found.items())[: 1 if same else None]:
                name = label if same else f"{label}, {w.dataset_label(dataset)}"
                body.append(Row((part, name), (_cell(value),)))
    if not body:
        raise ValueError(f"study {inputs.study!r} configures none of the blocks {', '.join(PARTS)}")
    return Table(
        title="Settings of the study.",
        stub=("Part", "Setting"),
        columns=(Column("value", show="parameter"),),
        rows=tuple(body),
        stamp=inputs.stamp(sorted(set(inputs.rows["block"]))),
        notes=("As configured for this run.",),
    )


def setting_label(block: str, key: str) -> str:
    """``audit.draws`` -> ``permutations``; a key without words of its own goes by its last part."""
    own = WORDS_OF_TABLE_1.get(key) if block == "null_rejection" else None
    return own or WORDS.get(key, key.split(".", 1)[-1].replace("_", " "))


def _settings(point: dict[str, Any]) -> list[tuple[str, Any]]:
    """The numbers and lists of a point, and its repetitions; the methods of the first study are described there."""
    groups = ("audit.", "dataset.", "method.") if point["method"]["name"] == w.FOR_THE_PAPER else ("audit.", "dataset.")
    found = [
        (key, value)
        for key, value in flat(point)
        if key.startswith(groups) and not isinstance(value, (str, bool)) and value is not None
    ]
    # What draws its own populations has no random splits.
    return found if point["method"]["name"] == NO_METHOD else [*found, ("repetitions", point["repetitions"])]


def _cell(value: Any) -> Cell:
    if not isinstance(value, tuple):
        return float(value) if isinstance(value, (int, float)) else _name(value)
    if len(set(map(repr, value))) == 1:
        return _cell(value[0])
    if len(value) > LONG and all(isinstance(item, (int, float)) for item in value):
        return f"{text_of(value[0])} to {text_of(value[-1])}, {len(value)} values"
    return "; ".join(_name(item) for item in value)


def _name(item: Any) -> str:
    """A test, metric or case by what it is called elsewhere."""
    if not isinstance(item, str):
        return text_of(item)
    if item in w.TESTS:
        return w.TESTS[item].label
    return w.METRICS.get(item) or w.NULLS.get(item, item.replace("_", " ")).lower()
