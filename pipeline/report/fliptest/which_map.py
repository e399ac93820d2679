"""Which kind of map: how far each depends on the draw of the people that it was fitted on (section 3.2), every kind by
every measure, and the verdict that follows from the numbers.

Four questions are asked of a map: does it reach the target group, at which cost; does it find the map where that is
known, T(x) = x between equal distributions, both on average and from draw to draw; how many people does it flip where
nothing can be discriminated; and are as many counterparts decided positive as people of the target group.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.stats import chi2

from pipeline.messages import enumerated
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.validation import HEALTHY, Validated, counted, of_equal_groups, validated
from pipeline.report.inputs import Inputs, points
from pipeline.report.numbers import Estimate, number
from pipeline.report.stamp import Picture
from pipeline.report.style import curve, finish, level, new_panels
from pipeline.report.table import Column, Table, tabulated
from pipeline.types import Array

ONES, ZEROS = "ones", "zeros"
POINTS = {ONES: 1.0, ZEROS: 0.0}
"""The fixed people, and the value of all their features, which is that of their images under the true map."""
WIDTH_OF_A_GROUP = 0.62
"""Of the distance between two dimensions, for the maps beside each other."""


def images(rows: pd.DataFrame, point: str) -> Array:
    """Images (draws, features) of one fixed point under the maps of the given rows.

    Raises ValueError where the rows hold more than one map, so that a draw has two images.
    """
    here = rows[rows["point"] == point]
    if here.duplicated(["repetition", "feature"]).any():
        raise ValueError("several images of one point in one draw: expected the rows of one map and one distribution")
    return here.pivot(index="repetition", columns="feature", values="value").to_numpy(float)


def variances(image: Array) -> Array:
    """Sample variance (n - 1) over the draws of each feature: (draws, d) -> (d,)."""
    return np.asarray(np.nanvar(image, axis=0, ddof=1))


def means(image: Array) -> Array:
    """Mean over the draws of each feature: (draws, d) -> (d,)."""
    return np.asarray(np.nanmean(image, axis=0))


def errors(rows: pd.DataFrame) -> pd.Series:
    """Root mean square of T(x) - x over the features of the fixed people, by draw, for the rows of one map.

    Its mean square over the draws is the square of the mean's distance from x, plus the variance about the mean.
    """
    squared = (rows["value"] - rows["point"].astype(object).map(POINTS).astype(float)) ** 2
    return squared.groupby(rows["repetition"]).mean().pow(0.5)


def stability_rows(inputs: Inputs, statistic: str = "image") -> pd.DataFrame:
    """Every image of the fixed points, or another statistic, with dimension and correlation as numbers."""
    rows = inputs.select(audit=trials.STABILITY, statistic=statistic)
    numbers = {name: pd.to_numeric(rows[name]).astype(float) for name in ("dimension", "correlation")}
    return rows.assign(**numbers)


def of_draws(inputs: Inputs) -> dict[tuple[float, float, str], dict[str, pd.Series]]:
    """Measures of maps of a normal distribution to itself, by correlation, number of features and map."""
    every, furthest = stability_rows(inputs), stability_rows(inputs, "ks")
    found = {}
    for (correlation, dimension), rows in every.groupby(["correlation", "dimension"]):
        here = furthest[(furthest["correlation"] == correlation) & (furthest["dimension"] == dimension)]
        for transport in w.maps_in(rows["transport"]):
            part = rows[rows["transport"] == transport]
            found[correlation, dimension, transport] = {
                "known map": errors(part),
                "mean at 1": pd.Series(np.nanmean(means(images(part, ONES)))),
                "variance at 0": pd.Series(np.nanmean(variances(images(part, ZEROS)))),
                "KS at T(x) = x": here[here["transport"] == transport].set_index("repetition")["value"].sort_index(),
            }
    return found


@registry.figure(
    "figure_2",
    "The image of a person with every feature at zero, under maps between two groups with the same distribution: the "
    "less it varies with the draw of everyone else, the more stable the map.",
    point=ZEROS,
    summary=variances,
    label="variance of the image of $0$",
    title="How stable each map is: the variance of one person's counterpart over draws of the others.",
    alternative="Points on a logarithmic scale: variances of each map by the number of features, one panel for each "
    "correlation.",
    note="A point is one feature, a line their mean; maps stand beside each other at each number of features. "
    "Variances over {draws} draws with everyone else drawn anew.",
)
@registry.figure(
    "figure_2_mean",
    "Where a person with every feature at one is sent. A map between equal distributions should leave the person "
    "there; the exact map pulls towards the mean, the more the more features there are.",
    place=1,
    point=ONES,
    summary=means,
    label="mean image of $1$",
    title="Regression to the mean: where each map sends a person with every feature at one.",
    alternative="Points: mean images of each map by the number of features, one panel for each correlation.",
    note="Both groups have the same distribution, so a map that moves nobody would stay on the dashed line. A point is "
    "one feature, a line their mean, over {draws} draws; maps stand beside each other at each number of features.",
)
def figure_of_images(
    inputs: Inputs, point: str, summary: Callable[[Array], Array], label: str, title: str, alternative: str, note: str
) -> Picture:
    """A summary over the draws of the images of one person, by the number of features."""
    rows = stability_rows(inputs).astype({"feature": object})
    correlations, maps = sorted(set(rows["correlation"])), w.maps_in(rows["transport"])
    figure, (panels,) = new_panels(2.7, 1, len(correlations), sharey=True)
    for correlation, axes in zip(correlations, panels, strict=True):
        here = rows[rows["correlation"] == correlation]
        dimensions = sorted(set(here["dimension"]))
        for k, transport in enumerate(maps):
            style, part = w.MAPS[transport], here[here["transport"] == transport]
            look = {"linestyle": "none", "marker": style.marker, "markersize": 3.2, "color": style.color}
            places = np.arange(len(dimensions)) + (k - (len(maps) - 1) / 2) * WIDTH_OF_A_GROUP / len(maps)
            line = []
            for place, dimension in zip(places, dimensions, strict=True):
                of_one = part[part["dimension"] == dimension]
                values = summary(images(of_one, point)) if len(of_one) else np.full(1, np.nan)
                line.append(float(np.nanmean(values)) if len(of_one) else np.nan)
                axes.plot(np.full(len(values), place), values, alpha=0.55, markeredgewidth=0, **look)
            curve(axes, places, line, style, markersize=3.2)
        axes.set_xticks(range(len(dimensions)), [f"{d:g}" for d in dimensions])
        if point == ZEROS:
            axes.set_yscale("log")
        else:
            level(axes, 1, zorder=0)
    titles = ["independent features" if r == 0 else f"correlation {r:g}" for r in correlations]
    finish(figure, panels, "number of features", label, len(maps), titles)
    draws = rows.groupby(["transport", "dimension", "correlation"])["repetition"].nunique()
    counted = f"{draws.min():,}" if draws.min() == draws.max() else f"{draws.min():,} to {draws.max():,}"
    notes = (note.format(draws=counted), *_fewer(inputs, rows, int(draws.min())))
    return Picture(figure, title, inputs.stamp(set(rows["block"])), alternative, notes=notes)


def _fewer(inputs: Inputs, rows: pd.DataFrame, draws: int) -> tuple[str, ...]:
    """That the paper has more draws, where it has, and what that leaves open, by the chi-squared law of a variance."""
    blocks = set(rows["block"])
    published = [point["repetitions"] for point in points(inputs.config["published"]) if point["block"] in blocks]
    if max(published) <= draws:
        return ()
    low, high = (draws - 1) / chi2.ppf([0.975, 0.025], draws - 1)
    return (
        f"The paper has {max(published):,} draws. With {draws:,}, the 95 % interval of one variance reaches from "
        f"{low:.2g} to {high:.2g} times its estimate.",
    )


NO_TRANSPORT = (w.COUNTERFACTUAL,)
"""Maps that do not seek the target group: a causal model's are shown, and win nothing."""
DECIDED_BY = {w.HIRING: "given", w.SSL: "given", w.LAW: "logistic", w.ARRESTS: "given", w.IDENTICAL: "svm"}
"""The model of each data set whose decisions about counterparts are counted."""
STANDARD_ERRORS = 2.0
"""Maps that are not further apart than so many standard errors of their difference share the first place."""


