"""Search for the worst subgroup and assemble the result."""

import re
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.inference import least_draws
from fairness_audits.audits.permutation.metrics import HIGH_IS_WORSE, RATES, WITHOUT_LABEL, badness
from fairness_audits.audits.permutation.reasons import NEEDED
from fairness_audits.audits.permutation.subgroups import (
    Coded,
    Subgroups,
    Tested,
    binned,
    intersections,
    worst_subgroups,
)
from fairness_audits.audits.subgroups.brief import brief, leading, name
from fairness_audits.audits.subgroups.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_columns
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import decimal, level, p_text, plain, plural, span
from fairness_audits.results.result import Column, Result, Section, Table, Verdict, rows_of, under
from fairness_audits.seeds import generators
from fairness_audits.tables import frame as tables
from fairness_audits.tables import opened
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.tables.rows import Values, doubles, outcomes
from fairness_audits.tables.source import local_files
from fairness_audits.tables.table import Score
from fairness_audits.values import Array

CAVEATS = """
held_out_rows: The tests are valid for rows that were not used to build the model.
independent_rows: The tests treat rows as independent.
with_the_rest: Each subgroup is compared with all other rows. One bad subgroup therefore also moves the results of
  larger subgroups that contain it.
small: Subgroups with fewer than {least} rows are not tested: {number}.
together: The p-values and intervals account for all tested subgroups, whatever their number and overlap.
stepped: The interval of a rejected subgroup can include 0, because the p-values are computed step-down and the
  intervals are not.
"""
LIMITS = """
counted > 0: No row has {needed}, so the rate does not exist.
tested > 0: No subgroup has {least:,} rows both inside and outside. Use more rows or a smaller --least.
varied >= 1: The rate of all rows is 0 or 1, so subgroups cannot differ in it.
wide <= 0 unless rejected: The intervals of {value:,} of {tests} are wider than {width:g}, so there are too few rows to
  tell. Use more rows, a larger --least or another --width.
"""
DISTINCT = 12
CODE = re.compile(r"[+-]?0\d")
NAMED, SHOWN = 3, 20


def from_files(settings: Settings) -> Result:
    """Search the rows in files. Raises ValueError for every error that the user can correct."""
    with opened(settings.predictions, "duckdb", **settings.some("missing", "separator")) as table:
        return audited(settings, table, typed=local_files(settings.predictions).kind != "csv")


def audited(settings: Settings, table: tables.Table, typed: bool = True) -> Result:
    """Search the rows of a table. Columns of a CSV file are not ``typed``: their numbers are texts."""
    event, among, columns = _read(settings, table, typed)
    counted = event[among]
    found = intersections(
        {name: Coded(one.codes[among], one.levels) for name, one in columns.items()}, settings.depth, settings.least
    )
    if settings.draws < (least := least_draws(settings.alpha)):
        problem = f"--draws={settings.draws} is too small to reject at level {settings.alpha:g}"
        raise InvalidInput(problem, option="draws", remedy=f"Use at least --draws={least}")
    (rng,) = generators("audit", "subgroups", str(settings.seed), settings.metric, repetitions=1)
    tested = worst_subgroups(counted, found, draws=settings.draws, alpha=settings.alpha, rng=rng)
    entries = _entries(found, tested, settings)
    rejected = [entry for entry in entries if entry["rejected"]]
    facts = {
        **{"rows": table.size(), "rows_of_the_rate": len(counted), "subgroups": len(entries)},
        "results": entries[: max(SHOWN, len(rejected))],
    }
    direction = "higher" if settings.metric in HIGH_IS_WORSE else "lower"
    title = f"Subgroups: significant ones first, worst first ({direction} is worse)"
    concluded = _verdict(entries, settings, counted)
    of = {
        "held_out_rows": True,
        "independent_rows": True,
        "with_the_rest": True,
        "small": found.too_small > 0 and {"number": f"{found.too_small:,}", "least": settings.least},
        "together": True,
        "stepped": any(one["interval"][0] <= 0 <= one["interval"][1] for one in rejected),
    }
    return Result(
        audit="subgroups",
        title="Search for the worst subgroup",
        subject=settings.predictions,
        verdict=concluded,
        brief=brief(facts, settings, RATES[settings.metric].title, concluded),
        caveats=(*words.caveats(CAVEATS, of), *words.caveats(words.READING, table.notes)),
        sections=(Section(title, (_table(entries, settings),)),),
        facts=facts,
        tables={"subgroups": _frame(entries)},
        settings=settings,
    )


