"""A table over a lazy frame: rows are counted, sought and fetched by narwhals, where they are.

One code serves every engine. An engine opens the rows, parses texts as numbers, and numbers the rows of files.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import SHOWN, check_columns
from fairness_audits.tables.expressions import Column
from fairness_audits.tables.groupings import Grouping
from fairness_audits.tables.levels import is_missing, of_other_type
from fairness_audits.tables.table import (
    FAULTS,
    HALF,
    Cell,
    Decision,
    Faulty,
    Place,
    Request,
    as_written,
)
from fairness_audits.values import Array

ROW = "row_in_file"
"""Column with the number of a row in its file."""
AS_NUMBER = "TRY_CAST({0} AS DOUBLE) AS number_of_{0}"
"""The number of a text in SQL."""


class Table(ABC):
    """Rows of a lazy frame. Every method raises InvalidInput if a file cannot be read.

    ``derived`` holds the derived columns, which are not among the ``columns``. ``notes`` on how the rows were read have
    the quantities of each caveat by its name. ``is_csv`` tells whether the rows come from CSV files, whose numbers are
    texts. ``_own`` holds the name of each column in the frame, ``_texts`` the columns of text, ``_half`` those of half
    precision, ``_other`` the types of those that hold neither numbers nor text.
    """

    name: str
    columns: tuple[str, ...]
    is_csv: bool = False
    _own: Mapping[str, str]
    _texts: frozenset[str]
    _half: frozenset[str] = frozenset()
    _other: Mapping[str, str] = MappingProxyType({})
    _size: int | None = None

    def __init__(self) -> None:
        self.derived = dict[str, Grouping]()
        self.notes = dict[str, Any]()

    @abstractmethod
    def _stored(self) -> Any:
        """Return the rows as the engine's own lazy frame."""

    def _in_order(self) -> Any:
        """Return the rows in the order of the source, if it has one."""
        return self._stored()

    @abstractmethod
    def _with_numbers(self, rows: Any, texts: Sequence[str]) -> Any:
        """Return rows with the doubles ``number_of_...`` of columns of text, null for other texts.

        narwhals has no cast that turns other texts into null.
        """

    @abstractmethod
    def _numbered(self) -> Iterator[tuple[str | None, Any]]:
        """Yield each file's name (None for a single one) and rows with the column ROW, which is null without order."""

    def _check_usable(self, column: str) -> None:
        """Raise InvalidInput for a column that some rows lack or that holds neither numbers nor text."""
        if column in self._other:
            raise of_other_type(self, column, self._other[column])

    @abstractmethod
    def _fetched(self, found: nw.LazyFrame[Any], most: int) -> list[tuple[Any, ...]]:
        """Return the first ``most`` rows as tuples."""

    @abstractmethod
    def _pandas(self, found: nw.LazyFrame[Any]) -> pd.DataFrame:
        """Return rows as a data frame, in their order."""

    @abstractmethod
    def precision(self, column: str) -> np.dtype:
        """Return the type in which a column's numbers are compared: a floating-point type, or int64 for integers."""

    def size(self) -> int:
        """Return the number of rows."""
        if self._size is None:
            self._size = int(self._fetched(self._frame().select(nw.len()), 1)[0][0])
        return self._size

    def cells(self, request: Request) -> list[Cell]:
        """Count the rows in one scan. Raises InvalidInput if there are too many cells."""
        groups, outcome = self._keys(request.group), self._column(request.outcome.column)
        keys = {f"group {place}": key for place, key in enumerate(groups)} | {"label": self._column(request.label).raw}
        keys |= outcome.reading(request.outcome)
        counted = self._frame(*request.columns).select(**keys).group_by(*keys).agg(nw.len().alias("rows"))
        rows, level = self._fetched(counted, request.cells + 1), self._level(request.group)
        return cells_of(self, request, [(level(row[: len(groups)]), *row[len(groups) :]) for row in rows])

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        """Return the number of distinct values of each column of the source."""
        known = [column for column in columns if column not in self.derived]
        counts = [self._column(column).raw.n_unique().alias(str(place)) for place, column in enumerate(known)]
        return dict(zip(known, self._fetched(self._frame().select(*counts), 1)[0], strict=True))

    def places(self, faulty: Faulty) -> list[Place]:
        """Return the first faulty rows."""
        found, parts = list[Place](), self._parts(faulty.column)
        if faulty.column in self.derived:
            missing = [key.is_null() for key in self._keys(faulty.column)]
            condition = reduce(or_, [*missing, *(self._column(part).missing for part in parts)])
        elif (alone := self._column(faulty.column).faulty(faulty)) is not None:
            condition = alone
        else:
            return found
        for file, rows in self._numbered():
            wrong = self._frame(*parts, rows=rows).filter(condition).select(ROW, value=self._column(parts[0]).raw)
            found += [Place(row, file, value) for row, value in self._fetched(wrong.sort(ROW), SHOWN)]
            if len(found) >= SHOWN:
                break
        return found[:SHOWN]

    def arrays(self, columns: Sequence[str]) -> dict[str, Array]:
        """Return columns in the order of the rows: numbers unchanged, text as objects (None if missing)."""
        each = {column: self._keys(column) for column in columns}
        keys = {f"{column} {place}": key for column, own in each.items() for place, key in enumerate(own)}
        named = dict(zip((f"k{place}" for place in range(len(keys))), keys.values(), strict=True))
        fetched = self._pandas(self._frame(*columns, rows=self._in_order()).select(**named)).set_axis(
            list(keys), axis="columns"
        )
        found = dict[str, Array]()
        for column, own in each.items():
            parts = [fetched[f"{column} {place}"] for place in range(len(own))]
            values = parts[0].to_numpy() if column not in self.derived else self._named(column, parts)
            found[column] = values.astype(HALF) if column in self._half else values
        return found

    def add(self, grouping: Grouping) -> None:
        """Add a derived column."""
        check_columns(self, grouping.columns, "group", self.name)
        for column in grouping.columns:
            self._check_usable(column)
        self.derived[grouping.name] = grouping

    def _named(self, column: str, parts: Sequence[pd.Series]) -> Array:
        """Return the level of a derived column in each row."""
        codes, level = np.zeros(len(parts[0]), dtype=np.int64), self._level(column)
        for part in parts:
            own, distinct = pd.factorize(part, use_na_sentinel=False)
            codes = codes * len(distinct) + own
        _, first, which = np.unique(codes, return_index=True, return_inverse=True)
        names = [level([part.iloc[row] for part in parts]) for row in first]
        return np.array(names, dtype=object)[which]

    def _level(self, column: str) -> Callable[[Sequence[Any]], Any]:
        """Return the function that turns the values of the keys of a column into its level, None if one is missing."""
        if (grouping := self.derived.get(column)) is None:
            return lambda values: values[0]
        kinds = [self.precision(part) for part in grouping.columns]

        def level(values: Sequence[Any]) -> Any:
            if any(map(is_missing, values)):
                return None
            written = zip(values, kinds or [np.dtype(float)], strict=True)
            return grouping.level([as_level(value, kind) for value, kind in written])

        return level

    def _keys(self, column: str) -> list[nw.Expr]:
        """Return the expressions whose values make up the levels of a column."""
        if column in self.derived:
            return self.derived[column].keys(self._column)
        return [self._column(column).raw]

    def _parts(self, column: str) -> tuple[str, ...]:
        """Return the columns of the source that make up a column."""
        return self.derived[column].columns if column in self.derived else (column,)

    def _column(self, column: str) -> Column:
        if column in self.derived:
            if self._parts(column):
                problem = f"{column!r} crosses or cuts columns, so it can only be a group"
                raise InvalidInput(problem, option="group", column=column)
            return Column(nw.lit(0), nw.lit(0.0), np.dtype(np.int64))
        self._check_usable(column)
        raw = nw.col(self._own[column])
        number = nw.col(f"number_of_{self._own[column]}") if column in self._texts else raw.cast(nw.Float64)
        return Column(raw, number, self.precision(column))

    def _frame(self, *columns: str, rows: Any = None) -> nw.LazyFrame[Any]:
        """Return the rows, with the numbers of these columns if they are text."""
        parts = [part for one in columns for part in self._parts(one)]
        texts = [self._own[part] for part in parts if part in self._texts]
        frame = self._stored() if rows is None else rows
        found: nw.LazyFrame[Any] = nw.from_native(self._with_numbers(frame, texts) if texts else frame)
        return found


def cells_of(table: Table, request: Request, found: Sequence[Sequence[Any]]) -> list[Cell]:
    """Return the cells that a scan ``found``. Raises InvalidInput if the table of counts has too many cells."""
    if len(found) > request.cells:
        counts = table.distinct(request.columns).items()
        each = ", ".join(f"{name!r} about {count:,}" for name, count in counts if count > 1)
        problem = f"{table.name}: the table of counts has more than {request.cells:,} cells. Distinct values: {each}"
        remedy = "Round the scores, use a threshold, or cut numeric groups into ranges"
        raise InvalidInput(problem, source=table.name, remedy=remedy)
    group, label, value = map(table.precision, request.columns)
    decided = isinstance(request.outcome, Decision)
    return [
        Cell(as_level(g, group), as_level(y, label), FAULTS[f], as_level(k, value) if decided else k, n)
        for g, y, f, k, n in found
    ]


def as_level(value: Any, precision: np.dtype) -> Any:
    """Return the level of a column's value, which prints as the column's numbers."""
    return float(as_written(value, precision)) if isinstance(value, float) else value
