"""Add a batch to a watch and assemble its result."""

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.permutation import permutation_test
from fairness_audits.audits.permutation.asked import Asked, asked_by
from fairness_audits.audits.permutation.metrics import RATES, Rate
from fairness_audits.audits.permutation.outcomes import Counts
from fairness_audits.audits.permutation.reading import grouped_by, read
from fairness_audits.audits.permutation.reasons import NEEDED
from fairness_audits.audits.watch.core import LARGEST, Watched, closed, watched
from fairness_audits.audits.watch.state import FIXED, Batch, State, resumed
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.table import sha256
from fairness_audits.results.formats import factor, level, percent, plain, signed, span
from fairness_audits.results.result import Column, Figure, Result, Section, Table, rows_of, under
from fairness_audits.tables import frame as tables
from fairness_audits.tables import opened
from fairness_audits.tables.levels import rest_of
from fairness_audits.tables.source import local_files
from fairness_audits.values import Array

SHOWN, MANY = 20, 1_000_000
WITHIN, BEYOND, OPEN = "within the margin", "beyond the margin", "cannot tell"
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Comparison:
    """A rate in two groups: counts (T, 2) of its events and of the rows that it is computed on."""

    grouping: str
    rate: Rate
    groups: tuple[str, str]
    events: Array
    trials: Array


def from_files(given: Given) -> Result:
    """Add the rows in files. Raises InvalidInput for everything that the user can correct."""
    if given.predictions is None:
        return audited(given)
    hashes = [sha256(Path(path)) for path in local_files(given.predictions).paths]
    content = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
    with opened(given.predictions, "duckdb", **given.some("missing", "separator")) as table:
        return audited(given, table, content)


def checksum(frame: pd.DataFrame) -> str:
    """Return a checksum of the values of a frame, in their order."""
    return hashlib.sha256(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes()).hexdigest()


def audited(given: Given, table: tables.Table | None = None, content: str = "") -> Result:
    """Add the rows of a table to the state, if there is one, and say what all batches show."""
    state, before = resumed(given)
    given = given.but(**{name: tuple(v) if isinstance(v, list) else v for name, v in state.options.items()})
    if (table is None) != (given.batch is None):
        problem = "batch names no rows" if table is None else "the rows have no name"
        remedy = "Give a batch and its rows, or neither to see the state as it is"
        raise InvalidInput(problem, option="batch", remedy=remedy)
    if table is None:
        if not state.batches:
            raise InvalidInput(f"{given.state} does not exist", option="state", remedy="Give a batch and its rows")
        return result(state, given, {})
    state.check_new(given.batch, content)
    batch, groups = _counted(table, given, content)
    state = state.added(batch, groups)
    found = result(state, given, table.notes)
    state.save(given.state, before)
    return found


def asked_of(given: Given) -> Asked:
    """Return the metrics, checked by the permutation test, whose options have the same names.

    Raises InvalidInput for a metric that is no rate.
    """
    own = given.some(*FIXED, "margin")
    asked = asked_by(
        Given(permutation_test, {}).but(**own, within=(), attribute=(), cluster=None, weight=None, matched=None)
    )
    if strange := [metric.name for metric in asked.metrics if not isinstance(metric, Rate)]:
        problem = f"metric {strange[0]} is not the rate of a group"
        raise InvalidInput(problem, option="metric", remedy=f"Watch some of {', '.join(RATES)}")
    return asked


def _counted(table: tables.Table, given: Given, content: str) -> tuple[Batch, dict[str, tuple[str, ...]]]:
    """Return the counts of a batch, and the groups of each grouping."""
    counts, groups, asked = {}, {}, asked_of(given)
    for grouping in [grouped_by(text, table) for text in dict.fromkeys(given.group)]:
        found = next(read(table, asked, grouping))[1][0]
        assert isinstance(found, Counts)
        counts[grouping.name], groups[grouping.name] = found.table.tolist(), found.groups
    return Batch(given.batch, content, table.size(), counts), groups


def comparisons(state: State, given: Given) -> Iterator[Comparison]:
    """Yield each rate of two groups; of more than two groups, each is compared with all others together."""
    rates = asked_of(given).metrics
    for grouping, groups in state.groups.items():
        counts = state.counts(grouping)
        for rate in rates:
            assert isinstance(rate, Rate)
            kinds = rate.split(counts)
            events, trials = kinds[..., 0], kinds[..., :2].sum(axis=-1)
            for place, name in enumerate(groups if len(groups) > 2 else groups[:1]):
                two = name, groups[1] if len(groups) == 2 else rest_of(name, groups)
                own = [
                    np.stack([each[:, place], each.sum(axis=1) - each[:, place]], axis=-1) for each in (events, trials)
                ]
                yield Comparison(grouping, rate, two, *own)


