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
from pipeline.report.fliptest import flipset_panels, trials
from pipeline.report.fliptest.trials import BOTH, AuditedMap
from pipeline.report.inputs import Inputs
from pipeline.report.registry import artefact
from pipeline.report.table import StampedTable, tabulated

ORDER = (w.HIRING, w.SSL, w.LAW, w.ARRESTS, w.IDENTICAL)
AUDIT, ROOT = "subgroups", "all rows"
HELD_OUT = "held out"
SEARCH = "FairTest's search"
SHOWN = 7
"""Number of contexts shown, by size of the effect. Reported contexts are always shown."""
IN_BRACKETS = (
    "Mean \u00b1 standard deviation over the trials, each with its own map. The file of the table has the interval of "
    "one trial, for other people (Clopper and Pearson's of a count, Tango's of the net size); means of the ends."
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
        return "By chance: no halves of a group were dealt."
    sides = sorted({int(value) for value in rows["value"]})
    people = number(sides[0], 0) if len(sides) == 1 else f"{number(sides[0], 0)} to {number(sides[-1], 0)}"
    return (
        "By chance: under exact transport between two halves of the group that is mapped, dealt at random, "
        f"{people} people on a side: the mean, and the size that one more deal goes beyond with probability at most "
        "\u03b1. First trial; a dash where the map is learned."
    )


@artefact(
    "How large flipsets are where nothing can be discriminated: the paper's benchmark of section 5.1, made from two"
    " groups with the same distribution of all that the model sees.",
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
            Column("healthy", "text", name="healthy maps", cell=flipset_panels.sound),
        ),
        rows=[((place.style.label,), place) for place in trials.places(inputs, dataset=w.IDENTICAL)],
        stamp=inputs.stamp("identical"),
        notes=(
            "The model is a support vector machine with a Gaussian kernel, fitted to random labels: flips are noise.",
            IN_BRACKETS,
        ),
    )  # fmt: skip


@artefact(
    "Who is decided differently from their counterpart in the other group, in every experiment and in both "
    "directions, with how far each size depends on the people and on the map, and how large it is by chance where "
    "the map is exact.",
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
            Column("healthy", "text", name="healthy maps", cell=flipset_panels.sound),
        ),
        rows=[(labels(place), place) for place in found],
        stamp=inputs.stamp({place.block for place in listed}),
        notes=(
            "F+: people decided for whose counterparts in the other group are not; F\u2212: the other way round.",
            IN_BRACKETS,
            by_chance(inputs, {place.block for place in listed}),
        ),
    )  # fmt: skip


@artefact(
    "A search for subgroups compares people of like features, so a feature that is itself unequal between the "
    "groups explains a difference away. Flipsets compare people with their counterparts, and show it.",
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
        ends = [spread(inputs.mean(**root, statistic=name), 3) for name in ("ci_low", "ci_high")]
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
        title="A search for subgroups beside flipsets.",
        stub=("Data", "Test", "Subgroup, or map"),
        columns=(
            column("people", kind="number", decimals=0),
            column("r", "r of decision and group", "value and interval"),
            column("p", "p, adjusted"),
            column("reported"),
            *(column(f, w.FLIPSETS[f]) for f in BOTH),
            column("shift", f"Most shifted in {w.FLIPSETS[w.POSITIVE]}"),
        ),
        rows=rows,
        stamp=inputs.stamp({*inputs.select(audit=AUDIT)["block"], *(place.block for place in every)}, datasets),
        notes=(
            "Search: a tree of subgroups grown on half of the rows towards the largest correlation r of decision and "
            f"group ({'; '.join(codes)}); r, Fisher's interval and p, adjusted for the number of subgroups, are of the "
            f"other half, first trial. Shown: {enumerated(searched)} contexts. Reported: the whole where its interval "
            "excludes 0, a subgroup where its interval lies above those of all the contexts around it.",
            f"Over the trials the interval of all rows is {'; '.join(ends_of_all)}.",
            "FlipTest: mean \u00b1 standard deviation over the trials, and the feature with the largest mean shift of "
            "those that stand out, else of all, as noise.",
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
