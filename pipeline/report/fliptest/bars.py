"""What figures of flipsets are composed of: histograms of features in a group and its flipsets, and below them
transparency reports as ranked bars, the largest on top.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pipeline.audits.fliptest.transparency import NOISE, STANDS_OUT, Standing
from pipeline.messages import enumerated
from pipeline.report import words as w
from pipeline.report.fliptest.trials import MEAN, RANKS, SIGN, Line, Place
from pipeline.report.numbers import DASH, number, spread
from pipeline.report.stamp import Picture
from pipeline.report.style import FAINT, INK, bin_edges, new_figure, panel_letter
from pipeline.transport.quality import WORST_HEALTHY_KS
from pipeline.types import Array

AXES = {MEAN: "mean of $x - G(x)$, standard deviations", SIGN: "mean of sign$(x - G(x))$"}
MIXED = "mean of $x - G(x)$, standard deviations or shares"
CATEGORIES = "Numbers are in standard deviations, 0/1 columns as they are: a difference of shares."
STRONG = 0.8
BINS = 32
TAIL = 0.002
"""Share of the group beyond either end of the axis: a few far values would leave the others a corner of it."""
REACH = 1.6
"""Intervals are drawn up to so many times the longest bar or the furthest trial; an arrow says that they go on."""
SAID: Mapping[Standing, str] = {STANDS_OUT: STANDS_OUT, NOISE: f"{NOISE}: interval covers 0"}
ACROSS = 4
MARGINAL_HEIGHT, SINGLE_HEIGHT, LINE_HEIGHT, REPORT_HEIGHT, LEGEND_LINE = 1.5, 1.9, 0.17, 0.75, 0.17
"""Inches: a row of histograms, of several and alone; one line of a report, what is around them; a legend's line."""
OF_BARS = (
    "Bars are means over the trials. Noise: the interval covers 0, or the members are too few for one. A shift that "
    "stands out may be the whole group's."
)


def look(standing: Standing, color: str) -> dict[str, Any]:
    """How a bar is filled: noise is hatched and empty, what stands out full."""
    if standing == NOISE:
        return {"facecolor": "white", "edgecolor": color, "hatch": "/////", "alpha": 0.45}
    return {"facecolor": (color, STRONG)}


