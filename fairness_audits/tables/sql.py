"""The scan as SQL, in the words that DuckDB and Spark share; a dialect says how names and texts are quoted.

No name or value of the user's enters a statement unquoted. A number enters as CAST('...' AS DOUBLE) of its shortest
exact decimal, since a bare 0.1 is a DECIMAL in both engines.
"""

import sys
from typing import Any

from fairness_audits.tables.dialect import Column, Dialect
from fairness_audits.tables.table import FAULTS, Bins, Decision, Faulty, Reading, Request, Threshold

KEYS = ("group_value", "label_value", "fault", "outcome_value")
PLACES = ("first_begins", "first_ends", "other_begins", "other_ends")
"""In which bin a score begins and ends, by rank, among the rows of each label."""


def keys(dialect: Dialect, request: Request, outcome: Column) -> dict[str, str]:
    """The four expressions to group by, named KEYS."""
    reading = request.outcome
    fault, value = "0", outcome.raw
    if not isinstance(reading, Decision):
        fault = _fault(dialect, outcome, reading.low, reading.high)
        value = f"CASE WHEN {fault} = 0 THEN {_value(dialect, str(outcome.number), reading)} END"
    return dict(zip(KEYS, (dialect.name(request.group), dialect.name(request.label), fault, value), strict=True))


def condition(dialect: Dialect, faulty: Faulty, found: Column) -> str | None:
    """What is true of the faulty rows; None where the value is of a type without a literal here."""
    if faulty.fault == "value":
        literal = _literal(dialect, faulty.value)
        return None if literal is None else f"{found.raw} = {literal}"
    if faulty.fault == "missing":
        return f"{found.raw} IS NULL" + (f" OR isnan({found.number})" if found.number else "")
    return f"{_fault(dialect, found, faulty.low, faulty.high)} = {FAULTS.index(faulty.fault)}"


def _fault(dialect: Dialect, found: Column, low: float, high: float) -> str:
    """The code of the fault. A score that is NaN is missing; an infinite one is outside any bounds."""
    low, high = max(low, -sys.float_info.max), min(high, sys.float_info.max)
    inside = f"{found.number} >= {dialect.double(low)} AND {found.number} <= {dialect.double(high)}"
    return (
        f"CASE WHEN {found.raw} IS NULL OR isnan({found.number}) THEN {FAULTS.index('missing')} "
        f"WHEN {found.number} IS NULL THEN {FAULTS.index('text')} "
        f"WHEN {inside} THEN {FAULTS.index('none')} ELSE {FAULTS.index('outside')} END"
    )


def _value(dialect: Dialect, s: str, reading: Reading) -> str:
    if isinstance(reading, Threshold):
        return f"CASE WHEN {s} >= {dialect.double(reading.threshold)} THEN 1 ELSE 0 END"
    return f"{s} + CAST('0.0' AS DOUBLE)"  # -0.0 and 0.0 are one score


def counted(reading: Reading, selected: str) -> str:
    """The statement that counts the rows of each value of the KEYS in the table ``selected``; of scores in bins, also
    the lowest and the highest score of each."""
    each = f"SELECT {', '.join(KEYS)}, count(*) AS n FROM {selected} GROUP BY {', '.join(KEYS)}"
    if not isinstance(reading, Bins):
        return each
    labels = {"first": "label_value = least_label", "other": "label_value <> least_label"}
    own = ", ".join(f"CASE WHEN {of} THEN n ELSE 0 END AS {label}" for label, of in labels.items())
    sums = ", ".join(
        f"CAST(sum({label}) OVER ({over}) AS DOUBLE) AS {label}_{name}"
        for label in labels
        for name, over in (("all", ""), ("below", "ORDER BY outcome_value"), ("above", "ORDER BY outcome_value DESC"))
    )
    # Both sums hold the rows of the score itself: so it begins after those that are not above, and ends below.
    ends = [
        f"floor({rank} * {reading.number} / greatest({label}_all, 1))"
        for label in labels
        for rank in (
            f"({label}_all - {label}_above)",
            f"greatest({label}_all - {label}_above, {label}_below - 1)",
        )
    ]
    places = ", ".join(f"{end} AS {name}" for end, name in zip(ends, PLACES, strict=True))
    by = ", ".join((*KEYS[:3], *PLACES))
    return (
        f"WITH each AS ({each}), "
        "labels AS (SELECT *, min(label_value) OVER () AS least_label FROM each), "
        f"classes AS (SELECT *, {own} FROM labels), "
        f"ranks AS (SELECT *, {sums} FROM classes), "
        f"bins AS (SELECT *, {places} FROM ranks) "
        f"SELECT {by}, min(outcome_value), max(outcome_value), CAST(sum(n) AS BIGINT) FROM bins GROUP BY {by}"
    )


def _literal(dialect: Dialect, value: Any) -> str | None:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return dialect.double(value)
    return dialect.text(value) if isinstance(value, str) else None
