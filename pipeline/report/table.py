"""A table as a value: labelled rows of estimates. What it prints is text, set by :mod:`pipeline.report.typeset`."""

import csv
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import DASH, interval, number, parameter, spread
from fairness_audits.results.markup import symbols
from pipeline.report.stamp import Stamp
from pipeline.report.typeset import Heading, Kind, Line, Printed

Cell: TypeAlias = Estimate | float | int | str | None
Show = Literal["value", "spread", "interval", "value and interval", "parameter", "text"]


DIFFERS, UNTESTED = "\u2020", "\u2021"
BESIDE = (
    f"In brackets: what the paper prints, marked {DIFFERS} where ours differs by the stated test, {UNTESTED} where "
    "setting or data are not the paper's, so that the two are not compared."
)


@dataclass(frozen=True)
class Column:
    """One column: ``key`` heads it in the CSV; ``name``, or else ``key``, with its letters spelled out, elsewhere.

    ``group`` is printed above neighbouring columns that share it; ``show`` says what of an estimate is printed. With
    ``printed`` false the column stands in the CSV alone.
    """

    key: str
    group: str = ""
    show: Show = "value"
    decimals: int = 3
    name: str = ""
    printed: bool = True
    of: Callable[..., Cell] | None = field(default=None, compare=False)
    """What stands in the column, of what a row is about; see :func:`tabulated`."""

    def text(self, cell: Cell, decimals: int | None = None) -> str:
        """The printed form of one cell, with the column's decimals or a row's own."""
        if cell is None:
            return DASH
        if isinstance(cell, str):
            return symbols(cell)
        estimate = cell if isinstance(cell, Estimate) else Estimate(float(cell))
        if estimate.text:
            return estimate.text
        digits = self.decimals if decimals is None else decimals
        if self.show == "interval":
            return interval(estimate, digits)
        if self.show == "value and interval" and not math.isnan(estimate.value):
            return f"{number(estimate.value, digits)} {interval(estimate, digits)}"
        if self.show == "spread":
            return spread(estimate, digits)
        return parameter(estimate.value) if self.show == "parameter" else number(estimate.value, digits)


@dataclass(frozen=True)
class Row:
    """The labels that stand before a row, its cells in the order of the columns, and its own number of decimals."""

    labels: tuple[str, ...]
    cells: tuple[Cell, ...]
    decimals: int | None = None


