"""The figure of a watch: each difference with its confidence sequence, batch by batch."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairness_audits.audits.watch.result import Entry, named
from fairness_audits.results.markup import label_text
from fairness_audits.results.style import FAINT, METHODS, WARNING, curve, level, new_panels, points

PANELS, ACROSS = 6, 2
"""Largest number of comparisons in the figure, from the top of the table, and in one of its lines."""
LETTERS, TICKS, MARKED = 44, 5, 40
"""Letters in a line of a title, labelled batches, and the largest number of batches that have a marker."""


def figure(series: Sequence[Entry], names: Sequence[str], margin: float | None) -> Figure:
    """Draw a panel for each comparison. Call and save within :func:`fairness_audits.results.style.paper`."""
    shown = [one for one in series if one["difference"] is not None][:PANELS]
    across = min(ACROSS, len(shown))
    down = -(-len(shown) // across)
    drawn, panels = new_panels(0.4 + 1.9 * down, down, across, sharex=True)
    for place, axes in enumerate(panels.flat):
        if place < len(shown):
            _sequence(axes, shown[place], names, margin)
        else:
            axes.set_axis_off()
        if place + across >= len(shown):
            axes.tick_params(labelbottom=True)
            axes.set_xlabel("batch")
    for axes in panels[:, 0]:
        axes.set_ylabel("difference")
    return drawn


def _sequence(axes: Axes, one: Entry, names: Sequence[str], margin: float | None) -> None:
    """Draw the difference with its confidence sequence, the margin, and the batch that first shows a difference."""
    place, look = np.arange(1, len(names) + 1), METHODS["baseline"]
    axes.axhline(0.0, color=FAINT, linewidth=0.8)
    for end in () if margin is None else (-margin, margin):
        level(axes, end)
    if one["since"] is not None:
        axes.axvline(names.index(one["since"]) + 1, color=WARNING, linewidth=0.8)
    ends = np.stack([one["lows"], one["highs"]])
    if len(names) == 1:
        points(axes, place, one["estimates"], look, ends)
    else:
        curve(axes, place, one["estimates"], look, ends, marker=look.marker if len(names) <= MARKED else "")
    # The first batches bound almost nothing: the axis shows the second half.
    late = ends[:, len(names) // 2 :]
    least, most = min(late.min(), 0, -(margin or 0)), max(late.max(), 0, margin or 0)
    axes.set_ylim(least - 0.15 * (most - least), most + 0.15 * (most - least))
    ticks = np.unique(np.linspace(1, len(names), min(TICKS, len(names))).round().astype(int))
    axes.set_xticks(ticks, [label_text(names[tick - 1], 12) for tick in ticks])
    axes.set_title(label_text(named(one), LETTERS))
