"""The arrays of a call as columns of one table, with aligned rows and distinct names."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.arguments import Given
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.arrays import Argument, in_python, read_argument, shown
from fairness_audits.inputs.native import Handed
from fairness_audits.inputs.table import Source
from fairness_audits.messages import check_columns, enumerated, listed, reason, unlike
from fairness_audits.tables import opened
from fairness_audits.tables.frame import Table
from fairness_audits.tables.groupings import CROSS, Grouping, Part, sides
from fairness_audits.values import Array

INPUTS = "X"
"""Name of the argument with the model's inputs."""
TABLE, SEVERAL, SINGLE = (
    "of shape (rows, columns)",
    "to be a data frame or to have one value per row",
    "to have one value per row",
)
"""Descriptions of the expected arguments."""
IN_MEMORY = (("numpy", "ndarray"), ("torch", "Tensor"), ("polars", "DataFrame"), ("pyarrow", "Table"))
"""Tables that a model may take as they are, besides data frames of pandas: root of the module and name of the type."""
OUTPUTS = ("score", "prediction", "first", "second")
"""Arguments with a model's outputs."""
LABELS = 3
"""Number of index labels in a message."""


class Columns:
    """Table of all arguments of a call with one value per row.

    ``X`` is a table of the model's inputs. Each of ``several`` is a table or one value per row, each of ``single`` is
    one value per row. None values are skipped. ``outside`` are arrays with as many rows that stay outside the table.

    Rows are :func:`aligned` to X, or to the first of ``single``. X, and then ``several``, keep their column names. If a
    name is taken, it gets the argument as a suffix. A column with the name and values of a column of X is that column.

    With ``data``, files or a frame, the arguments are the names of its columns, and rows stay where they are.
    """

    def __init__(
        self,
        single: Mapping[str, Any],
        several: Mapping[str, Any],
        X: Any = None,
        outside: Sequence[str] = (),
        data: Any = None,
    ) -> None:
        self._data, self._columns = data, dict[str, pd.Series]()
        self._names = dict[str, tuple[str, ...]]()
        if data is not None:
            self._names |= {name: _named(name, values, several) for name, values in {**single, **several}.items()}
            return
        inputs = {} if X is None else {INPUTS: X}
        forms = {**dict.fromkeys(inputs, TABLE), **dict.fromkeys(single, SINGLE), **dict.fromkeys(several, SEVERAL)}
        found = {**inputs, **single, **several}
        read = [
            read_argument(argument, values, forms[argument]) for argument, values in found.items() if values is not None
        ]
        for one in read:
            _check_shape(one, forms[one.argument])
        rows = {one.argument: one for one in aligned(read, outside)}
        self._header = rows[INPUTS].header if inputs else None
        self._handed = handed_over(X, rows[INPUTS]) if inputs else None
        for argument in (*inputs, *several, *single):
            columns = rows[argument].columns if argument in rows else ()
            self._names[argument] = tuple(self._added(argument, *column) for column in enumerate(columns))

    def _added(self, argument: str, place: int, column: pd.Series) -> str:
        """Add a column to the table and return its name there."""
        own = None if column.name in (None, "") else str(column.name)
        if self._header is not None and own in self._names.get(INPUTS, ()) and _alike(self._columns[own], column):
            return own
        if own and argument != INPUTS and pd.api.types.is_bool_dtype(column) and (named := sides(own)):
            own, column = named[0], column.map(named[1])
        name = unlike(own or (f"x{place}" if argument == INPUTS else argument), self._columns, argument)
        self._columns[name] = column
        return name

    def name_in(self, given: Given, **others: Any) -> Given:
        """Return the options of an audit with the names of these columns, and with ``others``, such as files."""
        own = given.audited
        several = {name: self.several(argument) for argument, name in own.several.items()}
        return given.but(**others, **several, **{name: self.one(argument) for argument, name in own.one.items()})

    def several(self, argument: str) -> tuple[str, ...]:
        """Return the names of an argument's columns."""
        return self._names[argument]

    def groups(self, cross: bool) -> tuple[tuple[str, ...], tuple[Grouping, ...]]:
        """Return the groups by name, and the columns to derive: with ``cross``, intersections.

        For a table given as ``data``, the crossed columns, which may be cuts, are one name as in the command.
        """
        names = self._names["group"]
        if not cross or len(names) < 2:
            return names, ()
        if self._data is not None:
            return (CROSS.join(names),), ()
        made = Grouping(unlike("*".join(names), self._columns, "group"), tuple(map(Part, names)))
        return (made.name,), (made,)

    def one(self, argument: str) -> str | None:
        """Return the name of an argument's column, None if it was not passed."""
        return next(iter(self._names[argument]), None)

    def input(self, argument: str, name: str) -> str:
        """Return the name of a column of X. Raises InvalidInput if X has no such column."""
        check_columns(self.frame()[list(self._names[INPUTS])], [name], argument, INPUTS)
        return name

    def frame(self) -> pd.DataFrame:
        """Return all columns, with rows counted from 0."""
        return pd.DataFrame(self._columns)

    def source(self, name: str) -> Source:
        """Return these columns as the rows of an audit, with the ``name`` that messages use."""
        return Source(name, self.frame(), handed=self._handed)

    def directions(self, values: Any) -> Array | None:
        """Return directions (m, d) in the order of the columns of X: by column for a frame, by index for a series.

        Arrays, and frames or series with numbers from 0 instead of names, are matched by position. Raises InvalidInput
        for names that are not the names of X.
        """
        if values is None:
            return None
        found, names = read_argument("directions", values), self._names[INPUTS]
        try:
            array = np.array([column.to_numpy(dtype=float, na_value=np.nan) for column in found.columns])
        except ValueError as error:
            raise InvalidInput(f"directions must hold numbers ({reason(error)})", option="directions") from error
        header, array = (found.labels, array) if len(found.shape) == 1 else (found.header, array.T)
        own = [] if header is None else [str(name) for name in header]
        unnamed = header is None or (isinstance(header, pd.RangeIndex) and set(own) != set(names))
        if unnamed:
            return array
        if sorted(own) != sorted(names):
            raise InvalidInput(
                f"directions has the names {listed(own)}, but the columns of {INPUTS} are {listed(names)}",
                option="directions",
                column=next((name for name in own if name not in names), None),
                remedy=f"Use the names of {INPUTS}, or pass an array in the order of its columns",
            )
        return array[:, [own.index(name) for name in names]]

    @contextmanager
    def opened(self, derived: Sequence[Grouping] = ()) -> Iterator[Table]:
        """Open these columns as a table with the ``derived`` columns."""
        with opened(self.frame() if self._data is None else self._data, "duckdb") as table:
            for made in derived:
                table.add(made)
            yield table


