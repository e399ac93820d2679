"""Figures of a FlipTest: who flips, feature by feature, and how they differ from their counterparts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from fairness_audits.audits.fliptest import bars
from fairness_audits.audits.fliptest.bars import FLIPSET_COLORS, MEAN, RANKS, SIGN, Line
from fairness_audits.audits.fliptest.compute import DirectionResult
from fairness_audits.audits.fliptest.flipsets import FLIPSETS
from fairness_audits.results.formats import number
from fairness_audits.results.markup import label_text
from fairness_audits.results.style import new_figure

PANELS, ACROSS = 9, 3
"""Largest number of columns in the figure of marginals, and in one of its lines."""
LINES = 12
"""Largest number of features in each ranking."""
LETTERS = 24
"""Longest name, in letters, that stays on one line."""
HEIGHTS = 0.18, 0.28
"""Height of a bar in inches if names have one line, and if they have several."""
MEASURES = {MEAN: "person \u2212 counterpart, mean in sd (own unit)", SIGN: "mean sign of person \u2212 counterpart"}
DASHES: Mapping[str, Any] = {"positive": "-", "negative": (0, (4, 1.2))}


def marginals(side: DirectionResult) -> Figure:
    """Draw histograms of the columns that lead the reports, for the whole group and its flipsets.

    Draw and save this figure, like the other one, within :func:`fairness_audits.results.style.paper`.
    """
    # Use the units in which the data came.
    space = side.direction.space
    points = side.found.people.points * space.each("scale") + space.each("shift")
    groups = [bars.Group(f"all {side.direction.source.level}", points, FLIPSET_COLORS[""])]
    for name in _present(side):
        members = points[getattr(side.found.flips, name)]
        groups.append(bars.Group(f"{name} flipset", members, FLIPSET_COLORS[name], name, DASHES[name]))
    best = np.fmin(*(report.rank_mean for report in side.found.reports.values()))
    leading = [column for column in np.argsort(best, kind="stable") if column in space.moving][:PANELS]
    across = min(ACROSS, len(leading))
    down = -(-len(leading) // across)
    drawn, shares = new_figure(0.45 + 1.6 * down), len(groups) > 1
    for place, column in enumerate(leading):
        axes = drawn.add_subplot(down, across, place + 1)
        bars.draw_marginal(axes, groups, column, shares)
        axes.set_xlabel(label_text(space.labels[column], LETTERS))
        axes.set_ylabel((bars.SHARES if shares else bars.PEOPLE) if place % across == 0 else "")
    drawn.legend(handles=bars.marginal_handles(groups), loc="outside upper left", ncols=len(groups))
    return drawn


def transparency(side: DirectionResult) -> Figure:
    """Draw the two rankings of each flipset's transparency report."""
    present = _present(side)
    if not present:
        drawn = new_figure(1)
        axes = drawn.add_subplot()
        axes.text(0.5, 0.5, "Nobody flips.", ha="center", va="center")
        axes.set_axis_off()
        return drawn
    count = min(LINES, len(side.direction.space.moving))
    panels = [(name, ranking, _lines(side, name, ranking)[:count]) for name in present for ranking in MEASURES]
    every = [line for _, _, lines in panels for line in lines]
    height = HEIGHTS[max(line.feature.count("\n") for line in every) > 0]
    drawn = new_figure(0.35 + len(present) * (0.75 + height * count))
    for place, (name, ranking, lines) in enumerate(panels):
        axes = drawn.add_subplot(len(present), len(MEASURES), place + 1)
        bars.draw(axes, lines, ranking, FLIPSET_COLORS[name])
        axes.set_xlabel(MEASURES[ranking])
        if place % len(MEASURES) == 0:
            size = int(getattr(side.found.flips, name).sum())
            axes.set_title(f"{name} flipset ({size:,})", loc="left", fontweight="bold")
    drawn.legend(handles=bars.handles(every), loc="outside upper left", ncols=4)
    return drawn


def _present(side: DirectionResult) -> list[str]:
    return [name for name in FLIPSETS if getattr(side.found.flips, name).any()]


def _lines(side: DirectionResult, flipset: str, ranking: str) -> list[Line]:
    """Return one ranking of a flipset's report, the first line first."""
    report, space = side.found.reports[flipset], side.direction.space
    scale = space.each("scale")
    rank = getattr(report, RANKS[ranking])
    value, low, high = (getattr(report, f"{ranking}{end}") for end in ("", "_ci_low", "_ci_high"))
    return [
        Line(
            _named(space.labels[j], report.mean_shift[j], scale[j], ranking),
            value[j],
            low[j],
            high[j],
            value[j : j + 1],
        )
        for j in np.argsort(rank, kind="stable")
        if not np.isnan(rank[j])
    ]


def _named(label: str, shift: float, scale: float, ranking: str) -> str:
    """Return the name of a column, with the shift in the column's own unit if the bar has another unit."""
    own = f" ({number(shift * scale, 1 if abs(shift * scale) < 100 else 0)})" if scale != 1 else ""
    return label_text(f"{label}{own if ranking == MEAN else ''}", LETTERS)