@dataclass(frozen=True)
class Measure:
    """One column: what is best by it is what comes nearest to ``ideal``, in the verdict's words ``best``."""

    key: str
    heading: str
    name: str
    best: str = ""
    ideal: float = 0.0
    decimals: int = 3
    printed: bool = True


MEASURES = (
    Measure("largest KS", "Validation", "largest KS", "largest KS"),
    Measure("MSE difference", "Validation", "|MSE diff| / MSE", "regression error"),
    Measure("distance", "Validation", "L1 distance", decimals=2),
    Measure("cost ratio", "Validation", "cost over exact", "cost over exact transport's", 1.0, 2),
    Measure("round trip", "Validation", "round trip", decimals=2, printed=False),
    Measure("known map", "T(x) = x", "RMS error", "error where the map is known"),
    Measure("mean at 1", "T(x) = x", "mean at 1"),
    Measure("variance at 0", "T(x) = x", "variance at 0"),
    Measure("KS at T(x) = x", "T(x) = x", "KS"),
    Measure("flips", "Decisions", "flips, %", "flips between equal groups", decimals=2),
    Measure("decisions", "Decisions", "positive, points", "positive decisions as in the target group", decimals=2),
)


@dataclass(frozen=True)
class Entry:
    """One kind of map in one experiment: each measure by trial, and which trials' maps are healthy.

    A measure of the experiment as a whole has one value. ``healthy`` is empty where the rule is not applied.
    """

    experiment: str
    transport: str
    values: Mapping[str, pd.Series]
    healthy: pd.Series

    def estimate(self, key: str) -> Estimate | None:
        """Mean and spread over all trials, as they are shown."""
        values = self.values.get(key)
        return None if values is None else Estimate.mean(values.to_numpy(float))

    def contending(self, measure: Measure) -> Estimate | None:
        """The mean distance from the ideal over the healthy trials; None where it takes no part."""
        if measure.key not in self.values or self.transport in NO_TRANSPORT:
            return None
        away = (self.values[measure.key] - measure.ideal).abs()
        if len(self.healthy):
            away = away[self.healthy.reindex(away.index, fill_value=True)]
        found = Estimate.mean(away.to_numpy(float))
        return found if math.isfinite(found.value) else None


