"""What each mitigation of the first study does to transparency reports, on Adult and COMPAS, by gender and race."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D

from pipeline.audits.fliptest.transparency import AS_GROUP, NOISE, STANDS_OUT, Standing
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import bars, lines, trials
from pipeline.report.fliptest.lines import Line
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.style import FAINT, INK, finish, in_order, method_style, new_figure

BLOCK = "methods"
FEATURES = 6
"""Features shown of each data set and attribute: those with the largest shift in any report."""
ATTRIBUTES = {"sex": "gender", "race": "race"}
PANEL = 1.75
BOTH = (w.POSITIVE, w.NEGATIVE)
STANDINGS: tuple[Standing, ...] = (NOISE, AS_GROUP, STANDS_OUT)
"""From the least telling up."""


def panels_of(inputs: Inputs) -> list[tuple[str, str]]:
    """The data sets and attributes that the methods were audited by, in a fixed order."""
    found = {(place.dataset, place.attribute) for place in trials.places(inputs, block=BLOCK)}
    return sorted(found, key=lambda pair: (pair[0], list(ATTRIBUTES).index(pair[1]) if pair[1] in ATTRIBUTES else 9))


@registry.figure(place=3)
def figure_methods(inputs: Inputs) -> Picture:
    """The features in which flipset members differ most from their counterparts, before and after each mitigation. Open
    marks are noise, pale ones shift as the whole group, full ones stand out.
    """
    panels = panels_of(inputs)
    places = trials.places(inputs, block=BLOCK)
    methods = in_order([place.method for place in places])
    figure = new_figure(PANEL * len(panels) + 0.4)
    grid = figure.subplots(len(panels), 2, squeeze=False)
    empty = []
    for r, (dataset, attribute) in enumerate(panels):
        here = {p.method: p for p in places if (p.dataset, p.attribute) == (dataset, attribute)}
        reports = {(m, flipset): lines.report(inputs, place, flipset) for m, place in here.items() for flipset in BOTH}
        features = largest(list(reports.values()), FEATURES)
        for c, flipset in enumerate(BOTH):
            axes = grid[r, c]
            _panel(axes, {m: reports[m, flipset] for m in methods if m in here}, features, dataset)
            by = ATTRIBUTES.get(attribute, attribute)
            axes.set_title(f"{w.dataset_label(dataset)}, {by}: {w.FLIPSETS_DRAWN[flipset]}")
            if c:
                axes.set_yticklabels([])
            empty += [
                f"{method_style(m).label}, {w.dataset_label(dataset)}, {attribute}, {w.FLIPSETS[flipset]}"
                for m in methods
                if m in here and not reports[m, flipset]
            ]
        shown = [line for report in reports.values() for line in report if line.feature in features]
        every = [abs(end) for line in shown for end in (line.value, line.low, line.high)]
        furthest = max((end for end in every if math.isfinite(end)), default=1.0)
        limit = 1.08 * min(furthest, bars.REACH * max((abs(line.value) for line in shown), default=1.0))
        for axes in grid[r]:
            axes.set_xlim(-limit, limit)
    finish(figure, grid, bars.MIXED)
    styles = [method_style(method) for method in methods]
    looks: list[dict[str, Any]] = [
        *({"color": s.color, "marker": s.marker, "linewidth": 0.9, "label": s.label} for s in styles),
        *(
            {"color": FAINT, "marker": "o", "markerfacecolor": _fill(word, FAINT), "linestyle": "none", "label": word}
            for word in (NOISE, AS_GROUP)
        ),
    ]
    handles = [Line2D([], [], markersize=3.4, **look) for look in looks]
    figure.legend(handles=handles, loc="outside upper center", ncols=len(methods) + 1)
    return Picture.stamped(
        figure,
        "What each method does to the transparency reports.",
        inputs.stamp(BLOCK),
        "Points with intervals: mean shifts of features in the positive and negative flipsets of each method.",
        notes=(
            f"The {FEATURES} features that shift most in any of the reports of a data set and attribute; means over "
            "the trials, with intervals over maps and people, which may go on beyond the axes. "
            f"{bars.CATEGORIES} Open: noise, as the interval covers 0. Pale: as the whole group, from which the "
            "flipset is not shown to differ in this feature (adjusted p).",
            *([f"Empty flipsets: {'; '.join(empty)}."] if empty else []),
        ),
    )


def largest(reports: Sequence[Sequence[Line]], wanted: int) -> list[str]:
    """The features with the largest absolute shift in any of the reports that stands out, the largest first.

    Where fewer stand out, those that shift as the whole group follow, and then the noise.
    """
    size: dict[str, tuple[int, float]] = {}
    for line in (line for report in reports for line in report):
        worth = STANDINGS.index(line.standing)
        size[line.feature] = max(size.get(line.feature, (0, 0.0)), (worth, abs(line.value)))
    return sorted(size, key=lambda feature: (*(-float(part) for part in size[feature]), feature))[:wanted]


def _panel(axes: Axes, reports: Mapping[str, Sequence[Line]], features: Sequence[str], dataset: str) -> None:
    for k, (method, report) in enumerate(reports.items()):
        style = method_style(method)
        by_feature = {line.feature: line for line in report}
        for place, feature in enumerate(features):
            if feature not in by_feature:
                continue
            line = by_feature[feature]
            y = place + (k - (len(reports) - 1) / 2) * 0.8 / max(len(reports), 1)
            axes.plot([line.low, line.high], [y, y], color=style.color, linewidth=0.9, alpha=0.4 if line.noise else 1)
            axes.plot(
                line.value, y, marker=style.marker, markersize=3.4, color=style.color,
                markerfacecolor=_fill(line.standing, style.color), markeredgewidth=0.8,
            )  # fmt: skip
    for place in range(len(features) - 1):
        axes.axhline(place + 0.5, color=FAINT, linewidth=0.3)
    axes.axvline(0, color=INK, linewidth=0.6, zorder=0)
    axes.set_yticks(np.arange(len(features)), [w.feature_label(feature, dataset) for feature in features])
    axes.set_ylim(len(features) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


def _fill(standing: Standing, color: str) -> Any:
    """Open, pale or full."""
    return {NOISE: "white", AS_GROUP: _on_white(color, bars.PALE), STANDS_OUT: color}[standing]


def _on_white(color: str, opacity: float) -> tuple[float, ...]:
    """The colour as it looks on white paper: a marker that let its own line through would be no pale marker."""
    return tuple(1 - opacity * (1 - part) for part in to_rgb(color))


def methods_at(inputs: Inputs, dataset: str, attribute: str) -> list[Place]:
    """The audited methods of a data set and attribute, in their fixed order."""
    found = [p for p in trials.places(inputs, block=BLOCK) if (p.dataset, p.attribute) == (dataset, attribute)]
    order = in_order([place.method for place in found])
    return sorted(found, key=lambda place: order.index(place.method))
