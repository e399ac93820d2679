"""Tables of the validation of maps: Table 1 of Black et al. (2020), and all kinds of maps side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from pipeline.report.departures import joined
from pipeline.report.fliptest import quality, trials
from pipeline.report.fliptest import stability_figures as stability
from pipeline.report.fliptest import words as w
from pipeline.report.fliptest.quality import Validated
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, number
from pipeline.report.table import Cell, Column, Row, Table
from pipeline.transport.quality import WORST_HEALTHY_KS

# The features that Table 1 reports, by the names that it prints.
TABLE_1 = {
    (w.SSL, w.EVERYONE): ("Age", "Gang Aff", "Narc Arr"),
    (w.SSL, w.NEGATIVES): ("Age", "Gang Aff", "Narc Arr"),
    (w.HIRING, w.EVERYONE): ("Work Exp", "Hair Len"),
    (w.LAW, w.EVERYONE): ("LSAT", "GPA"),
}
PRINTED = {
    "Age": "age at latest arrest",
    "Gang Aff": "gang affiliation",
    "Narc Arr": "narcotic arrests",
    "Work Exp": "work experience",
    "Hair Len": "hair length",
    "LSAT": "LSAT",
    "GPA": "GPA",
}
HEALTHY = (
    f"A map is healthy where no feature of the counterparts is further than KS {WORST_HEALTHY_KS:g} from the target "
    "group; a map that is not has failed to be fitted."
)
ATOMS = (
    "A counterpart's value is taken for the nearest that somebody in the target group has: a GAN never meets the "
    "steps of a count exactly, and would be charged for it. The KS of the values as they are is in the CSV."
)
DISTANCES = ("OT", "GAN", "OT squared", "GAN squared")
PLAIN = (
    "Distances are plain L1, over the same members for both maps: Table 1 calls them squared, but its numbers are "
    "not (the squared ones are in the CSV). They count every column: a change of race is two 0/1 columns, 2 of the "
    "law school's distance."
)


def table_1(inputs: Inputs) -> Table:
    """Table 1: KS, MSE difference and distances of the WGAN's maps, over all trials and over the healthy ones."""
    inputs = trials.named(inputs)
    body, blocks = [], set()
    for one in quality.validated(inputs):
        if one.transport != w.WGAN or (one.dataset, one.given) not in TABLE_1:
            continue
        blocks |= set(quality.rows_of(inputs, one, "ks")["block"])
        ks, raw, difference = (quality.by_feature(inputs, one, name) for name in ("ks", "ks_raw", "mse_difference"))
        sound = quality.healthy(inputs, one)
        for printed in TABLE_1[one.dataset, one.given]:
            feature = w.feature_named(PRINTED[printed], list(ks), one.dataset)
            cells: list[Cell] = [quality.estimate(values[feature]) for values in (ks, difference)]
            cells += _of_healthy(ks[feature], difference[feature], sound)
            opens = printed == TABLE_1[one.dataset, one.given][0]
            cells.append(quality.estimate(raw[feature]))
            cells += _distances(inputs, one) if opens else [""] * len(DISTANCES)
            body.append(Row((one.label, printed), tuple(cells)))
    if not body:
        raise ValueError(f"Table 1 needs maps of kind {w.WGAN!r}: found {quality.validated(inputs)}")
    return Table(
        title="Validation of the WGAN's maps.",
        stub=("Experiment", "Features"),
        columns=(
            Column("KS", "All trials", "spread"),
            Column("MSE Diff", "All trials", "spread"),
            Column("healthy", "Healthy trials", "text", name="number"),
            Column("KS healthy", "Healthy trials", "spread", name="KS"),
            Column("MSE Diff healthy", "Healthy trials", "spread", name="MSE Diff"),
            Column("KS raw", show="spread", printed=False),
            *(Column(f"Dist: {key}", "Distance", "spread", 2, key, printed="squared" not in key) for key in DISTANCES),
        ),
        rows=tuple(body),
        stamp=trials.stamp(inputs, blocks, transports=[w.WGAN]),
        notes=(
            "Mean \u00b1 standard deviation over the trials, each with its own split and its own map. KS: "
            "Kolmogorov-Smirnov distance of a feature between the target group and the counterparts. MSE Diff: how "
            "much worse a regression of the feature on the others, fitted on real people, predicts counterparts than "
            "other real people.",
            ATOMS,
            HEALTHY,
            PLAIN,
        ),
    )