@registry.table(place=1)
def table_maps(inputs: Inputs) -> Table:
    """The paper uses the GAN because it found it more stable than the exact map and the method of Seguy et al. Here
    every kind of map is held against the others: on the validation of Table 1, where the true map is known, on what it
    flips where nothing can be discriminated, and on the decisions about counterparts.
    """
    listed, rows = entries(inputs), inputs.rows
    decided = rows["dataset"].astype(object).map(DECIDED_BY) == rows["method"].astype(object)
    used = rows["audit"].isin([trials.QUALITY, trials.STABILITY]) | ((rows["audit"] == trials.FLIPTEST) & decided)
    return tabulated(
        title="Which map: fidelity, distance, stability and decisions of every kind.",
        stub=("Experiment", "Map"),
        columns=(
            Column("healthy", show="text", of=lambda one: counted(one.healthy) if len(one.healthy) else ""),
            *(
                Column(m.key, m.heading, "spread", m.decimals, m.name, m.printed, lambda one, m=m: one.estimate(m.key))
                for m in MEASURES
            ),
        ),
        rows=[((one.experiment, w.MAPS[one.transport].label), one) for one in listed],
        stamp=inputs.stamp(rows.loc[used, "block"].unique()),
        notes=(
            *verdicts(listed),
            HEALTHY,
            "|MSE diff| / MSE: mean over features of the absolute difference over the error on real people. Cost over "
            "exact: the map's mean squared L1 distance over that of exact transport between as many members of both "
            "groups; below 1 a map does not go all the way.",
            "T(x) = x: a normal distribution mapped to itself, where the map is known. RMS error: root mean square of "
            "T(x) - x over features at the people with all features at 0 and at 1, by draw; mean at 1 and variance at "
            "0 (over draws, mean over features) are its two sources. A map that leads everybody to one point has no "
            "variance, and a large error. KS: everybody's images against the target group.",
            "Flips: people, of 100, who change sides where the groups have one distribution and nothing can be "
            "discriminated. Positive: positive decisions about counterparts less those about the target group, in "
            "percentage points.",
        ),
    )


def entries(inputs: Inputs) -> list[Entry]:
    """What was validated, with the decisions about counterparts; then the stability of maps between equal groups."""
    normal = [
        Entry(of_equal_groups(dimension, correlation), transport, values, pd.Series(dtype=bool))
        for (correlation, dimension, transport), values in of_draws(inputs).items()
    ]
    return [*_by_experiment(inputs), *normal]


