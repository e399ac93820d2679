"""The rows of a table as the caller's own model sees them: names, order, types, values, and the kind of table.

An audit computes with columns of its own: numbers in double precision, one kind of missing value, levels as text. The
model must not notice. :meth:`Native.restored` converts rows of the audit back, and :meth:`Native.handed_over` returns
the caller's own rows untouched, so that the model's answers to both can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array


@dataclass(frozen=True)
class Handed:
    """The ``table`` that a caller passed, with the caller's ``labels`` of its columns; None for an array."""

    table: Any
    labels: Sequence[Any] | None


@dataclass(frozen=True)
class Native:
    """Rows in the audit's own form, ``working`` (n, d), and the same rows in the caller's types, ``given`` (n, d).

    ``handed`` is the table that the caller passed, with the same columns; None for a file.
    """

    working: pd.DataFrame
    given: pd.DataFrame
    handed: Handed | None = None

    def knowing(self, known: Mapping[str, Sequence[Any] | None]) -> Native:
        """Return the rows of a file with the values by which the model knows its categories.

        A file does not say whether 01 is a number or a text. A value that the model does not know becomes the category
        that equals it as the audit reads it, or else the category of the same name.
        """
        if self.handed is not None:
            return self
        columns = {name: self._as_known(name, values) for name, values in known.items() if values is not None}
        return replace(self, given=self.given.assign(**columns))

    def _as_known(self, name: str, values: Sequence[Any]) -> pd.Series:
        exact, named = set(values), {level_name(value).strip(): value for value in values}
        levels, own = self._levels[name]
        found = own.astype(object).tolist()
        for place, (given, working) in enumerate(zip(found, levels, strict=True)):
            if not pd.isna(given) and given not in exact:
                by_name = named.get(level_name(given), named.get(level_name(working), given))
                found[place] = working if working in exact else by_name
        column = self.given[name]
        kept = all(one is other for one, other in zip(found, own.astype(object).tolist(), strict=True))
        known = pd.Series(found, dtype=None if kept else object).infer_objects()
        return column if kept else known.take(levels.get_indexer(keys_of(self.working[name]))).set_axis(column.index)

    def restored(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Convert rows (m, d) of the audit to the caller's types; names of the columns and the index stay.

        A number between two whole numbers stays as it is in a column of whole numbers.
        """
        held = {name: rows[name] for name in self._types if name in rows}
        made = {name: self._restored(name, values) for name, values in held.items()}
        changed = {name: values for name, values in made.items() if values is not held[name]}
        return rows.assign(**changed) if changed else rows

    @cached_property
    def _types(self) -> Mapping[str, Any]:
        """Return the caller's types of the columns, without those of plain floating-point numbers."""
        own = zip(self.given.items(), self.working.dtypes, strict=True)
        return {name: one.dtype for (name, one), dtype in own if not one.dtype == dtype == np.float64}

    def _restored(self, name: str, values: pd.Series) -> pd.Series:
        dtype = self._types[name]
        if _is_number(dtype) and _is_number(values.dtype):
            return _cast(values, dtype)
        levels, own = self._levels[name]
        code = levels.get_indexer(keys_of(values))
        found = own.take(code).set_axis(values.index)
        return found if (code >= 0).all() else found.astype(object).where(code >= 0, values.astype(object))

    @cached_property
    def _levels(self) -> Mapping[str, tuple[pd.Index, pd.Series]]:
        """Return the distinct values of each column, in the audit's form and in the caller's."""
        found = {}
        for name in self.working:
            keys = keys_of(self.working[name])
            first = ~keys.duplicated()
            found[name] = keys[first], self.given[name][first].reset_index(drop=True)
        return found

    @property
    def whole(self) -> tuple[str, ...]:
        """Return the columns of numbers that the caller stores as whole numbers."""
        return tuple(
            name
            for name, column in self.given.items()
            if _is_number(self.working[name].dtype)
            and pd.api.types.infer_dtype(column, skipna=True) in ("integer", "boolean")
            and not pd.api.types.is_bool_dtype(column.dtype)
        )

    def forms(self) -> list[Callable[[pd.DataFrame], Any]]:
        """Return conversions of restored rows to the tables that a function may take, the caller's own kind first."""
        frames: list[Callable[[pd.DataFrame], Any]] = [self._labelled, self._array]
        if self.handed is None:
            return frames
        if self.handed.labels is None:
            tensors = [self._tensor] if hasattr(self.handed.table, "detach") else []
            return [*tensors, *frames[::-1]]
        return frames if isinstance(self.handed.table, pd.DataFrame) else [self._of_its_make, *frames]

    def _labelled(self, rows: pd.DataFrame) -> pd.DataFrame:
        labels = [] if self.handed is None else self.handed.labels or []
        own = dict(zip(map(str, labels), labels, strict=True))
        return rows.copy().set_axis(pd.Index([own.get(name, name) for name in rows]), axis="columns")

    def _array(self, rows: pd.DataFrame) -> Array:
        dtype = getattr(self.handed and self.handed.table, "dtype", None)
        return rows.to_numpy(dtype=object if getattr(dtype, "kind", "") == "O" else None)

    def _tensor(self, rows: pd.DataFrame) -> Any:
        assert self.handed is not None
        return self.handed.table.new_tensor(rows.to_numpy(dtype=np.float64))

    def _of_its_make(self, rows: pd.DataFrame) -> Any:
        """Convert rows to a frame of the caller's library, in the caller's types if the values fit them."""
        import narwhals.stable.v2 as nw

        assert self.handed is not None
        like = nw.from_native(self.handed.table)
        missing = rows.astype(object).where(rows.notna(), None)
        made = nw.from_dict({name: missing[name].tolist() for name in rows}, backend=like.implementation)
        types = like.schema
        return made.select(
            nw.col(name).cast(types[name]) if not types[name].is_integer() or _is_whole(rows[name]) else nw.col(name)
            for name in rows
        ).to_native()

    def handed_over(self, rows: Sequence[int] | Array) -> Any:
        """Return these rows of the caller's own table, or of the file as pandas reads it, untouched."""
        return taken(self.given if self.handed is None else self.handed.table, np.asarray(rows))

    def difference(self, rows: pd.DataFrame, places: Sequence[int]) -> tuple[int, str, Any, Any] | None:
        """Return row, column, and both values of the first difference between the caller's rows and restored ones.

        ``rows`` (m, d) are rows of the audit, indexed by their position in the table; ``places`` are positions among
        them.
        """
        made = self.restored(rows)
        for place in places:
            row = int(rows.index[place])
            for name in rows:
                ours, theirs = made[name].iloc[place], self.given[name].iloc[row]
                if type(ours) is not type(theirs) or not (_same(ours, theirs)):
                    return row, name, ours, theirs
        return None


def taken(table: Any, rows: Array) -> Any:
    """Return rows of a table of any kind by position: of a frame, a tensor or an array."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[rows]
    if isinstance(table, list | tuple):
        return [table[place] for place in rows]
    return table.take(rows) if hasattr(table, "column_names") else table[rows]  # Arrow has column names


def _same(one: Any, other: Any) -> bool:
    return bool(pd.isna(one) and pd.isna(other)) or bool(one == other)


def keys_of(values: pd.Series) -> pd.Index:
    """Return lookup keys for values, with one key for everything that is missing."""
    return pd.Index(values.astype(object).where(values.notna(), np.nan).tolist(), dtype=object)


def _is_number(dtype: Any) -> bool:
    return pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)


def _is_whole(values: pd.Series) -> bool:
    known = values.dropna()
    return not _is_number(values.dtype) or bool((known == known.round()).all())


def _cast(values: pd.Series, dtype: Any) -> pd.Series:
    """Convert numbers to this type; numbers that it cannot hold keep their own."""
    if values.dtype == dtype:
        return values
    if pd.api.types.is_float_dtype(dtype):
        return values.astype(dtype)
    numbers = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if len(numbers) and numbers[0] % 1 > 0:  # moved numbers are rarely whole
        return values
    known = ~np.isnan(numbers)
    if not known.all() and isinstance(dtype, np.dtype):
        return values
    numbers = numbers[known]
    if pd.api.types.is_bool_dtype(dtype):
        return values.astype(dtype) if np.isin(numbers, (0, 1)).all() else values
    whole = np.isfinite(numbers).all() and (numbers == np.round(numbers)).all()
    return values.astype(dtype) if whole else values
