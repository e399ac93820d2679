"""Interpretation of a column's values as classes 0 and 1 or as groups, and checks of these values.

Errors name the column, the number of faulty rows, the first of these rows, and the remedy.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import SHOWN, advised, check_columns, has_column, listed, option_in, unlike
from fairness_audits.tables.table import (
    DISTINGUISHED,
    Fault,
    Faulty,
    Place,
    Placed,
    Score,
)
from fairness_audits.tables.typed import number_of

WHOLE = re.compile(r"(-?[1-9]\d*|-?0)\.0+")
"""Pattern of a whole number with decimals, such as 1.0; codes such as 01.0 do not match."""
MOST_GROUPS = 50
"""Maximum number of groups; a column with more values probably holds a number or a name."""


def label_classes(
    table: Placed, column: str, values: Mapping[Any, int], positive: str | None, several: bool = False
) -> dict[Any, int]:
    """Return the class, 0 or 1, of each value of the label.

    Without ``positive``, the values must be 0 and 1 (or true and false). With ``positive``, this value is 1 and the
    other one is 0; there may be more than two values only with ``several``. ``values`` holds the number of rows of each
    value. A label with a single class passes, because the metrics report which class they lack.
    """
    if positive is None:
        found = {value: _binary(value) for value in values}
        strange = sorted((value for value, code in found.items() if code is None), key=str)
        if not strange:
            return {value: code for value, code in found.items() if code is not None}
        if len(held := in_order(map(level_name, values))) == 2:
            problem = f"holds {listed(held)} instead of 0 and 1"
            remedy = f"Name the value that counts as 1, such as {advised('positive', held[1])}"
            raise unfit(table, column, "label", problem, remedy, option="positive")
        raise _not_two(table, column, values, strange, several)
    names = {value: level_name(value) for value in values}
    if len(set(names.values())) > 2 and not several:
        strange = [value for value in values if _binary(value) is None] or list(values)
        raise _not_two(table, column, values, sorted(strange, key=str), several)
    one = matching_level(table, column, names.values(), positive, "positive")
    return {value: int(name == one) for value, name in names.items()}


def prediction_classes(
    table: Placed, column: str, values: Mapping[Any, int], labels: Mapping[Any, int]
) -> dict[Any, int]:
    """Return the class of each prediction value: the class of the same label value, or else the value 0 or 1 itself."""
    named = {level_name(known): code for known, code in labels.items()}
    by_label = {value: named.get(level_of(named, level_name(value), column)) for value in values}
    binary = {value: _binary(value) for value in values}
    if len(set(named)) > 2 and None not in (*by_label.values(), *binary.values()) and by_label != binary:
        problem = f"holds {_shown(values)}, which can be decisions or values of the label, {_shown(labels)}"
        remedy = "Give the values of the label other names, such as a, b and c, in both columns or in the label alone"
        raise unfit(table, column, "prediction", problem, remedy)
    for found in (by_label, binary):
        if None not in found.values():
            return {value: code for value, code in found.items() if code is not None}
    strange = [value for value in values if by_label[value] is None and binary[value] is None]
    unlabelled = [value for value in values if by_label[value] is None]
    odd = min(strange or unlabelled, key=str)
    places = table.places(Faulty(column, "value", value=odd))
    at = where(places, values[odd], sum(values.values()), values=False)
    problem = f"holds {_shown(values)}: expected 0 and 1, or the values of the label; {str(odd)!r} is in {at}"
    remedy = "If these are scores, pass them as scores, with a threshold"
    if all(_amount(value) is None for value in strange):
        one = in_order(map(level_name, values))[-1]
        remedy = f"Recode them as 0 and 1, or give the label with the same values, and {advised('positive', one)}"
    raise unfit(table, column, "prediction", problem, remedy, places=places)


def group_names(
    table: Placed, column: str, values: Mapping[Any, int], against: str | None, role: str = "group"
) -> dict[Any, str]:
    """Return the group of each value: one group per value, or ``against`` and one group of all other values."""
    names = {value: level_name(value) for value in values}
    if against is not None:
        one = matching_level(table, column, names.values(), against, role)
        rest = rest_of(against, names.values())
        names = {value: against if name == one else rest for value, name in names.items()}
    if len(set(names.values())) == 1:
        only, count = next(iter(names.values())), sum(values.values())
        problem = f"is {only!r} in all {count:,} rows. There is no other group to compare with"
        raise unfit(table, column, role, problem)
    if len(set(names.values())) > MOST_GROUPS:
        problem = f"has {len(values):,} values ({_shown(values)}), but at most {MOST_GROUPS} groups can be compared"
        remedy = (
            "Cut numbers into ranges, or group by whether the value is one of them, such as "
            f"{level_name(in_order(values)[0])}"
        )
        raise unfit(table, column, role, problem, remedy)
    return names


def rest_of(level: str, levels: Iterable[str]) -> str:
    """Return a name for all other levels together that is not itself a level."""
    return unlike(f"not {level}", set(levels), "all others")


def in_order(values: Iterable[Any]) -> list[str]:
    """Return the values as texts, numbers first and by size: the same order for every engine and file format."""
    return sorted({str(value) for value in values}, key=place_of)


def place_of(value: Any) -> tuple[bool, float, str]:
    """Return the sort key of a value: numbers first and by size, then texts."""
    number = number_of(value)
    return number is None, number or 0.0, str(value)


def level_name(value: Any) -> str:
    """Return a value as text: 1 and 1.0 are the same level, 01 is another; true, True and TRUE are the same."""
    text = str(float(value) if isinstance(value, Decimal) else value)
    if text.lower() in ("true", "false"):
        return text.capitalize()
    found = WHOLE.fullmatch(text)
    return (found[1] if found[1] != "-0" else "0") if found else text


def level_of(values: Iterable[Any], wanted: str, column: object) -> Any:
    """Return the value that a text denotes, first by text, then by number; None if there is none.

    True equals 1 and False equals 0. Raises InvalidInput if several values match, such as 1 and 01 for 1.0.
    """
    known, number = list(dict.fromkeys(values)), _amount(wanted)
    for alike in (
        [value for value in known if str(value) == wanted],
        [value for value in known if number is not None and _amount(value) == number],
    ):
        if len(alike) > 1:
            shown = listed(sorted(map(repr, alike)))
            problem = f"{wanted!r} matches {len(alike)} values of column {column!r}: {shown}"
            raise InvalidInput(problem, column=str(column), remedy="Name one of them")
        if alike:
            return alike[0]
    return None


def matching_level(table: Placed, column: str, names: Iterable[str], wanted: str, named_by: str) -> str:
    """Return the level in ``names`` that a text denotes. Raises InvalidInput if none or more than one matches."""
    known = list(names)
    found: str | None = level_of(known, level_name(wanted), column)
    if found is None:
        problem = f"{named_by} names {wanted!r}, but column {column!r} of {table.name} holds {_shown(known)}"
        raise InvalidInput(problem, source=table.name, option=option_in(named_by), column=column)
    return found


def _not_two(table: Placed, column: str, values: Mapping[Any, int], strange: list[Any], several: bool) -> InvalidInput:
    places = table.places(Faulty(column, "value", value=strange[0]))
    at = where(places, values[strange[0]], sum(values.values()), values=False)
    problem = (
        f"must have the two classes 0 and 1, but has {len(values):,} values ({_shown(values)}); {str(strange[0])!r} "
        f"is in {at}"
    )
    remedy = "Keep only rows of two classes, or recode the label as 0 and 1"
    if several:
        remedy = f"Name the value that counts as 1, such as {advised('positive', str(strange[0]))}"
    return unfit(table, column, "label", problem, remedy, places=places)


def unfit(
    table: Placed,
    column: str,
    role: str,
    problem: str,
    remedy: str = "",
    *,
    option: str | None = None,
    places: Sequence[Place] = (),
) -> InvalidInput:
    """Return the error for a column with this role; ``places`` are its first faulty rows, ``option`` must change."""
    return InvalidInput(
        f"{table.name}: column {column!r} ({role}) {problem}",
        source=table.name,
        option=option or option_of(role),
        column=column,
        row=first_row(places),
        remedy=remedy,
    )


def of_other_type(table: Placed, column: str, kind: str, role: str = "") -> InvalidInput:
    """Return the error for a column of a nested or binary type, with its role if that is known."""
    problem, remedy = f"holds {kind} values, which are neither numbers nor text", "Convert them to numbers or text"
    if role:
        return unfit(table, column, role, problem, remedy)
    return InvalidInput(f"{table.name}: column {column!r} {problem}", source=table.name, column=column, remedy=remedy)


def _shown(values: Iterable[Any]) -> str:
    return listed(in_order(values), SHOWN)


def _binary(value: Any) -> int | None:
    """Return 0 or 1 for a value that is one of these numbers, true or false; else None."""
    number = _amount(value)
    return None if number not in (0.0, 1.0) else int(number)


def _amount(value: Any) -> float | None:
    """Return the finite number of a value or its text; true is 1 and false is 0."""
    return {"true": 1.0, "false": 0.0}.get(str(value).strip().lower(), number_of(str(value)))


def check_named(table: Placed, columns: Mapping[str, str | None]) -> None:
    """Raise InvalidInput for a column that the table lacks, with similar names, or that has two roles."""
    named = [column for column in columns.values() if column is not None]
    lacking = [role for role, column in columns.items() if column is not None and not has_column(table, column)]
    check_columns(table, named, listed(lacking), table.name)
    if twice := sorted({column for column in named if named.count(column) > 1}):
        roles = [role for role, column in columns.items() if column in twice]
        problem = f"column {twice[0]!r} is both {' and '.join(roles)}"
        raise InvalidInput(
            problem, source=table.name, option=option_in(roles[-1]), column=twice[0], remedy="Drop one of them"
        )


def check_present(table: Placed, column: str, role: str, values: Mapping[Any, int]) -> None:
    """Raise InvalidInput if rows have no value in this column; ``values`` holds the number of rows of each value."""
    if missing := sum(count for value, count in values.items() if is_missing(value)):
        places = table.places(Faulty(column, "missing"))
        found = where(places, missing, sum(values.values()), values=False)
        remedy = "Fill in these values or remove these rows"
        raise unfit(table, column, role, f"is missing in {found}", remedy, places=places)


def check_scores(table: Placed, score: Score, role: str, faults: Mapping[Fault, int]) -> None:
    """Raise InvalidInput if rows have invalid scores; ``faults`` holds the number of rows with each fault."""
    bounded = math.isfinite(score.low) or math.isfinite(score.high)
    problems: Mapping[Fault, tuple[str, str]] = {
        "missing": ("is missing", "Fill in these values or remove these rows"),
        "text": ("is not a number", "Write numbers with a decimal point, or name another column"),
        "outside": (
            f"is outside [{score.low:g}, {score.high:g}]" if bounded else "is infinite",
            "Whole numbers this large are rounded in double precision. Subtract a constant from all of them"
            if score.high == DISTINGUISHED
            else "Correct these rows",
        ),
    }
    for fault, (problem, remedy) in problems.items():
        if count := faults.get(fault, 0):
            places = table.places(Faulty(score.column, fault, score.low, score.high))
            found = where(places, count, sum(faults.values()), values=fault != "missing")
            raise unfit(table, score.column, role, f"{problem} in {found}", remedy, places=places)


def option_of(role: str) -> str | None:
    """Return the option that names a column with this role."""
    return {"feature": "features", "numbers": None}.get(role, option_in(role))


def first_row(places: Sequence[Place]) -> int | None:
    """Return the number of the first row; None if rows have no order."""
    return places[0].row if places else None


def where(places: Sequence[Place], count: int, total: int, values: bool) -> str:
    """Return text such as ``2 of 1,000 rows, counted from 0: 7 (1.5), 12 (-3)``; ``values`` adds the brackets."""
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


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def is_missing(value: Any) -> bool:
    """Return True for NULL, NaN, NaT and pandas' NA."""
    nothing = value is None or type(value).__name__ in ("NAType", "NaTType")
    return nothing or (isinstance(value, float | np.floating) and bool(np.isnan(value)))
