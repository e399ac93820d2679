"""The scan as SQL, in the words that DuckDB and Spark share; a dialect says how names and texts are quoted.

No name or value of the user's enters a statement unquoted. A number enters as CAST('...' AS DOUBLE) of its shortest
exact decimal, since a bare 0.1 is a DECIMAL in both engines.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fairness_audits.tables.table import FAULTS, Bins, Decision, Faulty, Reading, Request, Threshold

KEYS = ("group_value", "label_value", "fault", "outcome_value")


@dataclass(frozen=True)
class Dialect:
    """How an engine quotes: ``name`` of a column, ``text`` as a literal."""

    name: Callable[[str], str]
    text: Callable[[str], str]

    def double(self, value: float) -> str:
        """A number as a literal."""
        return f"CAST({self.text(repr(float(value)))} AS DOUBLE)"


@dataclass(frozen=True)
class Column:
    """A column as SQL: ``raw`` as it stands; ``number`` as a double, NULL where a text is no number.

    ``number`` is None for a column of another type (a date, a list).
    """

    raw: str
    number: str | None


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
    if not isinstance(reading, Bins):
        return f"{s} + CAST('0.0' AS DOUBLE)"  # -0.0 and 0.0 are one score
    low, width, number = (dialect.double(v) for v in (reading.low, reading.high - reading.low, reading.number))
    guess = f"floor(({s} - {low}) * ({number} / {width}))"
    # The product may be off by a rounding where s is at an edge; the edges themselves decide.
    upper, lower = (f"{low} + ({guess} + {dialect.double(step)}) * {width} / {number}" for step in (1, 0))
    moved = f"{guess} + CASE WHEN {s} >= {upper} THEN 1 WHEN {s} < {lower} THEN -1 ELSE 0 END"
    return f"CAST(least(greatest({moved}, {dialect.double(0)}), {dialect.double(reading.number - 1)}) AS INTEGER)"


def _literal(dialect: Dialect, value: Any) -> str | None:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return dialect.double(value)
    return dialect.text(value) if isinstance(value, str) else None
