"""What an audit says, wherever it is read: terminal, page, JSON and CSV are renderings of one AuditDocument.

A command computes a result (pure functions of arrays), fills a document with it, and leaves the rest to
:mod:`pipeline.cli.render` and :mod:`pipeline.cli.delivery`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import pandas as pd

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


Outcome: TypeAlias = Literal["rejected", "not rejected", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """What follows from an audit.

    ``outcome``: whether the audit found what it looks for, did not, or cannot tell, for this ``reason``. ``headline``
    says it in two or three words, ``sentence`` in plain sentences; ``facts`` are the JSON's other keys.
    """

    outcome: Outcome
    headline: str
    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True)
class Caveat:
    """What a reader must know beside the verdict: the ``condition`` that holds, by name, and the sentence about it."""

    condition: str
    text: str


@dataclass(frozen=True)
class Column:
    """A column of a table. ``short`` is its heading in the terminal (None: the same), ``where`` it is shown.

    ``cell`` says what an entry has in it, for :func:`rows_of`.
    """

    head: str
    short: str | None = None
    where: Literal["both", "page"] = "both"
    kind: Literal["number", "text"] = "number"
    cell: Callable[[Any], str] = str


@dataclass(frozen=True)
class Row:
    """Texts of a row; of fewer texts than columns the last one fills the rest. ``note`` is a sentence about the row.

    Rows of one ``group`` have a heading together.
    """

    cells: tuple[str, ...]
    note: str = ""
    group: str = ""


def rows_of(columns: Sequence[Column], entries: Iterable[Any], group: str = "") -> tuple[Row, ...]:
    """A row for each entry, of the cells that the columns say."""
    return tuple(Row(tuple(column.cell(entry) for column in columns), group=group) for entry in entries)


@dataclass(frozen=True)
class Table:
    """Rows under headings, the first column being names.

    The terminal shows ``leading`` rows of each group (all where None), and if ``ends`` the last ones too, and says that
    the others are in ``file``. ``notes`` is the heading over the rows' notes on the page.
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    leading: int | None = None
    ends: bool = False
    file: str = ""
    notes: str = ""


@dataclass(frozen=True)
class Facts:
    """Named texts, one a line."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Text:
    """A paragraph; an ``item`` is one of a list."""

    text: str
    item: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the page, also written as ``stem``.png and .pdf. ``key`` is its name in the JSON, if not the stem."""

    stem: str
    title: str
    caption: str
    draw: Callable[[], Drawing]
    key: str = ""


def drawn_by(where: str, *of: Any) -> Callable[[], Drawing]:
    """The drawing of these things by a function ``module:name``; its module is imported when it is drawn, or never."""

    def draw() -> Drawing:
        module, _, name = where.partition(":")
        drawing: Drawing = getattr(importlib.import_module(module), name)(*of)
        return drawing

    return draw


Part: TypeAlias = Facts | Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """Parts under a title. ``where`` it is shown; ``below``: whether it belongs to the section before it."""

    title: str
    parts: tuple[Part, ...]
    where: Literal["both", "page"] = "both"
    below: bool = False


@dataclass(frozen=True)
class AuditDocument:
    """The whole result of an audit.

    ``audit`` is the command's name, ``title`` what people call it, ``subject`` what was audited. ``facts`` are the
    JSON's own keys (what was measured, data, model, parameters), ``tables`` the CSV files by name without suffix, and
    ``libraries`` those whose versions matter. ``schema`` is the version of the JSON's layout: raised when a key changes
    its meaning or goes; new keys do not raise it.
    """

    audit: str
    schema: int
    title: str
    subject: str
    verdict: Verdict
    caveats: tuple[Caveat, ...]
    sections: tuple[Section, ...]
    facts: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    libraries: tuple[str, ...] = ("numpy",)

    @property
    def name(self) -> str:
        """The audit's name in file names."""
        return self.audit.replace("-", "_")

    def figures(self) -> Iterator[Figure]:
        """The figures in the order of the page."""
        yield from (part for section in self.sections for part in section.parts if isinstance(part, Figure))

    def files(self) -> dict[str, str]:
        """The names of the files in a folder, by their keys in the JSON."""
        drawn = {
            f"{figure.key or figure.stem}{kind}": f"{figure.stem}{suffix}"
            for figure in self.figures()
            for kind, suffix in (("", ".png"), ("_for_print", ".pdf"))
        }
        tables = {name: f"{name}.csv" for name in self.tables}
        return {"result": "audit.json", "page": f"{self.name}.html", **tables, **drawn}
