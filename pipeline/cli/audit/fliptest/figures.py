"""The figures of a FlipTest: who flips, feature by feature, and in what they differ from their counterparts."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from pipeline.audits.fliptest.space import MISSING, Input, Space
from pipeline.cli.audit.fliptest.evidence import FLIPSETS, Side
from pipeline.cli.numbers import label_text
from pipeline.report.fliptest import bars
from pipeline.report.fliptest.bars import limits
from pipeline.report.fliptest.trials import MEAN, RANKS, SIGN, Line
from pipeline.report.style import bin_edges, new_figure
from pipeline.report.words import FLIPSET_COLORS
from pipeline.types import Array

PANELS, ACROSS = 9, 3
"""Features in the figure of marginals, at most, and in a line of it: those that lead the reports."""
LINES = 12
"""Features in each ranking, at most."""
BINS = 24
LEVELS = 8
"""Levels of a category that are drawn one by one; the rest are drawn together."""
LETTERS = 24
"""Longer names are cut."""
WORDS = {"": "all {}", "positive": "positive flipset", "negative": "negative flipset"}
DASHES: Mapping[str, Any] = {"positive": "-", "negative": (0, (4, 1.2))}


def marginals(side: Side, space: Space) -> Figure:
    """How the flipsets and the whole group are distributed, a panel for each leading feature.

    To be drawn and saved within :func:`pipeline.report.style.paper`, as the other figure.
    """
    shown = leading(side, space, PANELS)
    across = min(ACROSS, len(shown))
    down = -(-len(shown) // across)
    drawn = new_figure(0.45 + 1.6 * down)
    people = {"": np.ones(len(side.kept), dtype=bool)}
    people |= {name: getattr(side.flips, name) for name in _present(side)}
    frame = side.way.source.features.iloc[side.kept]
    for number, one in enumerate(shown):
        axes = drawn.add_subplot(down, across, number + 1)
        column = frame[one.name]
        if one.levels is not None and column.isna().any():
            column = column.astype(object).where(column.notna(), MISSING)
        values = {name: column[members].dropna().to_numpy() for name, members in people.items()}
        values = {name: own for name, own in values.items() if len(own)}
        (_bars if one.levels is not None or one.pair else _histogram)(axes, values)
        axes.set_xlabel(label_text(one.name, LETTERS))
        axes.set_ylabel("share of the people" if number % across == 0 else "")
    handles: list[Patch | Line2D] = []
    for name, members in people.items():
        label = f"{WORDS[name].format(side.way.source.level)} ({members.sum():,})"
        if name:
            handles.append(Line2D([], [], color=FLIPSET_COLORS[name], linestyle=DASHES[name], label=label))
        else:
            handles.append(Patch(color=FLIPSET_COLORS[name], alpha=0.55, label=label))
    drawn.legend(handles=handles, loc="outside upper left", ncols=len(handles))
    return drawn


def transparency(side: Side, space: Space, alpha: float) -> Figure:
    """The two rankings of each flipset's transparency report."""
    present = _present(side)
    count = min(LINES, len(space.moving))
    drawn = new_figure(0.35 + max(1, len(present)) * (0.75 + 0.18 * count))
    if not present:
        drawn.text(0.5, 0.5, "Nobody flips.", ha="center", va="center")
        return drawn
    every: list[Line] = []
    for row, name in enumerate(present):
        for column, ranking in enumerate((MEAN, SIGN)):
            axes = drawn.add_subplot(len(present), 2, 2 * row + column + 1)
            found = _lines(side, space, name, ranking, alpha)[:count]
            every += found
            bars.draw(axes, found, ranking, FLIPSET_COLORS[name], "")
            axes.set_xlabel(
                "mean of person \u2212 counterpart, sd" if ranking == MEAN else "mean sign of person \u2212 counterpart"
            )
            if column == 0:
                size = int(getattr(side.flips, name).sum())
                axes.set_title(f"{WORDS[name]} ({size:,})", loc="left", fontweight="bold")
    drawn.legend(handles=bars.handles(every), loc="outside upper left", ncols=4)
    return drawn


def leading(side: Side, space: Space, count: int) -> list[Input]:
    """The inputs that a map moves, from the best rank in either flipset's report down."""
    best = np.full(len(space.labels), np.inf)
    for report in side.reports.values():
        best = np.fmin(best, report.rank_mean)
    rank = {one.name: best[[space.labels.index(label) for label in one.labels]].min() for one in space.inputs}
    known = side.way.source.features.iloc[side.kept].notna().any()
    moving = [one for one in space.inputs if one.name in known.index[known] and one.name not in space.unmoved]
    return sorted(moving, key=lambda one: float(rank[one.name]))[:count]


def _present(side: Side) -> list[str]:
    return [name for name in FLIPSETS if getattr(side.flips, name).any()]


def _lines(side: Side, space: Space, flipset: str, ranking: str, alpha: float) -> list[Line]:
    """One ranking of a flipset's report, the first line first."""
    report = side.reports[flipset]
    rank = getattr(report, RANKS[ranking])
    value, low, high, p = (getattr(report, f"{ranking}{end}") for end in ("", "_ci_low", "_ci_high", "_p_adjusted"))
    return [
        Line(
            label_text(space.labels[j], LETTERS), value[j], low[j], high[j], int(rank[j]), p[j], alpha, value[j : j + 1]
        )
        for j in np.argsort(rank, kind="stable")
        if not np.isnan(rank[j])
    ]


def _histogram(axes: Axes, values: Mapping[str, Array]) -> None:
    """Shares of the people in the same bins: the whole group filled, flipsets as lines; far tails are left out."""
    low, high = limits(list(values.values()))
    kept = {name: v[(v >= low) & (v <= high)] for name, v in values.items()}
    edges = bin_edges(np.concatenate(list(kept.values())), BINS)
    for name, inside in kept.items():
        share = np.histogram(inside, edges)[0] / len(values[name])
        if name:
            axes.stairs(share, edges, color=FLIPSET_COLORS[name], linestyle=DASHES[name], linewidth=1.3)
        else:
            axes.stairs(share, edges, color=FLIPSET_COLORS[name], fill=True, alpha=0.55, linewidth=0)


def _bars(axes: Axes, values: Mapping[str, Array]) -> None:
    """Shares of the people in each level, from the most frequent level of the whole group down."""
    levels = [level for level, count in pd.Series(values[""]).value_counts().items() if count]
    named, rest = levels[:LEVELS], levels[LEVELS:]
    offsets = {"positive": -0.19, "negative": 0.19} if len(values) > 2 else {}
    for name, own in values.items():
        share = [float(np.mean(own == level)) for level in named]
        share += [float(np.mean(pd.Series(own).isin(rest)))] if rest else []
        places = np.arange(len(share)) + offsets.get(name, 0.0)
        if name:
            axes.bar(
                places, share, 0.34, fill=False, edgecolor=FLIPSET_COLORS[name], linestyle=DASHES[name], linewidth=1.1
            )
        else:
            axes.bar(places, share, 0.84, color=FLIPSET_COLORS[name], alpha=0.55, linewidth=0)
    told = [f"{level:g}" if isinstance(level, float) else str(level) for level in named]
    texts = [label_text(text, 12) for text in told] + (["others"] if rest else [])
    slanted = sum(map(len, texts)) > LETTERS
    axes.set_xticks(range(len(texts)), texts, rotation=35 if slanted else 0, ha="right" if slanted else "center")
    axes.tick_params(axis="x", length=0)