def draw(axes: Axes, lines: Sequence[Line], ranking: str, color: str, dataset: str) -> None:
    """Horizontal bars with intervals; dots are the single trials, where there are several. Names of noise are grey."""
    if not lines:
        axes.text(0.5, 0.5, "no members", ha="center", va="center", transform=axes.transAxes, color=FAINT)
        axes.set_axis_off()
        return
    # Intervals of few trials are so long that no bar could be seen beside them.
    drawn = np.concatenate([line.trials for line in lines] + [[line.value for line in lines]])
    reach = 1.0 if ranking == SIGN else REACH * float(np.nanmax(np.abs(drawn)))
    for place, line in enumerate(lines):
        axes.barh(place, line.value, height=0.62, linewidth=0.6, zorder=1, **look(line.standing, color))
        _interval(axes, line, place, reach)
        single = line.trials[np.isfinite(line.trials)] if len(line.trials) > 1 else line.trials[:0]
        axes.plot(
            single, np.full(len(single), float(place)), linestyle="none", marker="o", markersize=2.4, zorder=4,
            markerfacecolor="white", markeredgecolor=INK, markeredgewidth=0.5,
        )  # fmt: skip
    axes.axvline(0, color=INK, linewidth=0.6, zorder=2)
    axes.set_yticks(range(len(lines)), [w.feature_label(line.feature, dataset) for line in lines])
    for label, line in zip(axes.get_yticklabels(), lines, strict=True):
        noise = line.standing == NOISE
        label.set(color=FAINT if noise else INK, fontstyle="italic" if noise else "normal")
    axes.set_ylim(len(lines) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    if ranking == SIGN:
        axes.set_xlim(-1.08, 1.08)
        axes.set_xticks([-1, -0.5, 0, 0.5, 1])
    axes.set_xlabel(AXES[ranking])


def _interval(axes: Axes, line: Line, place: int, reach: float) -> None:
    """The interval as a line, with an arrow where it goes on beyond the reach."""
    if not np.isfinite([line.low, line.high]).all():
        return
    low, high = np.clip([line.low, line.high], -reach, reach)
    axes.plot([low, high], [place, place], color=INK, linewidth=1.1, solid_capstyle="butt", zorder=3)
    for end, whole, marker in ((low, line.low, "<"), (high, line.high, ">")):
        if end != whole:
            axes.plot(end, place, marker=marker, markersize=3, color=INK, zorder=3)


def handles(lines: Iterable[Line]) -> list[Line2D | Patch]:
    """The legend of what is not a colour: intervals, single trials, and the looks of the lines that are drawn."""
    every = list(lines)
    several = any(len(line.trials) > 1 for line in every)
    over = "interval over maps and people" if several else "interval over people"
    found: list[Line2D | Patch] = [Line2D([], [], color=INK, linewidth=1.1, label=over)]
    if several:
        dots: Any = {"markerfacecolor": "white", "markeredgecolor": INK, "markeredgewidth": 0.5}
        found.append(Line2D([], [], linestyle="none", marker="o", markersize=2.4, label="single trials", **dots))
    there = {line.standing for line in every}
    found += [Patch(linewidth=0.6, label=text, **look(word, FAINT)) for word, text in SAID.items() if word in there]
    return found


@dataclass(frozen=True)
class Group:
    """People whose histogram is drawn: the whole group where ``flipset`` is empty. ``values`` (n, d)."""

    label: str
    values: Array
    color: str
    flipset: str = ""
    line: Any = "-"


def draw_marginal(axes: Axes, groups: Sequence[Group], column: int, own_axis: bool) -> Axes | None:
    """One feature of the whole group (filled) and of its flipsets (lines), counted in the same bins.

    With ``own_axis`` flipsets are counted on an axis at the right, where they are too small a part of the group to be
    seen beside it; the axis is returned. What lies beyond the ends is left out.
    """
    values = [group.values[:, column] for group in groups]
    low, high = limits(values)
    kept = [v[(v >= low) & (v <= high)] for v in values]
    edges = bin_edges(np.concatenate(kept), BINS)
    right = axes.twinx() if own_axis else None
    for group, inside in zip(groups, kept, strict=True):
        there = right if right is not None and group.flipset else axes
        heights = np.histogram(inside, edges)[0]
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


def marginal_handles(groups: Sequence[Group]) -> list[Patch]:
    """The legend: each group by its colour, with its size."""
    return [
        Patch(
            facecolor=group.color, alpha=0.9 if group.flipset else 0.55, label=f"{group.label} ({len(group.values):,})"
        )
        for group in groups
    ]


def drawn(
    place: Place, flipsets: Sequence[str], title: str, features: Sequence[str] = (), notes: Sequence[str] = (),
    reports: bool = True, own_axis: bool = False,
) -> Picture:  # fmt: skip
    """Marginals of the features (of all where none are named) in the group and in its flipsets, then their transparency
    reports where these are asked for. With ``own_axis`` flipsets are counted on an axis of their own.
    """
    first = place.first
    source, groups = place.names[0], [Group(f"all {place.groups[0]}", first.features, w.FLIPSET_COLORS[""])]
    for flipset in flipsets:
        label = f"{w.FLIPSETS_DRAWN[flipset]}: {w.flipset_label(place.dataset, flipset, source)}"
        groups.append(Group(label, first.features[first.members(flipset)], w.FLIPSET_COLORS[flipset], flipset))
    # A constant feature has no histogram worth drawing.
    names = features or [n for n, x in zip(first.names, first.features.T, strict=True) if np.ptp(x) > 0]
    down = -(-len(names) // ACROSS)
    heights = [(MARGINAL_HEIGHT * down if down > 1 else SINGLE_HEIGHT) + LEGEND_LINE * len(groups) + 0.15]
    listed = [
        (flipset, ranking, place.report(flipset, ranking))
        for flipset in (flipsets if reports else ())
        for ranking in RANKS
    ]
    if listed:
        longest = max(len(found) for _, _, found in listed)
        heights += [(LINE_HEIGHT * max(longest, 2) + REPORT_HEIGHT) * len(flipsets) + LEGEND_LINE]
    figure = new_figure(sum(heights))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _marginals(parts[0], place, groups, names, own_axis)
    if listed:
        _reports(parts[1], place, listed)
    return Picture(
        figure,
        title,
        place.inputs.stamp(place.block, place.dataset, [place.transport]),
        "Histograms of each feature, of the whole group and of its flipsets"
        + (", and bars of their mean shifts and mean signs." if listed else "."),
        notes=(*notes, *shown(place, flipsets, reports)),
    )


def shown(place: Place, flipsets: Sequence[str], reports: bool = False) -> tuple[str, ...]:
    """The notes that say whose numbers are drawn, how they vary over the trials, and whether the map is sound."""
    counted = place.estimate("n_source")
    several = counted.n > 1
    sizes = enumerated(_size(place, flipset) for flipset in flipsets)
    restricted = f", {w.GIVEN[place.given]} only" if w.GIVEN[place.given] else ""
    first = f"Histograms: the first of {counted.n} trials. " if several else ""
    note = (
        f"{first}{number(counted.value, 0)} {place.groups[0]}{restricted}; map: {place.style.label}. "
        f"{'Mean sizes over the trials' if several else 'Sizes'}: {sizes}."
    )
    return (note, *((OF_BARS,) if reports else ()), *health([place]))


def sound(place: Place) -> str:
    """``9 of 10`` maps reach the other group; a dash for causal counterfactuals, which are not meant to."""
    found = place.healthy
    return DASH if place.transport == w.COUNTERFACTUAL else f"{int(found.sum())} of {len(found)}"


def health(places: Sequence[Place]) -> tuple[str, ...]:
    """What is to be said of maps that miss the group that they map to; nothing where none does.

    Causal counterfactuals are not asked: they are not meant to reach the other group.
    """
    missed = []
    for place in places:
        reached = place.healthy
        if place.transport != w.COUNTERFACTUAL and not reached.all():
            first = ", the first among them" if not reached.iloc[0] else ""
            missed.append(f"{place.style.label} {int((~reached).sum())} of {len(reached)}{first}")
    if not missed:
        return ()
    return (
        f"Maps that miss the other group, by the rule of Table 1 (KS above {WORST_HEALTHY_KS:g} in some feature): "
        f"{'; '.join(dict.fromkeys(missed))}.",
    )


def _size(place: Place, flipset: str) -> str:
    found, out_of = place.estimate("size", flipset), place.estimate("of", flipset)
    decided = w.DECISIONS.get(place.dataset, ("decided for", "decided against"))[flipset == w.NEGATIVE]
    return f"{w.FLIPSETS[flipset]} {spread(found, 0)} out of {number(out_of.value, 0)} {decided}"


def _marginals(
    figure: SubFigure | Figure, place: Place, groups: Sequence[Group], names: Sequence[str], own_axis: bool
) -> None:
    across = min(ACROSS, len(names))
    grid = figure.subplots(-(-len(names) // across), across, squeeze=False)
    for k, (name, axes) in enumerate(zip(names, grid.flat, strict=False)):
        right = draw_marginal(axes, groups, place.first.column(name), own_axis)
        axes.set_title(w.feature_label(name, place.dataset), fontsize=8.5)
        ends_row = (k + 1) % across == 0 or k == len(names) - 1
        if right is not None and ends_row:
            right.set_ylabel("people in the flipset")
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("people")
    figure.supxlabel("standard deviations from the mean", fontsize=8.5)
    # Several names of flipsets do not fit on a line.
    figure.legend(handles=marginal_handles(groups), loc="outside upper center", ncols=1 if len(groups) > 2 else 2)


def _reports(figure: SubFigure | Figure, place: Place, reports: Sequence[tuple[str, str, list[Line]]]) -> None:
    grid = figure.subplots(len(reports) // 2, 2, squeeze=False)
    for (flipset, ranking, found), axes in zip(reports, grid.flat, strict=True):
        draw(axes, found, ranking, w.FLIPSET_COLORS[flipset], place.dataset)
        axes.set_title(f"{w.FLIPSETS_DRAWN[flipset]}, by {w.plainly(ranking)}")
    for letter, axes in zip("abcdefgh", grid.flat, strict=False):
        if len(reports) > 2:
            panel_letter(axes, letter)
    every = [line for _, _, found in reports for line in found]
    figure.legend(handles=handles(every), loc="outside lower center", ncols=3)
