"""The result of a robustness audit as a document. Layout of the JSON: ``docs/robustness.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from pipeline.cli.audit.robustness import figures, tables
from pipeline.cli.audit.robustness.caveats import caveats
from pipeline.cli.audit.robustness.evidence import Evidence, Settings
from pipeline.cli.audit.robustness.look import Subjects
from pipeline.cli.audit.robustness.measured import OTHER, result, verdict
from pipeline.cli.audit.robustness.words import BOUNDS, WHOSE, images_text, scale_text, settings_text
from pipeline.cli.document import AuditDocument, Column, Facts, Figure, Row, Section, Table, Text
from pipeline.cli.numbers import fixed, level, p_text, percent, plural, span
from pipeline.messages import listed

SCHEMA = 1
SHOWN_LEVELS = 12
SMALL = 0.01
"""Smaller numbers have two digits, so that they fit their column."""
SIGNED = fixed(2, "+")
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
        verdict=verdict(results[0], settings.denominator, settings.alpha, labelled),
        caveats=tuple(caveats(subjects, found.evidence, settings)),
        sections=tuple(_sections(found, facts)),
        facts=facts,
        tables={
            "distances": tables.points(subjects, found.evidence, found.classes),
            "groups": tables.groups(results),
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


def _measured(facts: Mapping[str, Any], settings: Settings) -> Facts:
    data, model = facts["data"], facts["model"]
    read = "read off the values" if model["output_kind_detected"] else "as told"
    scores = f"{model['output_columns']} outputs" if model["output_columns"] > 1 else "one output, class 1"
    accuracy = "accuracy unknown" if facts["accuracy"] is None else f"accuracy {facts['accuracy']:.3f}"
    failed = listed([f"{found['attack']} {found['failed']:,} of {found['n_correct']:,}" for found in facts["results"]])
    return Facts(
        (
            ("images", images_text(data, facts["parameters"])),
            ("unit", f"L2 in pixels in [0, 1]; {scale_text(data['shape'])}"),
            ("model", f"{model['origin']}; {scores}, {model['output_kind']} ({read}); {accuracy}"),
            ("input", f"(pixels - {_some(model['mean'])}) / {_some(model['std'])}"),
            ("label", data["label"] or "none: the model's own prediction is taken for it"),
            *(("attack", settings_text(found)) for found in facts["results"]),
            ("failed", f"{failed} attacks; {plural(len(data['unreadable']), 'unreadable image')}"),
            ("sigma", f"of {WHOSE[settings.denominator]}, against all other images; below 0 is closer"),
            (
                "p",
                f"{settings.permutations:,} permutations, adjusted (Holm) over all groups; level {settings.alpha:g}",
            ),
        )
    )


def _groups(found: Entry, denominator: str, alpha: float, labelled: bool) -> Table:
    """The levels of every partition, the closest to the boundary first."""
    columns = (
        Column("group", ""),
        Column("images"),
        Column("classified correctly", "right"),
        Column("failed attacks", "failed"),
        Column("mean distance", where="page"),
        Column("median of those right", "median"),
        Column("sigma"),
        Column(f"{level(alpha)} interval"),
        Column("p, unadjusted", where="page"),
        Column("p, adjusted", "p"),
        Column("largest RB", where="page"),
        Column("sigma*"),
    )
    rows = []
    for partition in found["partitions"]:
        for entry in sorted(partition["levels"], key=lambda entry: entry[denominator]["sigma"] or 0.0):
            own, bias = entry[denominator], entry[denominator]["largest_bias"]
            known = labelled and entry["images"]
            cells = (
                entry["level"],
                f"{entry['images']:,}",
                percent(entry["n_correct"] / entry["images"], 0) if known else "-",
                f"{entry['failed']:,}",
                _number(own["mean"]),
                _number(entry["correct"]["median"]),
                _signed(own["sigma"]),
                span(own["interval"], SIGNED),
                p_text(own["p"]),
                p_text(own["p_adjusted"]),
                "-" if bias is None else f"{bias['value']:.2f} at {_number(bias['tau'])}",
                _signed(entry[OTHER[denominator]]["sigma"]),
            )
            rows.append(Row(cells, group=partition["name"]))
    return Table(columns, tuple(rows), SHOWN_LEVELS, ends=True, file="groups.csv")


def _figure(evidence: Evidence, subjects: Subjects, found: Entry, denominator: str, images: str) -> Figure:
    return Figure(
        stem=f"curves_{evidence.asked.name}",
        title="Curves I_P",
        caption="The share of each group whose distance exceeds the size of change. A lower curve is a group closer to "
        f"the boundary; in brackets the number of its images and sigma. Of {WHOSE[denominator]}, by "
        f"{settings_text(found)}.",
        draw=partial(figures.curves, evidence, subjects, found, denominator, images),
    )


def _some(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len(set(values)) == 1 else f"[{', '.join(f'{value:g}' for value in values)}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value >= SMALL else f"{value:.2g}"


def _signed(value: float | None) -> str:
    return "-" if value is None else SIGNED(value)
