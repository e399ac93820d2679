"""The published numbers of Black et al. (2020) beside ours, and every setting as it is configured here."""

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table, decimals_of
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.facts import measurements
from pipeline.report.inputs import Inputs, given_of
from pipeline.report.numbers import Estimate, number, spread
from pipeline.report.settings import NEUTRAL, parse_setting, select, setting_label
from pipeline.report.settings_table import settings_table, span
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
"""What distinguishes the experiments of a block, which every artefact says, and what no number depends on.

The bound of a diverged map stands in references alone.
"""
IN_ALL = ("transport.points", "method.points")
"""Limits that may be absent; that of the machine's rows stands in references alone."""
WORDS = {
    "dataset.n": "people of each group",
    "dataset.train": "people of each group to train on",
    "dataset.test": "people of each group to test",
    "dataset.train_fraction": "share of rows to train on",
    "dataset.shared": "features with one law in both groups",
    "dataset.extra": "features that depend on the group",
    "dataset.delta": "distance of the groups in the features that depend on them",
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


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`.

    Where a number is of a flipset and some of our maps failed, the note says what ours is without them; where exact
    transport between the same people was audited too, what it gives.
    """
    measured = measurements(inputs)

    def remark(line: Mapping[str, Any]) -> str:
        return " ".join(filter(None, (_without_failures(inputs, line), _by_exact_transport(measured, line))))

    return rules.compared(inputs, published, measured, remark=remark)


@registry.table()
def comparison(inputs: Inputs, found: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match. Most are of one map,
    printed without a spread, and are held against the spread of our trials.
    """
    return as_table(
        found,
        inputs.stamp(),
        notes=(
            "The paper's flipsets, distances and shifts come from one map each; ours from as many maps as there are "
            "trials. A map's flipset sizes change with the moment at which its training is stopped, so single sizes "
            "can agree only as far as that spread allows.",
            "The hiring data, the arrests and the identical distributions are drawn anew in every repetition: those "
            "trials are independent.",
        ),
    )


def _without_failures(inputs: Inputs, line: Mapping[str, Any]) -> str:
    """``Without 1 of 10 trials, whose map failed: 1,208 +- 43.``; nothing where no map failed."""
    setting = parse_setting(line["used_setting"])
    if line["status"] != "reproduced" or line["kind"] != "run" or not {"flipset", "transport"} <= setting.keys():
        return ""
    if not math.isfinite(line["ours"]) or setting["transport"] == w.COUNTERFACTUAL:
        return ""
    kept = {key: value for key, value in setting.items() if key not in ("statistic", "flipset", "feature")}
    sound = inputs.values(**{**kept, "audit": trials.FLIPTEST, "statistic": "healthy"}).astype(bool)
    if sound.all():
        return ""
    failed = f"{int((~sound).sum())} of {len(sound)} trials"
    if not sound.any():
        return f"The maps of all {len(sound)} trials miss the other group by the rule of Table 1."
    ours = _printed(inputs.values(**setting)[sound], decimals_of(line))
    return f"Without {failed}, whose map failed: {ours}."


def _by_exact_transport(measured: pd.DataFrame, line: Mapping[str, Any]) -> str:
    """``Exact transport gives 2,816 +- 72 (3).``; nothing where it was not audited, or of fewer people."""
    setting = parse_setting(line["used_setting"])
    if line["status"] != "reproduced" or "flipset" not in setting or setting.get("transport") != w.WGAN:
        return ""
    exact = {**setting, "transport": w.EXACT}
    of_both = [
        {**{key: value for key, value in each.items() if key not in ("flipset", "feature")}, "statistic": "n_source"}
        for each in (setting, exact)
    ]
    people, others = (select(measured, each)["value"].tolist() for each in of_both)
    values = select(measured, exact)["value"]
    if values.empty or people != others:
        return ""
    return f"Exact transport gives {_printed(values, decimals_of(line) if line['kind'] == 'run' else 2)}."


def _printed(values: pd.Series, decimals: int) -> str:
    return f"{spread(Estimate.mean(values.to_numpy(float)), decimals)} ({number(len(values), 0)})"


@registry.table(place=10)
def table_settings(inputs: Inputs) -> Table:
    """As this run used them. What the paper leaves out, or says in appendices that are lost, is assumed here."""
    note = "As configured for this run. The models of the first study are described there."
    heads = ("Trials", "Data", "Model", "Map", "Audit")
    return settings_table(inputs.points, heads, _part, _label, _place, _cell, inputs.stamp(), (note,))


def _part(key: str, point: Mapping[str, Any]) -> str:
    """What a setting belongs to; nothing for the data and methods of the other studies."""
    group = key.split(".")[0]
    name = point.get(group, {}).get("name", "") if group != "repetitions" else ""
    if key in LEFT_OUT:
        return ""
    if group == "dataset":
        return f"Data: {w.dataset_label(name)}" if name not in (w.ADULT, w.COMPAS) else ""
    if group == "method":
        return f"Model: {w.METHODS[name]}" if name in w.METHODS else ""
    parts = {"transport": f"Map: {w.MAPS[name].label}", "audit": AUDITS.get(name, f"Audit: {name}")}
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
        return w.MAPS[name].label if name else w.METHODS[point["method"]["name"]]
    given = w.GIVEN[given_of(point)] if key.startswith(("transport.", "audit.")) else ""
    return ", ".join(filter(None, (w.dataset_label(point["dataset"]["name"]), given)))


def _cell(key: str, value: Any) -> Cell:
    """Numbers; lists by their ends, and limits that are absent."""
    if value is None and key in IN_ALL:
        return "all"
    if isinstance(value, tuple) and value and all(isinstance(item, (int, float)) for item in value):
        return span(value)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
