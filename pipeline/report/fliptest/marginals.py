"""Histograms of one feature in a whole group and in its flipsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.audits.fliptest.marginals import marginal
from pipeline.report import words as w
from pipeline.report.style import INK
from pipeline.types import Array

BINS = 32
TAIL = 0.002
"""Share of the group beyond either end of the axis: a few far values would leave the others a corner of it."""


@dataclass(frozen=True)
class Group:
    """People whose histogram is drawn: the whole group where ``flipset`` is empty. ``values`` (n, d)."""

    label: str
    values: Array
    color: str
    flipset: str = ""
    line: Any = "-"


def draw(axes: Axes, groups: Sequence[Group], column: int, own_axis: bool) -> Axes | None:
    """One feature of the whole group (filled) and of its flipsets (lines), counted in the same bins.

    With ``own_axis`` flipsets are counted on an axis at the right, where they are too small a part of the group to be
    seen beside it; the axis is returned. What lies beyond the ends is left out.
    """
    values = {group.label: group.values[:, column] for group in groups}
    low, high = limits(list(values.values()))
    counted = marginal({label: v[(v >= low) & (v <= high)] for label, v in values.items()}, BINS)
    right = axes.twinx() if own_axis else None
    for group in groups:
        there = right if right is not None and group.flipset else axes
        heights, edges = counted.counts[group.label], counted.edges
        if group.flipset:
            there.stairs(heights, edges, color=group.color, linewidth=1.3, linestyle=group.line, zorder=3)
        else:
            there.stairs(heights, edges, color=group.color, fill=True, alpha=0.55, linewidth=0, zorder=1)
    for there in filter(None, (axes, right)):
        there.set_ylim(bottom=0)
        there.yaxis.set_major_locator(MaxNLocator(4, integer=True))
        there.yaxis.set_major_formatter(FuncFormatter(lambda count, _: f"{count:,.0f}"))
    if right is not None:
        colors = [group.color for group in groups if group.flipset]
        color = colors[0] if len(colors) == 1 else INK
        right.spines["right"].set_visible(True)
        right.spines["right"].set_color(color)
        right.tick_params(axis="y", colors=color, labelcolor=color)
    return right


def limits(values: Sequence[Array]) -> tuple[float, float]:
    """The ends of an axis that leaves out at most ``TAIL`` of each group at either end; a distinct value is not cut."""
    ends = [np.quantile(v, [TAIL, 1 - TAIL], method="nearest") for v in values if len(v)]
    return float(min(low for low, _ in ends)), float(max(high for _, high in ends))


def handles(groups: Sequence[Group]) -> list[Patch]:
    """The legend: each group by its colour, with its size."""
    return [
        Patch(
            facecolor=group.color, alpha=0.9 if group.flipset else 0.55, label=f"{group.label} ({len(group.values):,})"
        )
        for group in groups
    ]


def label_of(flipset: str, dataset: str, source: str) -> str:
    """``$F^+$: women hired, counterparts not``, or the group's name."""
    if not flipset:
        return f"all {w.group_label(source, dataset)}"
    return f"{w.FLIPSETS_DRAWN[flipset]}: {w.flipset_label(dataset, flipset, source)}"
