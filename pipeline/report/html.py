"""One page with every study's artefacts, self-contained: no script, style or picture is loaded from elsewhere."""

import base64
from collections.abc import Mapping, Sequence
from itertools import groupby
from textwrap import wrap
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pipeline.report import markup
from pipeline.report.comparison import VERDICTS
from pipeline.report.comparison_table import PARTS, tally_in_words, tally_of_repetitions
from pipeline.report.numbers import symbols
from pipeline.report.provenance import RuleTime, duration

TALLIED = {
    "results": "published results",
    "likely": "the same, as likely made",
    "constants": "published settings",
}
"""What each part of the tally is called."""
FORMATS = {"table": ("csv", "md", "tex"), "figure": ("pdf", "png")}


def page(
    studies: Sequence[Mapping[str, Any]],
    pictures: Mapping[tuple[str, str], bytes],
    provenance: Mapping[str, Any],
    failures: Mapping[str, Any] | None = None,
) -> str:
    """The page of the studies' indexes (see :mod:`pipeline.report.index`).

    ``pictures`` holds the PNG of each figure by (study, artefact). ``provenance`` has ``commit``, ``versions``,
    ``machine`` and ``times``. ``failures`` is the account of a run in which jobs failed
    (:func:`pipeline.workflow.failures.account`), with which the page then opens. Raises ValueError for a figure without
    its picture.
    """
    environment = Environment(
        loader=PackageLoader("pipeline.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["letters"] = lambda text: Markup(markup.html(symbols(str(text))))
    environment.filters["duration"] = duration
    environment.filters["tally"] = tally_in_words
    environment.filters["repetitions"] = tally_of_repetitions
    return environment.get_template("report.html").render(
        studies=[_with_pictures(study, pictures) for study in studies],
        verdicts=VERDICTS,
        formats=FORMATS,
        tallied=TALLIED,
        provenance=provenance,
        failures=failures,
        times_total=RuleTime(
            "all",
            sum(time.jobs for time in provenance["times"]),
            sum(time.wall for time in provenance["times"]),
            sum(time.processor for time in provenance["times"]),
            max((time.memory for time in provenance["times"]), default=0.0),
        ),
    )


def summary(studies: Sequence[Mapping[str, Any]], where: str) -> str:
    """What a person wants to read in the terminal at the end: what was made, of what, and how much of it agrees."""
    out = []
    for study in studies:
        kinds = [artefact["kind"] for artefact in study["artefacts"]]
        out.append(f"{study['title']} ({study['paper']})")
        for claim in study["claims"]:
            out += _wrapped(f"{claim['outcome'] + ':':<18} {claim['says']}", " " * 21)
        out.append(f"  {kinds.count('table')} tables, {kinds.count('figure')} figures")
        out += [part for line in study["stamp"] for part in _wrapped(line)]
        for what in PARTS:
            if not study["counts"][what]["lines"]:
                continue
            counted = study["counts"][what]
            text = "; ".join(filter(None, (tally_in_words(counted), tally_of_repetitions(counted))))
            out += _wrapped(f"{TALLIED[what]}: {text}")
        out += [part for remark in study["remarks"] for part in _wrapped(remark)]
        if study["reference"] and study["reference"]["summary"]:
            out += _wrapped(f"Against the reference. {' '.join(study['reference']['summary'])}")
    out.append(f"Report: {where}")
    return "\n".join(out)


def _wrapped(text: str, indent: str = " " * 4) -> list[str]:
    return wrap(symbols(text), 110, initial_indent="  ", subsequent_indent=indent)


def _with_pictures(study: Mapping[str, Any], pictures: Mapping[tuple[str, str], bytes]) -> dict[str, Any]:
    artefacts = []
    for artefact in study["artefacts"]:
        place = (study["study"], artefact["name"])
        if artefact["kind"] == "figure" and place not in pictures:
            raise ValueError(f"the picture of {place[0]}/{place[1]} is missing: make the study's artefacts again")
        picture = base64.b64encode(pictures[place]).decode("ascii") if place in pictures else ""
        artefacts.append({**artefact, "picture": picture, "html": Markup(artefact["html"])})
    groups = [(name, list(lines)) for name, lines in groupby(study["comparison"], key=lambda line: line["artefact"])]
    return {**study, "artefacts": artefacts, "groups": groups}
