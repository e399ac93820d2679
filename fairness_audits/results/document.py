"""The result of an audit as a value: a verdict, caveats, and sections of facts, texts, tables and figures."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from fairness_audits.arguments import Given
from fairness_audits.results.table import Table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

QUESTIONS = ("The question", "The data", "What was found", "How certain it is", "What it does not show")
Outcome: TypeAlias = Literal["rejected", "not rejected", "inconclusive", "planned"]
STATUS: Mapping[Outcome, int] = {"not rejected": 0, "rejected": 3, "inconclusive": 4, "planned": 0}
"""Exit status of each outcome, if a command has ``gate``."""


@dataclass(frozen=True)
class Verdict:
    """The verdict of an audit.

    ``outcome`` says whether the audit rejects; a plan tests nothing, and an inconclusive verdict has a ``reason``.
    ``headline`` has two or three words, ``sentence`` consists of plain sentences, and ``facts`` are the other keys of
    the JSON.
    """

    outcome: Outcome
    headline: str
    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    reason: str | None = None


@dataclass(frozen=True)
class Caveat:
    """A warning about the verdict: the name of a ``condition`` that holds, and a sentence about it."""

    condition: str
    text: str


@dataclass(frozen=True)
class Brief:
    """A result in plain words, for readers without statistics. Each field answers one question.

    ``question`` states the question, ``people`` the people it is about and what the reader must check in the data,
    ``found`` the finding, ``sure`` its certainty, and ``limits`` what the finding does not say.
    """

    question: str
    people: str
    found: str
    sure: str
    limits: str

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Return the questions and answers in reading order."""
        return tuple(zip(QUESTIONS, (self.question, self.people, self.found, self.sure, self.limits), strict=True))


@dataclass(frozen=True)
class Facts:
    """Named texts, one per line."""

    lines: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Text:
    """A paragraph, or an ``item`` of a list."""

    text: str
    item: bool = False


@dataclass(frozen=True)
class Figure:
    """A figure of the page, also saved as ``stem``.png and .pdf. Its name in the JSON is ``key``, or else the stem.

    The function ``by``, written ``module:name``, draws it from the arguments ``of``. Drawing imports the module.
    """

    stem: str
    title: str
    caption: str
    by: str
    of: tuple[Any, ...] = ()
    key: str = ""

    def draw(self) -> Drawing:
        """Draw the figure. Draw and save it within :func:`fairness_audits.results.style.paper`."""
        module, _, name = self.by.partition(":")
        return getattr(importlib.import_module(module), name)(*self.of)


def can_draw() -> bool:
    """Return whether Matplotlib is installed."""
    return find_spec("matplotlib") is not None


def page_of(audit: str) -> str:
    """Return the file name of the page of an audit, by the name of its command."""
    return f"{audit.replace('-', '_')}.html"


Part: TypeAlias = Facts | Text | Table | Figure


@dataclass(frozen=True)
class Heading:
    """What the head of a page states besides the result; empty texts are not stated."""

    title: str = ""
    model_name: str = ""
    data_name: str = ""
    day: date | None = None

    @property
    def written(self) -> str:
        """Return the day, by default today or that of ``SOURCE_DATE_EPOCH``, as ``29 November 2026``."""
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
        found = self.day or (datetime.fromtimestamp(int(epoch), UTC).date() if epoch.isdigit() else date.today())
        return f"{found.day} {found:%B %Y}"


UNNAMED = Heading()


@dataclass(frozen=True)
class Section:
    """Parts under a title."""

    title: str
    parts: tuple[Part, ...]


@dataclass(frozen=True)
class Document:
    """The content of a result; :mod:`fairness_audits.results.render` makes the renderings.

    ``audit`` is the command's name, ``title`` its readable name, and ``subject`` the audited object. ``facts`` are the
    audit's own keys of the JSON (measurements, data, model), ``tables`` the CSV files by name without suffix, and
    ``libraries`` the libraries whose versions matter. ``schema`` is the version of the JSON's layout; it increases when
    a key is removed or changes its meaning, but not for new keys. ``settings`` are the options that repeat the audit.
    The ``brief`` is the plain-language beginning of the page.
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
    settings: Given | None = None
    schema: int = 4
    brief: Brief | None = None

    @property
    def outcome(self) -> Outcome:
        """Return ``rejected``, ``not rejected`` or ``inconclusive``; for a plan, ``planned``."""
        return self.verdict.outcome

    def figures(self) -> Iterator[Figure]:
        """Yield the figures in the order of the page."""
        yield from (part for section in self.sections for part in section.parts if isinstance(part, Figure))

    def files(self) -> dict[str, str]:
        """Return the names of the files in a folder, by their keys in the JSON; without Matplotlib, no figures."""
        drawn = {
            f"{figure.key or figure.stem}{kind}": f"{figure.stem}{suffix}"
            for figure in (self.figures() if can_draw() else ())
            for kind, suffix in (("", ".png"), ("_for_print", ".pdf"))
        }
        tables = {name: f"{name}.csv" for name in self.tables}
        options = {} if self.settings is None else {"options": "audit.yaml"}
        return {"result": "audit.json", "page": page_of(self.audit), **options, **tables, **drawn}