def _read(settings: Settings, table: tables.Table, typed: bool) -> tuple[Array, Array, dict[str, Coded]]:
    """Return the events, the rows in the denominator of the rate, and the columns as codes."""
    rate = RATES[settings.metric]
    if settings.label is None and settings.metric not in WITHOUT_LABEL:
        raise InvalidInput(f"Rate {settings.metric} needs the true class", option="label", remedy="Pass --label")
    decided = settings.prediction is not None or (settings.score is not None and settings.threshold is not None)
    if not decided and settings.metric != "base_rate":
        raise InvalidInput(
            f"Rate {settings.metric} needs decisions",
            option="prediction",
            remedy="Pass --prediction, or --score with a --threshold",
        )
    if settings.prediction is not None and settings.threshold is not None:
        problem = "--threshold turns scores into decisions, but --prediction already gives decisions"
        raise InvalidInput(problem, option="threshold", remedy="Drop one of them")
    own = [name for name in (settings.label, settings.score, settings.prediction) if name is not None]
    check_columns(table, own, "label, score or prediction", table.name)
    check_columns(table, settings.columns, "--columns", table.name)
    frame = pd.DataFrame(table.arrays(list(dict.fromkeys([*own, *settings.columns]))))
    roles = settings.some("label", "score", "prediction", "threshold", "positive")
    label, _, decision = outcomes(table, frame, **roles)
    if not (n := len(frame)):
        raise InvalidInput(f"{table.name} has no rows. An audit needs rows of data", source=table.name)
    y = np.zeros(n, dtype=np.int64) if label is None else label
    d = np.zeros(n, dtype=np.int64) if decision is None else decision
    event, among = (np.array(mask, dtype=bool)[y, d] for mask in (rate.event, rate.among))
    return (
        event.astype(np.int64),
        among,
        {name: _coded(table, name, frame[name], settings, typed) for name in settings.columns},
    )


def _coded(table: tables.Table, name: str, column: pd.Series, settings: Settings, typed: bool) -> Coded:
    """Return a column as codes. Numbers with many values are cut into groups; other values are kept.

    Texts are categories. In a CSV file, numbers are texts too, but codes such as 01 are categories.
    """
    values = Values.of(table, name, "columns", column)
    texts = [value for value in values.distinct if isinstance(value, str)]
    category = bool(texts) if typed else any(map(CODE.match, texts))
    if len(values.distinct) > DISTINCT and not category:
        numbers, faults = doubles(column, Score(name))
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            problem = f"{table.name}: column {name!r} holds an infinite value in row {row}, counted from 0"
            remedy = "Correct the value, or leave the column out"
            raise InvalidInput(problem, source=table.name, option="columns", column=name, row=row, remedy=remedy)
        if not faults.any() and (cut := binned(numbers, settings.bins, DISTINCT)) is not None:
            return cut
    levels = in_order({level_name(value) for value in values.distinct})
    codes = values.coded({value: levels.index(level_name(value)) for value in values.distinct})
    return Coded(codes, tuple(levels))


