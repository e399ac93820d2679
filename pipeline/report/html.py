"""One self-contained page with the artefacts of every study. It loads no script, style or picture from elsewhere.

The page reads the index of each study, a JSON-ready mapping from :func:`describe` that is saved with the tables.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

import pandas as pd
from markupsafe import Markup

from fairness_audits.messages import enumerated, listed
from fairness_audits.results import typeset
from fairness_audits.results.formats import sentence
from fairness_audits.results.markup import symbols
from fairness_audits.results.render import template
from pipeline import software
from pipeline.report import comparison_table, regression_check
from pipeline.report import labels as w
from pipeline.report.artefacts import Artefact
from pipeline.report.claims import OUTCOMES
from pipeline.report.comparison import VERDICTS
from pipeline.report.environment import RuleTime, digest, duration
from pipeline.report.inputs import Inputs
from pipeline.report.reduction import departures
from pipeline.report.registry import label
from pipeline.report.stamp import Stamp
from pipeline.report.table import IN_BRACKETS, StampedTable

ORDER = ("individual_fairness", "permutation_tests", "fliptest", "robustness_bias")
"""Studies of papers in the order of the README. Others follow by name; this project's own study is last."""
OWN = "This project"
LONG = 60
"""Number of rows beyond which a table is folded."""
FORMATS = {"table": ("csv", "md", "tex"), "figure": ("pdf", "png")}


def describe(
    inputs: Inputs,
    made: Mapping[str, Artefact],
    compared: pd.DataFrame,
    claims: Sequence[Mapping[str, Any]] = (),
    held: Mapping[str, Any] | None = None,
    computed: Sequence[software.Versions] = (),
) -> dict[str, Any]:
    """Return the index of a study: claims, titles, captions, notes, tables, the comparison and the data sources.

    ``held`` is the result of :func:`reference`, or None if the study has no reference. ``computed`` holds the sets of
    versions that computed the results.
    """
    names = sorted(made, key="comparison".__eq__)
    # Repetitions differ between blocks, so each artefact states its own. The rest of the stamp is common to the study.
    stamp = replace(inputs.stamp(), repetitions=(), fewer=())
    return {
        "study": inputs.study,
        "title": inputs.config["experiment"]["title"],
        "paper": inputs.config["experiment"]["paper"],
        "scale": inputs.scale,
        "claims": list(claims),
        "stamp": list(stamp.lines()),
        "brief": [*unfinished(inputs.config), *_brief(stamp)],
        "departures": departures(stamp.reductions),
        "emphatic": stamp.emphatic,
        "artefacts": [_artefact(name, made[name], names) for name in names],
        "results": comparison_table.results(compared),
        "settings": comparison_table.settings(compared),
        "datasets": [
            {"name": name, "origin": d.origin, "rows": d.rows, "dropped": {**d.dropped}, "checksums": {**d.checksums}}
            for name, d in sorted(inputs.datasets.items())
        ],
        "digest": digest(inputs.config),
        "reference": held,
        "software": {"computed": list(map(dict, computed)), "drawn": software.installed()},
    }


