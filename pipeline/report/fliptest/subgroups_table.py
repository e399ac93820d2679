"""Section 5.5: what a search for subgroups finds, beside the flipsets of the same model."""

from __future__ import annotations

import math
import re

import pandas as pd

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.departures import joined
from pipeline.report.fliptest import lines, pages, trials
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, Estimate, number, p_value, plain, spread
from pipeline.report.table import Cell, Column, Row, Table

AUDIT, ROOT = "subgroups", "all rows"
HELD_OUT = "held out"
SEARCH = "FairTest's search"
GIVEN_RULE = "given"
SHOWN = 7
"""Contexts that are shown: those with the largest effects, and whatever else is reported."""


@registry.table(place=5)
def table_subgroups(inputs: Inputs) -> Table:
    """A search for subgroups compares people of like features, so a feature that is itself unequal between the groups
    explains a difference away. Flipsets compare people with their counterparts, and show it.
    """
    body: list[Row] = []
    searched: list[str] = []
    datasets = [d for d in (w.ARRESTS, w.SSL) if d in inputs.names("dataset", audit=AUDIT)]
    for dataset in datasets:
        label = w.dataset_label(dataset)
        listed = contexts(inputs, dataset)
        kept = [line for k, line in enumerate(listed) if k < SHOWN or line["reported"] == 1]
        searched.append(f"{label} {len(kept)} of {len(listed)}")
        body += [Row((label, SEARCH, told(str(line["context"]), dataset)), _context(line)) for line in kept]
        for place in _maps(inputs, dataset):
            body.append(Row((label, "FlipTest", _map(place)), _flipsets(inputs, place)))
    return Table(
        title="A search for subgroups beside flipsets.",
        stub=("Data", "Test", "Subgroup, or map"),
        columns=(
            Column("people", decimals=0),
            Column("r", show="value and interval", name="r of decision and group"),
            Column("p", show="text", name="p, adjusted"),
            Column("reported", show="text"),
            *(Column(f, show="text", name=w.FLIPSETS[f]) for f in (w.POSITIVE, w.NEGATIVE)),
            Column("shift", show="text", name=f"Most shifted in {w.FLIPSETS[w.POSITIVE]}"),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(sorted(set(inputs.select(audit=AUDIT)["block"]) | _blocks(inputs, datasets)), datasets),
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
            *pages.health(inputs, [place for dataset in datasets for place in _maps(inputs, dataset)]),
        ),
    )


def contexts(inputs: Inputs, dataset: str) -> list[dict[str, object]]:
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


def _context(line: dict[str, object]) -> tuple[Cell, ...]:
    def value(name: str) -> float:
        found = line.get(name, float("nan"))
        return float(found)  # type: ignore[arg-type]

    r = Estimate(value("correlation"), low=value("ci_low"), high=value("ci_high"))
    p = value("p_adjusted")
    reported = "yes" if value("reported") == 1 else "no"
    return value("size"), r, Estimate(p, text=p_value(p)), reported, "", "", ""


def _maps(inputs: Inputs, dataset: str) -> list[Place]:
    return trials.places(inputs, dataset=dataset, method=GIVEN_RULE)


def _map(place: Place) -> str:
    given = w.GIVEN[place.given]
    return ", ".join(filter(None, (w.map_style(place.transport).label, given)))


def _flipsets(inputs: Inputs, place: Place) -> tuple[Cell, ...]:
    counts = trials.counts(inputs, place)
    sizes = [spread(counts.estimate("size", flipset), 0) for flipset in (w.POSITIVE, w.NEGATIVE)]
    return counts.estimate("n_source").value, "", "", "", *sizes, _shift(inputs, place)


def _shift(inputs: Inputs, place: Place) -> str:
    report = lines.report(inputs, place, w.POSITIVE)
    if not report:
        return DASH
    top = next((line for line in report if line.stands_out), report[0])
    signs = lines.report(inputs, place, w.POSITIVE, lines.SIGN)
    (sign,) = (line for line in signs if line.feature == top.feature)
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


def _blocks(inputs: Inputs, datasets: list[str]) -> set[str]:
    return {place.block for dataset in datasets for place in _maps(inputs, dataset)}
