"""The result of the permutation tests as a document. Layout of the JSON: ``docs/permutation.md``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pandas as pd

from pipeline.cli import words
from pipeline.cli.audit.permutation.asked import CORRELATIONS, Asked
from pipeline.cli.audit.permutation.caveats import caveats
from pipeline.cli.audit.permutation.evidence import Evidence, Finding, hypotheses
from pipeline.cli.document import AuditDocument, Column, Facts, Figure, Outcome, Row, Section, Table, Verdict, drawn_by
from pipeline.cli.numbers import decimal, level, p_text, plain, plural, short, span
from pipeline.cli.verdict import INCONCLUSIVE, concluded

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
LEAST_UNITS = 20
"""A test that is not exact says little of a group with fewer units (of the AUC: positives or negatives)."""
LIMITS = """
undefined <= 0 unless rejected: {value} of {tests} tests could not be made ({first}).
small <= 0 unless rejected: {value} of {tests} tests are of a group with fewer than {least} units, or positives or
  negatives of an AUC, and hold only in the limit of large groups.
varied >= 1: The model says the same of everybody, so that nothing can differ between groups.
"""
SHOWN_TESTS = 20
LETTERS = 9
"""Longer names of groups are cut in the terminal."""
Entry = Mapping[str, Any]


def document(evidence: Evidence, asked: Asked, given: Mapping[str, Mapping[str, Any]]) -> AuditDocument:
    """The document; ``given`` says which data were tested with which parameters."""
    results = [result(finding) for finding in evidence.findings]
    facts = {**given, "results": results}
    found = verdict(results, evidence)
    return AuditDocument(
        audit="permutation",
        schema=SCHEMA,
        title="Permutation audit",
        subject=given["data"]["path"],
        verdict=found,
        caveats=tuple(caveats(evidence.findings, asked)),
        sections=tuple(_sections(facts, found, asked)),
        facts=facts,
        tables={"tests": table(by_evidence(results))},
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


def verdict(results: Sequence[Entry], evidence: Evidence) -> Verdict:
    """Whether any test rejects that rests on enough units; inconclusive where too little could be tested."""
    number, asked, findings = hypotheses(evidence.findings), evidence.asked, evidence.findings
    small = [
        not (finding.test.exact or finding.test.undefined) and finding.fewest < LEAST_UNITS for finding in findings
    ]
    undefined = [entry["undefined"] for entry in results if entry["undefined"] is not None]
    rejected = any(entry["rejected"] and not few for entry, few in zip(results, small, strict=True))
    said = sentence(results, asked.settings.alpha, asked.correction)
    if 0 < len(undefined) < len(results):
        said += (
            f" {len(undefined)} of {plural(len(results), 'test')} {'is' if len(undefined) == 1 else 'are'} undefined."
        )
    known = [entry for entry in results if entry["undefined"] is None]
    quantities = {
        **{"tests": len(results), "undefined": len(undefined) if known else None, "small": sum(small)},
        **{"first": undefined[0] if undefined else "", "least": LEAST_UNITS},
        "varied": sum(finding.varied for finding in findings),
    }
    outcome: Outcome = "rejected" if rejected else "not rejected" if known else "inconclusive"
    headline = {"rejected": "UNEQUAL", "not rejected": "NOT REJECTED", "inconclusive": INCONCLUSIVE}[outcome]
    facts = {"tests": len(results), "hypotheses": number, "undefined": len(undefined)}
    return concluded(Verdict(outcome, headline, said, facts), LIMITS, quantities, "rejected")


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


def by_evidence(results: Sequence[Entry]) -> list[Entry]:
    """The tests that reject, then the others, then those that are undefined; the smallest p-values first."""
    infinite = float("inf")
    return sorted(
        results,
        key=lambda entry: (
            entry["undefined"] is not None,
            not entry["rejected"],
            infinite if entry["adjusted_p_value"] is None else entry["adjusted_p_value"],
            infinite if entry["p_value"] is None else entry["p_value"],
            -abs(entry["difference"] or 0.0),
        ),
    )


def _sections(facts: Mapping[str, Any], found: Verdict, asked: Asked) -> Iterator[Section]:
    results, pairs = facts["results"], {_place(entry) for entry in facts["results"]}
    yield Section("What was tested", (_tested(facts, found, asked),))
    title = "Differences, the strongest evidence first"
    if len(pairs) == 1 and results[0]["metric"] not in CORRELATIONS:
        sizes = (f"{group['name']} ({group['rows']:,} rows)" for group in results[0]["groups"])
        title = f"{results[0]['grouping']}: {' and '.join(sizes)}"
    figures = () if found.facts["undefined"] == len(results) else (_figure(by_evidence(results), asked.settings.alpha),)
    yield Section(title, (_tests(by_evidence(results), len(pairs) > 1, asked), *figures))


def _tested(facts: Mapping[str, Any], found: Verdict, asked: Asked) -> Facts:
    number = found.facts["hypotheses"]
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


def _tests(entries: Sequence[Entry], named: bool, asked: Asked) -> Table:
    """A line for each test; ``named``: whether of several pairs of groups, which the line then names."""
    stopping = asked.settings.resampling_risk is not None
    rows = []
    for entry in entries:
        alone = entry["metric"] in CORRELATIONS
        of = entry["grouping"] if alone else ": ".join([entry["grouping"], " - ".join(_place(entry)[1:])])
        name = f"{entry['metric']}, {of}" if named or alone else entry["metric"]
        if entry["undefined"] is not None:
            rows.append(Row((name, entry["undefined"]), group="undefined"))
            continue
        estimates = ["-", "-"] if alone else [decimal(group["estimate"]) for group in entry["groups"]]
        difference = f"{'+' if entry['difference'] > 0 else ''}{decimal(entry['difference'])}"
        interval = span(entry["interval"], without_ends=UNBOUNDED)
        p, adjusted = p_text(entry["p_value"]), p_text(entry["adjusted_p_value"])
        cells = (name, *estimates, difference, interval, p, adjusted, _worth(entry, stopping), entry["higher"] or "-")
        rows.append(Row(cells, group="rejected" if entry["rejected"] else "not rejected"))
    one = not named and entries[0]["metric"] not in CORRELATIONS
    first, second = (group["name"] for group in entries[0]["groups"]) if one else ("first", "second")
    columns = (
        Column(""),
        Column(first, short(first, LETTERS)),
        Column(second, short(second, LETTERS)),
        Column("difference", "diff."),
        Column(f"{level(asked.settings.alpha)} interval"),
        Column("p, unadjusted", where="page"),
        Column("p, adjusted", "p"),
        Column("test", where="page", kind="text"),
        Column("shown to be higher", where="page", kind="text"),
    )
    return Table(columns, tuple(rows), SHOWN_TESTS, file="tests.csv")


def _worth(entry: Entry, stopping: bool) -> str:
    if entry["exact"]:
        return "exact"
    low, high = entry["p_value_interval"]
    until = " until the decision was safe" if stopping else ""
    return f"{entry['method']}, {entry['draws']:,} draws{until}: p in {p_text(low)} to {p_text(high)}"


def _figure(results: Sequence[Entry], alpha: float) -> Figure:
    return Figure(
        stem="differences",
        title="Differences with their intervals",
        caption="The metric in the first group minus that in the second (a correlation: itself), with its "
        f"{level(alpha)} interval. Filled: rejected after the correction. Open: not rejected. Undefined: left out.",
        draw=drawn_by("pipeline.cli.audit.permutation.figure:figure", results),
    )
