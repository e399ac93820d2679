"""Tables of columns and rows of cells. :mod:`fairness_audits.results.typeset` formats them as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from fairness_audits.results.estimate import Estimate

Cell: TypeAlias = "Estimate | float | int | str | None"
Content: TypeAlias = Literal["label", "text", "number"]
Kind: TypeAlias = Literal[Content, "spread", "interval", "value and interval", "parameter"]
"""The content of a column. For an estimate, "number" prints the value; the other kinds print more parts."""


@dataclass(frozen=True)
class Column:
    """A column, with the heading ``key`` in the CSV, and ``name`` or else ``key`` elsewhere.

    ``cell`` makes the cell of an entry, for :func:`rows_of`. ``group`` is printed above adjacent columns that share it.
    If ``printed`` is false, the column is only in the CSV.
    """

    key: str
    kind: Kind = "number"
    cell: Callable[..., Cell] = field(default=str, compare=False)
    group: str = ""
    decimals: int = 3
    name: str = ""
    printed: bool = True

    @property
    def head(self) -> str:
        """Return the printed heading."""
        return self.name or self.key

    @property
    def content(self) -> Content:
        """Return whether the column has labels, texts or numbers."""
        return self.kind if self.kind in ("label", "text") else "number"


@dataclass(frozen=True)
class Row:
    """Cells, one for each column, and the row's own decimals. Rows of one ``group`` share a heading."""

    cells: tuple[Cell, ...]
    group: str = ""
    decimals: int | None = None


def rows_of(
    columns: Sequence[Column], entries: Iterable[Any], group: Callable[[Any], str] = lambda _: ""
) -> tuple[Row, ...]:
    """Return a row for each entry, with one cell from each column. Rows of one ``group`` are together."""
    found: dict[str, list[Row]] = {}
    for entry in entries:
        row = Row(tuple(column.cell(entry) for column in columns), group(entry))
        found.setdefault(row.group, []).append(row)
    return tuple(chain.from_iterable(found.values()))


def under(key: str, text: Callable[[Any], str] = str) -> Callable[[Mapping[str, Any]], str]:
    """Return a function that formats an entry's value under a key; a dash for None."""
    return lambda entry: "-" if entry[key] is None else text(entry[key])


@dataclass(frozen=True)
class Table:
    """Rows under headings. The first column is a label.

    The terminal shows ``leading`` rows of each group (None: all) and refers to the ``file`` for the others. Raises
    ValueError if a row does not have one cell for each column.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    leading: int | None = None
    file: str = ""
    title: str = ""
    caption: str = ""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        first, *others = self.columns
        # Drop the columns' cell functions, which cannot be pickled when a table is sent to another process.
        columns = (replace(first, kind="label", cell=str), *(replace(column, cell=str) for column in others))
        object.__setattr__(self, "columns", columns)
        for row in self.rows:
            if len(row.cells) != len(columns):
                raise ValueError(
                    f"table {self.title!r}: row {self.labels(row)} has {len(row.cells)} cells, expected {len(columns)}"
                )

    def labels(self, row: Row) -> tuple[str, ...]:
        """Return the labels of a row."""
        return tuple(str(cell) for column, cell in zip(self.columns, row.cells, strict=False) if column.kind == "label")

    def cell(self, key: str, *labels: str) -> Cell:
        """Return the cell with a row's labels and a column's key."""
        keys = [column.key for column in self.columns]
        for row in self.rows:
            if self.labels(row) == labels and key in keys:
                return row.cells[keys.index(key)]
        raise ValueError(f"table {self.title!r} has no cell {labels} x {key!r}: columns are {keys}")
