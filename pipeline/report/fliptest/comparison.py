"""The published numbers of Black et al. (2020) beside ours. The only module of the study that sees them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from pipeline.report import comparison as rules
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.comparison_table import as_table
from pipeline.report.fliptest import pages, trials
from pipeline.report.fliptest.facts import measurements
from pipeline.report.fliptest.flipset_tables import (
    BOTH,
    IN_BRACKETS,
    by_chance,
    chance_cells,
    chance_columns,
    size_cells,
    size_columns,
)
from pipeline.report.fliptest.methods_figure import BLOCK as METHODS_BLOCK
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, number, spread
from pipeline.report.settings import parse_setting, select
from pipeline.report.table import Cell, Column, Row, Table

ORDER = (w.HIRING, w.SSL, w.LAW, w.ARRESTS, w.IDENTICAL)


def compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    """Every published number with ours and a verdict, see :mod:`pipeline.report.comparison`.

    Where a number is of a flipset and some of our maps failed, the note says what ours is without them; where exact
    transport between the same people was audited too, what it gives.
    """
    return inputs.once("compared", lambda: _compared(inputs, published), of=published)


def _compared(inputs: Inputs, published: pd.DataFrame) -> pd.DataFrame:
    measured = measurements(inputs)

    def remark(line: Mapping[str, Any]) -> str:
        return " ".join(filter(None, (_without_failures(inputs, line), _by_exact_transport(measured, line))))

    return rules.compared(inputs, published, measured, remark=remark)


@registry.table()
def comparison(inputs: Inputs, published: pd.DataFrame) -> Table:
    """Each number that the paper prints beside ours, with a verdict where the settings match. Most are of one map,
    printed without a spread, and are held against the spread of our trials.
    """
    return as_table(
        compared(inputs, published),
        inputs.stamp(sorted(set(inputs.rows["block"]))),
        notes=(
            "The paper's flipsets, distances and shifts come from one map each; ours from as many maps as there are "
            "trials. A map's flipset sizes change with the moment at which its training is stopped, so single sizes "
            "can agree only as far as that spread allows.",
            "The hiring data, the arrests and the identical distributions are drawn anew in every repetition: those "
            "trials are independent.",
        ),
    )


@registry.table(place=2)
def table_flipsets(inputs: Inputs, published: pd.DataFrame) -> Table:
    """Who is decided differently from their counterpart in the other group, in every experiment and in both directions,
    with how far each size depends on the people and on the map, and how large it is by chance where the map is exact.
    """
    theirs = _published_sizes(published)
    listed = [place for place in trials.places(inputs) if place.block != METHODS_BLOCK]
    maps = w.maps_in(place.transport for place in listed)
    found = [
        (*_order(place, direction, maps), _row(inputs, place, direction, theirs))
        for place in listed
        for direction in (w.FORWARD, w.REVERSE)
        if trials.has_direction(inputs, place, direction)
    ]
    body = [row for *_, row in sorted(found, key=lambda entry: entry[:-1])]
    return Table(
        title="Flipsets of every experiment.",
        stub=("Data", "From and to", "Model", "Map"),
        columns=(
            Column("people", decimals=0),
            *size_columns(),
            *chance_columns(),
            Column("healthy", show="text", name="healthy maps"),
            *(Column(f"published {f}", "Published", "value", 0, w.FLIPSETS[f]) for f in BOTH),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(sorted({place.block for place in listed})),
        notes=(
            "F+: people decided for whose counterparts in the other group are not; F\u2212: the other way round.",
            IN_BRACKETS,
            by_chance(inputs, {place.block for place in listed}),
            "Published sizes are of one map each. Where the data are a twin, they are not comparable with ours.",
        ),
    )


def _row(inputs: Inputs, place: Place, direction: str, theirs: Mapping[tuple[str, ...], float]) -> Row:
    source, target = (w.group_label(name, place.dataset) for name in trials.groups(inputs, place, direction))
    counts = trials.counts(inputs, place, direction)
    given = w.GIVEN[place.given]
    pair = f"{source} to {target}{f', {given}' if given else ''}"
    cells: list[Cell] = [counts.estimate("n_source").value, *size_cells(counts), *chance_cells(counts)]
    cells.append(pages.sound(inputs, place, direction))
    cells += [theirs.get((*_key(place), direction, flipset), None) for flipset in BOTH]
    labels = (w.dataset_label(place.dataset), pair, w.method_label(place.method), w.map_style(place.transport).label)
    return Row(labels, tuple(cells))


def _published_sizes(published: pd.DataFrame) -> dict[tuple[str, ...], float]:
    """Published flipset sizes by place, direction and flipset."""
    sizes = {}
    for entry in published.to_dict("records"):
        setting = parse_setting(entry["setting"])
        if setting.get("statistic") == "size":
            names = ("block", "dataset", "method", "transport", "given", "direction", "flipset")
            absent = [name for name in names if name not in setting]
            if absent:
                raise ValueError(f"the published size {entry['row']} x {entry['column']} needs {', '.join(absent)}")
            sizes[tuple(str(setting[name]) for name in names)] = float(entry["value"])
    return sizes


def _key(place: Place) -> tuple[str, ...]:
    return place.block, place.dataset, place.method, place.transport, place.given


def _order(place: Place, direction: str, maps: list[str]) -> tuple[Any, ...]:
    known = ORDER.index(place.dataset) if place.dataset in ORDER else len(ORDER)
    models = list(w.METHODS)
    model = models.index(place.method) if place.method in models else len(models)
    given = list(w.GIVEN).index(place.given)
    return known, place.dataset, given, direction != w.FORWARD, model, place.method, maps.index(place.transport)


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
    values = inputs.values(**setting)[sound]
    decimals = max(0, round(-math.log10(2 * line["rounding"])))
    ours = spread(Estimate.mean(values.to_numpy(float)), decimals)
    return f"Without {failed}, whose map failed: {ours} ({number(len(values), 0)})."


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
    decimals = max(0, round(-math.log10(2 * line["rounding"]))) if line["kind"] == "run" else 2
    return (
        f"Exact transport gives {spread(Estimate.mean(values.to_numpy(float)), decimals)} ({number(len(values), 0)})."
    )
