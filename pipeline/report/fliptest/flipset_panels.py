"""Figures of flipsets: histograms of features in a group and its flipsets, above transparency reports."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.figure import Figure, SubFigure

from fairness_audits.audits.fliptest import bars
from fairness_audits.audits.fliptest.bars import Group, Line
from fairness_audits.messages import enumerated
from fairness_audits.results.formats import DASH, number, spread
from fairness_audits.results.style import new_figure, panel_letter
from fairness_audits.transport.quality import WORST_HEALTHY_KS
from pipeline.report import labels as w
from pipeline.report.fliptest.trials import AuditedMap
from pipeline.report.stamp import Picture

MIXED = "mean of $x - G(x)$, standard deviations or shares"
CATEGORIES = "Numeric features are in standard deviations. 0/1 features are differences of shares."
ACROSS = 4
MARGINAL_HEIGHT, SINGLE_HEIGHT, LINE_HEIGHT, REPORT_HEIGHT, LEGEND_LINE = 1.5, 1.9, 0.17, 0.75, 0.17
"""Heights in inches: a row of several histograms, a single row, a line of a report, the space around a report, and a
line of a legend."""
OF_BARS = (
    "Bars are means over the trials. Noise: the interval covers 0, or there are too few members for an interval. A "
    "shift that stands out may be a shift of the whole group."
)


def drawn(
    place: AuditedMap, flipsets: Sequence[str], title: str, features: Sequence[str] = (), notes: Sequence[str] = (),
    reports: bool = True, shares: bool = False,
) -> Picture:  # fmt: skip
    """Draw the marginals of the features (all by default) in the group and in its flipsets, then the transparency
    reports if ``reports``. With ``shares``, bars are percentages of each group, for small flipsets.
    """
    first = place.first
    source, groups = place.names[0], [Group(f"all {place.groups[0]}", first.features, bars.FLIPSET_COLORS[""])]
    for flipset in flipsets:
        label = f"{w.FLIPSETS_DRAWN[flipset]}: {w.flipset_label(place.dataset, flipset, source)}"
        groups.append(Group(label, first.features[first.members(flipset)], bars.FLIPSET_COLORS[flipset], flipset))
    # Skip constant features.
    names = features or [n for n, x in zip(first.names, first.features.T, strict=True) if np.ptp(x) > 0]
    down = -(-len(names) // ACROSS)
    heights = [(MARGINAL_HEIGHT * down if down > 1 else SINGLE_HEIGHT) + LEGEND_LINE * len(groups) + 0.15]
    listed = [
        (flipset, ranking, place.report(flipset, ranking))
        for flipset in (flipsets if reports else ())
        for ranking in bars.RANKS
    ]
    if listed:
        longest = max(len(found) for _, _, found in listed)
        heights += [(LINE_HEIGHT * max(longest, 2) + REPORT_HEIGHT) * len(flipsets) + LEGEND_LINE]
    figure = new_figure(sum(heights))
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    _marginals(parts[0], place, groups, names, shares)
    if listed:
        _reports(parts[1], place, listed)
    return Picture(
        figure,
        title,
        place.inputs.stamp(place.block, place.dataset, [place.transport]),
        "Histograms of each feature for the whole group and its flipsets"
        + (", and bars of mean shifts and mean signs." if listed else "."),
        notes=(*notes, *shown(place, flipsets, reports)),
    )


def shown(place: AuditedMap, flipsets: Sequence[str], reports: bool = False) -> tuple[str, ...]:
    """Return the notes on the people drawn, the sizes over the trials, and the health of the map."""
    counted = place.estimate("n_source")
    several = counted.n > 1
    sizes = enumerated(_size(place, flipset) for flipset in flipsets)
    restricted = f", {w.CONDITIONS[place.given]} only" if w.CONDITIONS[place.given] else ""
    first = f"Histograms: first of {counted.n} trials. " if several else ""
    note = (
        f"{first}{number(counted.value, 0)} {place.groups[0]}{restricted}; map: {place.style.label}. "
        f"{'Mean sizes over the trials' if several else 'Sizes'}: {sizes}."
    )
    return (note, *((OF_BARS,) if reports else ()), *health([place]))


LEFT_OUT = (
    "Valid maps: maps that reach their target, by the rule of Table 1. If at least half of the maps are valid, the "
    "means leave the others out."
)


def sound(place: AuditedMap) -> str:
    """Return how many maps reach the target group, ``9 of 10``; a dash for causal counterfactuals, which need not."""
    found = place.healthy
    return DASH if place.transport == w.COUNTERFACTUAL else f"{int(found.sum())} of {len(found)}"


def health(places: Sequence[AuditedMap]) -> tuple[str, ...]:
    """Return a note on maps that miss the target group and on whether they count, or no note if all reach it.

    Causal counterfactuals are not checked, because they are not meant to reach the other group.
    """
    missed = []
    for place in places:
        reached = place.healthy
        if place.transport != w.COUNTERFACTUAL and not reached.all():
            first = ", including the first" if not reached.iloc[0] else ""
            left_out = "" if place.included.all() else ", left out"
            missed.append(f"{place.style.label} {int((~reached).sum())} of {len(reached)}{first}{left_out}")
    if not missed:
        return ()
    return (
        f"Maps that are not valid (a feature has a KS distance above {WORST_HEALTHY_KS:g}, see Table 1): "
        f"{'; '.join(dict.fromkeys(missed))}.",
    )


def _size(place: AuditedMap, flipset: str) -> str:
    found, out_of = place.estimate("size", flipset), place.estimate("of", flipset)
    decided = w.DECISIONS.get(place.dataset, ("decided for", "decided against"))[flipset == w.NEGATIVE]
    return f"{w.FLIPSETS[flipset]} {spread(found, 0)} out of {number(out_of.value, 0)} {decided}"


def _marginals(
    figure: SubFigure | Figure, place: AuditedMap, groups: Sequence[Group], names: Sequence[str], shares: bool
) -> None:
    across = min(ACROSS, len(names))
    grid = figure.subplots(-(-len(names) // across), across, squeeze=False)
    for name, axes in zip(names, grid.flat, strict=False):
        bars.draw_marginal(axes, groups, place.first.column(name), shares)
        axes.set_title(w.feature_label(name, place.dataset), fontsize=8.5)
    for axes in grid.flat[len(names) :]:
        axes.set_axis_off()
    for axes in grid[:, 0]:
        axes.set_ylabel(bars.SHARES if shares else bars.PEOPLE)
    figure.supxlabel("standard deviations from the mean", fontsize=8.5)
    # The names of several flipsets do not fit on one line.
    figure.legend(handles=bars.marginal_handles(groups), loc="outside upper center", ncols=1 if len(groups) > 2 else 2)


def _reports(figure: SubFigure | Figure, place: AuditedMap, reports: Sequence[tuple[str, str, list[Line]]]) -> None:
    grid = figure.subplots(len(reports) // 2, 2, squeeze=False)
    for (flipset, ranking, found), axes in zip(reports, grid.flat, strict=True):
        bars.draw(axes, found, ranking, bars.FLIPSET_COLORS[flipset], partial(w.feature_label, dataset=place.dataset))
        axes.set_title(f"{w.FLIPSETS_DRAWN[flipset]}, by {w.plainly(ranking)}")
    for letter, axes in zip("abcdefgh", grid.flat, strict=False):
        if len(reports) > 2:
            panel_letter(axes, letter)
    every = [line for _, _, found in reports for line in found]
    figure.legend(handles=bars.handles(every), loc="outside lower center", ncols=4)
