"""SQL of the scan, in the subset that DuckDB and Spark share; a dialect quotes names and texts.

Every name and value from the user is quoted. A number is written as CAST('...' AS DOUBLE) of its shortest exact
decimal, because a bare 0.1 is a DECIMAL in both engines.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.audits.permutation.outcomes import in_precision
from fairness_audits.tables.table import FAULTS, Decision, Faulty, Reading, Request, Threshold

KEYS = ("group_value", "label_value", "fault", "outcome_value")


@dataclass(frozen=True)
class Dialect:
    """The quoting rules of an engine: ``name`` quotes a column's name, ``text`` a text literal."""

    name: Callable[[str], str]
    text: Callable[[str], str]

    def double(self, value: float) -> str:
        """Return a number as a literal."""
        return f"CAST({self.text(repr(float(value)))} AS DOUBLE)"


@dataclass(frozen=True)
class SqlColumn:
    """SQL expressions of a column: ``raw`` is its value, ``number`` is its value as a double, or NULL for a text.

    Numbers have a ``precision``.
    """

    raw: str
    number: str
    precision: np.dtype


def keys(dialect: Dialect, request: Request, outcome: SqlColumn) -> dict[str, str]:
    """Return the four expressions to group by, named KEYS."""
    reading = request.outcome
    fault, value = "0", outcome.raw
    if not isinstance(reading, Decision):
        fault = _fault(dialect, outcome, reading.low, reading.high)
        value = f"CASE WHEN {fault} = 0 THEN {_value(dialect, outcome.number, reading)} END"
    return dict(zip(KEYS, (dialect.name(request.group), dialect.name(request.label), fault, value), strict=True))


def condition(dialect: Dialect, faulty: Faulty, found: SqlColumn) -> str | None:
    """Return the condition that selects the faulty rows; None if the value has a type without a literal."""
    if faulty.fault == "value":
        literal = _literal(dialect, faulty.value, found.precision)
        return None if literal is None else f"{found.raw} = {literal}"
    if faulty.fault == "missing":
        return f"{found.raw} IS NULL OR isnan({found.number})"
    return f"{_fault(dialect, found, faulty.low, faulty.high)} = {FAULTS.index(faulty.fault)}"


def _fault(dialect: Dialect, found: SqlColumn, low: float, high: float) -> str:
    """Return the SQL of the fault's code. A NaN score is missing; an infinite score is outside any bounds."""
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
    return f"{s} + CAST('0.0' AS DOUBLE)"  # -0.0 and 0.0 are the same score


def counted(selected: str) -> str:
    """Return the statement that counts the rows of ``selected`` for each combination of the KEYS."""
    return f"SELECT {', '.join(KEYS)}, count(*) AS n FROM {selected} GROUP BY {', '.join(KEYS)}"


def _literal(dialect: Dialect, value: Any, precision: np.dtype) -> str | None:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return dialect.double(float(in_precision(value, precision)))
    return dialect.text(value) if isinstance(value, str) else None
