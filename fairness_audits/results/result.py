"""What an audit says, wherever it is read: terminal, notebook, page, JSON and CSV are renderings of one Result.

An audit measures by pure functions of arrays, fills a Result, and leaves the rest to :mod:`fairness_audits.results.render`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairness_audits.options import Options

if TYPE_CHECKING:
    import pandas as pd
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
    """A figure of the page, also written as ``stem``.png and .pdf. ``key`` is its name in the JSON, if not the stem.

    It is drawn ``by`` a function ``module:name`` ``of`` these things; the module is imported when it is, or never.
    """

    stem: str
    title: str
    caption: str
    by: str
    of: tuple[Any, ...] = ()
    key: str = ""

    def draw(self) -> Drawing:
        """The drawing, to be made and saved within :func:`fairness_audits.results.style.paper`."""
        module, _, name = self.by.partition(":")
        return getattr(importlib.import_module(module), name)(*self.of)


Part: TypeAlias = Facts | Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """Parts under a title."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True, repr=False)
class Result:
    """The result of an audit: its verdict, and everything that is said about it, wherever it is read.

    ``audit`` is the command's name, ``title`` what people call it, ``subject`` what was audited. ``facts`` are the
    JSON's own keys (what was measured, data, model), ``tables`` the CSV files by name without suffix, and
    ``libraries`` those whose versions matter. ``schema`` is the version of the JSON's layout: raised when a key changes
    its meaning or goes; new keys do not raise it. ``settings`` are the options that repeat it.
    """

    audit: str
    title: str
    subject: str
    verdict: Verdict
    caveats: tuple[Caveat, ...]
    sections: tuple[Section, ...]
    facts: Mapping[str, Any]
    tables: Mapping[str, pd.DataFrame]
    libraries: tuple[str, ...] = ("numpy",)
    settings: Options | None = None
    schema: int = 3

    @property
    def outcome(self) -> Outcome:
        """``rejected``, ``not rejected`` or ``inconclusive``."""
        return self.verdict.outcome

    def summary(self) -> str:
        """The verdict, what it rests on and what to keep in mind, as the terminal shows it."""
        from fairness_audits.results.render import terminal

        return terminal(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything that was measured, with options and versions: the content of ``audit.json``."""
        from fairness_audits.results.render import content

        return content(self, in_folder=False)

    def to_frame(self, table: str | None = None) -> pd.DataFrame:
        """A copy of one of the ``tables`` by its name; the first where none is named."""
        return self.tables[_known("table", table, list(self.tables))].copy()

    def figure(self, stem: str | None = None) -> Drawing:
        """One of the figures by its stem, the first where none is named; ``.savefig`` writes it."""
        from fairness_audits.results.style import paper

        figures = {figure.stem: figure for figure in self.figures()}
        with paper():
            return figures[_known("figure", stem, list(figures))].draw()

    def save(self, folder: str | Path) -> list[Path]:
        """Write JSON, page, tables, figures and options into a folder, whole or not at all; the paths written."""
        from fairness_audits.results.render import check_destination, deliver

        check_destination(Path(folder), True)
        return deliver(self, Path(folder), None)

    def __repr__(self) -> str:
        return f"<{self.title} of {self.subject}: {self.outcome}>"

    def _repr_html_(self) -> str:
        """The page, in a frame of its own."""
        from html import escape
        from tempfile import TemporaryDirectory

        with TemporaryDirectory() as folder:
            self.save(folder)
            page = Path(folder, self.files()["page"]).read_text(encoding="utf-8")
        return f'<iframe srcdoc="{escape(page)}" style="width: 100%; height: 42rem; border: 0"></iframe>'

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
        options = {} if self.settings is None else {"options": "audit.yaml"}
        return {"result": "audit.json", "page": f"{self.audit.replace('-', '_')}.html", **options, **tables, **drawn}


def _known(kind: str, name: str | None, names: list[str]) -> str:
    if name in names or (name is None and names):
        return name or names[0]
    raise ValueError(f"there is no {kind} {name!r}: " + (f"there are {', '.join(names)}" if names else "there is none"))
