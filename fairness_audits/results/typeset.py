"""Formats of tables as text: for the terminal, in Markdown, LaTeX and HTML, and as CSV.

No library does all of this: great_tables lacks row labels and footnotes in LaTeX; pandas' Styler lacks notes and
Markdown.
"""

import csv as comma_separated
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import groupby
from typing import Literal

from rich import table as rich
from rich.console import Console
from rich.padding import Padding

from fairness_audits.messages import shown
from fairness_audits.results import markup
from fairness_audits.results.estimate import Estimate
from fairness_audits.results.formats import DASH, interval, number, parameter, spread
from fairness_audits.results.markup import symbols
from fairness_audits.results.table import Cell, Column, Row, Table

WIDTH = 80
"""Number of characters in a line of the terminal."""
MOST_HEAD, MOST_TEXT = 10, 26
"""Characters in a line of a terminal column, for the heading's words and for the cells; longer ones take more lines."""
LETTERS_ON_A_LINE = 40
"""Number of characters beyond which a LaTeX table wraps texts."""


def cell_text(column: Column, cell: Cell, decimals: int | None = None) -> str:
    """Return the text of a cell, with the row's decimals or else the column's."""
    if cell is None:
        return DASH
    if isinstance(cell, str):
        return cell
    estimate = cell if isinstance(cell, Estimate) else Estimate(float(cell))
    digits = column.decimals if decimals is None else decimals
    if estimate.text:
        return estimate.text
    if column.kind == "interval":
        return interval(estimate, digits)
    if column.kind == "value and interval" and not math.isnan(estimate.value):
        return f"{number(estimate.value, digits)} {interval(estimate, digits)}"
    if column.kind == "spread":
        return spread(estimate, digits)
    return parameter(estimate.value) if column.kind == "parameter" else number(estimate.value, digits)


def texts(table: Table, row: Row) -> list[str]:
    """Return the texts of a row in the printed columns."""
    return [
        cell_text(column, cell, row.decimals)
        for column, cell in zip(table.columns, row.cells, strict=True)
        if column.printed
    ]


