"""From a table to the arrays of an audit: features, label and sensitive attributes, each column checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.messages import SHOWN, check_columns, listed
from pipeline.types import Array


@dataclass(frozen=True)
class Attribute:
    """A sensitive attribute: a column with two levels, or one ``level`` of a column against all the others."""

    column: str
    level: str | None = None

    @property
    def name(self) -> str:
        """How the attribute is called in results: ``sex`` or ``race=White``."""
        return self.column if self.level is None else f"{self.column}={self.level}"


def attribute(text: str, columns: Sequence[str]) -> Attribute:
    """``sex`` is a column, ``race=White`` a level of one, unless a column has the whole text as its name."""
    column, equals, level = text.partition("=")
    return Attribute(text) if text in columns or not equals else Attribute(column, level)


@dataclass(frozen=True)
class Choice:
    """What the user says about the columns. ``features`` empty: every column that has no other part.

    ``option`` is what the audit calls its sensitive columns on the command line.
    """

    label: str | None
    positive: str | None = None
    sensitive: tuple[Attribute, ...] = ()
    include_sensitive: bool = False
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    option: str = "--sensitive"


@dataclass(frozen=True)
class Rows:
    """Arrays of n rows: ``features`` (n, d) float64, ``label`` (n,) int64 in {0, 1} (empty without a label).

    ``sensitive[name]`` (n,) int64 in {0, 1}. ``label_levels`` and ``levels[name]`` say what 0 and 1 stand for.
    ``sensitive_inputs`` are the positions of the features that are themselves sensitive columns.
    """

    features: Array
    names: tuple[str, ...]
    label: Array
    label_levels: tuple[str, str] = ("0", "1")
    sensitive: Mapping[str, Array] = field(default_factory=dict)
    levels: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    sensitive_inputs: tuple[int, ...] = ()

    def only(self, places: Array) -> Rows:
        """The rows at these places (m,)."""
        sensitive = {name: group[places] for name, group in self.sensitive.items()}
        return replace(self, features=self.features[places], label=self.label[places], sensitive=sensitive)


def rows(table: pd.DataFrame, choice: Choice, path: Path) -> Rows:
    """The arrays that ``choice`` makes of the table; ValueError names the column, the rows and what to do."""
    names = feature_names(table, choice, path)
    label, label_levels = np.zeros(0, dtype=np.int64), ("0", "1")
    if choice.label is not None:
        label, label_levels = two_classes(table[choice.label], choice.positive, path)
    coded = {attribute.name: two_levels(table, attribute, path) for attribute in choice.sensitive}
    columns = {attribute.column for attribute in choice.sensitive}
    return Rows(
        features=numeric(table, names, path),
        names=names,
        label=label,
        label_levels=label_levels,
        sensitive={name: code for name, (code, _) in coded.items()},
        levels={name: levels for name, (_, levels) in coded.items()},
        sensitive_inputs=tuple(position for position, name in enumerate(names) if name in columns),
    )


def feature_names(table: pd.DataFrame, choice: Choice, path: Path) -> tuple[str, ...]:
    """The model's input columns in their order: ``choice.features``, or all columns that have no other part."""
    label = () if choice.label is None else (choice.label,)
    sensitive = tuple(attribute.column for attribute in choice.sensitive)
    check_columns(table, label, "--label", str(path))
    check_columns(table, sensitive, choice.option, str(path))
    check_columns(table, choice.features, "--features", str(path))
    check_columns(table, choice.drop, "--drop", str(path))
    if set(label) & set(sensitive):
        raise ValueError(
            f"column {choice.label!r} is given as --label and as {choice.option}: it can only be one of them"
        )
    if not choice.features:
        left_out = {*label, *choice.drop, *(() if choice.include_sensitive else sensitive)}
        names = tuple(name for name in table.columns if name not in left_out)
        if not names:
            raise ValueError(f"{path}: no feature column is left beside label, {choice.option[2:]} and dropped columns")
        return names
    repeated = sorted({name for name in choice.features if choice.features.count(name) > 1})
    if repeated:
        raise ValueError(f"--features names {listed(repeated)} more than once: name each column once")
    both = [name for name in choice.features if name in {*label, *choice.drop}]
    if both:
        raise ValueError(f"--features names {listed(both)}, which is also the label or dropped: leave one of them out")
    return choice.features


LARGEST = 1e100
"""Squares of larger numbers, which variances are made of, overflow."""


