"""The result of an audit as a value: a verdict, caveats, and sections of facts, texts, tables and figures."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairness_audits.options import Options
from fairness_audits.results.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

QUESTIONS = ("What was asked", "Of whom", "What was found", "How sure that is", "What it does not say")
Outcome: TypeAlias = Literal["rejected", "not rejected", "inconclusive"]


@dataclass(frozen=True)
class Verdict:
    """The verdict of an audit.

    ``outcome`` says whether the audit rejects; an inconclusive one has a ``reason``. ``headline`` has two or three
    words, ``sentence`` plain sentences; ``facts`` are the JSON's other keys.
    """

    outcome: Outcome
    headline: str
    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True)
class Caveat:
    """A warning for the reader of the verdict: the name of a ``condition`` that holds, and the sentence about it."""

    condition: str
    text: str


@dataclass(frozen=True)
class Brief:
    """A result in plain words, for readers without statistics: sentences that answer one question each.

    ``asked``: what was asked; ``people``: of whom, and what the reader must check about the data; ``found``: what was
    found; ``sure``: how sure that is; ``unsaid``: what it does not say.
    """

    asked: str
    people: str
    found: str
    sure: str
    unsaid: str

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """The questions and their answers, in the order in which a person reads them."""
        return tuple(zip(QUESTIONS, (self.asked, self.people, self.found, self.sure, self.unsaid), strict=True))


@dataclass(frozen=True)
class Facts:
    """Named texts, one on each line."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Text:
    """A paragraph; an ``item`` is one of a list."""

    text: str
    item: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the page, also written as ``stem``.png and .pdf. ``key`` is its name in the JSON, if not the stem.

    ``by``, a function ``module:name``, draws it from the arguments ``of``. The module is imported when it draws.
    """

    stem: str
    title: str
    caption: str
    by: str
    of: tuple[Any, ...] = ()
    key: str = ""

    def draw(self) -> Drawing:
        """Draw it. Call this and save the drawing within :func:`fairness_audits.results.style.paper`."""
        module, _, name = self.by.partition(":")
        return getattr(importlib.import_module(module), name)(*self.of)


Part: TypeAlias = Facts | Text | Table | Figure


@dataclass(frozen=True)
class Section:
    """Parts under a title."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Document:
    """The content of a result; :mod:`fairness_audits.results.render` makes the renderings.

    ``audit`` is the command's name, ``title`` what people call it, ``subject`` what was audited. ``facts`` are the
    JSON's own keys (what was measured, data, model), ``tables`` the CSV files by name without suffix, and
    ``libraries`` those whose versions matter. ``schema`` is the version of the JSON's layout: raised when a key changes
    its meaning or goes; new keys do not raise it. ``settings`` are the options that repeat it. The ``brief`` is the
    page's beginning in plain words.
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
    brief: Brief | None = None

    @property
    def outcome(self) -> Outcome:
        """``rejected``, ``not rejected`` or ``inconclusive``."""
        return self.verdict.outcome

    def figures(self) -> Iterator[Figure]:
        """Yield the figures in the order of the page."""
        yield from (part for section in self.sections for part in section.parts if isinstance(part, Figure))

    def files(self) -> dict[str, str]:
        """Return the names of the files in a folder, by their keys in the JSON."""
        drawn = {
            f"{figure.key or figure.stem}{kind}": f"{figure.stem}{suffix}"
            for figure in self.figures()
            for kind, suffix in (("", ".png"), ("_for_print", ".pdf"))
        }
        tables = {name: f"{name}.csv" for name in self.tables}
        options = {} if self.settings is None else {"options": "audit.yaml"}
        return {"result": "audit.json", "page": f"{self.audit.replace('-', '_')}.html", **options, **tables, **drawn}