def result(state: State, given: Given, notes: Mapping[str, Any]) -> Result:
    """Return what the batches of a state show together."""
    compared = list(comparisons(state, given))
    each = given.alpha / len(compared)
    found = [watched(one.events, one.trials, each) for one in compared]
    evidence = np.maximum.accumulate(closed(np.stack([one.log_e for one in found])), axis=-1)
    entries = [_entry(*of, given, state.names) for of in zip(compared, found, evidence, strict=True)]
    ordered = sorted(zip(entries, compared, found, evidence, strict=True), key=lambda of: _place(of[0]))
    entries = [of[0] for of in ordered]
    facts = {
        "data": {
            "rows": state.rows,
            "batches": [{"batch": one.batch, "rows": one.rows, "sha256": one.sha256} for one in state.batches],
        },
        "results": entries,
    }
    said = {**given.values, **facts, **_said(entries, state, given), "notes": notes}
    own = {name: said[name] for name in ("comparisons", "shown_now", "within", "beyond", "open")}
    decided = said["beyond"] if given.margin is not None else said["shown_now"]
    verdict = texts.verdict("watch", said, bool(decided) if said["known"] else None, own)
    series = [_series(entry, one) for entry, _, one, _ in ordered]
    return texts.result(
        "watch",
        said,
        verdict,
        given,
        subject=str(given.state),
        sections=_sections(entries, series, state.names, said, given),
        facts=facts,
        tables={"comparisons": _frame(entries), "batches": _batches(ordered, state.names)},
    )


def _entry(one: Comparison, found: Watched, evidence: Array, given: Given, names: Sequence[str]) -> dict[str, Any]:
    """Return a comparison after the last batch; missing values are null."""
    lows, highs = found.difference.low, found.difference.high
    over = np.flatnonzero(evidence >= 1 / given.alpha)
    outcome, decided = None, over
    if given.margin is not None:
        beyond = (lows > given.margin) | (highs < -given.margin)
        within = np.maximum(-lows, highs) <= given.margin
        outcome = BEYOND if beyond[-1] else WITHIN if within[-1] else OPEN
        decided = np.flatnonzero({BEYOND: beyond, WITHIN: within}.get(outcome, np.zeros(0)))
    return plain(
        {
            **{"grouping": one.grouping, "metric": one.rate.name, "title": one.rate.title},
            "groups": [
                {
                    **{"name": name, "n": one.trials[:, place].sum(), "events": one.events[:, place].sum()},
                    "rate": found.rates.estimate[-1, place],
                    "sequence": [found.rates.low[-1, place], found.rates.high[-1, place]],
                }
                for place, name in enumerate(one.groups)
            ],
            "difference": found.difference.estimate[-1],
            "sequence": [lows[-1], highs[-1]],
            "e_value": math.exp(min(found.log_e[-1], LARGEST)),
            "adjusted_e_value": evidence[-1],
            **{"shown": bool(over.size), "since": names[decided[0]] if decided.size else None},
            "margin": outcome,
        }
    )


def _place(entry: Entry) -> tuple[bool, bool, float]:
    """Return the sort key of the page: beyond the margin or shown first, then by the size of the difference."""
    return entry["margin"] != BEYOND, not entry["shown"], -abs(entry["difference"] or 0.0)


def _said(entries: Sequence[Entry], state: State, given: Given) -> dict[str, Any]:
    """Return what the texts name besides the options and the facts of the JSON."""
    known = [one for one in entries if one["difference"] is not None]
    outcomes = [one["margin"] for one in entries]
    lacking = (f"{one['title']} of {one['grouping']}" for one in entries if one["difference"] is None)
    return {
        **{"comparisons": len(entries), "batches": len(state.batches), "rows": state.rows, "last": state.names[-1]},
        **{"known": [_oriented(one) for one in known], "lacking": list(lacking)},
        "shown_now": sum(one["shown"] for one in entries),
        **{"within": outcomes.count(WITHIN), "beyond": outcomes.count(BEYOND), "open": outcomes.count(OPEN)},
        "wide": sum(one["sequence"][1] - one["sequence"][0] > given.width for one in known if not one["shown"]),
        "zero_inside": any(one["shown"] and one["sequence"][0] <= 0 <= one["sequence"][1] for one in known),
        "titles": list(dict.fromkeys(one["title"] for one in entries)),
        "needed": [NEEDED[name] for name in dict.fromkeys(one["metric"] for one in entries) if name in NEEDED],
        "several": any(len(levels) > 2 for levels in state.groups.values()),
    }


