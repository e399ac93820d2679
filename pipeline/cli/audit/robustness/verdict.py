"""The JSON document as a page for the terminal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.cli.audit.robustness.document import p_text, span
from pipeline.cli.page import line, paragraph, titled
from pipeline.messages import listed

SHOWN_LEVELS = 12
"""Levels of a partition in the terminal; all are in groups.csv."""
BOUNDS = {"upper": "upper bounds", "lower": "lower bounds of the smoothed model", "exact": "exact"}
WHOSE = {
    "paper": "all images of a group, those classified wrongly at distance 0",
    "correct": "the images classified correctly alone",
}
GREYS = 255
SMALL = 0.01
"""Smaller numbers have two digits, so that they fit their column."""
Entry = Mapping[str, Any]


def page(document: Entry) -> str:
    """The verdict, what it rests on, and what to keep in mind; lines fit the page where that can be helped."""
    parts = [
        f"Robustness audit of {document['model']['given']} on {document['data']['images']}",
        paragraph(f"{headline(document['verdict'])}. {document['verdict']['sentence']}"),
        titled("What was measured", _measured(document)),
    ]
    for found in document["results"]:
        bound = BOUNDS[found["bound"]]
        parts.append(titled(f"Groups by {found['attack']}: {bound}, L2 in pixels in [0, 1]", _groups(found, document)))
    parts.append(titled("Keep in mind", [paragraph(text, "  - ", "    ") for text in document["caveats"]]))
    return "\n\n".join(part for part in parts if part) + "\n"


def headline(verdict: Entry) -> str:
    """The verdict in two or three words."""
    if verdict["biased"] is None:
        return "NOT TESTED"
    return "ROBUSTNESS BIAS" if verdict["biased"] else "NO BIAS SHOWN"


def settings_text(found: Entry) -> str:
    """``deepfool: steps 100, candidates 10, ...``: the attack with its settings, as every output is stamped."""
    told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {told}" if told else found["attack"]


def images_text(document: Entry) -> str:
    """How many images were audited, of what shape, and what became of the others."""
    data = document["data"]
    said = f"{data['audited']:,} images"
    if data["audited"] < data["rows"]:
        said = f"{data['audited']:,} of {data['rows']:,} images"
        if document["parameters"]["points"]:
            said += f", drawn with seed {document['parameters']['seed']}"
    return f"{said}; {' x '.join(map(str, data['shape']))} (channels x height x width)"


def scale_text(document: Entry) -> str:
    """What a distance of 1 is in grey levels."""
    values = math.prod(document["data"]["shape"])
    return (
        f"a distance of 1, spread evenly, changes each of the {values:,} values by {GREYS / math.sqrt(values):.2g}/255"
    )


def _measured(document: Entry) -> list[str]:
    data, model, parameters = document["data"], document["model"], document["parameters"]
    read = "read off the values" if model["output_kind_detected"] else "as told"
    scores = f"{model['output_columns']} outputs" if model["output_columns"] > 1 else "one output, class 1"
    accuracy = "accuracy unknown" if document["accuracy"] is None else f"accuracy {document['accuracy']:.3f}"
    label = data["label"] or "none: the model's own prediction is taken for it"
    return [
        line("images", images_text(document)),
        line("unit", f"L2 in pixels in [0, 1]; {scale_text(document)}"),
        line("model", f"{model['origin']}; {scores}, {model['output_kind']} ({read}); {accuracy}"),
        line("input", f"(pixels - {_some(model['mean'])}) / {_some(model['std'])}"),
        line("label", label),
        *(line("attack", settings_text(found)) for found in document["results"]),
        line("failed", _failures(document)),
        line("sigma", f"of {WHOSE[document['verdict']['denominator']]}, against all other images; below 0 is closer"),
        line(
            "p",
            f"{parameters['permutations']:,} permutations, adjusted (Holm) over all groups; level "
            f"{parameters['alpha']:g}",
        ),
    ]


def _failures(document: Entry) -> str:
    parts = []
    for found in document["results"]:
        parts.append(f"{found['attack']} {found['failed']:,} of {found['n_correct']:,}")
    unreadable = len(document["data"]["unreadable"])
    return f"{listed(parts)} attacks; {unreadable:,} unreadable image{'s' * (unreadable != 1)}"


def _groups(found: Entry, document: Entry) -> list[str]:
    chosen = document["verdict"]["denominator"]
    other = "correct" if chosen == "paper" else "paper"
    level = f"{100 * (1 - document['parameters']['alpha']):g} % interval"
    heads = f"{'images':>7}{'right':>6}{'failed':>7}{'median':>7}{'sigma':>6} {level:^14}{'p':>7}{'sigma*':>7}"
    lines = [f"{'':18}{heads}"]
    for partition in found["partitions"]:
        lines.append(f"  {partition['name']}")
        ordered = sorted(partition["levels"], key=lambda entry: entry[chosen]["sigma"] or 0.0)
        for entry in _ends(ordered):
            own = entry[chosen]
            known = document["accuracy"] is not None and entry["images"]
            right = f"{100 * entry['n_correct'] / entry['images']:.0f} %" if known else "-"
            lines.append(
                f"    {_short(entry['level']):14}{entry['images']:>7,}{right:>6}{entry['failed']:>7,}"
                f"{_number(entry['correct']['median']):>7}{_signed(own['sigma']):>6} {span(own['interval']):^14}"
                f"{p_text(own['p_adjusted']):>7}{_signed(entry[other]['sigma']):>7}"
            )
        if len(ordered) > SHOWN_LEVELS:
            lines.append(f"    ... {len(ordered) - SHOWN_LEVELS} more between them, in groups.csv")
    return [
        *lines,
        "",
        paragraph(
            "right: share classified correctly; median: of their distances; sigma: how much larger the mean distance "
            f"of the group is than that of all others, up to T = {_number(found['budget'])}; sigma*: the same of "
            f"{WHOSE[other]}."
        ),
    ]


def _ends(ordered: Sequence[Entry]) -> list[Entry]:
    """The first and last entries where there are too many to show."""
    if len(ordered) <= SHOWN_LEVELS:
        return list(ordered)
    half = SHOWN_LEVELS // 2
    return [*ordered[:half], *ordered[-half:]]


def _some(values: Sequence[float]) -> str:
    return f"{values[0]:g}" if len(set(values)) == 1 else f"[{', '.join(f'{value:g}' for value in values)}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value >= SMALL else f"{value:.2g}"


def _signed(value: float | None) -> str:
    # Adding nought takes the sign from a number that rounds to nought.
    return "-" if value is None else f"{round(value, 2) + 0.0:+.2f}"


def _short(name: str, width: int = 13) -> str:
    return name if len(name) <= width else f"{name[: width - 1]}."
