"""Search for the worst subgroup and assemble the result."""

import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.inference import least_draws, least_size
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
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_columns
from fairness_audits.results.formats import decimal, level, p_text, plain, span
from fairness_audits.results.result import Column, Result, Section, Table, rows_of, under
from fairness_audits.seeds import generators
from fairness_audits.tables import frame as tables
from fairness_audits.tables import opened
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.tables.rows import Values, doubles, outcomes
from fairness_audits.tables.table import Score
from fairness_audits.values import Array

DISTINCT = 12
CODE = re.compile(r"[+-]?0\d")
SHOWN = 20
CERTAIN = ", by the difference that is shown for certain"
"""How subgroups with a difference are ordered."""
Entries: TypeAlias = Sequence[Mapping[str, Any]]


def from_files(given: Given) -> Result:
    """Search the rows in files. Raises InvalidInput for everything that the user can correct."""
    with opened(given.predictions, "duckdb", **given.some("missing", "separator")) as table:
        return audited(given, table)


def audited(given: Given, table: tables.Table) -> Result:
    """Search the rows of a table."""
    event, among, columns = _read(given, table)
    counted = event[among]
    found = intersections(
        {name: Coded(one.codes[among], one.levels) for name, one in columns.items()}, given.depth, given.least
    )
    if given.draws < (least := least_draws(given.alpha)):
        problem = f"draws={given.draws} is too small to reject at level {given.alpha:g}"
        raise InvalidInput(problem, option="draws", remedy=f"Use at least {least} draws")
    (rng,) = generators("audit", "subgroups", str(given.seed), given.metric, repetitions=1)
    tested = worst_subgroups(counted, found, draws=given.draws, alpha=given.alpha, rng=rng)
    entries = _entries(found, tested, given)
    rejected = [entry for entry in entries if entry["rejected"]]
    worse = sum(entry["worse"] for entry in rejected)
    lead, first = _leading(entries)
    facts = {
        **{"rows": table.size(), "rows_of_the_rate": len(counted), "subgroups": len(entries)},
        "results": entries[: max(SHOWN, len(rejected))],
    }
    said = {
        **given.values,
        **facts,
        **{"rate": RATES[given.metric].title, "needed": NEEDED.get(given.metric)},
        "direction": "higher" if given.metric in HIGH_IS_WORSE else "lower",
        **{"different": len(rejected), "worse": worse, "lead": lead},
        "first": [{**entry, "name": _name(entry)} for entry in first],
        "varied": bool(len(counted) and np.ptp(counted) > 0),
        "wide": sum(entry["interval"][1] - entry["interval"][0] > given.width for entry in entries),
        "too_small": found.too_small,
        "zero_inside": any(one["interval"][0] <= 0 <= one["interval"][1] for one in rejected),
        "notes": table.notes,
    }
    own = {"subgroups": len(entries), "different": len(rejected), "worse": worse}
    verdict = texts.verdict("subgroups", said, bool(rejected) if entries else None, own)
    return texts.result(
        "subgroups",
        said,
        verdict,
        given,
        subject=given.predictions,
        sections=(Section(texts.named("subgroups", "table", said), (_table(entries, given),)),),
        facts=facts,
        tables={"subgroups": _frame(entries)},
    )


def _read(given: Given, table: tables.Table) -> tuple[Array, Array, dict[str, Coded]]:
    """Return the events, the rows in the denominator of the rate, and the columns as codes."""
    rate = RATES[given.metric]
    if given.label is None and given.metric not in WITHOUT_LABEL:
        raise InvalidInput(f"Rate {given.metric} needs the true class", option="label", remedy="Give the label")
    decided = given.prediction is not None or (given.score is not None and given.threshold is not None)
    if not decided and given.metric != "base_rate":
        raise InvalidInput(
            f"Rate {given.metric} needs decisions",
            option="prediction",
            remedy="Give the prediction, or the score and a threshold",
        )
    if given.prediction is not None and given.threshold is not None:
        problem = "threshold turns scores into decisions, but the prediction already gives decisions"
        raise InvalidInput(problem, option="threshold", remedy="Drop one of them")
    own = [name for name in (given.label, given.score, given.prediction) if name is not None]
    check_columns(table, own, "label, score or prediction", table.name)
    check_columns(table, given.columns, "columns", table.name)
    frame = pd.DataFrame(table.arrays(list(dict.fromkeys([*own, *given.columns]))))
    roles = given.some("label", "score", "prediction", "threshold", "positive")
    label, _, decision = outcomes(table, frame, **roles)
    if not (n := len(frame)):
        raise InvalidInput(f"{table.name} has no rows. An audit needs rows of data", source=table.name)
    y = np.zeros(n, dtype=np.int64) if label is None else label
    d = np.zeros(n, dtype=np.int64) if decision is None else decision
    event, among = (np.array(mask, dtype=bool)[y, d] for mask in (rate.event, rate.among))
    return (
        event.astype(np.int64),
        among,
        {name: _coded(table, name, frame[name], given) for name in given.columns},
    )


