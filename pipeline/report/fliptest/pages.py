"""What the figures of flipsets are composed of: marginals of chosen features, and transparency reports below them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure, SubFigure

from pipeline.messages import enumerated
from pipeline.report import words as w
from pipeline.report.fliptest import bars, lines
from pipeline.report.fliptest.bars import Group
from pipeline.report.fliptest.trials import FirstTrial, Place
from pipeline.report.numbers import DASH, number, spread
from pipeline.report.stamp import Picture
from pipeline.report.style import new_figure, panel_letter
from pipeline.transport.quality import WORST_HEALTHY_KS

ACROSS = 4
MARGINAL_HEIGHT, SINGLE_HEIGHT, LINE_HEIGHT, REPORT_HEIGHT, LEGEND_LINE = 1.5, 1.9, 0.17, 0.75, 0.17
"""Inches: a row of histograms, of several and alone; one line of a report, what is around them; a legend's line."""
NOISE = (
    "Bars are means over the trials. Noise: the interval covers 0, or the members are too few for one; it is over maps "
    "and people together, over people alone where there is one trial. As the whole group: the shift is there, but a "
    "random part of the group, as large as the flipset, is as far from the group's mean more often than the level "
    "allows (adjusted by Holm's method for the lines of a report): it is not shown to be other than everybody's, and "
    "does not tell who flips."
)


@dataclass(frozen=True)
class Page:
    """One figure: where its numbers lie, what of the group is shown, and whether flipsets have an axis of their own."""

    place: Place
    flipsets: tuple[str, ...]
    features: tuple[str, ...] = ()
    reports: bool = True
    own_axis: bool = False


def drawn(page: Page, title: str, notes: Sequence[str] = ()) -> Picture:
    """The page as a picture: marginals of its features (all where none are named), then its transparency reports."""
    place, first = page.place, page.place.first
    groups = [
        Group(
            bars.label_of(flipset, place.dataset, place.names[0]), first.features[first.members(flipset)],
            w.FLIPSET_COLORS[flipset], flipset,
        )
        for flipset in ("", *page.flipsets)
    ]  # fmt: skip
    # A constant feature has no histogram worth drawing.
    names = page.features or tuple(n for n, x in zip(first.names, first.features.T, strict=True) if np.ptp(x) > 0)
    across = min(ACROSS, len(names))
    down = -(-len(names) // across)
    heights = [(MARGINAL_HEIGHT * down if down > 1 else SINGLE_HEIGHT) + LEGEND_LINE * len(groups) + 0.15]
    reports = [
        (flipset, ranking, lines.report(place, flipset, ranking))
        for flipset in (page.flipsets if page.reports else ())
        for ranking in lines.RANKS
    ]
    if reports:
        longest = max(len(found) for _, _, found in reports)
        heights += [(LINE_HEIGHT * max(longest, 2) + REPORT_HEIGHT) * len(page.flipsets) + LEGEND_LINE]
    figure = new_figure(sum(heights))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _marginals(parts[0], page, groups, names, (down, across))
    if reports:
        _reports(parts[1], page, reports)
    return Picture(
        figure,
        title,
        place.inputs.stamp(place.block, place.dataset, [place.transport]),
        told(first, groups, names, place.dataset) + "".join(_told_of(*report) for report in reports),
        notes=(*notes, *shown(place, page.flipsets, page.reports)),
    )


def told(first: FirstTrial, groups: Sequence[Group], names: Sequence[str], dataset: str) -> str:
    """What histograms show, for those who cannot see them: the mean of each feature in each group."""
    parts = []
    for name in names:
        means = [
            f"{w.FLIPSETS.get(group.flipset, 'all')} {number(float(group.values[:, first.column(name)].mean()), 2)}"
            for group in groups
            if len(group.values)
        ]
        parts.append(f"{w.feature_label(name, dataset)}: {', '.join(means)}")
    return f"Histograms. Means of {'; '.join(parts)}."


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
    return (note, *((NOISE,) if reports else ()), *health([place]))


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


def _told_of(flipset: str, ranking: str, found: Sequence[lines.Line]) -> str:
    told = f", the largest: {found[0].feature} {number(found[0].value, 2)}" if found else ": no members"
    return f" Bars of {w.FLIPSETS[flipset]} by {w.plainly(ranking)}{told}."


def _size(place: Place, flipset: str) -> str:
    found, out_of = place.estimate("size", flipset), place.estimate("of", flipset)
    decided = w.DECISIONS.get(place.dataset, ("decided for", "decided against"))[flipset == w.NEGATIVE]
    return f"{w.FLIPSETS[flipset]} {spread(found, 0)} out of {number(out_of.value, 0)} {decided}"


def _marginals(
    figure: SubFigure | Figure, page: Page, groups: list[Group], names: Sequence[str], shape: tuple[int, int]
) -> None:
    grid = figure.subplots(*shape, squeeze=False)
    right = []
    for name, axes in zip(names, grid.flat, strict=False):
        right.append(bars.draw_marginal(axes, groups, page.place.first.column(name), page.own_axis))
        axes.set_title(w.feature_label(name, page.place.dataset), fontsize=8.5)
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel("people")
    for end in range(shape[1] - 1, len(names) + shape[1] - 1, shape[1]):
        last = right[min(end, len(names) - 1)]
        if last is not None:
            last.set_ylabel("people in the flipset")
    figure.supxlabel("standard deviations from the mean", fontsize=8.5)
    # Several names of flipsets do not fit on a line.
    figure.legend(handles=bars.marginal_handles(groups), loc="outside upper center", ncols=1 if len(groups) > 2 else 2)


def _reports(figure: SubFigure | Figure, page: Page, reports: Sequence[tuple[str, str, list[lines.Line]]]) -> None:
    grid = figure.subplots(len(page.flipsets), 2, squeeze=False)
    for (flipset, ranking, found), axes in zip(reports, grid.flat, strict=True):
        bars.draw(axes, found, ranking, w.FLIPSET_COLORS[flipset], page.place.dataset)
        axes.set_title(f"{w.FLIPSETS_DRAWN[flipset]}, by {w.plainly(ranking)}")
    for letter, axes in zip("abcdefgh", grid.flat, strict=False):
        if len(reports) > 2:
            panel_letter(axes, letter)
    every = [line for _, _, found in reports for line in found]
    figure.legend(handles=bars.handles(every), loc="outside lower center", ncols=3)
