"""The result of the permutation tests as a document. Layout of the JSON: ``docs/permutation.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd

from pipeline.cli import words
from pipeline.cli.audit.permutation.asked import CORRELATIONS, Asked
from pipeline.cli.audit.permutation.caveats import caveats
from pipeline.cli.audit.permutation.evidence import Evidence, Finding, hypotheses
from pipeline.cli.document import AuditDocument, Column, Facts, Figure, Row, Section, Table, Verdict, drawn_by
from pipeline.cli.numbers import decimal, level, p_text, plain, plural, short, span

SCHEMA = 1
NAMED = 3
"""How many differences the sentence names before it only counts the rest."""
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}
CORRECTIONS |= {"max_t": "max-T", "none": "no correction"}
SIDES = {"two-sided": "", "greater": ", against larger in the first", "less": ", against smaller in the first"}
UNBOUNDED = "any value"
TESTED = """
null: {null}
level: {alpha:g}{correction}
data: {rows:,} rows; label {label}
read as: {basis}
seed: {seed}
"""
LETTERS = 9
"""Longer names of groups are cut in the terminal."""
Entry = Mapping[str, Any]


def document(evidence: Evidence, asked: Asked, given: Mapping[str, Mapping[str, Any]]) -> AuditDocument:
    """The document; ``given`` says which data were tested with which parameters."""
    results = [result(finding) for finding in evidence.findings]
    number = hypotheses(evidence.findings)
    facts = {**given, "results": results}
    found = verdict(results, number, asked)
    return AuditDocument(
        audit="permutation",
        schema=SCHEMA,
        title="Permutation audit",
        subject=given["data"]["path"],
        verdict=found,
        caveats=tuple(caveats(evidence.findings, asked)),
        sections=tuple(_sections(facts, found, asked, number)),
        facts=facts,
        tables={"tests": table(results)},
    )


def result(finding: Finding) -> dict[str, Any]:
    """One test; what does not exist is null."""
    test = finding.test
    return plain(
        {
            "grouping": finding.grouping,
            "metric": test.metric,
            "title": finding.title,
            "groups": [
                {"name": name, "rows": rows, "units": units, "estimate": estimate}
                for name, rows, units, estimate in zip(test.groups, test.sizes, test.units, test.estimates, strict=True)
            ],
            "difference": test.difference,
            "interval": [test.ci_low, test.ci_high],
            "statistic": test.statistic,
            "p_value": test.p_value,
            "p_value_interval": [test.p_low, test.p_high],
            "adjusted_p_value": finding.adjusted,
            "rejected": finding.rejected,
            "rejected_unadjusted": test.rejected,
            "higher": finding.higher,
            "direction": test.direction if finding.rejected else 0,
            **{name: getattr(test, name) for name in ("method", "exact", "draws", "undefined_draws", "odds_ratio")},
            "guarantee": test.guarantee,
            "basis": finding.basis,
            "undefined": test.undefined or None,
        }
    )


def verdict(results: Sequence[Entry], number: int, asked: Asked) -> Verdict:
    """Whether any test rejects; it cannot be told where all of them are undefined. ``number`` of hypotheses."""
    rejected = any(entry["rejected"] for entry in results)
    undefined = sum(entry["undefined"] is not None for entry in results)
    outcome = None if undefined == len(results) else rejected
    said = sentence(results, asked.settings.alpha, asked.correction)
    if 0 < undefined < len(results):
        said += f" {undefined} of {plural(len(results), 'test')} {'is' if undefined == 1 else 'are'} undefined."
    return Verdict(
        outcome,
        {True: "UNEQUAL", False: "NOT REJECTED", None: "UNDEFINED"}[outcome],
        said,
        {"rejected": rejected, "tests": len(results), "hypotheses": number, "undefined": undefined},
    )


def sentence(results: Sequence[Entry], alpha: float, correction: str) -> str:
    """What the tests say together, in plain sentences."""
    known = [entry for entry in results if entry["undefined"] is None]
    tested = f"at level {alpha:g}" + (f" ({CORRECTIONS[correction]})" if len(known) > 1 else "")
    if not known:
        return f"Nothing could be tested: {results[0]['undefined']}."
    found = sorted((entry for entry in known if entry["rejected"]), key=lambda entry: entry["adjusted_p_value"])
    if not found and len(known) == 1:
        entry = known[0]
        remain = span(entry["interval"], without_ends=UNBOUNDED)
        if entry["metric"] in CORRELATIONS:
            return (
                f"No {entry['title']} with {entry['grouping']} is found {tested}. This is no proof: values from "
                f"{remain} remain possible."
            )
        names = " and ".join(group["name"] for group in entry["groups"])
        return (
            f"No difference of {entry['title']} between {names} is found {tested}. This is no proof of equality: "
            f"differences from {remain} remain possible."
        )
    if not found:
        return (
            f"No difference is found {tested} in {plural(len(known), 'test')}. This is no proof of equality: the "
            "intervals say which differences remain possible."
        )
    named = "; ".join(difference(entry) for entry in found[:NAMED])
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    if len(known) == 1:
        return f"A difference is found {tested}: {named}."
    finds = "finds" if len(found) == 1 else "find"
    return f"{len(found)} of {plural(len(known), 'test')} {finds} a difference {tested}: {named}{more}."


def difference(entry: Entry) -> str:
    """One rejected test: ``AUC of sex: higher for M than for F by 0.03 (0.01 to 0.05)``."""
    low, high = entry["interval"]
    (a, b), size = (group["name"] for group in entry["groups"]), abs(entry["difference"])
    if entry["metric"] in CORRELATIONS:
        interval = span((low, high), without_ends=UNBOUNDED)
        return f"{entry['title']} with {b} is {decimal(entry['difference'])} ({interval})"
    what = f"{entry['title']}, {entry['grouping']}"
    if entry["higher"] is None:
        return f"{what}: {a} and {b} differ by {decimal(size)}, the direction is not certain"
    other = b if entry["higher"] == a else a
    if entry["higher"] == b:
        low, high = (None if high is None else -high), (None if low is None else -low)
    interval = span((low, high), without_ends=UNBOUNDED)
    return f"{what}: higher for {entry['higher']} than for {other} by {decimal(size)} ({interval})"


def table(results: Sequence[Entry]) -> pd.DataFrame:
    """One row for each test."""
    rows = []
    for entry in results:
        row = {key: entry[key] for key in ("grouping", "metric")}
        for letter, group in zip("ab", entry["groups"], strict=True):
            row |= {f"{key}_{letter}": group[key] for key in ("name", "rows", "units", "estimate")}
        row |= {"difference": entry["difference"], "ci_low": entry["interval"][0], "ci_high": entry["interval"][1]}
        row |= {key: entry[key] for key in ("statistic", "p_value")}
        row |= {"p_low": entry["p_value_interval"][0], "p_high": entry["p_value_interval"][1]}
        row |= {key: entry[key] for key in ("adjusted_p_value", "rejected", "higher", "method", "exact", "draws")}
        rows.append(row | {"undefined": entry["undefined"]})
    return pd.DataFrame(rows)


def _sections(facts: Mapping[str, Any], found: Verdict, asked: Asked, number: int) -> Iterator[Section]:
    yield Section("What was tested", (_tested(facts, found, asked, number),))
    if found.outcome is not None:
        yield Section("Differences", (_figure(facts["results"], asked.settings.alpha),), where="page")
    several = number > 1 and asked.correction != "none"
    for (grouping, *names), entries in groupby(facts["results"], key=_place):
        some = list(entries)
        title = f"correlation with {grouping}"
        if names:
            sizes = (f"{group['name']} ({group['rows']:,} rows)" for group in some[0]["groups"])
            title = f"{grouping}: {' and '.join(sizes)}"
        yield Section(title, (_tests(some, names, several, asked),))


def _tested(facts: Mapping[str, Any], found: Verdict, asked: Asked, number: int) -> Facts:
    data, results = facts["data"], facts["results"]
    correlated = [entry["metric"] in CORRELATIONS for entry in results]
    null = [] if all(correlated) else ["each metric is equal in both groups"]
    null += ["there is no correlation"] if any(correlated) else []
    defined = found.facts["tests"] - found.facts["undefined"]
    counted = plural(defined, "test") if defined == number else f"{number} hypotheses"
    over = "the pairs of each metric" if asked.correction == "max_t" else counted
    correction = f"; {CORRECTIONS[asked.correction]} over {over}"
    return words.facts(
        TESTED,
        null=", and ".join(null) + SIDES[asked.settings.alternative],
        alpha=asked.settings.alpha,
        correction=correction if number > 1 and asked.correction != "none" else "",
        rows=data["rows"],
        label=data["label"] + (f", 1 is {data['positive']!r}" if data["positive"] else ""),
        basis="; ".join(dict.fromkeys(entry["basis"] for entry in results)),
        seed=asked.seed,
    )


def _place(entry: Entry) -> tuple[str, ...]:
    """What entries of one section have in common."""
    if entry["metric"] in CORRELATIONS:
        return (entry["grouping"],)
    return entry["grouping"], *(group["name"] for group in entry["groups"])


def _tests(entries: Sequence[Entry], names: Sequence[str], several: bool, asked: Asked) -> Table:
    """The tests of one pair of groups: the numbers of each, and what they are worth."""
    rows = []
    for entry in entries:
        if entry["undefined"] is not None:
            rows.append(Row((entry["metric"], "undefined"), entry["undefined"]))
            continue
        estimates = [decimal(group["estimate"]) for group in entry["groups"]] if names else []
        size = f"{'+' if entry['difference'] > 0 else ''}{decimal(entry['difference'])}"
        interval = span(entry["interval"], without_ends=UNBOUNDED)
        cells = (entry["metric"], *estimates, size, interval, p_text(entry["p_value"]))
        rows.append(Row(cells, _worth(entry, several, asked.settings.resampling_risk is not None)))
    groups = [Column(name, short(name, LETTERS)) for name in names]
    heads = ("difference" if names else "correlation", f"{level(asked.settings.alpha)} interval", "p-value")
    return Table((Column(""), *groups, *map(Column, heads)), tuple(rows), notes="test and decision")


def _worth(entry: Entry, several: bool, stopping: bool) -> str:
    if entry["exact"]:
        said = ["exact"]
    else:
        low, high = entry["p_value_interval"]
        until = " until the decision was safe" if stopping else ""
        said = [f"{entry['method']}, {entry['draws']:,} draws{until}: p in {p_text(low)} to {p_text(high)}"]
    if several:
        said.append(f"adjusted p {p_text(entry['adjusted_p_value'])}")
    if not entry["rejected"]:
        said.append("not rejected")
    elif entry["metric"] in CORRELATIONS:
        said.append("rejected")
    else:
        higher = entry["higher"]
        said.append(f"rejected: {'direction not certain' if higher is None else f'{higher} is higher'}")
    return "; ".join(said)


def _figure(results: Sequence[Entry], alpha: float) -> Figure:
    return Figure(
        stem="differences",
        title="Differences with their intervals",
        caption="The metric in the first group minus that in the second (a correlation: itself), with its "
        f"{level(alpha)} interval. Filled: rejected after the correction. Open: not rejected. Undefined: left out.",
        draw=drawn_by("pipeline.cli.audit.permutation.figure:figure", results),
    )
