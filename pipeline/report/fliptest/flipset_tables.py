"""Tables of flipsets: the benchmark of section 5.1, every method of the first study, and the law-school comparison."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import bars, chance, lines, pages, trials
from pipeline.report.fliptest import law_figures as law
from pipeline.report.fliptest import methods_figure as methods
from pipeline.report.fliptest.trials import Counts, Place
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import DASH, Estimate, number
from pipeline.report.style import method_style
from pipeline.report.table import Cell, Column, Row, Table

BOTH = (w.POSITIVE, w.NEGATIVE)
SIDES = ("source", "target")
IN_BRACKETS = (
    "Mean \u00b1 standard deviation over the trials. In brackets: the interval of one trial, for other people under "
    "its map (Clopper and Pearson's of a count, Tango's of the net size); means of the ends over all trials. Another "
    "map moves a size by the standard deviation."
)


def size_cells(counts: Counts) -> list[Cell]:
    """Both flipsets' sizes with spread, their intervals, and the net size with its interval."""
    found = [*(counts.estimate("size", flipset) for flipset in BOTH), counts.estimate("net")]
    return [cell for estimate in found for cell in (estimate, estimate)]


def size_columns(group: str = "") -> tuple[Column, ...]:
    """The columns of :func:`size_cells`."""
    names = ((w.POSITIVE, w.FLIPSETS[w.POSITIVE]), (w.NEGATIVE, w.FLIPSETS[w.NEGATIVE]), ("net", "net"))
    return tuple(
        column
        for key, name in names
        for column in (
            Column(key, group, "spread", 0, name),
            Column(f"{key} interval", group, "interval", 0, "in one trial"),
        )
    )


def chance_cells(counts: Counts) -> list[Cell]:
    """How large each flipset is between dealt halves of the group, where the map is exact."""
    return [counts.by_chance(flipset) for flipset in BOTH]


def chance_columns() -> tuple[Column, ...]:
    """The columns of :func:`chance_cells`."""
    return tuple(Column(f"{f} by chance", "By chance", "text", 0, w.FLIPSETS[f]) for f in BOTH)


def by_chance(inputs: Inputs, blocks: Iterable[str]) -> str:
    """What stands in the columns by chance: the size of the halves is read from the rows of these blocks."""
    rows = inputs.rows[(inputs.rows["statistic"] == "noise_people") & inputs.rows["block"].isin(set(blocks))]
    if rows.empty:
        return "By chance: no halves of a group were dealt."
    sides = sorted({int(value) for value in rows["value"]})
    people = number(sides[0], 0) if len(sides) == 1 else f"{number(sides[0], 0)} to {number(sides[-1], 0)}"
    return (
        "By chance: the flipsets under exact transport between two halves of the group from which people are mapped, "
        f"dealt at random, {people} people on a side, as shares of the whole group; their mean, and the size that one "
        "more deal goes beyond with probability at most \u03b1. Between more people fewer flip, so where the group is "
        "larger than a half these sizes are rather too large. First trial; a dash where the map is learned, as each "
        "deal would need a training."
    )


@registry.table(place=3)
def table_null(inputs: Inputs) -> Table:
    """How large flipsets are where nothing can be discriminated: the paper's benchmark of section 5.1, made from two
    groups with the same distribution of all that the model sees.
    """
    body = []
    for place in trials.places(inputs, dataset=w.IDENTICAL):
        counts = trials.counts(inputs, place)
        people = counts.estimate("n_source").value
        shares = [Estimate.mean(100 * counts.values[flipset, "share"]) for flipset in BOTH]
        cells = (people, *size_cells(counts), *shares, pages.sound(inputs, place))
        body.append(Row((w.map_style(place.transport).label,), cells))
    return Table(
        title="Flipsets between identical distributions.",
        stub=("Map",),
        columns=(
            Column("people", decimals=0),
            *size_columns(),
            *(Column(f"{f} share", "% of the people", "spread", 2, w.FLIPSETS[f]) for f in BOTH),
            Column("healthy", show="text", name="healthy maps"),
        ),
        rows=tuple(body),
        stamp=inputs.stamp("identical"),
        notes=(
            "The model is a support vector machine with a Gaussian kernel, fitted to random labels: nothing can be "
            "discriminated, and every flip is noise. Flipsets of other studies that are not larger show nothing.",
            IN_BRACKETS,
        ),
    )


