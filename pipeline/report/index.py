"""What the page needs to know of a study's artefacts: one JSON-ready mapping, written beside the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from pipeline.report import words as w
from pipeline.report.against import summary
from pipeline.report.artefacts import Artefact
from pipeline.report.comparison_table import DEPENDENCE, LIKELY, RULES, lines, readings_notes, tallies
from pipeline.report.departures import departures, joined
from pipeline.report.inputs import Inputs
from pipeline.report.provenance import digest
from pipeline.report.registry import label
from pipeline.report.stamp import Stamp
from pipeline.report.table import Table


def describe(
    inputs: Inputs,
    made: Mapping[str, Artefact],
    compared: pd.DataFrame,
    claims: Sequence[Mapping[str, Any]] = (),
    held: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The claims, titles, captions, notes and tables of the artefacts, the comparison, and where the data come from.

    ``held`` is what :func:`reference` says, if the study has a reference.
    """
    names = [name for name in made if name != "comparison"]
    # Sizes differ from block to block and stand under each artefact; scale, origin and reductions hold for the study.
    stamp = replace(inputs.stamp(sorted(set(inputs.rows["block"]))), repetitions=(), points=(), steps=0)
    return {
        "study": inputs.study,
        "title": inputs.config["experiment"]["title"],
        "paper": inputs.config["experiment"]["paper"],
        "scale": inputs.scale,
        "claims": list(claims),
        "stamp": list(stamp.lines()),
        "brief": _brief(stamp),
        "departures": departures(stamp.reductions),
        "emphatic": stamp.emphatic,
        "artefacts": [_artefact(name, artefact, names) for name, artefact in made.items() if name != "comparison"],
        "comparison": lines(compared),
        "counts": tallies(compared),
        "rules": [RULES, *readings_notes(compared)],
        "remarks": _remarks(made),
        "datasets": [
            {
                "name": name,
                "origin": dataset.origin,
                "rows": dataset.rows,
                "dropped": dict(dataset.dropped),
                "checksums": dict(dataset.checksums),
            }
            for name, dataset in sorted(inputs.datasets.items())
        ],
        "digest": digest(inputs.config),
        "reference": held,
    }


def _brief(stamp: Stamp) -> list[dict[str, Any]]:
    """What a reader must know of the whole study before anything else, a line each; nothing where nothing departs."""
    said = []
    if stamp.twins:
        names = joined(w.dataset_in_a_sentence(name) for name in stamp.twins)
        said.append({"text": f"Synthetic twin of {names}: no number from it is evidence.", "emphatic": True})
    if stamp.reductions:
        said.append({"text": f"{stamp.scale.capitalize()} scale: {stamp.departing()}.", "emphatic": False})
    return said


def reference(manifest: Mapping[str, Any] | None, held: pd.DataFrame | None, processor: str) -> dict[str, Any] | None:
    """What the page says of a study's reference: where it is from, and how the run stands against it.

    None where there is none; ``lines`` and ``summary`` are empty where the page is drawn from the reference itself.
    ``processor`` is that of this run.
    """
    if manifest is None:
        return None
    runs = list(manifest["blocks"].values())
    seconds = [sum(times) for times in zip(*manifest["jobs"].values(), strict=True)] or [0.0, 0.0]
    return {
        "scale": manifest["scale"],
        "commits": sorted({run["commit"] for run in runs}),
        "dates": sorted({run["date"] for run in runs}),
        "here": processor,
        "processors": sorted({run["machine"]["processor"] for run in runs}),
        "jobs": len(manifest["jobs"]),
        "wall": seconds[0],
        "processor_time": seconds[1],
        "lines": [] if held is None else held.astype(object).where(held.notna(), None).to_dict("records"),
        "summary": [] if held is None else summary(held),
    }


def _artefact(name: str, made: Artefact, names: list[str]) -> dict[str, Any]:
    return {
        "name": name,
        "label": label(name, names),
        "kind": "table" if isinstance(made, Table) else "figure",
        "title": made.title,
        "caption": made.caption,
        "notes": list(made.notes),
        "stamp": list(made.stamp.lines()),
        "emphatic": made.stamp.emphatic,
        "html": made.html() if isinstance(made, Table) else "",
        "alternative": "" if isinstance(made, Table) else made.alternative,
        "absent": "" if isinstance(made, Table) else made.absent,
    }


def _remarks(made: Mapping[str, Artefact]) -> list[str]:
    """The study's own notes on its comparison, below those on the rules."""
    table = made.get("comparison")
    return [note for note in table.notes if note not in (RULES, DEPENDENCE, LIKELY)] if table else []
