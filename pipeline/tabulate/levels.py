"""What the values of a column stand for: the classes 0 and 1, or the groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from pipeline.messages import SHOWN, listed
from pipeline.tabulate.faults import where
from pipeline.tabulate.table import Faulty, Table

MOST_GROUPS = 50
"""A column with more values than this holds no groups, but a number or a name."""


def label_classes(table: Table, column: str, values: Mapping[Any, int], positive: str | None) -> dict[Any, int]:
    """Which class, 0 or 1, each value of the label is.

    Without ``positive`` the values must be 0 and 1 (or true and false); with it they must be two, of which it is 1.
    ``values`` are all values with their numbers of rows. One class alone passes: the metrics say what they lack.
    """
    if positive is None:
        found = {value: _binary(value) for value in values}
        strange = sorted((value for value, code in found.items() if code is None), key=str)
        if not strange:
            return {value: code for value, code in found.items() if code is not None}
        if len(values) == len(strange) == 2:
            raise ValueError(
                f"{table.name}: column {column!r} (label) holds {listed(in_order(values))}, not 0 and 1: say which "
                f"of them counts as 1, with positive (--positive) {in_order(values)[1]!r} for example"
            )
        raise _not_two(table, column, values, strange)
    if len(values) > 2:
        strange = [value for value in values if _binary(value) is None] or list(values)
        raise _not_two(table, column, values, sorted(strange, key=str))
    one = [value for value in values if same(value, positive)]
    if not one:
        raise ValueError(
            f"positive is {positive!r}, but column {column!r} (label) of {table.name} holds {_shown(values)}"
        )
    return {value: int(value == one[0]) for value in values}


def prediction_classes(
    table: Table, column: str, values: Mapping[Any, int], labels: Mapping[Any, int]
) -> dict[Any, int]:
    """Which class each value of the prediction is: that of the label's same value, else 0 and 1 by themselves."""
    by_label = {value: next((labels[known] for known in labels if same(known, str(value))), None) for value in values}
    for found in (by_label, {value: _binary(value) for value in values}):
        if None not in found.values():
            return {value: code for value, code in found.items() if code is not None}
    odd = min((value for value in values if _binary(value) is None), key=str, default=next(iter(values)))
    at = where(table.places(Faulty(column, "value", value=odd)), values[odd], sum(values.values()), values=False)
    raise ValueError(
        f"{table.name}: column {column!r} (prediction) holds {_shown(values)}: expected 0 and 1, or the label's own "
        f"values; {str(odd)!r} is in {at}. If these are scores, name the column as score and give a threshold"
    )


def group_names(table: Table, column: str, values: Mapping[Any, int], against: str | None) -> dict[Any, str]:
    """The group that each value belongs to: its own, or that of ``against`` and that of all the others."""
    if against is not None:
        if not any(same(value, against) for value in values):
            raise ValueError(
                f"the group {against!r} is not in column {column!r} of {table.name}: it holds {_shown(values)}"
            )
        names = {value: against if same(value, against) else f"not {against}" for value in values}
    else:
        names = {value: str(value) for value in values}
    if len(set(names.values())) == 1:
        only, count = next(iter(names.values())), sum(values.values())
        raise ValueError(
            f"{table.name}: column {column!r} (group) is {only!r} in all {count:,} rows: there is nothing to "
            "compare it with"
        )
    if len(set(names.values())) > MOST_GROUPS:
        raise ValueError(
            f"{table.name}: column {column!r} (group) has {len(values):,} values, {_shown(values)}: expected at most "
            f"{MOST_GROUPS} groups. Band a number first, or compare one value with all the others: "
            f"{column}={in_order(values)[0]}"
        )
    return names


def in_order(values: Mapping[Any, Any]) -> list[str]:
    """The values as texts, numbers first and by size: the same order whatever engine and file they come from."""
    return sorted(
        {str(value) for value in values}, key=lambda text: (_number(text) is None, _number(text) or 0.0, text)
    )


def same(value: Any, text: str) -> bool:
    """Whether a text stands for this value: the same text, or the same number."""
    number = _number(text)
    return str(value) == text or (number is not None and number == _number(str(value)))


def _not_two(table: Table, column: str, values: Mapping[Any, int], strange: list[Any]) -> ValueError:
    places = table.places(Faulty(column, "value", value=strange[0]))
    at = where(places, values[strange[0]], sum(values.values()), values=False)
    return ValueError(
        f"{table.name}: column {column!r} (label) must have two classes, 0 and 1, found {len(values):,} values, "
        f"{_shown(values)}; {str(strange[0])!r} is in {at}. Keep the rows of two classes, or code the label as "
        "0 and 1"
    )


def _shown(values: Mapping[Any, Any]) -> str:
    return listed(in_order(values), SHOWN)


def _binary(value: Any) -> int | None:
    """0 or 1 where the value says so as a number or as true and false."""
    number = {"true": 1.0, "false": 0.0}.get(str(value).strip().lower(), _number(str(value)))
    return None if number not in (0.0, 1.0) else int(number)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
