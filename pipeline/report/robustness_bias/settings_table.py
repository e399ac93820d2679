"""Every setting of the study as it is configured here: data, networks, trainings and audits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline.report import registry
from pipeline.report.departures import value
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study, used
from pipeline.report.robustness_bias import words as w
from pipeline.report.settings import NEUTRAL, flat
from pipeline.report.table import Column, Row, Table

WORDS = {
    "dataset.image_size": "pixels a side",
    "dataset.train_points": "images to train on",
    "dataset.test_points": "images to test",
    "dataset.train_fraction": "share to train on",
    "dataset.mean": "mean of a channel",
    "dataset.std": "standard deviation of a channel",
    "method.width": "width, relative to the published",
    "method.input_size": "pixels a side inside the network",
    "method.tau": "threshold tau",
    "method.scale": "unit of the threshold tau",
    "audit.smoothing_scale": "unit of smoothing's noise",
    "method.alpha": "weight alpha",
}
HEADS = {"dataset": "Data", "method": "Training", "audit": "Audit"}
NOTHING = {
    "method.input_size": "the images' own",
    "method.penalised_partition": "the classes",
    "audit.budget": "the largest distance",
    "audit.examples": "none",
    "audit.batch_size": "what suits the device",
}
"""What a setting without a value stands for, where that is not: all."""
PENALISED = ("penalised_level", "penalised_partition")
VARIED = tuple(f"method.{key}" for key in ("model", *PENALISED, "alpha", "distance", "second_order", "tau"))
"""What the grid varies: the artefacts say it."""


@registry.table(place=10)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. Most of them the paper leaves to the authors' program."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for point in used.as_networks(inputs.points):
        for group, key, text in _settings(point):
            values = found.setdefault((_part(group, point), _label(f"{group}.{key}")), {})
            places = values.setdefault(text, [])
            if (place := _place(group, point)) not in places:
                places.append(place)
    body = []
    for (part, label), values in sorted(found.items(), key=lambda item: _order(item[0])):
        usual = max(values, key=lambda text: len(values[text]))
        for text, places in values.items():
            where = "all others" if text == usual else ", ".join(filter(None, places))
            body.append(Row((part, label), (text, "" if len(values) == 1 else where)))
    return Table(
        title="Settings of the study.",
        stub=("Part", "Setting"),
        columns=(Column("value", show="text"), Column("where", show="text")),
        rows=tuple(body),
        stamp=used.stamp(inputs, sorted({study.block_of(name) for name in inputs.config["experiment"]["grid"]})),
        notes=(
            "As configured for this run. A setting that differs from one network or data set to another has a line for "
            "each value.",
        ),
    )


def _settings(point: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    for name, found in flat(point):
        group, key = name.split(".", 1)
        if name not in (*VARIED, "audit.attacks", *NEUTRAL):
            yield group, key, NOTHING.get(name, "all") if found is None else value(found)


def _part(group: str, point: Mapping[str, Any]) -> str:
    if group == "dataset":
        return f"Data: {w.dataset_label(point['dataset']['name'])}"
    if group == "method":
        return "Training: penalised" if str(point["method"]["name"]).startswith("adverm") else "Training: as usual"
    return "Audit"


def _place(group: str, point: Mapping[str, Any]) -> str:
    if group == "dataset":
        return ""
    dataset = w.dataset_label(point["dataset"]["name"])
    return f"{w.network_label(str(point['method']['model']))} on {dataset}"


def _label(key: str) -> str:
    return WORDS.get(key, re.sub(r"[._]", " ", key.split(".", 1)[-1]))


def _order(place: tuple[str, str]) -> tuple[int, str, str]:
    return list(HEADS.values()).index(place[0].split(":")[0]), *place
