"""The result of a robustness audit as a document. Layout of the JSON: ``docs/robustness.md``."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.cli import words
from pipeline.cli.audit.robustness_bias.caveats import caveats
from pipeline.cli.audit.robustness_bias.evidence import DENOMINATORS, Evidence, Settings
from pipeline.cli.audit.robustness_bias.look import Subjects
from pipeline.cli.audit.robustness_bias.measured import BOUNDS, OTHER, WHOSE, result, settings_text, verdict
from pipeline.cli.document import AuditDocument, Column, Facts, Figure, Row, Section, Table, Text, drawn_by, rows_of
from pipeline.cli.numbers import fixed, level, p_text, percent, plural, span
from pipeline.messages import listed
from pipeline.types import Array

SCHEMA = 1
SHOWN_LEVELS = 12
SMALL = 0.01
"""Smaller numbers have two digits, so that they fit their column."""
SIGNED = fixed(2, "+")
GREYS = 255
CURVES = "pipeline.cli.audit.robustness_bias.figures:curves"
MEASURED = """
images: {images}
unit: L2 in pixels in [0, 1]; a distance of 1, spread evenly, changes each of the {values:,} values by {grey:.2g}/255
model: {origin}; {scores}, {kind} ({read}); {accuracy}
input: (pixels - {mean}) / {std}
label: {label}
attack: {attack}
failed: {failed} attacks; {unreadable}
sigma: of {whose}, against all other images; below 0 is closer
p: {permutations:,} permutations, adjusted (Holm) over all groups; level {alpha:g}
"""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Result:
    """What was found of the ``subjects`` by each attack; ``classes`` names the model's outputs."""

    subjects: Subjects
    evidence: tuple[Evidence, ...]
    settings: Settings
    classes: tuple[str, ...] | None


def document(found: Result, given: Mapping[str, Mapping[str, Any]]) -> AuditDocument:
    """The document; ``given`` says which images, model and parameters were given."""
    subjects, settings = found.subjects, found.settings
    labelled = subjects.points.label is not None
    results = [result(one, subjects) for one in found.evidence]
    accuracy = float(subjects.correct.mean()) if labelled else None
    facts: dict[str, Any] = {"accuracy": accuracy, **given, "results": results}
    return AuditDocument(
        audit="robustness",
        schema=SCHEMA,
        title="Robustness audit",
        subject=f"{given['model']['given']} on {given['data']['images']}",
        verdict=verdict(results[0], found.evidence[0], subjects, settings),
        caveats=tuple(caveats(subjects, found.evidence)),
        sections=tuple(_sections(found, facts)),
        facts=facts,
        tables={
            "distances": table_of_images(subjects, found.evidence, found.classes),
            "groups": table_of_groups(results),
        },
        libraries=("numpy", "torch"),
    )


def _sections(found: Result, facts: Mapping[str, Any]) -> Iterator[Section]:
    chosen, alpha, labelled = found.settings.denominator, found.settings.alpha, facts["accuracy"] is not None
    other = OTHER[chosen]
    yield Section("What was measured", (_measured(facts, found.settings),))
    for evidence, entry in zip(found.evidence, facts["results"], strict=True):
        title = f"Groups by {entry['attack']}: {BOUNDS[entry['bound']]}, L2 in pixels in [0, 1]"
        words = Text(
            "right: share classified correctly; median: of their distances; sigma: how much larger the mean distance "
            f"of the group is than that of all others, up to T = {_number(entry['budget'])}; sigma*: the same of "
            f"{WHOSE[other]}."
        )
        yield Section(title, (_groups(entry, chosen, alpha, labelled), words))
        figure = _figure(evidence, found.subjects, entry, chosen, images_text(facts["data"], facts["parameters"]))
        yield Section("How much each group withstands", (figure,), where="page", below=True)
        parts = (
            _groups(entry, other, alpha, labelled),
            Text(
                "Intervals: bootstrap. p: permutations of who is in the group; adjusted (Holm) over all groups of this "
                "attack. Largest RB: the largest difference of shares I_P between the group and the others, and the "
                "size of change where it is."
            ),
        )
        yield Section(f"The same of {WHOSE[other]}", parts, where="page", below=True)


def _measured(facts: Entry, settings: Settings) -> Facts:
    data, model = facts["data"], facts["model"]
    values = math.prod(data["shape"])
    return words.facts(
        MEASURED,
        images=images_text(data, facts["parameters"]),
        values=values,
        grey=GREYS / math.sqrt(values),
        origin=model["origin"],
        scores=f"{model['output_columns']} outputs" if model["output_columns"] > 1 else "one output, class 1",
        kind=model["output_kind"],
        read="read off the values" if model["output_kind_detected"] else "as told",
        accuracy="accuracy unknown" if facts["accuracy"] is None else f"accuracy {facts['accuracy']:.3f}",
        mean=_once(model["mean"]),
        std=_once(model["std"]),
        attack=[settings_text(found) for found in facts["results"]],
        label=data["label"] or "none: the model's own prediction is taken for it",
        failed=listed(
            [f"{found['attack']} {found['failed']:,} of {found['n_correct']:,}" for found in facts["results"]]
        ),
        unreadable=plural(len(data["unreadable"]), "unreadable image"),
        whose=WHOSE[settings.denominator],
        permutations=settings.permutations,
        alpha=settings.alpha,
    )


