"""The JSON document as a page for the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from typing import Any

from pipeline.cli.audit.permutation.asked import CORRELATIONS
from pipeline.cli.audit.permutation.document import CORRECTIONS, decimal, span
from pipeline.cli.page import line, paragraph, titled

Entry = Mapping[str, Any]


def page(document: Mapping[str, Any]) -> str:
    """The verdict, what it rests on, and what to keep in mind; lines fit the page where that can be helped."""
    verdict = document["verdict"]
    word = "UNEQUAL" if verdict["rejected"] else "NOT REJECTED"
    if verdict["undefined"] == verdict["tests"]:
        word = "UNDEFINED"
    parts = [
        f"Permutation audit of {document['data']['path']}",
        paragraph(f"{word}. {verdict['sentence']}", "  "),
        titled("What was tested", _tested(document)),
        *(titled(title, lines) for title, lines in _results(document)),
        titled("Keep in mind", [paragraph(text, "  - ", "    ") for text in document["caveats"]]),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _tested(document: Mapping[str, Any]) -> list[str]:
    data, parameters = document["data"], document["parameters"]
    sides = {"two-sided": "", "greater": ", against larger in the first", "less": ", against smaller in the first"}
    hypotheses, tests = (
        document["verdict"]["hypotheses"],
        document["verdict"]["tests"] - document["verdict"]["undefined"],
    )
    counted = f"{tests} tests" if tests == hypotheses else f"{hypotheses} hypotheses"
    over = "the pairs of each metric" if parameters["correction"] == "max_t" else counted
    correction = f"; {CORRECTIONS[parameters['correction']]} over {over}" if parameters["correction"] != "none" else ""
    bases = list(dict.fromkeys(entry["basis"] for entry in document["results"]))
    positive = f", 1 is {data['positive']!r}" if data["positive"] else ""
    return [
        line("null", f"{_null(document)}{sides[parameters['alternative']]}"),
        line("level", f"{parameters['alpha']:g}{correction if hypotheses > 1 else ''}"),
        line("data", f"{data['rows']:,} rows; label {data['label']}{positive}"),
        line("read as", "; ".join(bases)),
        line("seed", f"{parameters['seed']}"),
    ]


def _null(document: Mapping[str, Any]) -> str:
    correlated = [entry["metric"] in CORRELATIONS for entry in document["results"]]
    said = [] if all(correlated) else ["each metric is equal in both groups"]
    return ", and ".join([*said, *(["there is no correlation"] if any(correlated) else [])])


def _results(document: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    """A section for each pair of groups."""
    sections = []
    level = f"{100 * (1 - document['parameters']['alpha']):g} % interval"
    stopping = document["parameters"]["resampling_risk"] is not None
    several = document["verdict"]["hypotheses"] > 1 and document["parameters"]["correction"] != "none"
    for (grouping, *names), found in groupby(document["results"], key=_place):
        entries = list(found)
        if names:
            sizes = (f"{group['name']} ({group['rows']:,} rows)" for group in entries[0]["groups"])
            title = f"{grouping}: {' and '.join(sizes)}"
            a, b = (_short(name) for name in names)
            header = f"  {'':17}{a:>9}{b:>10}{'difference':>12}  {level:^19}"
        else:
            title = f"correlation with {grouping}"
            header = f"  {'':17}{'correlation':>12}  {level:^19}"
        sections.append(
            (
                title,
                [f"{header}{'p-value':>9}", *(row for entry in entries for row in _entry(entry, several, stopping))],
            )
        )
    return sections


def _place(entry: Entry) -> tuple[str, ...]:
    """What entries of one section have in common."""
    if entry["metric"] in CORRELATIONS:
        return (entry["grouping"],)
    return entry["grouping"], *(group["name"] for group in entry["groups"])


def _entry(entry: Entry, several: bool, stopping: bool) -> list[str]:
    """Two lines: the numbers, and what they are worth."""
    indent = " " * 6
    if entry["undefined"] is not None:
        return [f"  {entry['metric']:17}undefined", paragraph(entry["undefined"], indent)]
    low, high = entry["interval"]
    estimates = "" if entry["metric"] in CORRELATIONS else "".join(
        f"{decimal(group['estimate']):>{width}}" for group, width in zip(entry["groups"], (9, 10), strict=True)
    )  # fmt: skip
    sign = "+" if entry["difference"] > 0 else ""
    difference = f"{sign}{decimal(entry['difference'])}"
    numbers = f"{estimates}{difference:>12}  {span(low, high):^19}{_p(entry['p_value']):>9}"
    return [f"  {entry['metric']:17}{numbers}", paragraph(_worth(entry, several, stopping), indent)]


def _worth(entry: Entry, several: bool, stopping: bool) -> str:
    if entry["exact"]:
        said = ["exact"]
    else:
        low, high = entry["p_value_interval"]
        until = " until the decision was safe" if stopping else ""
        said = [f"{entry['method']}, {entry['draws']:,} draws{until}: p in {_p(low)} to {_p(high)}"]
    if several:
        said.append(f"adjusted p {_p(entry['adjusted_p_value'])}")
    if not entry["rejected"]:
        said.append("not rejected")
    elif entry["metric"] in CORRELATIONS:
        said.append("rejected")
    else:
        said.append(
            f"rejected: {'direction not certain' if entry['higher'] is None else entry['higher'] + ' is higher'}"
        )
    return "; ".join(said)


def _p(value: float) -> str:
    """A p-value with two significant digits."""
    return "0" if value == 0 else "< 1e-16" if value < 1e-16 else f"{value:.2g}" if value >= 1e-4 else f"{value:.1e}"


def _short(name: str) -> str:
    return name if len(name) <= 9 else f"{name[:8]}."
