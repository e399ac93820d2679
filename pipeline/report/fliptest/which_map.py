"""Which kind of map: every kind by every measure, and the verdict that follows from the numbers.

Four questions are asked of a map: does it reach the target group, at which cost; does it find the map where that is
known, T(x) = x between equal distributions, both on average and from draw to draw; how many people does it flip where
nothing can be discriminated; and are as many counterparts decided positive as people of the target group.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.messages import enumerated
from pipeline.report import registry
from pipeline.report import words as w
from pipeline.report.fliptest import stability, trials
from pipeline.report.fliptest.validation import HEALTHY, Validated, counted, validated
from pipeline.report.inputs import Inputs
from pipeline.report.numbers import Estimate, number
from pipeline.report.table import Column, Table, tabulated

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
NOTES = (
    "|MSE diff| / MSE: mean over features of the absolute difference over the error on real people. Cost over exact: "
    "the map's mean squared L1 distance over that of exact transport between as many members of both groups; below 1 a "
    "map does not go all the way.",
    "T(x) = x: a normal distribution mapped to itself, where the map is known. RMS error: root mean square of T(x) - x "
    "over features at the people with all features at 0 and at 1, by draw; mean at 1 and variance at 0 (over draws, "
    "mean over features) are its two sources. A map that leads everybody to one point has no variance, and a large "
    "error. KS: everybody's images against the target group.",
    "Flips: people, of 100, who change sides where the groups have one distribution and nothing can be discriminated. "
    "Positive: positive decisions about counterparts less those about the target group, in percentage points.",
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
    listed = entries(inputs)
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
        stamp=inputs.stamp(inputs.rows.loc[_used(inputs), "block"].unique()),
        notes=(*verdicts(listed), HEALTHY, *NOTES),
    )


def entries(inputs: Inputs) -> list[Entry]:
    """What was validated, with the decisions about counterparts; then the stability of maps between equal groups."""
    return [*_by_experiment(inputs), *_of_equal_groups(inputs)]


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
        if len(away) < 2:
            continue
        first = min(away.values(), key=lambda estimate: estimate.value)
        found.append([name for name, estimate in away.items() if _as_good(estimate, first)])
    return found


def _as_good(one: Estimate, first: Estimate) -> bool:
    errors = [e.std / math.sqrt(e.n) if e.n > 1 else 0.0 for e in (one, first)]
    return one.value - first.value <= STANDARD_ERRORS * math.hypot(*errors)


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
        values |= _validation(maps[key]) if key in maps else {}
        healthy = (maps if key in maps else decided)[key].healthy
        found.append(Entry(Validated(inputs, *key).label, key[2], values, healthy))
    return found


def _validation(one: Validated) -> dict[str, pd.Series]:
    return {
        "largest KS": one.overall("ks_max"),
        "MSE difference": one.regression_error,
        "distance": one.distance("map"),
        "cost ratio": one.cost_ratio,
        "round trip": one.overall("round_trip_l1"),
    }


def _decisions(place: trials.Place) -> dict[str, pd.Series]:
    """Positive decisions about counterparts against those about the target group, and flips where groups are equal."""

    def share(of: str, among: str) -> pd.Series:
        return place.values(statistic=f"positives_{of}") / place.values(statistic=f"n_{among}")

    values = {"decisions": 100 * (share("image", "source") - share("target", "target"))}
    if place.dataset == w.IDENTICAL:
        values["flips"] = 100 * sum(place.values(statistic="share", flipset=flipset) for flipset in w.FLIPSETS)
    return values


def _of_equal_groups(inputs: Inputs) -> list[Entry]:
    """Maps of a normal distribution to itself, by number of features and correlation."""
    rows = stability.stability_rows(inputs)
    furthest = stability.stability_rows(inputs, "ks")
    found = []
    for correlation, dimension in sorted(set(zip(rows["correlation"], rows["dimension"], strict=True))):
        here, fit = (r[(r["correlation"] == correlation) & (r["dimension"] == dimension)] for r in (rows, furthest))
        name = f"Normal, {dimension:g} feature{'s' * (dimension != 1)}{f', r = {correlation:g}' * (correlation != 0)}"
        for transport in w.maps_in(here["transport"]):
            part = here[here["transport"] == transport]
            ks = fit[fit["transport"] == transport].set_index("repetition")["value"].sort_index()
            values = {
                "known map": stability.errors(part),
                "mean at 1": pd.Series(np.nanmean(stability.means(stability.images(part, stability.ONES)))),
                "variance at 0": pd.Series(np.nanmean(stability.variances(stability.images(part, stability.ZEROS)))),
                "KS at T(x) = x": ks,
            }
            found.append(Entry(name, transport, values, pd.Series(dtype=bool)))
    return found


def _used(inputs: Inputs) -> pd.Series:
    """The rows of the audits that the table is made from."""
    rows = inputs.rows
    decided = rows["dataset"].astype(object).map(DECIDED_BY) == rows["method"].astype(object)
    shown = rows["audit"].isin([trials.QUALITY, trials.STABILITY])
    return shown | ((rows["audit"] == trials.FLIPTEST) & decided)