def _oriented(entry: Entry) -> dict[str, Any]:
    """Return a comparison with the lower rate first, and its difference and sequence in points above it."""
    lower, higher = sorted(entry["groups"], key=lambda group: group["rate"])
    swapped = lower is entry["groups"][0]
    ends = [-end for end in reversed(entry["sequence"])] if swapped else entry["sequence"]
    points = [f"{100 * end:.1f}" for end in (abs(entry["difference"]), *ends)]
    return {**entry, "lower": lower, "higher": higher, "points": ["0.0" if one == "-0.0" else one for one in points]}


def _series(entry: Entry, found: Watched) -> dict[str, Any]:
    """Return the sequence of a comparison for its figure."""
    one = found.difference
    return {**entry, "estimates": one.estimate, "lows": one.low, "highs": one.high}


def _sections(
    entries: Sequence[Entry], series: Sequence[Entry], names: Sequence[str], said: Mapping[str, Any], given: Given
) -> Iterator[Section]:
    text = partial(texts.named, "watch", facts=said)
    drawing = "fairness_audits.audits.watch.figures:figure"
    drawn = Figure("sequence", text("figure"), text("caption"), drawing, (series, names, given.margin))
    yield Section(text("comparisons"), (_table(entries, given), *((drawn,) if said["known"] else ())))
    yield Section(text("groups"), (_groups(entries, said),))


def named(entry: Entry) -> str:
    """Return ``tpr, sex: f - m``."""
    return f"{entry['metric']}, {entry['grouping']}: {' - '.join(group['name'] for group in entry['groups'])}"


def e_text(e: float) -> str:
    """Format an e-value; a large one as above a million, because its digits mean nothing."""
    return factor(e) if e < MANY else f"> {MANY:,}"


def _table(entries: Sequence[Entry], given: Given) -> Table:
    """Return a line for each comparison."""
    columns = (
        Column("", cell=named),
        Column("difference", cell=under("difference", signed)),
        Column(f"{level(given.alpha)} confidence sequence", cell=under("sequence", span)),
        Column("e-value", cell=under("adjusted_e_value", e_text)),
        Column("shown since" if given.margin is None else "since", cell=under("since")),
    )
    shown = {True: "a difference is shown", False: "no difference is shown yet"}
    rows = rows_of(columns, entries, lambda one: one["margin"] or shown[one["shown"]])
    return Table(columns, rows, SHOWN, "comparisons.csv")


def _groups(entries: Sequence[Entry], said: Mapping[str, Any]) -> Table:
    """Return a line for each group and metric, with the metric's rows and events."""
    columns = (
        Column("", cell=under("name")),
        Column("rate", cell=under("rate", percent)),
        Column("confidence sequence", cell=under("sequence", partial(span, text=percent))),
        Column("n", cell=under("n", "{:,}".format)),
        Column("events", cell=under("events", "{:,}".format)),
    )
    every = ({**group, "of": f"{one['title']}, {one['grouping']}"} for one in entries for group in one["groups"])
    return Table(columns, rows_of(columns, every, under("of")), SHOWN, "comparisons.csv")


def _frame(entries: Sequence[Entry]) -> pd.DataFrame:
    keys = ("e_value", "adjusted_e_value", "shown", "since", "margin")
    return pd.DataFrame(
        [
            {
                **{key: entry[key] for key in ("grouping", "metric")},
                **{
                    f"{key}_{letter}": value
                    for letter, group in zip("ab", entry["groups"], strict=True)
                    for key, value in {
                        **group,
                        **dict(zip(("cs_low", "cs_high"), group["sequence"], strict=True)),
                    }.items()
                    if key != "sequence"
                },
                **{"difference": entry["difference"], "cs_low": entry["sequence"][0], "cs_high": entry["sequence"][1]},
                **{key: entry[key] for key in keys},
            }
            for entry in entries
        ]
    )


def _batches(ordered: Sequence[tuple[Any, ...]], names: Sequence[str]) -> pd.DataFrame:
    """Return a row for each comparison and batch."""
    parts = []
    for entry, compared, found, evidence in ordered:
        parts.append(
            pd.DataFrame(
                {
                    **{key: entry[key] for key in ("grouping", "metric")},
                    **dict(zip(("name_a", "name_b"), compared.groups, strict=True)),
                    "batch": names,
                    **{f"n_{letter}": compared.trials[:, place] for place, letter in enumerate("ab")},
                    **{f"events_{letter}": compared.events[:, place] for place, letter in enumerate("ab")},
                    "difference": found.difference.estimate,
                    **{"cs_low": found.difference.low, "cs_high": found.difference.high},
                    **{"e_value": np.exp(np.minimum(found.log_e, LARGEST)), "adjusted_e_value": evidence},
                }
            )
        )
    return pd.concat(parts, ignore_index=True)
