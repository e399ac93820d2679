"""Errors about rows: which column, how many rows and where the first ones stand, and what to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.messages import check_columns, listed
from pipeline.tabulate.reading import Score
from pipeline.tabulate.table import Fault, Faulty, Place, Table, TooManyCells


def check_named(table: Table, columns: Mapping[str, str | None]) -> None:
    """ValueError for a column that the table lacks, with the nearest that it has; ``columns`` by their role."""
    for role, column in columns.items():
        if column is not None:
            check_columns(table, (column,), role, table.name)
    named = [column for column in columns.values() if column is not None]
    if twice := sorted({column for column in named if named.count(column) > 1}):
        roles = [role for role, column in columns.items() if column in twice]
        raise ValueError(f"column {twice[0]!r} is given as {' and as '.join(roles)}: it can only be one of them")


def check_present(table: Table, column: str, role: str, values: Mapping[Any, int]) -> None:
    """ValueError where rows have no value in this column; ``values`` are its values with their numbers of rows."""
    if missing := sum(count for value, count in values.items() if is_missing(value)):
        found = where(table.places(Faulty(column, "missing")), missing, sum(values.values()), values=False)
        raise ValueError(f"{table.name}: column {column!r} ({role}) is missing in {found}: fill them in or remove them")


def check_scores(table: Table, score: Score, role: str, faults: Mapping[Fault, int]) -> None:
    """ValueError where rows have a score that is none; ``faults`` are the numbers of rows with each fault."""
    bounded = math.isfinite(score.low) or math.isfinite(score.high)
    problems: Mapping[Fault, tuple[str, str]] = {
        "missing": ("is missing", "fill them in or remove them"),
        "text": ("is not a number", "write numbers with a decimal point, or name another column"),
        "outside": (
            f"is outside [{score.low:g}, {score.high:g}]" if bounded else "is infinite",
            "mend these rows, or give other bounds (--score-range)"
            if role == "score" and bounded
            else "mend these rows",
        ),
    }
    for fault, (problem, remedy) in problems.items():
        if count := faults.get(fault, 0):
            places = table.places(Faulty(score.column, fault, score.low, score.high))
            found = where(places, count, sum(faults.values()), values=fault != "missing")
            raise ValueError(f"{table.name}: column {score.column!r} ({role}) {problem} in {found}: {remedy}")


def where(places: Sequence[Place], count: int, total: int, values: bool) -> str:
    """``2 of 1,000 rows, counted from 0: 7 (1.5), 12 (-3)``, with the rows' values where these say something."""
    text = f"{count:,} of {total:,} rows"
    if not places:
        return text
    if places[0].row is None:
        return f"{text}, such as {listed([_short(place.value) for place in places])}" if values else text
    shown = [
        f"{place.row}{f' of {place.file}' if place.file else ''}{f' ({_short(place.value)})' if values else ''}"
        for place in places
    ]
    more = f" and {count - len(shown):,} more" if count > len(shown) else ""
    return f"{text}, counted from 0: {', '.join(shown)}{more}"


def too_many_cells(table: Table, found: TooManyCells, limit: int) -> ValueError:
    """The error for a table that would be hardly smaller than the rows."""
    each = ", ".join(f"{column!r} about {count:,}" for column, count in found.distinct.items())
    return ValueError(
        f"{table.name}: the table of counts has more than {limit:,} cells. Distinct values: {each}. Count scores in "
        "bins, take a threshold, or read the rows themselves; band a group or a label that is a number"
    )


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def is_missing(value: Any) -> bool:
    """NULL, NaN, NaT or pandas' NA."""
    return (
        value is None or type(value).__name__ in ("NAType", "NaTType") or (isinstance(value, float) and value != value)
    )
