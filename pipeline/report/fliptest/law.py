"""Law school data: Figures 6, 7 and 12 of Black et al. (2020), with causal counterfactuals beside transport maps."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from fairness_audits.audits.fliptest import bars
from fairness_audits.audits.fliptest.bars import Group
from fairness_audits.results.formats import number, parameter
from fairness_audits.results.style import INK, finish, new_panels
from pipeline.report import labels as w
from pipeline.report.fliptest import flipset_panels, trials
from pipeline.report.fliptest.trials import AuditedMap
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.stamp import Picture, Stamp

CLASSIFIER, REGRESSION = "logistic", "linear_regression"
PUBLISHED_MAPS = (w.COUNTERFACTUAL, w.WGAN)
PREDICTION_BINS = 40
SHOWN = ("GPA", "LSAT")
LINE_HEIGHT, AROUND = 0.19, 0.85


def places(inputs: Inputs, method: str) -> list[AuditedMap]:
    """Return the audited maps of a model of the law school data."""
    return trials.places(inputs, dataset=w.LAW, method=method)


@artefact(
    "Predicted first-year averages of black applicants and of their counterparts by the causal model of Kusner et al. "
    "and by transport. Under counterfactual fairness, both distributions would be equal.",
)
def figure_6(inputs: Inputs) -> Picture:
    found = _published(places(inputs, REGRESSION))
    figure, (panels,) = new_panels(2.5, 1, len(found), sharex=True, sharey=True)
    pooled = np.concatenate([scores for place in found for scores in (place.first.score, place.first.score_image)])
    low, high = np.quantile(pooled, [0.001, 0.999])
    edges = np.linspace(low, high, PREDICTION_BINS + 1)
    for place, axes in zip(found, panels, strict=True):
        first, (source, target) = place.first, place.groups
        for label, values, color in (
            (source, first.score, bars.FLIPSET_COLORS[""]),
            ("their counterparts", first.score_image, place.style.color),
        ):
            axes.hist(values, bins=edges, color=color, alpha=0.55, linewidth=0, label=f"{label} ({len(values):,})")
        heights, _ = np.histogram(first.target_score, bins=edges)
        scale = len(first.score) / len(first.target_score)
        axes.stairs(heights * scale, edges, color=INK, linewidth=0.9, label=f"{target}, rescaled")
        axes.legend(loc="upper left", handlelength=1.3)
    titles = [place.style.label for place in found]
    finish(figure, panels, "predicted first-year average", "people", titles=titles)
    panels[0].set_ylim(top=panels[0].get_ylim()[1] * 1.35)
    return Picture(
        figure,
        "Predictions for black applicants before and after a change of race.",
        _stamp(found),
        "For each map, histograms of the predictions for black applicants and for their counterparts.",
        notes=(*map(_moved, found), *flipset_panels.health(found)),
    )


@artefact(
    "Black applicants with a prediction below the median whose counterparts have a prediction above it, for both kinds "
    "of counterparts.",
)
def figure_7(inputs: Inputs) -> Picture:
    found = _published(places(inputs, CLASSIFIER))
    whole = found[0].first
    groups = [Group(f"all {found[0].groups[0]}", whole.features, bars.FLIPSET_COLORS[""])]
    for place in found:
        style, members = place.style, place.first.features[place.first.members(w.NEGATIVE)]
        label = f"{w.FLIPSETS_DRAWN[w.NEGATIVE]} by {style.label}"
        groups.append(Group(label, members, style.color, w.NEGATIVE, style.line))
    figure, (panels,) = new_panels(2.4, 1, len(SHOWN))
    features = [w.feature_named(label, whole.names, w.LAW) for label in SHOWN]
    for label, feature, axes in zip(SHOWN, features, panels, strict=True):
        bars.draw_marginal(axes, groups, whole.column(feature), shares=False)
        axes.set_xlabel(label)
    finish(figure, panels, y="people", columns=3, handles=bars.marginal_handles(groups))
    return Picture(
        figure,
        "Members of the negative flipset of the law-school classifier.",
        _stamp(found),
        "Histograms of GPA and LSAT for all black applicants and for the members of each map's flipset.",
        notes=(empty(found[0]), *(note for place in found for note in flipset_panels.shown(place, (w.NEGATIVE,)))),
    )


@artefact(
    "How members of the negative flipset differ from their counterparts, by the causal model and by transport. Hatched "
    "bars are noise. Filled bars stand out.",
)
def figure_12(inputs: Inputs) -> Picture:
    found = places(inputs, CLASSIFIER)
    _published(found)
    panels = [(place, ranking, place.report(w.NEGATIVE, ranking)) for place in found for ranking in bars.RANKS]
    reports = [report for *_, report in panels]
    height = (LINE_HEIGHT * max(map(len, reports)) + AROUND) * len(found)
    figure, grid = new_panels(height, len(found), 2, sharex="col")
    for (place, ranking, report), axes in zip(panels, grid.flat, strict=True):
        bars.draw(axes, report, ranking, place.style.color, partial(w.feature_label, dataset=w.LAW))
        axes.set_title(f"{place.style.label}, by {w.plainly(ranking)}")
    for axes in grid[:-1].flat:
        axes.set_xlabel("")
    grid[-1, 0].set_xlabel(flipset_panels.MIXED)
    handles = bars.handles(line for report in reports for line in report)
    figure.legend(handles=handles, loc="outside upper center", ncols=4)
    return Picture(
        figure,
        "Transparency reports of the negative flipset of the law-school classifier.",
        _stamp(found),
        "Bars of mean shifts and mean signs of LSAT, GPA and gender in the negative flipset, one row for each map.",
        notes=(
            "Race is left out, because the maps change it for everyone.",
            flipset_panels.CATEGORIES,
            flipset_panels.OF_BARS,
            *flipset_panels.health(found),
        ),
    )


def empty(place: AuditedMap) -> str:
    """Return the note on why an empty positive flipset is no finding: few people could be in it."""
    return (
        f"The model predicts {parameter(round(place.estimate('positives_source').value, 1))} of "
        f"{parameter(place.people)} {place.groups[0]} above the median (mean over the trials). Only these people "
        "can be in the positive flipset, so an empty one says nothing about the map."
    )


def _stamp(found: Sequence[AuditedMap]) -> Stamp:
    return found[0].inputs.stamp(found[0].block, w.LAW, [place.transport for place in found])


def _published(found: Sequence[AuditedMap]) -> list[AuditedMap]:
    """Select the paper's maps. Raises ValueError if one of them was not audited."""
    if absent := [name for name in PUBLISHED_MAPS if name not in {place.transport for place in found}]:
        raise ValueError(f"the law-school figures need the maps {', '.join(PUBLISHED_MAPS)}: {absent} was not audited")
    return [place for place in found if place.transport in PUBLISHED_MAPS]


def _moved(place: AuditedMap) -> str:
    """Format the mean predictions for people, their counterparts and the target group in the first trial."""
    first, label = place.first, place.style.label
    before, after, target = map(np.nanmean, (first.score, first.score_image, first.target_score))
    return (
        f"{label[0].upper()}{label[1:]}, first trial: mean prediction {number(float(before), 2)} before and "
        f"{number(float(after), 2)} after; {place.groups[1]} have {number(float(target), 2)}."
    )
