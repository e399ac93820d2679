"""The kinds of maps side by side: how well each reaches the target group, and how far it moves people for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import quality, trials
from pipeline.report.fliptest.quality import Validated
from pipeline.report.inputs import Inputs
from pipeline.report.picture import Picture
from pipeline.report.style import FAINT, INK, new_figure, panel_letter
from pipeline.transport.quality import WORST_HEALTHY_KS

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
    for letter, axes, measure, title in zip("abc", panels, measures, titles, strict=True):
        for place, label in enumerate(labels):
            here = [one for one in maps if one.label == label]
            for k, one in enumerate(here):
                _dots(axes, measure(inputs, one), place + (k - (len(here) - 1) / 2) * 0.8 / len(kinds), one.transport)
        for place in range(len(labels) - 1):
            axes.axhline(place + 0.5, color=FAINT, linewidth=0.3)
        axes.set_xlabel(title)
        axes.set_xlim(left=0)
        panel_letter(axes, letter)
    panels[0].axvline(WORST_HEALTHY_KS, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    panels[2].axvline(1, color=INK, linewidth=0.8, linestyle=(0, (4, 2)))
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)
    figure.legend(*_handles(kinds), loc="outside upper center", ncols=len(kinds))
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


def _handles(kinds: Sequence[str]) -> tuple[list, list[str]]:
    from matplotlib.lines import Line2D

    styles = [w.map_style(kind) for kind in kinds]
    handles = [Line2D([], [], linestyle="none", marker=s.marker, markersize=4.6, color=s.color) for s in styles]
    return handles, [s.label for s in styles]
