"""Selection of rows by settings such as ``block=audit; dataset=adult; steps=500``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.results.formats import parameter

Setting = Mapping[str, "str | float"]


def parse_setting(text: Any) -> dict[str, str | float]:
    """Parse a setting: ``"block=audit; dataset=adult; steps=500"`` gives the keys block, dataset and steps (500.0).

    A value that is not text, such as an empty field, gives an empty setting. Raises InvalidInput for a part without
    ``=`` and for a repeated key.
    """
    setting: dict[str, str | float] = {}
    pieces = text.split(";") if isinstance(text, str) else []
    for part in filter(None, (piece.strip() for piece in pieces)):
        key, separator, value = (piece.strip() for piece in part.partition("="))
        if not separator or not key or not value:
            problem = f"cannot read the setting {part!r} in {text!r}"
            raise InvalidInput(problem, option=key, remedy="Write key=value; key=value")
        if key in setting:
            raise InvalidInput(f"the setting {text!r} gives {key!r} twice", option=key)
        setting[key] = _typed(value)
    return setting


def select(rows: pd.DataFrame, setting: Mapping[str, Any]) -> pd.DataFrame:
    """Select the rows that agree with every part of ``setting``; a list stands for any of its values.

    Raises InvalidInput for a key that is not a column.
    """
    places = np.arange(len(rows))
    for key, wanted in setting.items():
        if key not in rows:
            remedy = f"The rows have {sorted(map(str, rows.columns))}"
            raise InvalidInput(f"there is no setting {key!r}", option=key, remedy=remedy)
        places = places[_equal(rows[key].iloc[places], wanted)]
    return rows.iloc[places]


def by_statistic(rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Split the rows by statistic. Most selections are of one statistic, so this makes them faster."""
    return {str(name): part for name, part in rows.groupby("statistic", sort=False)}


def explain_absence(rows: pd.DataFrame, setting: Setting) -> str:
    """Return which part of ``setting`` first leaves no rows, and which values exist."""
    found = rows.filter(list(setting))
    for key, wanted in setting.items():
        matching = found[_equal(found[key], wanted)]
        if matching.empty:
            known = [text_of(value) for value in sorted(found[key].dropna().unique())]
            there = f"there are {', '.join(known[:12])}" if known else "there is none"
            return f"{key} {text_of(wanted)} ({there})"
        found = matching
    return ""


def text_of(found: Any) -> str:
    """Return a configured value as text."""
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return parameter(float(found))
    if isinstance(found, (list, tuple)):
        return ", ".join(map(text_of, found))
    return str(found)


def check_repetitions(rows: pd.DataFrame, of: str = "") -> None:
    """Raise InvalidInput if a repetition has several values, and name the columns in which they differ."""
    if rows["repetition"].duplicated().any():
        again = rows[rows.duplicated("repetition", keep=False)]
        varying = [c for c in rows.columns if c not in ("value", "repetition") and again[c].nunique(dropna=False) > 1]
        problem = f"{of}several values for a repetition: give {', '.join(varying)} too"
        raise InvalidInput(problem, column=varying[0] if varying else None)


def by_repetition(rows: pd.DataFrame, of: str = "") -> pd.Series:
    """Return one value per repetition, see :func:`check_repetitions`."""
    check_repetitions(rows, of)
    return rows.set_index("repetition")["value"].sort_index()


def _equal(column: pd.Series, wanted: str | float | Sequence[str]) -> np.ndarray:
    if not isinstance(wanted, (str, float, int)):
        return np.logical_or.reduce([_equal(column, one) for one in wanted])
    if isinstance(wanted, str):
        same = column == wanted
        # Nearly all text columns are categories, which compare directly. Only plain text can be missing.
        return np.asarray(same if same.dtype == bool else same.fillna(False), dtype=bool)
    numbers = pd.to_numeric(column, errors="coerce").to_numpy(float)
    return np.isclose(numbers, wanted, rtol=1e-9, atol=0)


def _typed(value: str) -> str | float:
    try:
        return float(value)
    except ValueError:
        return value
