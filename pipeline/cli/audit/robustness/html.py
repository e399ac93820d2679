"""The result as one self-contained page: no script, style or picture is loaded from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline.cli.audit.robustness import DENOMINATORS
from pipeline.cli.audit.robustness.document import span
from pipeline.cli.audit.robustness.verdict import BOUNDS, WHOSE, headline, images_text, scale_text, settings_text
from pipeline.report.numbers import DASH, MINUS, number, p_value
from pipeline.report.typeset import Heading, Line, Printed, html

Entry = Mapping[str, Any]


def page(document: Entry, pictures: Mapping[str, bytes]) -> str:
    """The page of a robustness audit. ``pictures`` holds the PNG of each attack's curves by the attack's name."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("pipeline.cli.audit.robustness"), PackageLoader("pipeline.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("robustness.html").render(
        document=document,
        headline=headline(document["verdict"]).capitalize(),
        images=images_text(document),
        scale=scale_text(document),
        whose=WHOSE,
        level=f"{100 * (1 - document['parameters']['alpha']):g} %",
        sections=[_section(found, document, pictures) for found in document["results"]],
    )


def _section(found: Entry, document: Entry, pictures: Mapping[str, bytes]) -> dict[str, Any]:
    alpha, labelled = document["parameters"]["alpha"], document["accuracy"] is not None
    return {
        "found": found,
        "settings": settings_text(found),
        "bound": BOUNDS[found["bound"]],
        "picture": base64.b64encode(pictures[found["attack"]]).decode("ascii"),
        "partitions": [
            {
                "name": partition["name"],
                "unknown": partition["unknown"],
                "tables": {name: Markup(html(_table(partition, name, alpha, labelled))) for name in DENOMINATORS},
            }
            for partition in found["partitions"]
        ],
    }


def _table(partition: Entry, denominator: str, alpha: float, labelled: bool) -> Printed:
    """The levels of a partition, the closest to the boundary first."""
    lines = []
    for entry in sorted(partition["levels"], key=lambda entry: entry[denominator]["sigma"] or 0.0):
        own = entry[denominator]
        bias = own["largest_bias"]
        lines.append(
            (
                entry["level"],
                f"{entry['images']:,}",
                f"{number(100 * entry['n_correct'] / entry['images'], 1)} %" if labelled and entry["images"] else DASH,
                f"{entry['failed']:,}",
                number(own["mean"]),
                number(own["median"]),
                number(own["sigma"], 2),
                span(own["interval"]).replace("-", MINUS).replace("no interval", DASH),
                DASH if own["p"] is None else p_value(own["p"]),
                DASH if own["p_adjusted"] is None else p_value(own["p_adjusted"]),
                DASH if bias is None else f"{number(bias['value'], 2)} at {number(bias['tau'])}",
            )
        )
    heads = (
        partition["name"], "Images", "Classified correctly", "Failed attacks", "Mean distance", "Median", "\u03c3(P)",
        f"{100 * (1 - alpha):g} % interval", "p", "p, adjusted", "Largest RB(P, \u03c4)",
    )  # fmt: skip
    return _set(heads, lines)


def _set(heads: Sequence[str], lines: Sequence[tuple[str, ...]]) -> Printed:
    """A table whose first column holds names, and all others numbers."""
    headings = tuple(Heading(text, "number" if place else "label") for place, text in enumerate(heads))
    return Printed("", "", headings, tuple(Line(line, False) for line in lines), ())
