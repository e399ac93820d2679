"""Tables of flipsets, transparency reports, the SSL score, and the subgroup search of section 5.5."""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

from fairness_audits.messages import enumerated
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import number, p_value, spread
from fairness_audits.results.style import ordered
from fairness_audits.results.table import Cell, Column, Kind
from pipeline.report import labels as w
from pipeline.report.estimators import estimate
from pipeline.report.fliptest import flipset_panels, trials
from pipeline.report.fliptest.trials import BOTH, AuditedMap
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.table import StampedTable, tabulated

ORDER = (w.HIRING, w.SSL, w.LAW, w.ARRESTS, w.IDENTICAL)
AUDIT, ROOT = "subgroups", "all rows"
UNITS = (
    f"The features of {w.dataset_label(w.SSL)} have mean 0 and standard deviation 1 over all people. The bounds of its "
    "subgroups are in these units."
)
HELD_OUT = "held out"
SEARCH = "FairTest's search"
SHOWN = 7
"""Number of contexts shown, by size of the effect. Reported contexts are always shown."""
IN_BRACKETS = (
    "Mean \u00b1 standard deviation over the trials. Each trial has its own map. The CSV also has the interval of one "
    "trial for new people (Clopper-Pearson for a count, Tango for the net size), as means over the trials."
)


def size_columns() -> list[Column]:
    """Return columns for the sizes of both flipsets and the net size, with spread and interval."""
    names = ((w.POSITIVE, "size", w.POSITIVE), (w.NEGATIVE, "size", w.NEGATIVE), ("net", "net", ""))
    columns = []
    for key, statistic, flipset in names:
        of = partial(AuditedMap.estimate, statistic=statistic, flipset=flipset)
        columns.append(Column(key, "spread", of, decimals=0, name=w.FLIPSETS.get(key, key)))
        columns.append(Column(f"{key} interval", "interval", of, decimals=0, name="in one trial", printed=False))
    return columns


def chance_columns() -> list[Column]:
    """Return columns for the sizes of flipsets between random halves of the group. Only exact maps have them."""
    return [
        Column(f"{f} by chance", "text", lambda place, f=f: place.by_chance(f), "By chance", 0, w.FLIPSETS[f])
        for f in BOTH
    ]


def by_chance(inputs: Inputs, blocks: Iterable[str]) -> str:
    """Return the note on the chance columns. The rows of these blocks have the size of the halves."""
    rows = inputs.rows[(inputs.rows["statistic"] == "noise_people") & inputs.rows["block"].isin(set(blocks))]
    if rows.empty:
        return "By chance: not computed in this run."
    sides = sorted({int(value) for value in rows["value"]})
    people = number(sides[0], 0) if len(sides) == 1 else f"{number(sides[0], 0)} to {number(sides[-1], 0)}"
    return (
        f"By chance: size of the flipset between two random halves of the source group ({people} people each) under "
        "exact transport, in the first trial. The number is the mean. In brackets: the size that a random split "
        "exceeds with probability at most \u03b1. A dash: the map is learned."
    )


@artefact(
    "The two groups have the same distribution of all features that the model uses, so the model cannot discriminate. "
    "The table shows how large flipsets are without discrimination (benchmark of section 5.1).",
)
def table_null(inputs: Inputs) -> StampedTable:
    return tabulated(
        title="Flipsets between identical distributions.",
        stub=("Map",),
        columns=(
            Column("people", decimals=0, cell=lambda place: place.people),
            *size_columns(),
            *(
                Column(
                    f"{f} share", "spread", lambda place, f=f: Estimate.mean(100 * place.counts[f, "share"]),
                    "% of the people", 2, w.FLIPSETS[f],
                )
                for f in BOTH
            ),
            Column("healthy", "text", name="valid maps", cell=flipset_panels.sound),
        ),
        rows=[((place.style.label,), place) for place in trials.places(inputs, dataset=w.IDENTICAL)],
        stamp=inputs.stamp("identical"),
        notes=(
            "The model is a support vector machine with a Gaussian kernel, fitted to random labels.",
            IN_BRACKETS,
            flipset_panels.LEFT_OUT,
        ),
    )  # fmt: skip


@artefact(
    "Number of people whose decision differs from that of their counterpart in the other group, for every experiment "
    "and both directions. For exact maps, the table also shows the size by chance.",
)
def table_flipsets(inputs: Inputs) -> StampedTable:
    listed = [place for place in trials.places(inputs) if place.block != "methods"]
    datasets = ordered((place.dataset for place in listed), ORDER)
    models, maps = ordered((place.method for place in listed), w.METHODS), w.maps_in(p.transport for p in listed)

    def order(place: AuditedMap) -> tuple[int | bool, ...]:
        label, opposite = list(w.CONDITIONS).index(place.given), place.direction != w.FORWARD
        return datasets.index(place.dataset), label, opposite, models.index(place.method), maps.index(place.transport)

    def labels(place: AuditedMap) -> tuple[str, ...]:
        condition = f", {w.CONDITIONS[place.given]}" if w.CONDITIONS[place.given] else ""
        pair = f"{' to '.join(place.groups)}{condition}"
        return w.dataset_label(place.dataset), pair, w.METHODS[place.method], place.style.label

    found = sorted((one for place in listed for one in place.directions), key=order)
    return tabulated(
        title="Flipsets of every experiment.",
        stub=("Data", "From and to", "Model", "Map"),
        columns=(
            Column("people", decimals=0, cell=lambda place: place.people),
            *size_columns(),
            *chance_columns(),
            Column("healthy", "text", name="valid maps", cell=flipset_panels.sound),
        ),
        rows=[(labels(place), place) for place in found],
        stamp=inputs.stamp({place.block for place in listed}),
        notes=(
            "F+: people with a positive decision whose counterparts have a negative one. F\u2212: the reverse. "
            "Net: F+ minus F\u2212.",
            IN_BRACKETS,
            flipset_panels.LEFT_OUT,
            by_chance(inputs, {place.block for place in listed}),
        ),
    )  # fmt: skip