@registry.table(place=6)
def table_methods(inputs: Inputs) -> Table:
    """What each mitigation of the audit of individual fairness does to flipsets, beside how large they are by chance. A
    method may equalise the numbers of positive decisions and still decide differently about many people and their
    counterparts.
    """
    body = []
    for dataset, attribute in methods.panels_of(inputs):
        for place in methods.methods_at(inputs, dataset, attribute):
            counts = trials.counts(inputs, place)
            people = counts.estimate("n_source").value
            rates = [Estimate.mean(100 * counts.share_positive(side)) for side in SIDES]
            tops = [_top(inputs, place, flipset) for flipset in BOTH]
            source, target = trials.groups(inputs, place)
            pair = f"{methods.ATTRIBUTES.get(attribute, attribute)}: {source} to {target}"
            labels = (w.dataset_label(dataset), pair, method_style(place.method).label)
            body.append(Row(labels, (people, *rates, *size_cells(counts), *chance_cells(counts), *tops)))
    decided = {w.dataset_label(d): w.DECISIONS.get(d, ("positive",))[0] for d, _ in methods.panels_of(inputs)}
    positive = "; ".join(f"{dataset}: {decision}" for dataset, decision in decided.items())
    return Table(
        title="Flipsets of every method of the first study.",
        stub=("Dataset", "From and to", "Method"),
        columns=(
            Column("people", decimals=0),
            Column("source", "% decided positive", "spread", 1),
            Column("target", "% decided positive", "spread", 1),
            *size_columns(),
            *chance_columns(),
            *(Column(f"{f} top", "Largest mean shift", "text", name=w.FLIPSETS[f]) for f in BOTH),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(methods.BLOCK),
        notes=(
            f"F+: people decided positive ({positive}) whose counterparts in the other group are not; F\u2212: the "
            "other way round. Exact transport between the test rows.",
            IN_BRACKETS,
            by_chance(inputs, [methods.BLOCK]),
            "Largest mean shift: the feature in which the flipset's members differ most from their counterparts, of "
            "those that stand out: no noise (the interval, over maps and people, covers 0), and not as the whole group "
            f"(by adjusted p); where none does, the largest of all, with the word for it. {bars.CATEGORIES}",
        ),
    )


@registry.table(place=7)
def table_law(inputs: Inputs) -> Table:
    """Counterfactuals need a causal model of the data, transport needs none; the paper finds that both lead to nearly
    the same flipsets.
    """
    found = law.places(inputs, law.CLASSIFIER)
    regressions = {place.transport: place for place in law.places(inputs, law.REGRESSION)}
    causal = next((place for place in found if place.transport == w.COUNTERFACTUAL), None)
    body = []
    for place in found:
        counts = trials.counts(inputs, place)
        sizes = size_cells(counts)[:4]
        cells: list[Cell] = [counts.estimate("n_source").value, *sizes, *_shared(inputs, place, causal)]
        reports = {line.feature: line for line in lines.report(inputs, place, w.NEGATIVE)}
        for label in ("LSAT", "GPA"):
            feature = w.feature_named(label, list(reports), w.LAW) if reports else ""
            line = reports.get(feature)
            cells.append(Estimate(line.value, low=line.low, high=line.high) if line else None)
        cells += _predictions(inputs, regressions.get(place.transport))
        body.append(Row((w.map_style(place.transport).label,), tuple(cells)))
    return Table(
        title="The law-school models: causal counterfactuals and transport.",
        stub=("Counterparts by",),
        columns=(
            Column("people", "Classifier", decimals=0),
            *size_columns("Classifier")[:4],
            Column("shared", "Classifier", "text", name=f"{w.FLIPSETS[w.NEGATIVE]} shared"),
            Column("by chance", "Classifier", "value and interval", 0),
            *(
                Column(f"{key} shift", f"Shift in {w.FLIPSETS[w.NEGATIVE]}, sd", "value and interval", 2, key)
                for key in ("LSAT", "GPA")
            ),
            *(Column(k, "Mean prediction of the regression", decimals=3) for k in ("before", "after", "target group")),
        ),
        rows=tuple(body),
        stamp=inputs.stamp(sorted({place.block for place in (*found, *regressions.values())})),
        notes=(
            f"{w.FLIPSETS[w.NEGATIVE]} shared: how many members of the flipset by causal counterfactuals, of those "
            "whom this map moved too, are in this one, in the first trial; by chance: if as many were drawn from all "
            "who are decided against, with the 95 % range. Shifts: x \u2212 G(x), means over the trials with intervals "
            "over maps and people.",
            law.empty(inputs, found[0]),
            IN_BRACKETS,
            *pages.health(inputs, found),
        ),
    )


def _top(inputs: Inputs, place: Place, flipset: str) -> str:
    found = lines.report(inputs, place, flipset)
    if not found:
        return DASH
    top = next((line for line in found if line.stands_out), found[0])
    word = "" if top.stands_out else f", {top.standing}"
    return f"{w.feature_label(top.feature, place.dataset)} ({number(top.value, 2)}{word})"


def _shared(inputs: Inputs, place: Place, causal: Place | None) -> tuple[str, Estimate | None]:
    """How many of the causal flipset's members are in this one too, and how many would be by chance."""
    if causal is None:
        return DASH, None
    first, other = (trials.first_trial(inputs, one) for one in (causal, place))
    both = chance.shared_members(first, other, w.NEGATIVE)
    told = f"{both:,} of {chance.members_among(first, other.rows, w.NEGATIVE):,}"
    return told, None if place == causal else chance.of_first_trials(first, other, w.NEGATIVE)


def _predictions(inputs: Inputs, place: Place | None) -> list[Cell]:
    if place is None:
        return [None, None, None]
    first = trials.first_trial(inputs, place)
    return [float(np.nanmean(values)) for values in (first.score, first.score_image, first.target_score)]
