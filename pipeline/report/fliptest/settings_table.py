"""Every setting of the study as it is configured here: data, models, maps and audits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report import registry
from pipeline.report.fliptest import words as w
from pipeline.report.fliptest.facts import given_of
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import plain
from pipeline.report.settings import NEUTRAL, flat
from pipeline.report.table import Cell, Column, Row, Table

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
    found: dict[tuple[str, str], dict[str, Cell]] = {}
    for point in inputs.points:
        trials_of = ("Trials", w.dataset_label(point["dataset"]["name"]))
        found.setdefault(trials_of, {})[_of_trials(point)] = float(point["repetitions"])
        for key, value in _settings(point):
            if part := _part(key.split(".")[0], point):
                label = setting_label(key, point["dataset"]["name"])
                found.setdefault((part, label), {})[_where(key, point)] = value
    if not found:
        raise ValueError(f"study {inputs.study!r} has no configured points: its declaration is empty")
    body = []
    for (part, label), values in sorted(found.items(), key=lambda item: _order(item[0])):
        same = len(set(values.values())) == 1
        for where, value in list(values.items())[: 1 if same else None]:
            body.append(Row((part, label if same or not where else f"{label}, {where}"), (value,)))
    return Table(
        title="Settings of the study.",
        stub=("Part", "Setting"),
        columns=(Column("value", show="parameter"),),
        rows=tuple(dict.fromkeys(body)),
        stamp=inputs.stamp(sorted(set(inputs.rows["block"]))),
        notes=("As configured for this run. The models of the first study are described there.",),
    )


def setting_label(key: str, dataset: str = "") -> str:
    """``transport.steps`` -> ``training steps``; a key without words goes by its last part."""
    if key.startswith("method.weights."):
        return f"weight of {w.feature_label(key.removeprefix('method.weights.'), dataset)}"
    return WORDS.get(key, re.sub(r"[._]", " ", key.split(".", 1)[-1]))


def _settings(point: Mapping[str, Any]) -> Iterator[tuple[str, Cell]]:
    """The numbers of a point's parts; lists as their ends, and limits that are absent."""
    for key, value in flat(point):
        if key in LEFT_OUT:
            continue
        if key in IN_ALL and value is None:
            yield key, "all"
        elif isinstance(value, tuple) and value and all(isinstance(item, (int, float)) for item in value):
            yield key, f"{plain(float(value[0]))} to {plain(float(value[-1]))}, {len(value)} values"
        elif isinstance(value, Mapping):
            yield from ((f"{key}.{name}", float(item)) for name, item in value.items())
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            yield key, float(value)


def _part(group: str, point: Mapping[str, Any]) -> str:
    """What a setting belongs to; nothing for the methods of the other studies."""
    name = point.get(group, {}).get("name", "")
    if group == "dataset":
        return f"Data: {w.dataset_label(name)}" if name not in (w.ADULT, w.COMPAS) else ""
    if group == "method":
        return f"Model: {w.method_label(name)}" if name in w.METHODS else ""
    return f"Map: {w.map_style(name).label}" if group == "transport" else AUDITS.get(name, f"Audit: {name}")


def _where(key: str, point: Mapping[str, Any]) -> str:
    """The experiment, where several differ in a setting; the true label matters to maps and audits alone."""
    given = w.GIVEN[given_of(point)] if key.startswith(("transport.", "audit.")) else ""
    return ", ".join(filter(None, (w.dataset_label(point["dataset"]["name"]), given)))


def _of_trials(point: Mapping[str, Any]) -> str:
    name = point.get("transport", {}).get("name", "")
    return w.map_style(name).label if name else w.method_label(point["method"]["name"])


def _order(place: tuple[str, str]) -> tuple[int, str, str]:
    heads = ("Trials", "Data", "Model", "Map", "Audit")
    return heads.index(place[0].split(":")[0]), *place