def groups_of(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    """Return the consecutive rows of each group with their heading."""
    return [(group, list(some)) for group, some in groupby(rows, key=lambda row: row.group)]


def terminal(table: Table) -> Iterator[str]:
    """Yield lines with labels aligned left and numbers aligned right."""
    leading = [(group, [texts(table, row) for row in rows[: table.leading]]) for group, rows in groups_of(table.rows)]
    drawn = rich.Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, column in enumerate(_printed(table)):
        words = min(MOST_HEAD, max(map(len, column.head.split()), default=0))
        cells = min(MOST_TEXT, max((len(row[place]) for _, rows in leading for row in rows), default=0))
        side: Literal["left", "right"] = "right" if column.content == "number" else "left"
        width = max(words, cells) if place else None
        drawn.add_column(shown(column.head), justify=side, width=width, overflow="fold")
    for group, rows in leading:
        if group:
            drawn.add_row(shown(group))
        for row in rows:
            name, *others = map(shown, row)
            drawn.add_row(Padding(name, (0, 0, 0, 2)) if group else name, *others)
    console = Console(width=WIDTH - 2, color_system=None, markup=False, emoji=False, highlight=False)
    with console.capture() as captured:
        console.print(drawn)
    yield from (f"  {line}".rstrip() for line in captured.get().splitlines())
    if hidden := len(table.rows) - sum(len(rows) for _, rows in leading):
        yield f"  ... {hidden} more, in {table.file}"


def markdown(table: Table) -> str:
    """Return a pipe table with the title above and the notes below."""
    columns = _printed(table)
    names = [f"{column.group}: " * bool(column.group) + symbols(column.head) for column in columns]
    rule = ["--:" if column.content == "number" else ":--" for column in columns]
    lines = [f"**{markup.markdown(table.title)}** {markup.markdown(table.caption)}".rstrip(), ""]
    lines += [_piped(names), "| " + " | ".join(rule) + " |"]
    lines += [_piped(row) for row, _ in _body(table)]
    for note in table.notes:
        lines += ["", f"*{markup.markdown(symbols(note))}*"]
    return "\n".join(lines) + "\n"


def latex(table: Table) -> str:
    """Return a ``longtable`` (packages booktabs, longtable, amsmath)."""
    columns, rows = _printed(table), _body(table)
    longest = [max((len(row[place]) for row, _ in rows), default=0) for place in range(len(columns))]
    alignment = "".join(
        "r" if column.content == "number" else "l" if letters <= LETTERS_ON_A_LINE else r"p{0.3\linewidth}"
        for column, letters in zip(columns, longest, strict=True)
    )
    names = " & ".join(markup.latex(symbols(column.head)) for column in columns)
    head = [r"\toprule", *_latex_groups(columns), names + r" \\", r"\midrule"]
    body: list[str] = []
    for row, opens in rows:
        body += [r"\addlinespace"] * opens + [" & ".join(map(markup.latex, row)) + r" \\"]
    caption = f"\\caption{{{markup.latex(f'{table.title} {table.caption}'.strip())}}}"
    notes = r" \\ ".join(markup.latex(symbols(note)) for note in table.notes)
    below = f"\\par\\smallskip{{\\footnotesize {notes}\\par}}"
    begin = [r"{\footnotesize", f"\\begin{{longtable}}{{{alignment}}}", caption + r" \\", *head, r"\endhead"]
    return "\n".join([*begin, r"\bottomrule", r"\endfoot", *body, r"\end{longtable}}", below]) + "\n"


def html(table: Table) -> str:
    """Return the ``table`` element; the page adds title, caption and notes."""
    columns = _printed(table)
    lines = ["<table>", "<thead>"]
    if any(column.group for column in columns):
        cells = [
            f'<th class="group" colspan="{width}" scope="colgroup">{escape(name)}</th>'
            if name
            else f'<th colspan="{width}"></th>'
            for name, width in _column_groups(columns)
        ]
        lines.append(f"<tr>{''.join(cells)}</tr>")
    lines += [html_head(columns, _letters), "</thead>", "<tbody>"]
    lines += [html_row(columns, row, escape, opens) for row, opens in _body(table)]
    return "\n".join([*lines, "</tbody>", "</table>"]) + "\n"


def html_head(columns: Iterable[Column], say: Callable[[str], str]) -> str:
    """Return the row of headings; ``say`` escapes their texts."""
    cells = [f'<th class="{column.content}" scope="col">{say(column.head)}</th>' for column in columns]
    return f"<tr>{''.join(cells)}</tr>"


def html_row(columns: Iterable[Column], cells: Iterable[str], say: Callable[[str], str], opens: bool = False) -> str:
    """Return a row of cells; ``say`` escapes their texts. ``opens`` marks the first row of a group."""
    elements = [
        f'<th class="label" scope="row">{say(text)}</th>'
        if column.content == "label"
        else f'<td class="{column.content}">{say(_unbroken(text) if column.content == "number" else text)}</td>'
        for column, text in zip(columns, cells, strict=True)
    ]
    opening = '<tr class="opens">' if opens else "<tr>"
    return f"{opening}{''.join(elements)}</tr>"


def _unbroken(text: str) -> str:
    """Return a number with line breaks allowed only before brackets and after semicolons, for narrow columns."""
    return re.sub(r"(?<!;) (?![(\[])", "\u00a0", text)


def csv(table: Table) -> str:
    """Return the CSV at full precision, with separate columns for an estimate's spread, count and interval."""
    buffer = io.StringIO()
    writer = comma_separated.writer(buffer, lineterminator="\n")
    parts = [_parts(table, place) for place in range(len(table.columns))]
    writer.writerow(
        f"{column.key} {part}".rstrip() for column, names in zip(table.columns, parts, strict=True) for part in names
    )
    for row in table.rows:
        writer.writerow(_part(cell, part) for cell, names in zip(row.cells, parts, strict=True) for part in names)
    return buffer.getvalue()


def _printed(table: Table) -> list[Column]:
    return [column for column in table.columns if column.printed]


def _letters(text: str) -> str:
    return escape(symbols(text))


def _body(table: Table) -> list[tuple[list[str], bool]]:
    """Return the texts of each row, and whether it opens a group. A label equal to the one above is empty."""
    above: tuple[str, ...] = ()
    body = []
    for row in table.rows:
        labels = table.labels(row)
        same = next((i for i, (a, b) in enumerate(zip(above, labels, strict=False)) if a != b), len(above))
        # Always print the last label, because every row needs one.
        empty = min(same, len(labels) - 1)
        shown_texts = [symbols(text) for text in texts(table, row)]
        body.append(([""] * empty + shown_texts[empty:], bool(above) and len(labels) > 1 and same == 0))
        above = labels
    return body


def _column_groups(columns: Sequence[Column]) -> list[tuple[str, int]]:
    """Return the headings of groups of columns, each with its number of columns."""
    return [(name, len(list(members))) for name, members in groupby(column.group for column in columns)]


def _latex_groups(columns: Sequence[Column]) -> list[str]:
    cells, rules, position = [], [], 1
    for name, width in _column_groups(columns):
        cells.append(f"\\multicolumn{{{width}}}{{c}}{{{markup.latex(name)}}}")
        if name:
            rules.append(f"\\cmidrule(lr){{{position}-{position + width - 1}}}")
        position += width
    return [" & ".join(cells) + r" \\", " ".join(rules)] if rules else []


def _piped(cells: Iterable[str]) -> str:
    return f"| {' | '.join(map(markup.markdown, cells))} |"


def _parts(table: Table, place: int) -> list[str]:
    """Return the parts that any of a column's estimates has; each gets a column in the CSV."""
    estimates = [row.cells[place] for row in table.rows if isinstance(row.cells[place], Estimate)]
    held = [""] if table.columns[place].kind != "interval" else []
    for part in ("std", "n", "low", "high"):
        values = [getattr(estimate, part) for estimate in estimates]
        if any(value != 0 and not math.isnan(value) for value in values):
            held.append(part)
    return held or [""]


def _part(cell: Cell, part: str) -> str:
    value = getattr(cell, part or "value") if isinstance(cell, Estimate) else None if part else cell
    if isinstance(value, str):
        return value
    return "" if value is None or math.isnan(value) else str(value)
