"""A document as one self-contained page: no script, style or picture is loaded from elsewhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from itertools import groupby
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline.cli.document import AuditDocument, Row
from pipeline.cli.render.data import versions
from pipeline.report.numbers import DASH, MINUS

NEGATIVE = re.compile(r"(?<![\w.)-])-(?=[\d.])")
"""A minus sign, which is no hyphen within a word or between numbers."""
STATISTIC = re.compile(r"\b([A-Z])_([nP])\b")
PROVENANCE = ("data", "model", "map", "parameters")
"""What of a document's facts tells where it comes from."""


def page(document: AuditDocument, pictures: Mapping[str, bytes]) -> str:
    """The page; ``pictures`` holds the PNG of each figure by its stem."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("pipeline.cli.render"), PackageLoader("pipeline.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["typeset"] = typeset
    environment.filters["cell"] = lambda text: DASH if text == "-" else typeset(text)
    environment.filters["told"] = told
    return environment.get_template("audit.html").render(
        document=document,
        kind=lambda part: type(part).__name__,
        groups=_groups,
        provenance={
            **{key.capitalize(): value for key in PROVENANCE if (value := document.facts.get(key))},
            "Versions": versions(document),
            "Files beside this page": list(document.files().values()),
        },
        pictures={stem: base64.b64encode(png).decode("ascii") for stem, png in pictures.items()},
    )


def typeset(text: str) -> Markup:
    """Escaped text with minus signs and the statistics' indices."""
    safe = NEGATIVE.sub(MINUS, escape(str(text)))
    return Markup(STATISTIC.sub(r"\1<sub>\2</sub>", safe))


def told(value: Any) -> Markup:
    """A fact of any shape in a line: names with their values, lists, checksums in small type."""
    return Markup("; ").join(_told(value)) or Markup("none")


def _told(value: Any) -> Iterator[Markup]:
    if isinstance(value, Mapping):
        for name, one in value.items():
            if one is None or one == [] or one == {}:
                continue
            shown = Markup('<code class="sum">{}</code>').format(one) if name.endswith("sha256") else told(one)
            yield Markup("{} {}").format(name.replace("_", " "), shown)
    elif isinstance(value, list | tuple):
        plain = all(not isinstance(one, Mapping) for one in value)
        yield Markup(", " if plain else "; ").join(told(one) for one in value)
    elif value is not None:
        yield Markup(escape("yes" if value is True else "no" if value is False else str(value)))


def _groups(rows: Sequence[Row]) -> list[tuple[str, list[Row]]]:
    return [(group, list(some)) for group, some in groupby(rows, key=lambda row: row.group)]