def _coded(table: tables.Table, name: str, column: pd.Series, given: Given) -> Coded:
    """Return a column as codes. Numbers with many values are cut into groups; other values are kept.

    Texts are categories. In a CSV file, numbers are texts too, but codes such as 01 are categories.
    """
    values = Values.of(table, name, "columns", column)
    texts = [value for value in values.distinct if isinstance(value, str)]
    category = any(map(CODE.match, texts)) if table.is_csv else bool(texts)
    if len(values.distinct) > DISTINCT and not category:
        numbers, faults = doubles(column, Score(name))
        if np.isinf(numbers).any():
            row = int(np.isinf(numbers).argmax())
            problem = f"{table.name}: column {name!r} holds an infinite value in row {row}, counted from 0"
            remedy = "Correct the value, or leave the column out"
            raise InvalidInput(problem, source=table.name, option="columns", column=name, row=row, remedy=remedy)
        if not faults.any() and (cut := binned(numbers, given.bins, DISTINCT)) is not None:
            return cut
    levels = in_order({level_name(value) for value in values.distinct})
    codes = values.coded({value: levels.index(level_name(value)) for value in values.distinct})
    return Coded(codes, tuple(levels))


def _entries(found: Subgroups, tested: Tested, given: Given) -> list[dict[str, Any]]:
    """Return an entry for each subgroup, in the order of the page.

    Rejected subgroups come first, those worse than all other rows before those better, and the largest difference for
    certain first, so a small subgroup does not lead by chance. Subgroups that are not rejected follow by p-value.
    """
    worse = badness(given.metric, tested.rate) > badness(given.metric, tested.rest)
    certain = least_size(tested.low, tested.high)
    rejected = tested.p <= given.alpha
    size = np.where(rejected, -certain, tested.p)
    order = np.lexsort((-np.abs(tested.statistic), size, rejected & ~worse, ~rejected))
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
                "at_least": certain[place] if rejected[place] else None,
                "adjusted_p_value": tested.p[place],
                "worse": bool(worse[place]),
                "rejected": bool(rejected[place]),
            }
        )
        for place in order.tolist()
    ]


def _leading(entries: Entries) -> tuple[str, Entries]:
    """Return the subgroups to name first, with a title for them: those that are significantly worse, if there are any.

    The ``entries`` are in the order of the page.
    """
    rejected = [entry for entry in entries if entry["rejected"]]
    if worse := [entry for entry in rejected if entry["worse"]]:
        return f"Worst first{CERTAIN}", worse
    return (f"Only better than all others{CERTAIN}", rejected) if rejected else ("The smallest p-values", entries)


def _name(entry: Mapping[str, Any]) -> str:
    """Return the name of a subgroup, such as ``age 25 to 34, sex female``."""
    return ", ".join(f"{column} {value}" for column, value in entry["subgroup"].items())


def _table(entries: list[dict[str, Any]], given: Given) -> Table:
    """Return a line for each of the first subgroups."""
    columns = (
        Column("", cell=_name),
        Column("rate", cell=under("estimate", decimal)),
        Column("others", cell=under("rest", decimal)),
        Column("n", cell=under("n", "{:,}".format)),
        Column(f"difference, {level(given.alpha)} interval", cell=under("interval", partial(span))),
        Column("at least", cell=under("at_least", decimal)),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )

    def heading(entry: Mapping[str, Any]) -> str:
        shown = f"shown to be {'worse' if entry['worse'] else 'better'}"
        return shown if entry["rejected"] else "no difference shown, the smallest p-value first"

    rows = rows_of(columns, entries[:500], heading)
    return Table(columns, rows, SHOWN, "subgroups.csv")


def _frame(entries: list[dict[str, Any]]) -> pd.DataFrame:
    keys = ("n", "events", "estimate", "rest", "difference", "at_least", "adjusted_p_value", "rejected")
    rows = [(_name(one), *(one[key] for key in keys), *one["interval"]) for one in entries]
    return pd.DataFrame(rows, columns=["subgroup", *keys, "ci_low", "ci_high"])
