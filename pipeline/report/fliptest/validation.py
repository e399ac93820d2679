"""Which maps reach the other group: Table 1 of Black et al. (2020), and the kinds of maps side by side."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import quality, trials
from pipeline.report.fliptest.quality import Validated
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import number
from pipeline.report.picture import Picture
from pipeline.report.style import DASHED, FAINT, INK, finish, new_figure
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


@registry.table()
def table_1(inputs: Inputs) -> Table:
    """How well the GAN's maps reach the group that they map to, and how far they move people for it, beside exact
    transport. The published table has the columns of all trials; a trial whose training failed counts there like any
    other.
    """
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


def _of_healthy(ks: pd.Series, difference: pd.Series, sound: pd.Series) -> list[Cell]:
    counted = f"{number(float(sound.sum()), 0)} of {len(sound)}"
    if not sound.any():
        return [counted, None, None]
    return [counted, quality.estimate(ks, sound), quality.estimate(difference, sound)]


def _distances(inputs: Inputs, one: Validated) -> list[Cell]:
    """Those of ``DISTANCES``."""
    measures = (quality.distance, quality.squared_distance)
    return [quality.estimate(measure(inputs, one, of)) for measure in measures for of in ("exact", "map")]


ROW, AROUND = 0.3, 1.1


@registry.figure(place=4)
def figure_maps(inputs: Inputs) -> Picture:
    """How far each kind of map misses the other group, in the marginals and in the dependence between features, and how
    far it moves people.
    """
    maps = quality.validated(inputs)
    labels = list(dict.fromkeys(one.label for one in maps))
    kinds = w.maps_in(one.transport for one in maps)
    figure = new_figure(ROW * len(labels) * max(len(kinds) / 3, 1) + AROUND)
    panels = figure.subplots(1, 3, sharey=True)
    measures = (_furthest, quality.regression_error, quality.cost_ratio)
    titles = ("largest KS of a feature", "mean |MSE difference| / MSE", "cost / exact transport's")
    for axes, measure, title in zip(panels, measures, titles, strict=True):
        for place, label in enumerate(labels):
            here = [one for one in maps if one.label == label]
            for k, one in enumerate(here):
                _dots(axes, measure(inputs, one), place + (k - (len(here) - 1) / 2) * 0.8 / len(kinds), one.transport)
        for place in range(len(labels) - 1):
            axes.axhline(place + 0.5, color=FAINT, linewidth=0.3)
        axes.set_xlabel(title)
        axes.set_xlim(left=0)
    panels[0].axvline(WORST_HEALTHY_KS, color=INK, linewidth=0.8, linestyle=DASHED)
    panels[2].axvline(1, color=INK, linewidth=0.8, linestyle=DASHED)
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    finish(figure, panels)
    styles = [w.map_style(kind) for kind in kinds]
    look: Any = {"linestyle": "none", "markersize": 4.6}
    handles = [Line2D([], [], marker=s.marker, color=s.color, label=s.label, **look) for s in styles]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(kinds))
    return Picture.stamped(
        figure,
        "How well each kind of map reaches the other group, and how far it moves people.",
        inputs.stamp(sorted(set(inputs.select(audit=trials.QUALITY)["block"]))),
        "Points by experiment and kind of map: Kolmogorov-Smirnov distance, regression error, and cost.",
        notes=(
            "Small points: trials; large ones: their mean. Dashed in (a): the rule of a healthy map, KS at most "
            f"{WORST_HEALTHY_KS:g}; in (c): exact transport between as many members of both groups. (b): a linear "
            "regression of each feature on the others, fitted on real people of the target group; the change of its "
            "mean squared error on counterparts, over its error on other real people, mean over features. (c): mean "
            "squared L1 distance.",
        ),
    )


def _furthest(inputs: Inputs, one: Validated) -> pd.Series:
    return quality.overall(inputs, one, "ks_max")


def _dots(axes: Axes, values: pd.Series, y: float, transport: str) -> None:
    style = w.map_style(transport)
    finite = values.to_numpy(float)
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return
    look: Any = {"linestyle": "none", "marker": style.marker, "color": style.color}
    axes.plot(finite, np.full(len(finite), y), markersize=2, alpha=0.5, markeredgewidth=0, **look)
    axes.plot(finite.mean(), y, markersize=4.6, markeredgecolor="white", markeredgewidth=0.5, **look)