def verdicts(listed: Sequence[Entry]) -> tuple[str, ...]:
    """Which map is best by each measure in how many experiments, and whether one is best by all.

    Compared are the healthy trials of maps that seek the target group. Maps within :data:`STANDARD_ERRORS` of the best
    share its place.
    """
    texts, leaders = [], {}
    for measure in (m for m in MEASURES if m.best):
        places = [place for place in _first_places(listed, measure) if place]
        if not places:
            continue
        wins = {name: sum(name in place for place in places) for name in w.maps_in(n for p in places for n in p)}
        ranked = sorted(wins.items(), key=lambda item: -item[1])
        named = enumerated(f"{w.MAPS[name].label} {won}" for name, won in ranked)
        texts.append(f"{measure.best}: {named} of {len(places)}")
        leaders[measure.best] = [name for name, won in ranked if won == ranked[0][1]]
    if not texts:
        return ()
    return (
        f"First by each measure, alone or within {STANDARD_ERRORS:g} standard errors of the first, in how many "
        f"experiments: {'; '.join(texts)}. Failed trials and causal counterfactuals take no part.",
        _conclusion(leaders),
        *_noise(listed),
    )


def _first_places(listed: Sequence[Entry], measure: Measure) -> list[list[str]]:
    """For each experiment in which at least two maps contend: the first, and those that cannot be told from it."""
    found = []
    for experiment in dict.fromkeys(one.experiment for one in listed):
        here = {one.transport: one.contending(measure) for one in listed if one.experiment == experiment}
        away = {name: estimate for name, estimate in here.items() if estimate is not None}
        if len(away) > 1:
            error = {name: one.std / math.sqrt(one.n) if one.n > 1 else 0.0 for name, one in away.items()}
            first = min(away, key=lambda name: away[name].value)
            found.append(
                [
                    name
                    for name, one in away.items()
                    if one.value - away[first].value <= STANDARD_ERRORS * math.hypot(error[name], error[first])
                ]
            )
    return found


def _conclusion(leaders: Mapping[str, Sequence[str]]) -> str:
    """Whether some kind of map is in front by every measure, and else which is by what."""
    kinds = w.maps_in(name for names in leaders.values() for name in names)
    if everywhere := [kind for kind in kinds if all(kind in names for names in leaders.values())]:
        return f"In front by every measure: {enumerated(w.MAPS[kind].label for kind in everywhere)}."
    by = {kind: [measure for measure, names in leaders.items() if kind in names] for kind in kinds}
    told = "; ".join(f"{w.MAPS[kind].label} by {enumerated(measures)}" for kind, measures in by.items())
    return f"No kind of map is in front by every measure: {told}."


def _noise(listed: Sequence[Entry]) -> tuple[str, ...]:
    """What each kind of map flips where nothing can be discriminated, in one sentence."""
    shares = {one.transport: one.estimate("flips") for one in listed if "flips" in one.values}
    told = [
        f"{w.MAPS[kind].label} {number(share.value, 2)} %"
        for kind, share in sorted(shares.items(), key=lambda item: item[1].value if item[1] else math.inf)
        if share is not None
    ]
    return (f"Flipped between equal groups: {enumerated(told)} of the people.",) if told else ()


def _by_experiment(inputs: Inputs) -> list[Entry]:
    """The validated maps, and those whose decisions were audited; experiments in the order of Table 1."""
    maps = {(one.dataset, one.given, one.transport): one for one in validated(inputs)}
    decided = {
        (place.dataset, place.given, place.transport): place
        for place in trials.places(inputs)
        if DECIDED_BY.get(place.dataset) == place.method
    }
    first = [key[:2] for key in maps]
    keys = sorted(
        maps | decided,
        key=lambda key: (first.index(key[:2]) if key[:2] in first else len(first), key[0], list(w.MAPS).index(key[2])),
    )
    found = []
    for key in keys:
        values = _decisions(decided[key]) if key in decided else {}
        if key in maps:
            one = maps[key]
            values |= {"largest KS": one.overall("ks_max"), "round trip": one.overall("round_trip_l1")}
            values |= {"distance": one.overall("map_l1"), "cost ratio": one.cost_ratio}
            values |= {"MSE difference": one.regression_error}
        healthy = (maps if key in maps else decided)[key].healthy
        found.append(Entry(Validated(inputs, *key).label, key[2], values, healthy))
    return found


def _decisions(place: trials.Place) -> dict[str, pd.Series]:
    """Positive decisions about counterparts against those about the target group, and flips where groups are equal."""

    def share(of: str, among: str) -> pd.Series:
        return place.values(statistic=f"positives_{of}") / place.values(statistic=f"n_{among}")

    values = {"decisions": 100 * (share("image", "source") - share("target", "target"))}
    if place.dataset == w.IDENTICAL:
        values["flips"] = 100 * sum(place.values(statistic="share", flipset=flipset) for flipset in w.FLIPSETS)
    return values