def _named(argument: str, names: Any, several: Container[str]) -> tuple[str, ...]:
    """Return the names of columns that an argument gives, one or ``several``. Raises InvalidInput for other values."""
    found = (names,) if isinstance(names, str) else () if names is None else names
    if not (isinstance(found, list | tuple) and all(isinstance(one, str) for one in found)) or (
        len(found) > 1 and argument not in several
    ):
        wanted = "names of columns" if argument in several else "the name of a column"
        problem = f"with data, expected {argument} to be {wanted}; found {shown(names)}"
        raise InvalidInput(problem, option=argument, remedy="Give names, or leave data out")
    return tuple(found)


def handed_over(X: Any, read: Argument) -> Handed:
    """Return the caller's own table if it is in memory, otherwise its rows as a data frame or an array of NumPy."""
    if isinstance(X, pd.DataFrame) or (type(X).__module__.partition(".")[0], type(X).__name__) in IN_MEMORY:
        table = X
    else:
        frame = pd.DataFrame({place: column.to_numpy() for place, column in enumerate(read.columns)})
        table = frame.to_numpy() if read.header is None else frame.set_axis(read.header, axis="columns")
    return Handed(table, None if read.header is None else read.header.tolist())


def aligned(arguments: Sequence[Argument], outside: Sequence[str] = ()) -> list[Argument]:
    """Return the arguments with their rows in one order, counted from 0.

    Series and frames with the same index labels are aligned by label, in the order of the first of them. Arrays, and
    the arrays ``outside``, are matched by position. Raises InvalidInput if the numbers of rows differ or labels differ
    from the first argument's. Also raises it for an array next to labels in two orders, because the array may follow
    either order.
    """
    for one in arguments[1:]:
        if len(one) != len(arguments[0]):
            raise _of_another_length(arguments[0], one)
    labelled = {one.argument: one for one in arguments if one.labels is not None}
    first = next(iter(labelled.values()), None)
    places = {name: place for name, one in labelled.items() if first and (place := _places(first, one)) is not None}
    arrays: list[Argument | str] = [*(one for one in arguments if one.labels is None), *outside]
    if places and arrays and first:
        raise _of_no_known_order(first.argument, list(places), arrays)
    return [_in_order(one, places.get(one.argument)) for one in arguments]