def unfinished(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the line at the top of a study that is still being computed: its missing blocks with their data sets."""
    blocks: dict[str, list[str]] = {}
    for place in config.get("unfinished", ()):
        blocks.setdefault(place["block"].replace("_", " "), []).append(place["dataset"])
    told = [f"{block} on {w.datasets_named(sorted(set(names)))}" for block, names in blocks.items()]
    return [{"text": f"Still being computed: {'; '.join(told)}.", "emphatic": True}] if told else []


def _brief(stamp: Stamp) -> list[dict[str, Any]]:
    """Return the lines at the top of a study: twins and reductions, if there are any."""
    said = []
    if stamp.twins:
        names = w.datasets_named(stamp.twins)
        said.append({"text": f"Synthetic twin of {names}: its numbers are not evidence.", "emphatic": True})
    if stamp.reductions:
        said.append({"text": sentence(f"{w.scales(stamp.scale)}: {stamp.departing()}."), "emphatic": False})
    return said


def reference(manifest: Mapping[str, Any] | None, held: pd.DataFrame | None, processor: str) -> dict[str, Any] | None:
    """Describe a study's reference, and the regression check of the run against it.

    Return None if there is no reference. ``lines`` and ``summary`` are empty if the page is drawn from the reference
    itself. ``processor`` is the processor of this run.
    """
    if manifest is None:
        return None
    return {
        "runs": [
            {
                **{key: run[key] for key in ("scale", "commit", "date")},
                "datasets": list(dict.fromkeys(w.dataset_label(part.split("/")[1]) for part in run["parts"])),
                "processor": run["machine"]["processor"],
                "jobs": len(run["jobs"]),
                "time": sum(used for _, used in run["jobs"].values()),
            }
            for run in manifest["runs"]
        ],
        "here": processor,
        "lines": [] if held is None else held.astype(object).where(held.notna(), None).to_dict("records"),
        "summary": [] if held is None else regression_check.summary(held),
    }


def _artefact(name: str, made: Artefact, names: list[str]) -> dict[str, Any]:
    table = isinstance(made, StampedTable)
    # The page shows one sentence below a table or figure. The rest unfolds.
    short, *rest = re.split(r"(?<!al)\. (?=[A-Z])", made.notes[0], maxsplit=1) if made.notes else [""]
    return {
        "name": name,
        "label": label(name, names),
        "kind": "table" if table else "figure",
        "title": made.title,
        "caption": made.caption,
        "note": f"{short}." if rest else short,
        "marks": IN_BRACKETS if isinstance(made, StampedTable) and made.published else "",
        "notes": [*rest, *made.notes[1:]],
        "stamp": list(made.stamp.lines()),
        "emphatic": made.stamp.emphatic,
        "folded": len(made.rows) if isinstance(made, StampedTable) and len(made.rows) > LONG else 0,
        "html": "".join(map(typeset.html, made.parts())) if isinstance(made, StampedTable) else "",
        "alternative": "" if isinstance(made, StampedTable) else made.alternative,
        "absent": made.absent,
    }


def ordered(studies: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the studies of papers in the order of :data:`ORDER`, and our own study last."""

    def place(study: Mapping[str, Any]) -> tuple[bool, int, str]:
        name = study["study"]
        return study["paper"].startswith(OWN), ORDER.index(name) if name in ORDER else len(ORDER), name

    return sorted(studies, key=place)


def page(
    studies: Sequence[Mapping[str, Any]],
    pictures: Mapping[tuple[str, str], bytes],
    environment: Mapping[str, Any],
) -> str:
    """Return the page for the indexes of the studies (see :func:`describe`).

    ``pictures`` holds the PNG of each figure by (study, artefact). ``environment`` has ``commit``, ``versions``,
    ``machine`` and ``times``. Raises ValueError if the picture of a figure is missing.
    """
    present = environment["versions"]
    page = template(
        "report.html",
        "pipeline.report",
        letters=lambda text: symbols(str(text)),
        duration=duration,
        enumerated=enumerated,
        listed=listed,
        tally=comparison_table.tally_table,
        decided=decided,
    )
    return page.render(
        studies=[_with_pictures(study, pictures) for study in ordered(studies)],
        verdicts=VERDICTS,
        formats=FORMATS,
        outcomes=OUTCOMES,
        environment=environment,
        versions=[(what, software.described(one, present)) for what, one in versions(studies)],
        times_total=RuleTime.of("all", environment["times"]),
    )


def decided(claims: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the claims of each outcome, which is that of the reference if it has the claim."""
    found: dict[str, list[Mapping[str, Any]]] = {outcome: [] for outcome in OUTCOMES}
    for claim in claims:
        found[claim["reference"] or claim["outcome"]].append(claim)
    return found


def versions(studies: Sequence[Mapping[str, Any]]) -> list[tuple[str, dict[str, str]]]:
    """Return each set of versions that computed results or drew artefacts, with what it computed or drew.

    Drawing is listed if its versions differ from all that the results of the study record.
    """
    sets: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for study in studies:
        computed, drawn = study["software"]["computed"], study["software"]["drawn"]
        found = [("results", one) for one in computed]
        same = any(one and one.items() <= drawn.items() for one in computed)
        found += [] if same else [("tables and figures", drawn)]
        for what, one in found:
            sets.setdefault((what, tuple(sorted(one.items()))), []).append(study["study"])
    return [
        (f"Versions, {what} of {enumerated(names)}".replace("_", " "), dict(one)) for (what, one), names in sets.items()
    ]


def summary(studies: Sequence[Mapping[str, Any]], where: str) -> str:
    """Return the summary for the terminal: claims, artefacts, data, and how many published numbers agree."""
    out = []
    for study in ordered(studies):
        kinds = [artefact["kind"] for artefact in study["artefacts"]]
        out.append(f"{study['title']} ({study['paper']})")
        for claim in study["claims"]:
            outcome = claim["reference"] or claim["outcome"]
            here = f" (this run: {claim['standing']})" if claim["standing"] else ""
            out += _wrapped(f"{outcome + ':':<18} {claim['says']}{here}", " " * 21)
        counts = {kind: kinds.count(kind) for kind in FORMATS}
        out.append("  " + ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in counts.items()))
        out += [part for line in study["stamp"] for part in _wrapped(line)]
        for kind in ("results", "settings"):
            if study[kind]["lines"]:
                out += _wrapped(f"Published {kind}: {comparison_table.tally_in_words(study[kind])}")
        if study["reference"] and study["reference"]["summary"]:
            out += _wrapped(f"Compared with the reference: {' '.join(study['reference']['summary'])}")
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
    return {**study, "artefacts": artefacts}
