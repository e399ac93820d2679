"""A document for the terminal: titled sections of wrapped paragraphs and tables, 80 characters wide."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from pipeline.cli.document import AuditDocument, Column, Facts, Part, Row, Section, Table, Text
from pipeline.cli.numbers import short

WIDTH = 80
"""Characters in a line."""
LEAST_NAME = 8
"""Names in a table are cut where it is too wide, but not below so many letters."""


def terminal(document: AuditDocument) -> str:
    """The verdict, what it rests on, and what to keep in mind."""
    verdict = document.verdict
    parts = [
        f"{document.title} of {document.subject}",
        paragraph(f"{verdict.headline}. {verdict.sentence}"),
        *(_section(section) for section in document.sections if section.where == "both"),
        "\n".join(["Keep in mind", *(paragraph(caveat.text, "  - ", "    ") for caveat in document.caveats)]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def paragraph(text: str, first: str = "  ", later: str | None = None) -> str:
    """Wrapped text; a column's name with a hyphen or a space is not torn where it can be helped."""
    return textwrap.fill(
        text, WIDTH, initial_indent=first, subsequent_indent=first if later is None else later, break_on_hyphens=False
    )


def _section(section: Section) -> str:
    """A title and the parts below it, tables set apart by empty lines; nothing where there are no parts."""
    lines: list[str] = []
    for kind, parts in groupby(section.parts, key=lambda part: isinstance(part, Table)):
        for part in parts:
            shown = list(_lines(part))
            lines += ["", *shown] if shown and lines and kind else shown
        lines += [""] if lines and kind else []
    return "\n".join([section.title, *lines]).rstrip() if lines else ""


def _lines(part: Part) -> Iterator[str]:
    if isinstance(part, Facts):
        yield from (paragraph(text, f"  {name:8}", " " * 10) for name, text in part.lines)
    elif isinstance(part, Text):
        yield paragraph(part.text, "  ", "      " if part.item else "  ")
    elif isinstance(part, Table):
        yield from table_lines(part)


def table_lines(table: Table) -> Iterator[str]:
    """Names to the left, numbers to the right, in columns as wide as they need."""
    places = [place for place, column in enumerate(table.columns) if column.where == "both"]
    columns = [table.columns[place] for place in places]
    groups = [(group, *_shown(table, list(rows))) for group, rows in groupby(table.rows, key=lambda row: row.group)]
    whole = [
        [row.cells[place] for place in places] for _, rows, _, _ in groups for row in rows if _is_whole(row, table)
    ]
    heads = [column.head if column.short is None else column.short for column in columns]
    widths = [max(map(len, texts)) for texts in zip(heads, *whole, strict=True)]
    parts = [row.cells[0] for _, rows, _, _ in groups for row in rows if not _is_whole(row, table)]
    widths[0] = max([widths[0], *map(len, parts)])
    indent = "    " if any(group for group, *_ in groups) else "  "
    gap = next((gap for gap in (3, 2) if len(indent) + sum(widths) + gap * (len(widths) - 1) <= WIDTH), 1)
    beside = len(indent) + sum(widths[1:]) + gap * (len(widths) - 1)
    widths[0] = min(widths[0], max(LEAST_NAME, WIDTH - beside))
    yield _line(heads, columns, widths, indent, gap)
    for group, rows, hidden, after in groups:
        if group:
            yield f"  {group}"
        for number, row in enumerate(rows):
            if hidden and number == after:
                yield _rest(table, hidden, indent)
            if _is_whole(row, table):
                yield _line([row.cells[place] for place in places], columns, widths, indent, gap)
            else:
                name, text = row.cells
                yield paragraph(text, f"{indent}{short(name, widths[0]):{widths[0]}}  ", indent + "    ")
            if row.note:
                yield paragraph(row.note, indent + "    ")
        if hidden and after == len(rows):
            yield _rest(table, hidden, indent)


def _is_whole(row: Row, table: Table) -> bool:
    return len(row.cells) == len(table.columns)


def _shown(table: Table, rows: Sequence[Row]) -> tuple[list[Row], int, int]:
    """The rows that are shown, how many are not, and after how many of them that is said."""
    if table.leading is None or len(rows) <= table.leading:
        return list(rows), 0, 0
    hidden, half = len(rows) - table.leading, table.leading // 2
    if table.ends:
        return [*rows[:half], *rows[len(rows) - (table.leading - half) :]], hidden, half
    return list(rows[: table.leading]), hidden, table.leading


def _rest(table: Table, hidden: int, indent: str) -> str:
    return f"{indent}... {hidden} more{' between them' * table.ends}, in {table.file}"


def _line(texts: Sequence[str], columns: Sequence[Column], widths: Sequence[int], indent: str, gap: int) -> str:
    first, *others = zip(texts, columns, widths, strict=True)
    cells = [f"{short(first[0], first[2]):{first[2]}}"]
    cells += [f"{text:{'<' if column.kind == 'text' else '>'}{width}}" for text, column, width in others]
    return (indent + (" " * gap).join(cells)).rstrip()