def _places(first: Argument, other: Argument) -> Array | None:
    """Return the positions of the first argument's rows in the other's, by label; None if the order is the same."""
    labels, others = first.labels, other.labels
    assert labels is not None
    assert others is not None
    if labels.equals(others):
        return None
    for one, index in ((first, labels), (other, others)):
        if not index.is_unique:
            label = index[index.duplicated()].tolist()[0]
            raise InvalidInput(
                f"the index labels of {first.argument} and {other.argument} differ, and {one.argument} has several "
                f"rows with label {label!r}, so rows cannot be matched by label",
                option=other.argument,
                remedy=f"If {other.argument} has the rows of {first.argument} in the same order, "
                f"{_relabelled(first, other)}",
            )
    place = others.get_indexer(labels)
    if (absent := labels[place < 0]).size:
        raise InvalidInput(
            f"{other.argument} lacks {absent.size:,} of the {len(labels):,} index labels of {first.argument}, such as "
            f"{listed(list(map(repr, absent[:LABELS].tolist())))}, so rows cannot be matched by label",
            option=other.argument,
            remedy=f"If it has the same rows in the same order, {_relabelled(first, other)}. Otherwise, select the "
            "same rows of both",
        )
    return np.asarray(place)


def _relabelled(first: Argument, other: Argument) -> str:
    return f"give it the same index: {other.argument}.set_axis({first.argument}.index)"


def _of_another_length(first: Argument, other: Argument) -> InvalidInput:
    problem = f"expected {len(first):,} rows in {other.argument}, as in {first.argument}; found {len(other):,}"
    selects = first.labels is not None and other.labels is not None and first.labels.isin(other.labels).all()
    remedy = f"{other.argument}.loc[{first.argument}.index] selects the same rows" if selects else ""
    if len(other) == 1 and isinstance(text := other.columns[0].iloc[0], str):
        remedy = in_python(other.argument, text)
    return InvalidInput(problem, option=other.argument, remedy=remedy)


def _of_no_known_order(first: str, others: Sequence[str], arrays: Sequence[Argument | str]) -> InvalidInput:
    other, names = others[0], [one if isinstance(one, str) else one.argument for one in arrays]
    array, name = arrays[0], names[0]
    if isinstance(array, Argument):
        make = "pd.Series" if len(array.shape) == 1 else "pd.DataFrame"
        remedy = (
            f"Give {make}({name}, index={first}.index) if {name} is in the order of {first}, or "
            f"index={other}.index if it is in that of {other}"
        )
    else:
        remedy = (
            f"Give {other}.loc[{first}.index] if {name} is in the order of {first}, or {first}.loc[{other}.index] "
            f"if it is in that of {other}"
        )
    problem = (
        f"{enumerated(others)} and {first} have the same index labels in different orders, and {enumerated(names)} "
        f"{'has' if len(names) == 1 else 'have'} none, so either order is possible"
    )
    return InvalidInput(problem, option=name, remedy=remedy)


def _in_order(one: Argument, places: Array | None) -> Argument:
    columns = [column if places is None else column.iloc[places] for column in one.columns]
    return replace(one, columns=tuple(column.reset_index(drop=True) for column in columns), labels=None)


def _check_shape(one: Argument, expected: str) -> None:
    """Raise InvalidInput if an argument has other columns than ``expected``; only data frames may have several."""
    axes, framed = len(one.shape), one.header is not None
    fits = {TABLE: axes == 2, SEVERAL: framed or len(one.columns) == 1, SINGLE: len(one.columns) == 1}
    if not fits[expected] or not one.columns:
        kind = "a data frame" if framed else "an array"
        remedy, place = "", ".iloc[:, 1]" if framed else "[:, 1]"
        if one.argument in OUTPUTS and one.shape[1:] > (1,):
            remedy = f"If it holds a value for each class, pass that of one class, such as {one.argument}{place}"
        raise InvalidInput(
            f"expected {one.argument} {expected}, found {kind} of shape {one.shape}",
            option=one.argument,
            remedy=remedy,
        )


def _alike(known: pd.Series, column: pd.Series) -> bool:
    """Return whether two columns have the same values, regardless of type; missing values are equal."""
    return known.equals(column) or known.astype(object).equals(column.astype(object))