def table_maps(inputs: Inputs) -> Table:
    """Every kind of map by every measure, and which is best."""
    inputs = trials.named(inputs)
    body = []
    for one in quality.validated(inputs):
        body.append(Row((one.label, w.map_style(one.transport).label), tuple(_validation(inputs, one))))
    rows = stability.stability_rows(inputs)
    settings = sorted(set(zip(rows["correlation"], rows["dimension"], strict=True)))
    for correlation, dimension in settings:
        here = rows[(rows["correlation"] == correlation) & (rows["dimension"] == dimension)]
        name = f"Normal, {dimension:g} feature{'s' * (dimension != 1)}{f', r = {correlation:g}' * (correlation != 0)}"
        for transport in w.maps_in(here["transport"]):
            part = here[here["transport"] == transport]
            zero = stability.variances(stability.images(part, stability.ZEROS))
            one_vector = stability.means(stability.images(part, stability.ONES))
            moved: list[Cell] = [*([None] * 6), float(np.nanmean(zero)), float(np.nanmean(one_vector))]
            body.append(Row((name, w.map_style(transport).label), tuple(moved)))
    return Table(
        title="Which map: fidelity, distance and stability of every kind.",
        stub=("Experiment", "Map"),
        columns=(
            Column("healthy", "Validation", "text"),
            Column("largest KS", "Validation", "spread"),
            Column("MSE difference", "Validation", "spread", name="|MSE diff| / MSE"),
            Column("distance", "Validation", "spread", 2, name="L1 distance"),
            Column("cost ratio", "Validation", "spread", 2, name="cost over exact"),
            Column("round trip", "Validation", "spread", 2),
            Column("variance at 0", "Stability"),
            Column("mean at 1", "Stability"),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(sorted(set(inputs.select(audit=trials.QUALITY)["block"]) | {"stability"})),
        notes=(
            *verdicts(body),
            HEALTHY,
            "|MSE diff| / MSE: mean over features of the absolute difference over the error on real people. Cost "
            "over exact: the map's mean squared L1 distance over that of exact transport between as many members of "
            "both groups; below 1 a map does not go all the way. Round trip: mean L1 distance of a person from the "
            "image of the image under the opposite map; a dash where the opposite map is not defined there. "
            "Stability: a distribution mapped to itself, mean over features; the best variance is 0, the best mean 1.",
        ),
    )


def verdicts(rows: Sequence[Row]) -> tuple[str, ...]:
    """Which map is best by each measure in how many experiments; ties count for all that tie."""
    measures = (
        (1, "smallest KS", 0.0),
        (2, "smallest regression error", 0.0),
        (4, "cost nearest to the exact one", 1.0),
        (6, "smallest variance", 0.0),
        (7, "least regression to the mean", 1.0),
    )
    texts = []
    for column, name, ideal in measures:
        wins: dict[str, int] = {}
        compared = 0
        for experiment in dict.fromkeys(row.labels[0] for row in rows):
            away = {
                row.labels[1]: abs(_value(row.cells[column]) - ideal) for row in rows if row.labels[0] == experiment
            }
            away = {label: gap for label, gap in away.items() if math.isfinite(gap)}
            if len(away) < 2:
                continue
            compared += 1
            for label in (label for label, gap in away.items() if gap == min(away.values())):
                wins[label] = wins.get(label, 0) + 1
        if compared:
            ranked = sorted(wins.items(), key=lambda item: -item[1])
            texts.append(f"{name}: {joined(f'{label} {won}' for label, won in ranked)} of {compared}")
    return (f"Best by each measure, in how many experiments: {'; '.join(texts)}.",) if texts else ()


def _value(cell: Cell) -> float:
    if isinstance(cell, Estimate):
        return cell.value
    return float(cell) if isinstance(cell, (int, float)) else math.nan


def _of_healthy(ks: pd.Series, difference: pd.Series, sound: pd.Series) -> list[Cell]:
    counted = f"{number(float(sound.sum()), 0)} of {len(sound)}"
    if not sound.any():
        return [counted, None, None]
    return [counted, quality.estimate(ks, sound), quality.estimate(difference, sound)]


def _distances(inputs: Inputs, one: Validated) -> list[Cell]:
    """Those of ``DISTANCES``."""
    measures = (quality.distance, quality.squared_distance)
    return [quality.estimate(measure(inputs, one, of)) for measure in measures for of in ("exact", "map")]


def _validation(inputs: Inputs, one: Validated) -> list[Cell]:
    sound = quality.healthy(inputs, one)
    measures = (
        quality.overall(inputs, one, "ks_max"),
        quality.regression_error(inputs, one),
        quality.distance(inputs, one, "map"),
        quality.cost_ratio(inputs, one),
        quality.overall(inputs, one, "round_trip_l1"),
    )
    return [f"{int(sound.sum())} of {len(sound)}", *map(quality.estimate, measures), None, None]
