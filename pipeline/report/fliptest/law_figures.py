"""Figures of the law-school data: 6, 7 and 12 of Black et al. (2020), causal counterfactuals beside transport."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import bars, lines, marginals, pages, trials
from pipeline.report.fliptest.marginals import Group
from pipeline.report.fliptest.trials import Place
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import plain
from pipeline.report.picture import Picture
from pipeline.report.style import INK, finish, new_figure

CLASSIFIER, REGRESSION = "logistic", "linear_regression"
PUBLISHED_MAPS = (w.COUNTERFACTUAL, w.WGAN)
PREDICTION_BINS = 40
SHOWN = ("GPA", "LSAT")
LINE_HEIGHT, AROUND = 0.19, 0.85


def places(inputs: Inputs, method: str) -> list[Place]:
    """The maps with which a model of the law-school data was audited."""
    return trials.places(inputs, dataset=w.LAW, method=method)


@registry.figure()
def figure_6(inputs: Inputs) -> Picture:
    """Predicted first-year averages of black applicants and of their counterparts, made by the causal model of Kusner
    et al. and by transport. Equal distributions before and after would be counterfactual fairness.
    """
    found = _published(places(inputs, REGRESSION))
    figure = new_figure(2.5)
    panels = figure.subplots(1, len(found), sharex=True, sharey=True)
    every = [trials.first_trial(inputs, place) for place in found]
    pooled = np.concatenate([np.concatenate([first.score, first.score_image]) for first in every])
    low, high = np.quantile(pooled, [0.001, 0.999])
    edges = np.linspace(low, high, PREDICTION_BINS + 1)
    for place, first, axes in zip(found, every, panels, strict=True):
        source, target = _group_names(inputs, place)
        for label, values, color in (
            (f"{source}", first.score, w.FLIPSET_COLORS[""]),
            ("their counterparts", first.score_image, w.map_style(place.transport).color),
        ):
            axes.hist(values, bins=edges, color=color, alpha=0.55, linewidth=0, label=f"{label} ({len(values):,})")
        heights, _ = np.histogram(first.target_score, bins=edges)
        scale = len(first.score) / len(first.target_score)
        axes.stairs(heights * scale, edges, color=INK, linewidth=0.9, label=f"{target}, scaled to as many")
        axes.set_title(w.map_style(place.transport).label)
        axes.legend(loc="upper left", handlelength=1.3)
    finish(figure, panels, "predicted first-year average", "people")
    panels[0].set_ylim(top=panels[0].get_ylim()[1] * 1.35)
    return Picture.stamped(
        figure,
        "Predictions of the regression before and after the race of black applicants is changed.",
        trials.stamp(inputs, [found[0].block], w.LAW, [place.transport for place in found]),
        "Two pairs of histograms: predictions for black applicants and for their counterparts, by each of the two "
        "maps.",
        notes=tuple(_moved(inputs, place) for place in found),
    )


@registry.figure()
def figure_7(inputs: Inputs) -> Picture:
    """Black applicants who are predicted below the median and whose counterparts are predicted above it, by both ways
    of making counterparts.
    """
    found = _published(places(inputs, CLASSIFIER))
    every = [trials.first_trial(inputs, place) for place in found]
    source, _ = _group_names(inputs, found[0])
    groups = [Group(f"all {source}", every[0].features, w.FLIPSET_COLORS[""])]
    shown = [note for place in found for note in pages.shown(inputs, place, w.FORWARD, (w.NEGATIVE,))]
    for place, first in zip(found, every, strict=True):
        style = w.map_style(place.transport)
        members = first.features[first.members(w.NEGATIVE)]
        groups.append(
            Group(f"{w.FLIPSETS_DRAWN[w.NEGATIVE]} by {style.label}", members, style.color, w.NEGATIVE, style.line)
        )
    figure = new_figure(2.4)
    panels = figure.subplots(1, len(SHOWN))
    for label, axes in zip(SHOWN, panels, strict=True):
        name = w.feature_named(label, every[0].names, w.LAW)
        marginals.draw(axes, groups, every[0].column(name), own_axis=False)
        axes.set_xlabel(label)
    finish(figure, panels, y="people")
    figure.legend(handles=marginals.handles(groups), loc="outside upper center", ncols=3)
    return Picture.stamped(
        figure,
        "Who is in the negative flipset of the law-school classifier.",
        trials.stamp(inputs, [found[0].block], w.LAW, [place.transport for place in found]),
        pages.told(every[0], groups, [w.feature_named(label, every[0].names, w.LAW) for label in SHOWN], w.LAW),
        notes=(empty(inputs, found[0]), *shown),
    )


@registry.figure()
def figure_12(inputs: Inputs) -> Picture:
    """How the members of the negative flipset differ from their counterparts, under the causal model and under
    transport. Hatched bars are noise, pale ones shift as the whole group, full ones stand out.
    """
    found = places(inputs, CLASSIFIER)
    _published(found)
    reports = [[lines.report(inputs, place, w.NEGATIVE, ranking) for ranking in lines.RANKS] for place in found]
    longest = max(len(report) for pair in reports for report in pair)
    figure = new_figure((LINE_HEIGHT * longest + AROUND) * len(found))
    grid = figure.subplots(len(found), 2, squeeze=False, sharex="col")
    for r, (place, pair) in enumerate(zip(found, reports, strict=True)):
        style = w.map_style(place.transport)
        for axes, ranking, report in zip(grid[r], lines.RANKS, pair, strict=True):
            bars.draw(axes, report, ranking, style.color, w.LAW)
            axes.set_title(f"{style.label}, by {w.plainly(ranking)}")
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    grid[-1, 0].set_xlabel(bars.MIXED)
    every = [line for pair in reports for report in pair for line in report]
    figure.legend(handles=bars.handles(every), loc="outside upper center", ncols=3)
    return Picture.stamped(
        figure,
        "Transparency reports of the negative flipsets of the law-school classifier.",
        trials.stamp(inputs, [found[0].block], w.LAW, [place.transport for place in found]),
        "Bars of mean shifts and mean signs of LSAT, GPA and gender in the negative flipset, one row for each map.",
        notes=(
            "Race is left out: by definition of the maps it changes for everyone.",
            bars.CATEGORIES,
            pages.NOISE,
            *pages.health(inputs, found),
        ),
    )


def empty(inputs: Inputs, place: Place) -> str:
    """Why the positive flipset is no finding: how few people could be in it."""
    counts = trials.counts(inputs, place)
    source, _ = _group_names(inputs, place)
    return (
        f"The model predicts {plain(round(counts.estimate('positives_source').value, 1))} of "
        f"{plain(counts.estimate('n_source').value)} {source} above the median (means over the trials). Nobody "
        "else can be in the positive flipset, so that it is empty says nothing about the map."
    )


def _published(found: Sequence[Place]) -> list[Place]:
    """Those of the paper's maps. Raises ValueError where one of these was not audited."""
    if absent := [name for name in PUBLISHED_MAPS if name not in {place.transport for place in found}]:
        raise ValueError(f"the law-school figures need the maps {', '.join(PUBLISHED_MAPS)}: {absent} was not audited")
    return [place for place in found if place.transport in PUBLISHED_MAPS]


def _group_names(inputs: Inputs, place: Place) -> tuple[str, str]:
    source, target = trials.groups(inputs, place)
    return w.group_label(source, w.LAW), w.group_label(target, w.LAW)


def _moved(inputs: Inputs, place: Place) -> str:
    first = trials.first_trial(inputs, place)
    before, after, target = (float(np.nanmean(v)) for v in (first.score, first.score_image, first.target_score))
    label = w.map_style(place.transport).label
    return (
        f"{label[0].upper()}{label[1:]}: mean prediction {before:.2f} before and {after:.2f} after; "
        f"{_group_names(inputs, place)[1]} have {target:.2f}."
    )
