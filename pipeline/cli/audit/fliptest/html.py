"""The result as one self-contained page: no script, style or picture is loaded from elsewhere."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline.cli.audit.fliptest.document import span
from pipeline.cli.audit.fliptest.evidence import FLIPSETS
from pipeline.cli.audit.fliptest.verdict import READINGS, headline
from pipeline.report.numbers import DASH, MINUS, number, p_value
from pipeline.report.typeset import Heading, Line, Printed, html

Entry = Mapping[str, Any]


def page(document: Entry, pictures: Mapping[str, bytes]) -> str:
    """The page of a FlipTest. ``pictures`` holds the PNG of each figure by its name in the document's ``files``."""
    environment = Environment(
        loader=ChoiceLoader([PackageLoader("pipeline.cli.audit.fliptest"), PackageLoader("pipeline.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    encoded = {name: base64.b64encode(png).decode("ascii") for name, png in pictures.items()}
    return environment.get_template("fliptest.html").render(
        document=document,
        headline=headline(document["verdict"]),
        readings=READINGS,
        level=f"{100 * (1 - document['parameters']['alpha']):g} %",
        sections=[_section(found, document) for found in document["results"]],
        pictures=encoded,
    )


def _section(found: Entry, document: Entry) -> dict[str, Any]:
    return {
        "found": found,
        "rates": Markup(html(_rates(found))),
        "sizes": Markup(html(_sizes(found, document["parameters"]["alpha"]))),
        "reports": {
            name: Markup(html(_report(found["transparency"][name])))
            for name in FLIPSETS
            if found["flipsets"][name]["size"]
        },
        "ks": Markup(html(_ks(found["map"]["ks"]))),
    }


def _rates(found: Entry) -> Printed:
    decided = found["positives"]
    rows = (
        (found["source"], found["n_source"], decided["source"]),
        ("their counterparts", found["n_source"], decided["counterparts"]),
        (found["target"], found["n_target"], decided["target"]),
    )
    lines = [(name, f"{people:,}", f"{count:,}", _percent(count / people)) for name, people, count in rows]
    return _table(("Group", "People", "Decided positively", "Share"), lines)


def _sizes(found: Entry, alpha: float) -> Printed:
    floor = found["noise"]
    lines = []
    entries = [(f"{name} flipset", found["flipsets"][name], name) for name in FLIPSETS]
    for name, entry, key in [*entries, ("net: positive less negative", found["net"], "net")]:
        noise = (_span(floor[key]["range"], 0),) if floor else ()
        lines.append((name, number(entry["size"], 0), _percent(entry["share"]), _span(entry["interval"], 0), *noise))
    heads = ("Flipset", "People", "Share", f"{100 * (1 - alpha):g} % interval")
    return _table((*heads, "Between groups dealt alike") if floor else heads, lines)


def _report(report: Sequence[Entry]) -> Printed:
    lines = []
    for entry in report:
        ranks = (entry["rank_mean"], entry["rank_sign"])
        lines.append(
            (
                entry["feature"],
                *(DASH if rank is None else f"{rank:.0f}" for rank in ranks),
                number(entry["mean_shift"], 2),
                _span((entry["mean_shift_ci_low"], entry["mean_shift_ci_high"]), 2),
                DASH if entry["mean_shift_p_adjusted"] is None else p_value(entry["mean_shift_p_adjusted"]),
                entry["mean_shift_standing"] or DASH,
                number(entry["mean_sign"], 2),
                _span((entry["mean_sign_ci_low"], entry["mean_sign_ci_high"]), 2),
                entry["mean_sign_standing"] or DASH,
                number(entry["mean_shift"] * entry["unit"], 3),
                number(entry["members_mean"], 3),
            )
        )
    heads = (
        "Feature", "Rank by mean", "Rank by sign", "Mean shift, sd", "Interval", "p, adjusted", "The shift is",
        "Mean sign", "Interval", "The sign is", "Mean shift, own units", "Mean of the people",
    )  # fmt: skip
    return _table(heads, lines)


def _ks(distances: Mapping[str, float]) -> Printed:
    ordered = sorted(distances.items(), key=lambda item: -item[1])
    return _table(("Feature", "Kolmogorov-Smirnov distance"), [(name, number(value)) for name, value in ordered])


def _table(heads: Sequence[str], lines: Sequence[tuple[str, ...]]) -> Printed:
    """A table whose first column holds names, and all others numbers."""
    headings = tuple(Heading(text, "number" if place else "label") for place, text in enumerate(heads))
    return Printed("", "", headings, tuple(Line(line, False) for line in lines), ())


def _span(ends: Sequence[float | None], decimals: int) -> str:
    return span(ends, decimals).replace("-", MINUS)


def _percent(share: float) -> str:
    return f"{number(100 * share, 1)} %"
