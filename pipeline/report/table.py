"""A table of a study: the library's table with a stamp, and with published numbers beside ours."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fairness_audits.results import table
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.table import Cell, Column, Row
from fairness_audits.results.typeset import cell_text
from pipeline.report.stamp import Stamp

DIFFERS, UNTESTED = "\u2020", "\u2021"
IN_BRACKETS = (
    f"In brackets: the published number. {DIFFERS}: ours differs by the test in the comparison. {UNTESTED}: not "
    "compared, because settings or data differ from the paper."
)


@dataclass(frozen=True, kw_only=True)
class StampedTable(table.Table):
    """A table with its stamp.

    ``published`` maps a row (its labels, joined by ``: ``) and a column key to the published number and its mark. On
    the page, a new table with the same labels begins at each group of columns in ``split``. If there are no numbers,
    ``absent`` gives the reason in one line, and the page shows this line instead of a table.
    """

    stamp: Stamp
    published: Mapping[tuple[str, str], tuple[Estimate, str]] = field(default_factory=dict)
    split: tuple[str, ...] = ()
    absent: str = ""

    @classmethod
    def nothing(cls, title: str, stamp: Stamp, why: str) -> "StampedTable":
        """Return a table with nothing but the reason."""
        return cls(labels("reason"), (Row((why,)),), title=title, stamp=stamp, absent=why)

    def printed(self) -> table.Table:
        """Return the table with each published number after ours, and the stamp as the last notes."""
        rows = tuple(
            replace(row, cells=tuple(map(self._with_published, [row] * len(row.cells), self.columns, row.cells)))
            for row in self.rows
        )
        notes = (*([IN_BRACKETS] if self.published else []), *self.notes, *self.stamp.lines())
        return table.Table(self.columns, rows, title=self.title, caption=self.caption, notes=notes)

    def parts(self) -> list[table.Table]:
        """Return the printed table in parts, each without the rows in which it has no number."""
        whole = self.printed()
        kinds = [column.kind for column in whole.columns]
        stub = [place for place, kind in enumerate(kinds) if kind == "label"]
        parts: list[list[int]] = [[]]
        for place, column in enumerate(whole.columns):
            if column.group in self.split and whole.columns[place - 1].group != column.group:
                parts.append([])
            if place not in stub:
                parts[-1].append(place)
        return [
            replace(
                whole,
                columns=tuple(whole.columns[place] for place in (*stub, *part)),
                rows=tuple(
                    replace(row, cells=tuple(row.cells[place] for place in (*stub, *part)))
                    for row in whole.rows
                    if not self.split or any(row.cells[place] not in (None, "") for place in part)
                ),
            )
            for part in parts
        ]

    def recorded(self) -> table.Table:
        """Return the table for the CSV, with separate columns for published numbers, origin and scale."""
        published = [[self._published_in(row, column) for row in self.rows] for column in self.columns]
        columns, cells = list[Column](), list[Sequence[Cell]]()
        for place, (column, found) in enumerate(zip(self.columns, published, strict=True)):
            columns.append(column)
            cells.append([row.cells[place] for row in self.rows])
            if any(found):
                columns.append(Column(f"{column.key} published"))
                cells.append([theirs and theirs[0].value for theirs in found])
        for key, value in (("origin", "+".join(self.stamp.origins)), ("scale", self.stamp.scale)):
            columns.append(Column(key))
            cells.append([value] * len(self.rows))
        return table.Table(tuple(columns), tuple(map(Row, zip(*cells, strict=True))))

    def _published_in(self, row: Row, column: Column) -> tuple[Estimate, str] | None:
        """Return the published number of a cell with its mark, if there is one."""
        return self.published.get((": ".join(filter(None, self.labels(row))), column.key))

    def _with_published(self, row: Row, column: Column, cell: Cell) -> Cell:
        """Return a cell with the published number after it."""
        if (theirs := self._published_in(row, column)) is None:
            return cell
        texts = (cell_text(column, one, row.decimals) for one in (cell, theirs[0]))
        return "{} ({}){}".format(*texts, theirs[1])


def labels(*names: str) -> tuple[Column, ...]:
    """Return columns of labels."""
    return tuple(Column(name, "label") for name in names)


def tabulated(
    title: str, stub: Sequence[str], columns: Iterable[Column], rows: Iterable[tuple[Sequence[str], Any]], stamp: Stamp,
    notes: Iterable[str] = (), split: tuple[str, ...] = (),
) -> StampedTable:  # fmt: skip
    """Make a table from pairs of row labels and an entry. Each column makes its cell from the entry."""
    columns = tuple(columns)
    body = tuple(Row((*names, *(column.cell(about) for column in columns))) for names, about in rows)
    return StampedTable((*labels(*stub), *columns), body, title=title, notes=tuple(notes), stamp=stamp, split=split)