@artefact(
    "A search for subgroups compares people with similar features. If a feature itself is biased, it explains the "
    "difference between the groups away. Flipsets compare people with their counterparts and show the difference.",
)
def table_subgroups(inputs: Inputs) -> StampedTable:
    rows: list[tuple[tuple[str, ...], Mapping[str, Cell]]] = []
    searched: list[str] = []
    codes, ends_of_all = [], []
    every: list[AuditedMap] = []
    datasets = [d for d in (w.ARRESTS, w.SSL) if d in inputs.names("dataset", audit=AUDIT)]
    for dataset in datasets:
        label, listed = w.dataset_label(dataset), contexts(inputs, dataset)
        shown = [line for k, line in enumerate(listed) if k < SHOWN or line["reported"] == 1]
        searched.append(f"{label} {len(shown)} of {len(listed)}")
        # The sign of r depends on the codes of the two groups.
        ((low, high),) = inputs.datasets[dataset].levels.values()
        codes.append(f"{label}: {low} 0, {high} 1")
        root = {"audit": AUDIT, "dataset": dataset, "context": ROOT, "part": HELD_OUT}
        ends = [spread(estimate("mean", inputs.select(**root, statistic=name)), 3) for name in ("ci_low", "ci_high")]
        ends_of_all.append(f"{label} [{', '.join(ends)}]")
        rows += [((label, SEARCH, str(line["context"])), _context(line)) for line in shown]
        for place in trials.places(inputs, dataset=dataset, method="given"):
            sizes = {flipset: spread(place.estimate("size", flipset), 0) for flipset in BOTH}
            name = ", ".join(filter(None, (place.style.label, w.CONDITIONS[place.given])))
            rows.append(
                ((label, "FlipTest", name), {"people": place.people, **sizes, "shift": trials.top(place, w.POSITIVE)})
            )
            every.append(place)

    def column(key: str, name: str = "", kind: Kind = "text", decimals: int = 3) -> Column:
        return Column(key, kind, lambda line: line.get(key, ""), decimals=decimals, name=name)

    return tabulated(
        title="Search for subgroups compared with flipsets.",
        stub=("Data", "Test", "Subgroup or map"),
        columns=(
            column("people", kind="number", decimals=0),
            column("r", "r of decision and group", "value and interval"),
            column("p", "adjusted p"),
            column("reported"),
            *(column(f, w.FLIPSETS[f]) for f in BOTH),
            column("shift", f"largest shift in {w.FLIPSETS[w.POSITIVE]}"),
        ),
        rows=rows,
        stamp=inputs.stamp({*inputs.select(audit=AUDIT)["block"], *(place.block for place in every)}, datasets),
        notes=(
            "FairTest's search grows a tree of subgroups on half of the rows, towards the largest correlation r of "
            "decision and group. The other half gives r with Fisher's interval, and p adjusted for the number of "
            "subgroups.",
            f"Groups are coded as {'; '.join(codes)}. The table shows the first trial: {enumerated(searched)} "
            "subgroups.",
            *([UNITS] if w.SSL in datasets else []),
            "Reported: FairTest reports all rows if their interval excludes 0, and a subgroup if its interval lies "
            "above those of all larger subgroups that contain it.",
            f"Mean interval of all rows over the trials: {'; '.join(ends_of_all)}.",
            "FlipTest: mean \u00b1 standard deviation over the trials. Largest shift: the feature with the largest "
            "mean shift among those that stand out; if none stands out, among all features, marked as noise.",
            *flipset_panels.health(every),
        ),
    )


def contexts(inputs: Inputs, dataset: str) -> list[dict[str, Any]]:
    """Return the contexts of the first trial that were tested on held-out rows, with their statistics.

    The context of all rows is first, then come reported contexts, then the others, each by decreasing effect.
    """
    rows = inputs.select(audit=AUDIT, dataset=dataset, part=HELD_OUT)
    rows = rows[(rows["repetition"] == rows["repetition"].min()) & rows["context"].notna()]
    wide = rows.pivot_table(index="context", columns="statistic", values="value", observed=True)
    listed = [{"context": context, **wide.loc[context].to_dict()} for context in rows["context"].astype(str).unique()]
    tested = [line for line in listed if math.isfinite(line.get("correlation", math.nan))]
    return sorted(tested, key=lambda line: (line["context"] != ROOT, line["reported"] != 1))


def _context(line: Mapping[str, Any]) -> dict[str, Cell]:
    of = {name: float(line.get(name, math.nan)) for name in ("correlation", "ci_low", "ci_high", "p_adjusted", "size")}
    return {
        "people": of["size"],
        "r": Estimate(of["correlation"], low=of["ci_low"], high=of["ci_high"]),
        "p": Estimate(of["p_adjusted"], text=p_value(of["p_adjusted"])),
        "reported": "yes" if line.get("reported") == 1 else "no",
    }