def numeric(table: pd.DataFrame, names: Sequence[str], path: Path) -> Array:
    """The named columns as (n, d) float64; ValueError for text, missing and infinite values.

    Rows are named by the table's index, so that a part of a file speaks of the file's own rows.
    """
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    wrong = [
        name
        for name in names
        if not (is_numeric_dtype(table[name]) or is_bool_dtype(table[name])) or is_complex_dtype(table[name])
    ]
    if wrong:
        found = "; ".join(f"{name!r} holds {_examples(table[name])}" for name in wrong[:SHOWN])
        more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise ValueError(
            f"{path}: expected numbers in every feature column, but {found}{more}. Encode these columns as the model "
            f"expects them (pandas.get_dummies, for example), or leave them out: --drop {','.join(wrong)}"
        )
    columns = [table[name].to_numpy(dtype=np.float64, na_value=np.nan) for name in names]
    features = np.column_stack(columns)
    for finite, problem, remedy in (
        (~np.isnan(features), "is missing", "fill them in or remove these rows, as was done for the model's training"),
        (~np.isinf(features), "is infinite", "mend or remove these rows"),
        (
            ~(np.abs(features) > LARGEST),
            f"is beyond {LARGEST:g}",
            "mend these rows, or give the column in another unit",
        ),
    ):
        bad = np.flatnonzero(~finite.all(axis=0))
        if bad.size:
            where = table.index[~finite[:, bad[0]]]
            others = f" (so it is in {len(bad) - 1} more columns)" if len(bad) > 1 else ""
            raise ValueError(f"{path}: column {names[bad[0]]!r} {problem} in {_at(where)}{others}: {remedy}")
    return features


def two_classes(column: pd.Series, positive: str | None, path: Path) -> tuple[Array, tuple[str, str]]:
    """The label as 0 and 1, with the values that these stand for."""
    values = distinct(column, "--label", path)
    if len(values) != 2:
        raise ValueError(
            f"{path}: the label {column.name!r} must have two classes, found {len(values)}: {listed(values, SHOWN)}. "
            "This audit is for models of two classes: keep the rows of two, or code the label as 0 and 1"
        )
    if positive is None:
        if [_number(value) for value in values] != [0.0, 1.0]:
            raise ValueError(
                f"{path}: the label {column.name!r} holds {listed(values)}, not 0 and 1: say which one the model's "
                f"class 1 is, with --positive {values[1]!r}"
            )
        one = values[1]
    else:
        one = level_named(values, positive, "--positive", column, path)
    zero = next(value for value in values if value is not one)
    return (column == one).to_numpy(dtype=np.int64), (str(zero), str(one))


def two_levels(table: pd.DataFrame, attribute: Attribute, path: Path) -> tuple[Array, tuple[str, str]]:
    """A sensitive attribute as 0 and 1, with the levels that these stand for."""
    column = table[attribute.column]
    values = distinct(column, "--sensitive", path)
    if attribute.level is not None:
        one = level_named(values, attribute.level, f"--sensitive {attribute.name}", column, path)
        if len(values) == 1:
            raise ValueError(f"{path}: {attribute.column!r} is {one!r} in every row: there is nothing to compare with")
        return (column == one).to_numpy(dtype=np.int64), (f"not {one}", str(one))
    if len(values) != 2:
        remedy = (
            f"compare one level with the rest, --sensitive {attribute.column}={values[0]}, or code it in two levels"
            if len(values) > 2
            else "an attribute that is the same in all rows cannot be audited"
        )
        raise ValueError(
            f"{path}: the sensitive column {attribute.column!r} must have two levels, found {len(values)}: "
            f"{listed(values, SHOWN)}: {remedy}"
        )
    return (column == values[1]).to_numpy(dtype=np.int64), (str(values[0]), str(values[1]))


def distinct(column: pd.Series, option: str, path: Path) -> list[object]:
    """The sorted distinct values of a column without missing ones."""
    missing = column.index[column.isna()]
    if len(missing):
        raise ValueError(
            f"{path}: column {column.name!r} ({option}) is missing in {_at(missing)}: fill them in or remove these rows"
        )
    try:
        return sorted(column.unique().tolist(), key=lambda value: (isinstance(value, str), value))
    except TypeError as error:
        raise ValueError(
            f"{path}: column {column.name!r} ({option}) holds values that cannot be compared, such as "
            f"{_examples(column.head(1).map(str))}: expected numbers or text"
        ) from error


def level_named(values: Sequence[object], wanted: str, option: str, column: pd.Series, path: Path) -> object:
    """The value that the user's text stands for: the same text, or the same number."""
    for value in values:
        if str(value) == wanted or (_number(value) is not None and _number(value) == _number(wanted)):
            return value
    raise ValueError(
        f"{option} asks for the value {wanted!r}, but column {column.name!r} of {path} holds {listed(values, SHOWN)}"
    )


def level_text(value: object) -> str:
    """A value of a column as text; a whole number without its decimals."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _number(value: object) -> float | None:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def _examples(column: pd.Series) -> str:
    return listed([repr(value) for value in column.dropna().unique()[:2].tolist()]) or "nothing"


def _at(where: Sequence[int]) -> str:
    """``row 7`` or ``3 rows: 7, 9, 12``, rows counted from 0."""
    if len(where) == 1:
        return f"row {where[0]} (counted from 0)"
    return f"{len(where)} rows: {listed(list(where), SHOWN)} (counted from 0)"
