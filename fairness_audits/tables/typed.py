"""Conversion of object columns to the type of their values: numbers, booleans or text."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Number
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from fairness_audits.errors import InvalidInput

if TYPE_CHECKING:
    import pandas as pd

NUMBER = re.compile(r"[+-]?(\d[\d.,'_\s]*|[.,]\d+)([eE][+-]?\d+)?\s*%?")
EXACT = 2**53
"""Doubles represent all integers up to this one."""
NESTED = (list, tuple, dict, set, frozenset, np.ndarray, bytes, bytearray, memoryview)
"""Types of values that are neither numbers nor names."""
Kind = Literal["number", "truth", "text", "other"]


def typed(frame: pd.DataFrame, source: str) -> pd.DataFrame:
    """Convert each object column whose values are all numbers, or all booleans, to that type.

    Text stays text, even if it looks like numbers. Raises InvalidInput for a column that mixes numbers with other
    values.
    """
    changed = {
        place: made
        for place, (name, column) in enumerate(frame.items())
        if (made := column_of(column, str(name), source)) is not column
    }
    if not changed:
        return frame
    columns = [changed.get(place, column) for place, (_, column) in enumerate(frame.items())]
    import pandas as pd

    return pd.concat(columns, axis="columns")


def column_of(column: pd.Series, name: str, source: str) -> pd.Series:
    """Return the column with the type of its values; errors mention its ``name`` and ``source``."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") != "O" or isinstance(column.dtype, pd.CategoricalDtype):
        return column
    known = column.notna()
    values = column[known].astype(object)
    kinds = {kind: _kind(kind) for kind in set(map(type, values))}
    found = set(kinds.values())
    if "number" not in found and found != {"truth"}:
        if "truth" in found and len(found) > 1:
            raise _mixed(values, kinds, name, source)
        return column
    if not found <= {"number", "truth"}:
        raise _mixed(values, kinds, name, source)
    if found == {"truth"}:
        # Keep booleans with missing values as objects, because they are not numbers.
        return column.astype(bool) if known.all() else column
    return pd.Series(_numbers(values.tolist(), known.to_numpy(), name, source), index=column.index, name=column.name)


def nested(column: pd.Series) -> str | None:
    """Return the type of the nested or binary values in a column, such as ``list``; None if there are none."""
    import pandas as pd

    if getattr(column.dtype, "kind", "O") != "O" or isinstance(column.dtype, pd.CategoricalDtype | pd.StringDtype):
        return None
    kinds = {kind for kind in map(type, column.dropna().astype(object)) if issubclass(kind, NESTED)}
    # Lists of Parquet files and of Arrow are arrays in pandas.
    return min(("list" if issubclass(kind, np.ndarray) else kind.__name__ for kind in kinds), default=None)


def numbers_as_text(values: pd.Series) -> list[str]:
    """Return the distinct texts that look like numbers: 12, 0,75, 1.234,5 or 20 %."""
    return [value for value in values.dropna().unique() if isinstance(value, str) and NUMBER.fullmatch(value.strip())]


def _kind(kind: type) -> Kind:
    if issubclass(kind, bool | np.bool_):
        return "truth"
    if issubclass(kind, str):
        return "text"
    return "number" if issubclass(kind, Number) and not issubclass(kind, complex | np.complexfloating) else "other"


def _numbers(values: list[Any], known: np.ndarray, name: str, source: str) -> np.ndarray:
    """Return integers if they fit into 64 bits and none is missing, else doubles."""
    if all(isinstance(value, Integral | np.bool_ | Decimal | Fraction) and _whole(value) for value in values):
        whole = [int(value) for value in values]
        if known.all():
            for dtype in (np.int64, np.uint64):
                try:
                    return np.array(whole, dtype=dtype)
                except OverflowError:
                    pass
        large = {value for value in whole if abs(value) > EXACT}
        if len(set(map(float, large))) < len(large):
            problem = f"{source}: column {name!r} holds whole numbers that do not fit in 64 bits, such as {max(large)}"
            remedy = "Store them as text if they are names, otherwise as floating-point numbers"
            raise InvalidInput(problem, source=source, column=name, remedy=remedy)
        values = whole
    found = np.full(len(known), np.nan)
    found[known] = [float(value) for value in values]
    return found


def _whole(value: Any) -> bool:
    return isinstance(value, Integral | np.bool_) or (np.isfinite(float(value)) and value == int(value))


def _mixed(values: pd.Series, kinds: dict[type, Kind], name: str, source: str) -> InvalidInput:
    """Return an error that shows a value of each kind, with its row."""
    shown: dict[str, str] = {}
    for row, value in values.items():
        kind = "number" if kinds[type(value)] == "truth" else kinds[type(value)]
        shown.setdefault(kind, f"{value!r} (row {row})")
        if len(shown) > 1:
            break
    problem = (
        f"{source}: column {name!r} mixes numbers with other values, such as {' and '.join(shown.values())}, rows "
        "counted from 0"
    )
    remedy = "Make all of them numbers (pandas.to_numeric), or all of them text (.astype(str))"
    return InvalidInput(problem, source=source, column=name, row=row if isinstance(row, int) else None, remedy=remedy)


def number_of(value: Any) -> float | None:
    """Return the finite number of a value or its text; None for other texts, such as 1_000."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) and "_" not in str(value) else None
