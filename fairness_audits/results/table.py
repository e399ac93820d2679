"""Tables."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal


@dataclass(frozen=True)
class Column:
    """A column of a table. ``cell`` says what an entry has in it, for :func:`rows_of`."""

    head: str
    kind: Literal["number", "text"] = "number"
    cell: Callable[[Any], str] = str


@dataclass(frozen=True)
class Row:
    """Texts of a row, one for each column. Rows of one ``group`` have a heading together."""

    cells: tuple[str, ...]
    group: str = ""


def rows_of(columns: Sequence[Column], entries: Iterable[Any], group: str = "") -> tuple[Row, ...]:
    """A row for each entry, of the cells that the columns say."""
    return tuple(Row(tuple(column.cell(entry) for column in columns), group) for entry in entries)


def under(key: str, said: Callable[[Any], str] = str) -> Callable[[Mapping[str, Any]], str]:
    """The cell of an entry's value under this key, ``said`` in words; a dash where there is none."""
    return lambda entry: "-" if entry[key] is None else said(entry[key])


@dataclass(frozen=True)
class Table:
    """Rows under headings, the first column being names.

    The terminal shows ``leading`` rows of each group (all where None), and says that the others are in ``file``.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    leading: int | None = None
    file: str = ""

    def __post_init__(self) -> None:
        # What a cell says is in the rows; how it was said can be no part of a pickle.
        object.__setattr__(self, "columns", tuple(replace(column, cell=str) for column in self.columns))
