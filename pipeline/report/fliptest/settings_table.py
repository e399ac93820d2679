"""Every setting of the study as it is configured here: data, models, maps and audits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.report.fliptest import words as w
from pipeline.report.fliptest.facts import given_of, numbers_of
from pipeline.report.inputs import Inputs
from pipeline.report.table import Column, Row, Table

AUDITS = {
    "fliptest": "Audit: flipsets",
    "map_quality": "Audit: validation",
    "map_stability": "Audit: stability",
    "subgroups": "Audit: subgroups",
}
VARIED = ("dataset.dimension", "dataset.correlation", "transport.given_label")
"""What distinguishes the experiments of a block: every artefact says it."""
WORDS = {
    "dataset.n": "people of each group",
    "dataset.train": "people of each group to train on",
    "dataset.test": "people of each group to test",
    "dataset.train_fraction": "share of rows to train on",
    "dataset.shared": "features with one law in both groups",
    "dataset.extra": "features that depend on the group",
    "dataset.delta": "distance of the groups in those",
    "method.C": "penalty of errors C",
    "transport.steps": "steps of the generator",
    "transport.rounds": "steps of the critic for each",
    "transport.cost_weight": "weight of the cost lambda",
    "transport.points": "people of each group at most",
    "transport.batch_size": "people in a batch",
    "audit.alpha": "level alpha",
    "audit.bootstraps": "resamples for the intervals",
    "audit.permutations": "random subsets for the p-values",
    "audit.members": "people for the distances",
}


def table_settings(inputs: Inputs) -> Table:
    """The configuration, one line a number; where experiments differ, one for each."""
    found: dict[tuple[str, str], dict[str, float]] = {}
    for point in inputs.points:
        where = _where(point)
        for key, value in numbers_of(point):
            group = key.split(".")[0]
            if key == "repetitions":
                found.setdefault(("Trials", w.dataset_label(point["dataset"]["name"])), {})[_of_trials(point)] = value
            elif key not in VARIED and (part := _part(group, point)):
                found.setdefault((part, setting_label(key)), {})[where] = value
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


def setting_label(key: str) -> str:
    """``transport.steps`` -> ``steps of the generator``; a key without words goes by its last part."""
    return WORDS.get(key, re.sub(r"[._]", " ", key.split(".", 1)[-1]))


def _part(group: str, point: Mapping[str, Any]) -> str:
    """What a setting belongs to; nothing for the methods of the other studies."""
    name = point.get(group, {}).get("name", "")
    if group == "dataset":
        return f"Data: {w.dataset_label(name)}" if name not in (w.ADULT, w.COMPAS) else ""
    if group == "method":
        return f"Model: {w.method_label(name)}" if name in w.METHODS else ""
    return f"Map: {w.map_style(name).label}" if group == "transport" else AUDITS.get(name, f"Audit: {name}")


def _where(point: Mapping[str, Any]) -> str:
    """The experiment, where several differ in a setting."""
    return ", ".join(filter(None, (w.dataset_label(point["dataset"]["name"]), w.GIVEN[given_of(point)])))


def _of_trials(point: Mapping[str, Any]) -> str:
    name = point.get("transport", {}).get("name", "")
    return w.map_style(name).label if name else w.method_label(point["method"]["name"])


def _order(place: tuple[str, str]) -> tuple[int, str, str]:
    heads = ("Trials", "Data", "Model", "Map", "Audit")
    return heads.index(place[0].split(":")[0]), *place