@dataclass(frozen=True)
class Table:
    """Title, labelled rows and columns, notes, and the stamp that says what the numbers were made from.

    ``stub`` heads the label columns. Raises ValueError where a row does not have one label for each of ``stub`` and
    one cell for each column.
    """

    title: str
    stub: tuple[str, ...]
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    stamp: Stamp
    caption: str = ""
    notes: tuple[str, ...] = ()
    published: Mapping[tuple[str, str], tuple[Estimate, str]] = field(default_factory=dict)
    """What the paper prints, and the mark behind it, by row (its labels joined by ``: ``) and column's key."""

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.labels) != len(self.stub) or len(row.cells) != len(self.columns):
                raise ValueError(
                    f"table {self.title!r}: row {row.labels} has {len(row.labels)} labels and {len(row.cells)} cells, "
                    f"expected {len(self.stub)} and {len(self.columns)}"
                )

    def cell(self, column: str, *labels: str) -> Cell:
        """The cell of a row's labels and a column's key."""
        keys = [c.key for c in self.columns]
        for row in self.rows:
            if row.labels == labels and column in keys:
                return row.cells[keys.index(column)]
        raise ValueError(f"table {self.title!r} has no cell {labels} x {column!r}: columns are {keys}")

    def csv(self) -> str:
        """Every number at full precision; an estimate's spread, count, interval and published value in own columns."""
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        parts = [self._parts(i) for i in range(len(self.columns))]
        headings = [
            f"{column.key} {part}".rstrip() for column, names in zip(self.columns, parts, strict=True) for part in names
        ]
        writer.writerow([*self.stub, *headings, "origin", "scale"])
        for row in self.rows:
            values = []
            for cell, column, names in zip(row.cells, self.columns, parts, strict=True):
                theirs, _ = self._beside(row, column)
                values += [_part(theirs) if part == "published" else _part(cell, part) for part in names]
            writer.writerow([*row.labels, *values, "+".join(self.stamp.origins), self.stamp.scale])
        return buffer.getvalue()

    def printed(self) -> Printed:
        """The table as texts: a label that repeats the one above is left empty, and groups of rows are marked."""
        headings = [Heading(symbols(name), "label") for name in self.stub]
        for column in filter(lambda column: column.printed, self.columns):
            kind: Kind = "text" if column.show == "text" else "number"
            headings.append(Heading(symbols(column.name or column.key), kind, column.group))
        lines, above = [], None
        for row in self.rows:
            labels, opens = _labels(above, row.labels)
            texts = [self._text(row, i) for i, column in enumerate(self.columns) if column.printed]
            lines.append(Line((*labels, *texts), opens))
            above = row.labels
        beside = (BESIDE,) if self.published else ()
        footnotes = (*beside, *map(symbols, self.notes), *self.stamp.lines())
        return Printed(self.title, self.caption, tuple(headings), tuple(lines), footnotes)

    def _beside(self, row: Row, column: Column) -> tuple[Estimate | None, str]:
        """What the paper prints in this place, with its mark."""
        return self.published.get((": ".join(filter(None, row.labels)), column.key), (None, ""))

    def _text(self, row: Row, index: int) -> str:
        """A cell with the published number behind it."""
        column = self.columns[index]
        text = column.text(row.cells[index], row.decimals)
        theirs, mark = self._beside(row, column)
        return text if theirs is None else f"{text} ({column.text(theirs, row.decimals)}){mark}"

    def _parts(self, index: int) -> list[str]:
        """Which parts of a column's estimates the CSV holds: those that any of its rows has."""
        estimates = [row.cells[index] for row in self.rows if isinstance(row.cells[index], Estimate)]
        held = [""] if self.columns[index].show != "interval" else []
        for part in ("std", "n", "low", "high"):
            values = [getattr(estimate, part) for estimate in estimates]
            if any(value != 0 and not math.isnan(value) for value in values):
                held.append(part)
        if any(self._beside(row, self.columns[index])[0] for row in self.rows):
            held.append("published")
        return held or [""]


def tabulated(
    title: str, stub: Sequence[str], columns: Sequence[Column], rows: Iterable[tuple[Sequence[str], Any]], stamp: Stamp,
    notes: Iterable[str] = (),
) -> Table:  # fmt: skip
    """The table with a row for each of ``rows``, its labels and what it is about; its cells are the columns' own."""
    body = tuple(
        Row(tuple(labels), tuple(column.of(about) for column in columns if column.of)) for labels, about in rows
    )
    # A table goes from process to process, which a function of the inputs cannot.
    plain_columns = tuple(replace(column, of=None) for column in columns)
    return Table(title, tuple(stub), plain_columns, body, stamp, notes=tuple(notes))


def _labels(above: Sequence[str] | None, labels: Sequence[str]) -> tuple[list[str], bool]:
    """Labels to print below those of the row above, and whether a new group opens between the two."""
    if above is None:
        return [symbols(label) for label in labels], False
    same = next((i for i, (a, b) in enumerate(zip(above, labels, strict=True)) if a != b), len(labels))
    # The last label is printed even where it repeats: a row needs one.
    printed = ["" if i < min(same, len(labels) - 1) else symbols(label) for i, label in enumerate(labels)]
    return printed, len(labels) > 1 and same == 0


def _part(cell: Cell, part: str = "") -> str:
    if cell is None or (part and not isinstance(cell, Estimate)):
        return ""
    if isinstance(cell, Estimate):
        value = getattr(cell, part or "value")
        return "" if math.isnan(value) else repr(value)
    return cell if isinstance(cell, str) else ("" if math.isnan(cell) else repr(cell))
