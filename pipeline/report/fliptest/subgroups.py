"""Section 5.5: what a search for subgroups finds, beside the flipsets of the same model."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.departures import joined
from pipeline.report.fliptest import lines, pages, trials
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, Estimate, number, p_value, plain, spread
from pipeline.report.table import Cell, Column, Show, Table, tabulated

AUDIT, ROOT = "subgroups", "all rows"
HELD_OUT = "held out"
SEARCH = "FairTest's search"
SHOWN = 7
"""Contexts that are shown: those with the largest effects, and whatever else is reported."""


@registry.table(place=5)
def table_subgroups(inputs: Inputs) -> Table:
    """A search for subgroups compares people of like features, so a feature that is itself unequal between the groups
    explains a difference away. Flipsets compare people with their counterparts, and show it.
    """
    rows: list[tuple[tuple[str, ...], Mapping[str, Cell]]] = []
    searched: list[str] = []
    datasets = [d for d in (w.ARRESTS, w.SSL) if d in inputs.names("dataset", audit=AUDIT)]
    maps = {dataset: trials.places(inputs, dataset=dataset, method="given") for dataset in datasets}
    for dataset, places in maps.items():
        label = w.dataset_label(dataset)
        listed = contexts(inputs, dataset)
        kept = [line for k, line in enumerate(listed) if k < SHOWN or line["reported"] == 1]
        searched.append(f"{label} {len(kept)} of {len(listed)}")
        rows += [((label, SEARCH, told(str(line["context"]), dataset)), _context(line)) for line in kept]
        rows += [((label, "FlipTest", _map(place)), _flipsets(place)) for place in places]

    def column(key: str, name: str = "", show: Show = "text", decimals: int = 3) -> Column:
        return Column(key, "", show, decimals, name, of=lambda line: line.get(key, ""))

    return tabulated(
        title="A search for subgroups beside flipsets.",
        stub=("Data", "Test", "Subgroup, or map"),
        columns=(
            column("people", show="value", decimals=0),
            column("r", "r of decision and group", "value and interval"),
            column("p", "p, adjusted"),
            column("reported"),
            *(column(f, w.FLIPSETS[f]) for f in trials.BOTH),
            column("shift", f"Most shifted in {w.FLIPSETS[w.POSITIVE]}"),
        ),
        rows=rows,
        stamp=inputs.stamp(
            {*inputs.select(audit=AUDIT)["block"], *(place.block for places in maps.values() for place in places)},
            datasets,
        ),
        notes=(
            "Search: a tree of subgroups grown on half of the rows towards the largest correlation r between the "
            f"model's decision and the group ({_codes(inputs, datasets)}); r, Fisher's interval and p are of the "
            "other half, first trial, and allow for the number of subgroups; features as the model sees them. Shown: "
            f"{joined(searched)} contexts, the largest effects first. Reported: the whole where its interval excludes "
            "0, a subgroup where its interval lies above those of all the contexts around it.",
            f"Over the trials the interval of all rows is {_root_over_trials(inputs, datasets)}.",
            "FlipTest: mean \u00b1 standard deviation over the trials; the feature with the largest mean shift that "
            "stands out, else the largest of all; and its mean sign (1: all members have more of it than their "
            "counterparts). As the whole group: not shown to be other than everybody's, by adjusted p. Noise: its "
            "interval, over maps and people, covers 0.",
            *pages.health([place for places in maps.values() for place in places]),
        ),
    )


def contexts(inputs: Inputs, dataset: str) -> list[dict[str, Any]]:
    """The contexts of the first trial that were tested on held-out rows, one mapping each: context and statistics.

    All rows first, then what is reported, then the others; the largest effect first.
    """
    rows = inputs.select(audit=AUDIT, dataset=dataset, part=HELD_OUT)
    rows = rows[rows["repetition"] == rows["repetition"].min()]
    rows = rows[rows["context"].notna()]
    order = dict.fromkeys(rows["context"].astype(str))
    wide = rows.pivot_table(index="context", columns="statistic", values="value", observed=True)
    listed = [{"context": context, **wide.loc[context].to_dict()} for context in order]
    tested = [line for line in listed if math.isfinite(line.get("correlation", math.nan))]
    return sorted(tested, key=lambda line: (line["context"] != ROOT, line["reported"] != 1))


def told(context: str, dataset: str) -> str:
    """``gang_affiliation = -0.441429`` -> ``gang affiliation = \u22120.44``: features by their words, short numbers."""
    parts = re.split(r"(\s*(?:<=|<|>|=|\band\b)\s*)", context)
    return "".join(_told(part, dataset) for part in parts)


def _told(part: str, dataset: str) -> str:
    try:
        value = float(part)
    except ValueError:
        return w.feature_label(part, dataset) if re.fullmatch(r"\w+", part) else part.replace("<=", "\u2264")
    return plain(value) if value.is_integer() else number(value, 2)


def _context(line: Mapping[str, Any]) -> dict[str, Cell]:
    of = {name: float(line.get(name, math.nan)) for name in ("correlation", "ci_low", "ci_high", "p_adjusted", "size")}
    return {
        "people": of["size"],
        "r": Estimate(of["correlation"], low=of["ci_low"], high=of["ci_high"]),
        "p": Estimate(of["p_adjusted"], text=p_value(of["p_adjusted"])),
        "reported": "yes" if line.get("reported") == 1 else "no",
    }


def _map(place: Place) -> str:
    return ", ".join(filter(None, (place.style.label, w.GIVEN[place.given])))


def _flipsets(place: Place) -> dict[str, Cell]:
    sizes = {flipset: spread(place.estimate("size", flipset), 0) for flipset in trials.BOTH}
    return {"people": place.people, **sizes, "shift": _shift(place)}


def _shift(place: Place) -> str:
    top = lines.leading(lines.report(place, w.POSITIVE))
    if top is None:
        return DASH
    (sign,) = (line for line in lines.report(place, w.POSITIVE, lines.SIGN) if line.feature == top.feature)
    plus = "+" if top.value > 0 else ""
    label = w.feature_label(top.feature, place.dataset)
    word = "" if top.stands_out else f", {top.standing}"
    return f"{label}: {plus}{spread(Estimate.mean(top.trials), 2)}{word}; mean sign {number(sign.value, 2)}"


def _root_over_trials(inputs: Inputs, datasets: list[str]) -> str:
    texts = []
    for dataset in datasets:
        rows = inputs.select(audit=AUDIT, dataset=dataset, context=ROOT, part=HELD_OUT)
        ends = []
        for name in ("ci_low", "ci_high"):
            values = rows.loc[rows["statistic"] == name, "value"]
            ends.append(spread(Estimate.mean(pd.to_numeric(values).to_numpy(float)), 3))
        texts.append(f"{w.dataset_label(dataset)} [{ends[0]}, {ends[1]}]")
    return "; ".join(texts)


def _codes(inputs: Inputs, datasets: list[str]) -> str:
    """How the two groups are coded, which gives r its sign."""
    texts = []
    for dataset in datasets:
        ((low, high),) = inputs.datasets[dataset].levels.values()
        texts.append(f"{w.dataset_label(dataset)}: {low} 0, {high} 1")
    return "; ".join(texts)
