"""Every setting of the study as it is configured here: data, models, maps and audits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.inputs import Inputs, given_of
from pipeline.report.settings import NEUTRAL, setting_label
from pipeline.report.settings_table import Listing, settings_table, span
from pipeline.report.table import Cell, Table

AUDITS = {
    "fliptest": "Audit: flipsets",
    "map_quality": "Audit: validation",
    "map_stability": "Audit: stability",
    "subgroups": "Audit: subgroups",
}
LEFT_OUT = (
    "dataset.dimension", "dataset.correlation", "transport.given_label", "transport.check_every",
    "transport.diverged_above", *NEUTRAL,
)  # fmt: skip
"""What distinguishes the experiments of a block, which every artefact says, and what no number depends on."""
IN_ALL = ("transport.points", "method.points")
"""Limits that may be absent."""
WORDS = {
    "dataset.n": "people of each group",
    "dataset.train": "people of each group to train on",
    "dataset.test": "people of each group to test",
    "dataset.train_fraction": "share of rows to train on",
    "dataset.shared": "features with one law in both groups",
    "dataset.extra": "features that depend on the group",
    "dataset.delta": "distance of the groups in the features that depend on them",
    "method.points": "people to train on at most",
    "transport.steps": "training steps",
    "transport.rounds": "steps of the critic for each of the generator",
    "transport.cost_weight": "weight of the cost lambda",
    "transport.points": "people of each group at most",
    "transport.batch_size": "people in a batch",
    "audit.alpha": "level alpha",
    "audit.bootstraps": "resamples for the intervals",
    "audit.units": "units of mean shifts",
    "audit.noise_deals": "deals into halves",
    "audit.noise_people": "people in a half at most",
    "audit.permutations": "random subsets for the p-values",
    "audit.members": "people for the distances",
}


@registry.table(place=10)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. What the paper leaves out, or says in appendices that are lost, is assumed here."""
    of = Listing(("Trials", "Data", "Model", "Map", "Audit"), _part, _label, _place, _cell)
    note = "As configured for this run. The models of the first study are described there."
    return settings_table(inputs.points, of, inputs.stamp(sorted(set(inputs.rows["block"]))), (note,))


def _part(key: str, point: Mapping[str, Any]) -> str:
    """What a setting belongs to; nothing for the data and methods of the other studies."""
    group = key.split(".")[0]
    name = point.get(group, {}).get("name", "") if group != "repetitions" else ""
    if key in LEFT_OUT:
        return ""
    if group == "dataset":
        return f"Data: {w.dataset_label(name)}" if name not in (w.ADULT, w.COMPAS) else ""
    if group == "method":
        return f"Model: {w.method_label(name)}" if name in w.METHODS else ""
    parts = {"transport": f"Map: {w.map_style(name).label}", "audit": AUDITS.get(name, f"Audit: {name}")}
    return parts.get(group, "Trials")


def _label(key: str, point: Mapping[str, Any]) -> str:
    dataset = point["dataset"]["name"]
    if key.startswith("method.weights."):
        return f"weight of {w.feature_label(key.removeprefix('method.weights.'), dataset)}"
    return w.dataset_label(dataset) if key == "repetitions" else setting_label(key, WORDS)


def _place(key: str, point: Mapping[str, Any]) -> str:
    """The experiment; the true label matters to maps and audits alone. Of trials: the map, or else the model."""
    if key == "repetitions":
        name = point.get("transport", {}).get("name", "")
        return w.map_style(name).label if name else w.method_label(point["method"]["name"])
    given = w.GIVEN[given_of(point)] if key.startswith(("transport.", "audit.")) else ""
    return ", ".join(filter(None, (w.dataset_label(point["dataset"]["name"]), given)))


def _cell(key: str, value: Any) -> Cell:
    """Numbers; lists by their ends, and limits that are absent."""
    if value is None and key in IN_ALL:
        return "all"
    if isinstance(value, tuple) and value and all(isinstance(item, (int, float)) for item in value):
        return span(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
