"""The figure of a robustness audit: the curves I_P(tau) of the groups, a panel for each partition."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pipeline.audits.robustness_bias.measures import Lengths, Partition, survival
from pipeline.cli.audit.robustness_bias.measured import BOUNDS, Measured, settings_text
from pipeline.cli.audit.robustness_bias.subjects import Subjects
from pipeline.cli.numbers import label_text
from pipeline.report.style import FAINT, new_figure, panel_letter, print_stamp
from pipeline.report.words import line_style
from pipeline.types import Array

ACROSS = 2
GRID = 600
NEARLY_ALL = 0.995
"""Curves are drawn up to this quantile of the distances: one far image would leave the others a corner."""
SIDE_BY_SIDE = 4
"""Panels of more levels have a row to themselves, and their legend beside them."""
FEW = 12
"""Of more levels only the nearest and the farthest are named; the rest are thin lines."""
LETTERS = 22
"""Longer names are cut."""


def curves(attack: Measured, subjects: Subjects, denominator: str, images: str) -> Figure:
    """All partitions by one attack.

    To be drawn and saved within :func:`pipeline.report.style.paper`.
    """
    partitions = subjects.points.partitions
    lengths, found = attack.lengths[denominator], attack.entry
    places = placed([len(partition) for partition in partitions])
    down = 1 + max(row for row, _ in places)
    drawn = new_figure(2.75 * down)
    grid = drawn.add_gridspec(down, ACROSS)
    known = lengths.length[lengths.length > 0]
    farthest = float(np.quantile(known, NEARLY_ALL)) if len(known) else 1.0
    # To nearly the largest length, or to the budget that was asked for where that is less.
    tau = np.linspace(0, farthest if found["budget"] is None else min(farthest, found["budget"]), GRID)
    for number, (partition, entry, (row, columns)) in enumerate(
        zip(partitions, found["partitions"], places, strict=True)
    ):
        axes = drawn.add_subplot(grid[row, columns])
        _panel(axes, lengths, partition, entry, denominator, tau)
        axes.set_ylabel("$I_P(\\tau)$: share with distance > $\\tau$" if columns.start == 0 else "")
        axes.set_xlabel("$\\tau$ (L2, pixels in [0, 1])")
        axes.set_title(label_text(partition.name, LETTERS))
        if len(partitions) > 1:
            panel_letter(axes, chr(ord("a") + number % 26))
    whose = {
        "paper": "of all images, those classified wrongly at distance 0",
        "correct": "of images classified correctly",
    }[denominator]
    stamp = [
        f"{settings_text(found)} ({BOUNDS[found['bound']]})",
        f"{images}; {whose}; {found['failed']:,} of {found['n_correct']:,} attacks failed",
    ]
    print_stamp(drawn, stamp, emphatic=False)
    return drawn


def placed(sizes: Sequence[int]) -> list[tuple[int, slice]]:
    """Row and columns of the panel of each partition: those of many levels have a row, and its width, to themselves."""
    if len(sizes) == 1:
        return [(0, slice(0, ACROSS))]
    places: list[tuple[int, slice]] = []
    row, column = 0, 0
    for size in sizes:
        wide = size > SIDE_BY_SIDE
        if column and wide:
            row, column = row + 1, 0
        places.append((row, slice(0, ACROSS) if wide else slice(column, column + 1)))
        column = ACROSS if wide else column + 1
        if column == ACROSS:
            row, column = row + 1, 0
    return places


def _panel(
    axes: Axes, lengths: Lengths, partition: Partition, entry: Mapping[str, Any], denominator: str, tau: Array
) -> None:
    """One curve for each level; those closest to the boundary come first in the legend."""
    order = sorted(range(len(partition)), key=lambda level: entry["levels"][level][denominator]["sigma"] or 0.0)
    half = FEW // 2
    named = order if len(order) <= FEW else [*order[:half], *order[-half:]]
    for level in order:
        curve = survival(lengths, partition.element(level)[0], tau)
        if level in named:
            color, line = line_style(named.index(level))
            own = entry["levels"][level][denominator]
            sigma = "" if own["sigma"] is None else f", $\\sigma$ = {own['sigma']:+.2f}".replace("-", "\u2212")
            label = f"{label_text(partition.levels[level], LETTERS)} ({own['n']:,}{sigma})"
            axes.plot(tau, curve, color=color, linestyle=line, label=label, drawstyle="steps-post")
        else:
            axes.plot(tau, curve, color=FAINT, linewidth=0.4, alpha=0.6)
    if len(named) < len(order):
        axes.plot([], [], color=FAINT, linewidth=0.4, label=f"{len(order) - len(named)} groups between them")
    axes.set_xlim(0, tau[-1])
    axes.set_ylim(0, 1.02)
    wide = len(named) > SIDE_BY_SIDE
    beside: Any = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)} if wide else {"loc": "upper right"}
    axes.legend(borderaxespad=0.2, labelspacing=0.25, handlelength=2.2, **beside)
