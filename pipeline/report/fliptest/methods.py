"""Effect of the mitigations of the first study on flipsets and transparency reports, by gender and race."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from fairness_audits.audits.fliptest import bars
from fairness_audits.audits.fliptest.bars import Line
from fairness_audits.audits.fliptest.transparency import NOISE
from fairness_audits.results.style import FAINT, INK, finish, in_order, method_style, new_panels
from fairness_audits.results.table import Column
from pipeline.report import labels as w
from pipeline.report.fliptest import flipset_panels, trials
from pipeline.report.fliptest.flipset_tables import IN_BRACKETS, by_chance, chance_columns, size_columns
from pipeline.report.fliptest.trials import BOTH, AuditedMap
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture
from pipeline.report.table import StampedTable, tabulated

BLOCK = "methods"
FEATURES = 6
"""Number of features shown per data set and attribute, by the largest shift in any report."""
PANEL = 1.75


def audited(inputs: Inputs) -> dict[tuple[str, str], list[AuditedMap]]:
    """Return the audited methods in their fixed order, by data set and attribute."""
    found: dict[tuple[str, str], list[AuditedMap]] = {}
    for place in trials.places(inputs, block=BLOCK):
        found.setdefault((place.dataset, place.attribute), []).append(place)
    known = w.attributes_in(attribute for _, attribute in found)
    order = sorted(found, key=lambda pair: (pair[0], known.index(pair[1])))
    methods = in_order([place.method for listed in found.values() for place in listed])
    return {pair: sorted(found[pair], key=lambda place: methods.index(place.method)) for pair in order}


@artefact(
    "Features in which flipset members differ most from their counterparts, for each method. Open markers are noise. "
    "Filled markers stand out.",
)
def figure_methods(inputs: Inputs) -> Picture:
    panels = audited(inputs)
    figure, grid = new_panels(PANEL * len(panels) + 0.4, len(panels), 2)
    titles, empty = [], []
    for (dataset, attribute), row in zip(panels, grid, strict=True):
        here = panels[dataset, attribute]
        reports = {(p.method, flipset): p.report(flipset) for p in here for flipset in BOTH}
        features = largest(list(reports.values()), FEATURES)
        by, named = w.ATTRIBUTES[attribute], w.dataset_label(dataset)
        for flipset, axes in zip(BOTH, row, strict=True):
            _panel(axes, {p.method: reports[p.method, flipset] for p in here}, features, dataset)
            titles.append(f"{named}, {by}: {w.FLIPSETS_DRAWN[flipset]}")
            without = [p.method for p in here if not reports[p.method, flipset]]
            empty += [f"{method_style(m).label}, {named}, {attribute}, {w.FLIPSETS[flipset]}" for m in without]
        row[1].set_yticklabels([])
        shown = [line for report in reports.values() for line in report if line.feature in features]
        every = [abs(end) for line in shown for end in (line.value, line.low, line.high)]
        furthest = max((end for end in every if math.isfinite(end)), default=1.0)
        limit = 1.08 * min(furthest, bars.REACH * max((abs(line.value) for line in shown), default=1.0))
        for axes in row:
            axes.set_xlim(-limit, limit)
    styles = [method_style(m) for m in in_order([place.method for listed in panels.values() for place in listed])]
    looks: list[dict[str, Any]] = [
        *({"color": s.color, "marker": s.marker, "linewidth": 0.9, "label": s.label} for s in styles),
        {"color": FAINT, "marker": "o", "markerfacecolor": "white", "linestyle": "none", "label": NOISE},
    ]
    handles = [Line2D([], [], markersize=3.4, **look) for look in looks]
    finish(figure, grid, flipset_panels.MIXED, columns=len(styles) + 1, titles=titles, handles=handles)
    return Picture(
        figure,
        "Transparency reports by method.",
        inputs.stamp(BLOCK),
        "Points with intervals: mean shifts of features in the positive and negative flipsets of each method.",
        notes=(
            f"The {FEATURES} features with the largest shift in any report of a data set and attribute, as means over "
            "the trials. Intervals include the variation of maps and people, and may extend beyond the axes. "
            f"{flipset_panels.CATEGORIES} Open: noise, because the interval covers 0.",
            *([f"Empty flipsets: {'; '.join(empty)}."] if empty else []),
        ),
    )


def largest(reports: Sequence[Sequence[Line]], wanted: int) -> list[str]:
    """Return the features with the largest absolute shift that stands out in any report, in decreasing order.

    If too few features stand out, features within the noise follow.
    """
    size: dict[str, tuple[bool, float]] = {}
    for line in (line for report in reports for line in report):
        size[line.feature] = max(size.get(line.feature, (False, 0.0)), (line.standing != NOISE, abs(line.value)))
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
            noise = line.standing == NOISE
            axes.plot([line.low, line.high], [y, y], color=style.color, linewidth=0.9, alpha=0.4 if noise else 1)
            axes.plot(
                line.value, y, marker=style.marker, markersize=3.4, color=style.color,
                markerfacecolor="white" if noise else style.color, markeredgewidth=0.8,
            )  # fmt: skip
    for place in range(len(features) - 1):
        axes.axhline(place + 0.5, color=FAINT, linewidth=0.3)
    axes.axvline(0, color=INK, linewidth=0.6, zorder=0)
    axes.set_yticks(np.arange(len(features)), [w.feature_label(feature, dataset) for feature in features])
    axes.set_ylim(len(features) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)


@artefact(
    "Flipsets of the methods of the individual-fairness study. A method may equalise the number of positive decisions "
    "and still decide differently about many people and their counterparts.",
)
def table_methods(inputs: Inputs) -> StampedTable:
    panels = audited(inputs)
    decided = {w.dataset_label(d): w.DECISIONS.get(d, ("positive",))[0] for d, _ in panels}
    positive = "; ".join(f"{dataset}: {decision}" for dataset, decision in decided.items())

    def labels(place: AuditedMap) -> tuple[str, str, str]:
        source, target = place.names
        pair = f"{w.ATTRIBUTES[place.attribute]}: {source} to {target}"
        return w.dataset_label(place.dataset), pair, method_style(place.method).label

    return tabulated(
        title="Flipsets by method.",
        stub=("Data set", "From and to", "Method"),
        columns=(
            Column("people", decimals=0, cell=lambda place: place.people),
            *(
                Column(side, "spread", lambda place, side=side: place.share_positive(side), "% decided positive", 1)
                for side in ("source", "target")
            ),
            *size_columns(),
            *chance_columns(),
            *(
                Column(f"{f} top", "text", lambda p, f=f: trials.top(p, f), "Largest mean shift", name=w.FLIPSETS[f])
                for f in BOTH
            ),
        ),
        rows=[(labels(place), place) for listed in panels.values() for place in listed],
        stamp=inputs.stamp(BLOCK),
        split=("Largest mean shift",),
        notes=(
            "F+: people with a positive decision whose counterparts have a negative one. F\u2212: the reverse. "
            "Net: F+ minus F\u2212.",
            f"Positive decision: {positive}. The map is exact transport between the test rows.",
            IN_BRACKETS,
            by_chance(inputs, [BLOCK]),
            "Largest mean shift: the feature with the largest mean shift among those that stand out; if none stands "
            f"out, among all features, marked as noise. {flipset_panels.CATEGORIES}",
        ),
    )