def _entries(found: Subgroups, tested: Tested, settings: Settings) -> list[dict[str, Any]]:
    """Return an entry for each subgroup, in the order of the page.

    Rejected subgroups come first, those worse than all other rows before those better. The worst is the one whose
    interval shows the largest difference for certain, so a small subgroup does not lead by chance. Subgroups that are
    not rejected follow by the strength of evidence.
    """
    worse = badness(settings.metric, tested.rate) > badness(settings.metric, tested.rest)
    certain = badness(settings.metric, np.stack([tested.low, tested.high])).min(axis=0)
    rejected = tested.p <= settings.alpha
    order = np.lexsort((-np.abs(tested.statistic), np.where(rejected, -certain, tested.p), ~worse, ~rejected))
    return [
        plain(
            {
                "subgroup": dict(found.names[place]),
                "n": tested.sizes[place],
                "events": tested.events[place],
                "estimate": tested.rate[place],
                "rest": tested.rest[place],
                "difference": tested.rate[place] - tested.rest[place],
                "interval": [tested.low[place], tested.high[place]],
                "adjusted_p_value": tested.p[place],
                "worse": bool(worse[place]),
                "rejected": bool(rejected[place]),
            }
        )
        for place in order.tolist()
    ]


def _verdict(entries: list[dict[str, Any]], settings: Settings, counted: Array) -> Verdict:
    """Say how many subgroups differ from all other rows, and name the worst of them."""
    rejected = [entry for entry in entries if entry["rejected"]]
    worse = sum(entry["worse"] for entry in rejected)
    lead, first = leading(entries)
    lines = [
        f"{name(entry)}: {decimal(entry['estimate'])} ({entry['events']:,} of {entry['n']:,}) against "
        f"{decimal(entry['rest'])} for all others"
        for entry in first[:NAMED]
    ]
    more = f"; and {len(first) - NAMED:,} more" if rejected and len(first) > NAMED else ""
    number = f"{len(rejected):,}" if rejected else "none"
    split = f": {worse:,} worse, {len(rejected) - worse:,} better" if rejected else ""
    text = (
        f"The {RATES[settings.metric].title} of {number} of {plural(len(entries), 'subgroup')} differs "
        f"significantly from that of all other rows (family-wise error rate {settings.alpha:g}){split}. "
        f"{lead}: {'; '.join(lines)}{more}."
    )
    facts = {"subgroups": len(entries), "different": len(rejected), "worse": worse}
    varied = bool(len(counted) and np.ptp(counted) > 0)
    wide = sum(entry["interval"][1] - entry["interval"][0] > settings.width for entry in entries)
    quantities = {
        **{"counted": len(counted), "needed": NEEDED.get(settings.metric)},
        **{"tested": len(entries) if len(counted) else None, "least": settings.least},
        **{"varied": int(varied) if entries else None, "wide": wide if varied else None, "width": settings.width},
        "tests": plural(len(entries), "subgroup"),
    }
    known = bool(rejected) if entries else None
    return words.concluded(
        known, ("UNEQUAL", "NOT REJECTED"), text if entries else "", LIMITS, quantities, "rejected", facts
    )


def _table(entries: list[dict[str, Any]], settings: Settings) -> Table:
    """Return a line for each of the first subgroups."""
    columns = (
        Column("", cell=name),
        Column("rate", cell=under("estimate", decimal)),
        Column("others", cell=under("rest", decimal)),
        Column("n", cell=under("n", "{:,}".format)),
        Column("events", cell=under("events", "{:,}".format)),
        Column(f"difference, {level(settings.alpha)} interval", cell=under("interval", partial(span))),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    rows = [
        row
        for group, rejected in (("rejected", True), ("not rejected", False))
        for row in rows_of(columns, [one for one in entries[:500] if one["rejected"] == rejected], group)
    ]
    return Table(columns, tuple(rows), SHOWN, "subgroups.csv")


def _frame(entries: list[dict[str, Any]]) -> pd.DataFrame:
    keys = ("n", "events", "estimate", "rest", "difference", "adjusted_p_value", "rejected")
    rows = [(name(one), *(one[key] for key in keys), *one["interval"]) for one in entries]
    return pd.DataFrame(rows, columns=["subgroup", *keys, "ci_low", "ci_high"])
