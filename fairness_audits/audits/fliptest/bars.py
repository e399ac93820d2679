"""Plots of flipsets: histograms of a group and its flipsets, and transparency reports as ranked bars."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from fairness_audits.audits.fliptest.transparency import NOISE, STANDS_OUT, Standing, standing
from fairness_audits.results.style import FAINT, INK, bin_edges
from fairness_audits.values import Array

MEAN, SIGN = "mean_shift", "mean_sign"
RANKS = {MEAN: "rank_mean", SIGN: "rank_sign"}
"""Column of a transparency report with the rank by each statistic."""
FLIPSET_COLORS = {"positive": "#00875F", "negative": "#D55E00", "": "#9c8fc4"}
"""Colours of the positive flipset, the negative flipset and the whole group."""
PEOPLE, SHARES = "people", "% of each group"
"""Labels of the vertical axis of a histogram of counts, and of one of shares."""
AXES = {MEAN: "mean of $x - G(x)$, standard deviations", SIGN: "mean of sign$(x - G(x))$"}
STRONG = 0.8
BINS = 32
TAIL = 0.002
"""Share of the group cut off at either end of the axis, because a few extreme values would squeeze all others."""
REACH = 1.6
"""Longest interval, in multiples of the longest bar or furthest trial. An arrow marks intervals that are cut."""
DOT: Any = {
    "linestyle": "none", "marker": "o", "markersize": 2.4, "markerfacecolor": "white", "markeredgecolor": INK,
    "markeredgewidth": 0.5,
}  # fmt: skip
CROSS: Any = {"linestyle": "none", "marker": "x", "markersize": 3.2, "color": INK, "markeredgewidth": 0.7}
SAID: Mapping[Standing, str] = {STANDS_OUT: STANDS_OUT, NOISE: f"{NOISE}: interval covers 0"}


@dataclass(frozen=True)
class Line:
    """One feature in one ranking: x - G(x) or its sign, averaged over a flipset and over the trials.

    ``value`` has the interval of :mod:`fairness_audits.audits.fliptest.intervals` (over maps and people; over people
    alone if there is one trial). ``trials`` (T,) are the values of the single trials, NaN if the flipset is empty;
    ``left_out`` those of trials whose map misses its target, which do not count.
    """

    feature: str
    value: float
    low: float
    high: float
    trials: Array
    left_out: Array = field(default_factory=lambda: np.empty(0))

    @property
    def standing(self) -> Standing:
        """Return the standing, noise or stands out: see :mod:`fairness_audits.audits.fliptest.transparency`."""
        return standing(self.low, self.high)


def look(standing: Standing, color: str) -> dict[str, Any]:
    """Return how to fill a bar: hatched without colour for noise, solid for what stands out."""
    if standing == NOISE:
        return {"facecolor": "white", "edgecolor": color, "hatch": "/////", "alpha": 0.45}
    return {"facecolor": (color, STRONG)}


def draw(axes: Axes, lines: Sequence[Line], ranking: str, color: str, label: Callable[[str], str] = str) -> None:
    """Draw horizontal bars with intervals, grey names for noise, and dots for the trials if there are several.

    ``label`` maps a feature to its printed name.
    """
    if not lines:
        axes.text(0.5, 0.5, "no members", ha="center", va="center", transform=axes.transAxes, color=FAINT)
        axes.set_axis_off()
        return
    # With few trials the intervals are so long that the bars would be invisible.
    drawn = np.concatenate([line.trials for line in lines] + [[line.value for line in lines]])
    reach = 1.0 if ranking == SIGN else REACH * float(np.nanmax(np.abs(drawn)))
    for place, line in enumerate(lines):
        axes.barh(place, line.value, height=0.62, linewidth=0.6, zorder=1, **look(line.standing, color))
        _interval(axes, line, place, reach)
        for values, marker in ((line.trials if len(line.trials) > 1 else line.trials[:0], DOT), (line.left_out, CROSS)):
            single = values[np.isfinite(values)]
            axes.plot(single, np.full(len(single), float(place)), zorder=4, **marker)
    axes.axvline(0, color=INK, linewidth=0.6, zorder=2)
    axes.set_yticks(range(len(lines)), [label(line.feature) for line in lines])
    for text, line in zip(axes.get_yticklabels(), lines, strict=True):
        noise = line.standing == NOISE
        text.set(color=FAINT if noise else INK, fontstyle="italic" if noise else "normal")
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if ranking == SIGN:
        axes.set_xlim(-1.08, 1.08)
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_xlabel(AXES[ranking])


def _interval(axes: Axes, line: Line, place: int, reach: float) -> None:
    """Draw the interval as a line, with an arrow if it extends beyond the reach."""
    if not np.isfinite([line.low, line.high]).all():
        return
    low, high = np.clip([line.low, line.high], -reach, reach)
    axes.plot([low, high], [place, place], color=INK, linewidth=1.1, solid_capstyle="butt", zorder=3)
    for end, whole, marker in ((low, line.low, "<"), (high, line.high, ">")):
        if end != whole:
            axes.plot(end, place, marker=marker, markersize=3, color=INK, zorder=3)


def handles(lines: Iterable[Line]) -> list[Line2D | Patch]:
    """Return the legend of everything but colours: intervals, single trials and the standings that occur."""
    every = list(lines)
    several = any(len(line.trials) > 1 for line in every)
    over = "interval over maps and people" if several else "interval over people"
    found: list[Line2D | Patch] = [Line2D([], [], color=INK, linewidth=1.1, label=over)]
    if several:
        found.append(Line2D([], [], label="single trials", **DOT))
    if any(len(line.left_out) for line in every):
        found.append(Line2D([], [], label="left out: the map is not valid", **CROSS))
    there = {line.standing for line in every}
    found += [Patch(linewidth=0.6, label=text, **look(word, FAINT)) for word, text in SAID.items() if word in there]
    return found


@dataclass(frozen=True)
class Group:
    """The people in a histogram: the whole group if ``flipset`` is empty. ``values`` (n, d)."""

    label: str
    values: Array
    color: str
    flipset: str = ""
    line: Any = "-"


def draw_marginal(axes: Axes, groups: Sequence[Group], column: int, shares: bool) -> None:
    """Draw one feature of the whole group (filled) and of its flipsets (lines) with common bins.

    The bars are counts, or with ``shares`` percentages of each group. Use shares for flipsets that are too small to be
    visible next to the group. Values beyond the ends are left out of the bars, not of the shares' denominator.
    """
    values = [group.values[:, column] for group in groups]
    low, high = limits(values)
    inside_limits = [v[(v >= low) & (v <= high)] for v in values]
    edges = bin_edges(np.concatenate(inside_limits), BINS)
    for group, inside in zip(groups, inside_limits, strict=True):
        heights = np.histogram(inside, edges)[0] * (100 / max(len(group.values), 1) if shares else 1)
        if group.flipset:
            axes.stairs(heights, edges, color=group.color, linewidth=1.3, linestyle=group.line, zorder=3)
        else:
            axes.stairs(heights, edges, color=group.color, fill=True, alpha=0.55, linewidth=0, zorder=1)
    if len(present := np.unique(np.concatenate(inside_limits))) == 2:
        axes.set_xticks(present)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(4, integer=not shares))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda height, _: f"{height:,g}"))


def limits(values: Sequence[Array]) -> tuple[float, float]:
    """Return axis limits that cut at most ``TAIL`` of each group at either end. The limits are values that occur."""
    ends = [np.quantile(v, [TAIL, 1 - TAIL], method="nearest") for v in values if len(v)]
    return float(min(low for low, _ in ends)), float(max(high for _, high in ends))


def marginal_handles(groups: Sequence[Group]) -> list[Patch]:
    """Return the legend: each group by its colour, with its size."""
    return [
        Patch(
            facecolor=group.color, alpha=0.9 if group.flipset else 0.55, label=f"{group.label} ({len(group.values):,})"
        )
        for group in groups
    ]