def images_text(data: Entry, parameters: Entry) -> str:
    """How many images were audited, and of what shape."""
    said = f"{data['audited']:,} images"
    if data["audited"] < data["rows"]:
        said = f"{data['audited']:,} of {data['rows']:,} images"
        if parameters["points"]:
            said += f", drawn with seed {parameters['seed']}"
    return f"{said}; {' x '.join(map(str, data['shape']))} (channels x height x width)"


def _groups(found: Entry, denominator: str, alpha: float, labelled: bool) -> Table:
    """The levels of every partition, the closest to the boundary first."""

    def own(name: str, said: Callable[[Any], str]) -> Callable[[Entry], str]:
        return lambda entry: said(entry[denominator][name])

    def right(entry: Entry) -> str:
        return percent(entry["n_correct"] / entry["images"], 0) if labelled and entry["images"] else "-"

    def largest(bias: Entry | None) -> str:
        return "-" if bias is None else f"{bias['value']:.2f} at {_number(bias['tau'])}"

    columns = (
        Column("group", "", cell=lambda entry: entry["level"]),
        Column("images", cell=lambda entry: f"{entry['images']:,}"),
        Column("classified correctly", "right", cell=right),
        Column("failed attacks", "failed", cell=lambda entry: f"{entry['failed']:,}"),
        Column("mean distance", where="page", cell=own("mean", _number)),
        Column("median of those right", "median", cell=lambda entry: _number(entry["correct"]["median"])),
        Column("sigma", cell=own("sigma", _signed)),
        Column(f"{level(alpha)} interval", cell=own("interval", lambda ends: span(ends, SIGNED))),
        Column("p, unadjusted", where="page", cell=own("p", p_text)),
        Column("p, adjusted", "p", cell=own("p_adjusted", p_text)),
        Column("largest RB", where="page", cell=own("largest_bias", largest)),
        Column("sigma*", cell=lambda entry: _signed(entry[OTHER[denominator]]["sigma"])),
    )
    rows: list[Row] = []
    for partition in found["partitions"]:
        nearest_first = sorted(partition["levels"], key=lambda entry: entry[denominator]["sigma"] or 0.0)
        rows += rows_of(columns, nearest_first, partition["name"])
    return Table(columns, tuple(rows), SHOWN_LEVELS, ends=True, file="groups.csv")


def _figure(evidence: Evidence, subjects: Subjects, found: Entry, denominator: str, images: str) -> Figure:
    return Figure(
        stem=f"curves_{evidence.asked.name}",
        title="Curves I_P",
        caption="The share of each group whose distance exceeds the size of change. A lower curve is a group closer to "
        f"the boundary; in brackets the number of its images and sigma. Of {WHOSE[denominator]}, by "
        f"{settings_text(found)}.",
        draw=drawn_by(
            "pipeline.cli.audit.robustness_bias.figures:curves", evidence, subjects, found, denominator, images
        ),
    )


def _once(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len(set(values)) == 1 else f"[{', '.join(f'{value:g}' for value in values)}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value >= SMALL else f"{value:.2g}"


def _signed(value: float | None) -> str:
    return "-" if value is None else SIGNED(value)


def table_of_images(subjects: Subjects, evidence: Sequence[Evidence], classes: Sequence[str] | None) -> pd.DataFrame:
    """One row for each audited image.

    ``distance_<attack>`` is empty where the image is classified wrongly or the attack failed; ``length_<attack>`` is
    what the paper's denominator takes: 0 where the image is classified wrongly, empty where the attack failed. So any
    partition is a group-by of these rows.
    """
    some = subjects.points
    columns: dict[str, Any] = {"audit_image": some.names, "audit_row": some.rows}
    if some.label is not None:
        columns["audit_label"] = _named(some.label, classes)
    columns["audit_prediction"] = _named(subjects.prediction, classes)
    columns["audit_correct"] = subjects.correct
    for one in evidence:
        columns[f"distance_{one.asked.name}"] = one.distance
        columns[f"length_{one.asked.name}"] = np.where(one.failed, np.nan, one.lengths["paper"].length)
        columns[f"failed_{one.asked.name}"] = one.failed
    for partition in some.partitions:
        columns[partition.name] = np.array([*partition.levels, ""], dtype=object)[partition.codes]
    return pd.DataFrame(columns)


def table_of_groups(results: Sequence[Entry]) -> pd.DataFrame:
    """One row for each attack, denominator, partition and level."""
    return pd.DataFrame(
        [
            {
                **{name: found[name] for name in ("attack", "bound")},
                "denominator": denominator,
                "partition": partition["name"],
                **{name: level[name] for name in ("level", "images", "n_correct", "failed")},
                "budget": found["budget"],
                **{name: own[name] for name in ("n", "mean", "mean_of_others", "median", "auc", "sigma")},
                "sigma_ci_low": own["interval"][0],
                "sigma_ci_high": own["interval"][1],
                "sigma_p": own["p"],
                "sigma_p_adjusted": own["p_adjusted"],
                "largest_bias": (own["largest_bias"] or {}).get("value"),
                "largest_bias_tau": (own["largest_bias"] or {}).get("tau"),
            }
            for found in results
            for partition in found["partitions"]
            for level in partition["levels"]
            for denominator in DENOMINATORS
            for own in [level[denominator]]
        ]
    )


def _named(codes: Array, classes: Sequence[str] | None) -> Array:
    return codes if classes is None else np.array(classes, dtype=object)[codes]
