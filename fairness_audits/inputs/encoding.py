"""Encoding of a model's inputs as numbers: categories become indicators, and indicators become categories again."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.table import FILL, Attribute, Rows, Source, check_complete, rows
from fairness_audits.messages import apart
from fairness_audits.tables.levels import level_name, place_of
from fairness_audits.tables.rows import Values
from fairness_audits.tables.typed import numbers_as_text
from fairness_audits.values import Array

MOST_LEVELS = 100
"""Largest number of levels in a category. A text column with more levels is a name or an identifier."""


@dataclass(frozen=True)
class Encoding:
    """The ``columns`` of the model's input and their d features: ``names``, and ``groups`` of positions by column.

    A column of numbers is one feature. ``levels`` has the levels of each category. A category with two levels is one
    feature, 1 for the second level. A category with more levels has an indicator for each. ``flags`` are the columns of
    booleans.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    groups: tuple[tuple[int, ...], ...]
    levels: Mapping[str, pd.Series]
    flags: frozenset[str]

    @property
    def categories(self) -> tuple[tuple[int, ...], ...]:
        """Return the features of each category with more than two levels."""
        return tuple(group for group in self.groups if len(group) > 1)

    def in_order(self, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the names of the features in this order of the ``columns``, without columns that are not inputs."""
        of_column = dict(zip(self.columns, self.groups, strict=True))
        return tuple(self.names[j] for name in columns if name in of_column for j in of_column[name])

    def encoded(self, source: Source) -> Source:
        """Return the table with the features next to its other columns.

        Raises InvalidInput for a category with a missing value or an unknown level.
        """
        if not self.levels:
            return source
        table, coded = source.table, dict[str, Array]()
        check_complete(replace(source, table=table[list(self.levels)]), source.name, FILL.capitalize())
        for name, group in zip(self.columns, self.groups, strict=True):
            if name not in self.levels:
                continue
            levels = self.levels[name].tolist()
            code = table[name].map({level: place for place, level in enumerate(levels)}).to_numpy(dtype=float)
            if np.isnan(code).any():
                row = int(np.isnan(code).argmax())
                problem = (
                    f"{source.name}: column {name!r} holds {table[name].iloc[row]!r}, a value that the audited rows "
                    "do not have"
                )
                raise InvalidInput(problem, source=source.name, column=name, row=row, remedy="Remove these rows")
            block = code[:, None] == np.arange(len(levels)) if len(group) > 1 else code[:, None]
            coded |= {self.names[j]: block[:, place].astype(float) for place, j in enumerate(group)}
        return replace(source, table=pd.concat([table, pd.DataFrame(coded, index=table.index)], axis="columns"))

    def rows(self, encoded: Source, sensitive: Sequence[Attribute]) -> Rows:
        """Return the rows of an encoded table, with every feature of a sensitive column marked as sensitive."""
        found, named = rows(encoded, self.names, sensitive), {one.column for one in sensitive}
        own = {j for name, group in zip(self.columns, self.groups, strict=True) if name in named for j in group}
        return replace(found, sensitive_inputs=tuple(sorted(own | set(found.sensitive_inputs))))

    def decoded(self, points: Array) -> pd.DataFrame:
        """Convert points (n, d) to a data frame of the model's columns; a category has the nearest level.

        Booleans are booleans, unless some points lie between 0 and 1.
        """
        if not self.levels and not self.flags:
            return pd.DataFrame(np.array(points), columns=list(self.columns))
        found = {}
        for name, group in zip(self.columns, self.groups, strict=True):
            block = points[:, list(group)]
            if name in self.levels:
                code = block.argmax(axis=1) if len(group) > 1 else (block[:, 0] > 0.5).astype(int)
                found[name] = self.levels[name].take(code).reset_index(drop=True)
            else:
                values = block[:, 0]
                found[name] = values.astype(bool) if name in self.flags and np.isin(values, (0, 1)).all() else values
        return pd.DataFrame(found)


def encoding_of(source: Source, columns: Sequence[str], texts: bool, codes: Collection[str] = ()) -> Encoding:
    """Return the encoding of the model's ``columns``; numeric ``codes``, and with ``texts`` also text, are categories.

    Raises InvalidInput for a category with more than 100 levels.
    """
    levels = {
        name: levels_of(source, source.table[name])
        for name in columns
        if name in codes or (texts and is_category(source.table[name]))
    }
    names: list[str] = []
    groups = []
    for column in columns:
        labels = [column]
        if column in levels:
            own = levels[column].tolist()
            labels = [f"{column}={level_name(level)}" for level in (own if len(own) > 2 else own[-1:])]
            labels = apart(labels, {*source.table.columns, *names}, "level")
        groups.append(tuple(range(len(names), len(names) + len(labels))))
        names += labels
    flags = frozenset(name for name in columns if pd.api.types.is_bool_dtype(source.table[name].dtype))
    return Encoding(tuple(columns), tuple(names), tuple(groups), levels, flags)


def is_category(column: pd.Series) -> bool:
    """Return whether a column holds text or is a pandas category."""
    return isinstance(column.dtype, pd.CategoricalDtype) or getattr(column.dtype, "kind", "O") in "OUS"


def levels_of(source: Source, column: pd.Series) -> pd.Series:
    """Return the levels of a category that occur, in order and in the column's own type.

    Raises InvalidInput for a category with more than 100 levels.
    """
    name, known = str(column.name), column.dropna()
    levels = sorted(Values.of(source, name, "feature", known.astype(object)).distinct, key=place_of)
    if len(levels) > MOST_LEVELS:
        problem = (
            f"{source.name}: column {name!r} has {len(levels)} different values, expected at most {MOST_LEVELS} in a "
            "category"
        )
        other = (
            "if its texts are numbers, convert them" if numbers_as_text(known) else "otherwise merge some of its values"
        )
        remedy = f"If it is a name or an identifier, leave it out of the features; {other}"
        raise InvalidInput(problem, source=source.name, option="drop", column=name, remedy=remedy)
    return pd.Series(levels, dtype=column.dtype)
