"""From the settings of the permutation tests to their result. Layout of the JSON: ``docs/permutation.md``."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from pipeline.cli import words
from pipeline.cli.audit.permutation import Settings
from pipeline.cli.audit.permutation.evidence import CORRELATIONS, Finding, Plan, gather, hypotheses, planned
from pipeline.cli.numbers import decimal, level, p_text, plain, plural, span
from pipeline.cli.result import Column, Facts, Figure, Result, Row, Section, Table, Text, Verdict, rows_of, under
from pipeline.cli.table import sha256
from pipeline.messages import SHOWN, listed
from pipeline.tabulate import opened
from pipeline.tabulate import table as tables
from pipeline.tabulate.source import local_files

COLUMNS = ("label", "positive", "score", "prediction", "threshold", "cluster", "weight")
"""What the document says of the data under its own name."""
HASHED_BYTES = 2**30
"""Larger data are identified by the names and sizes of their files, without checksums."""
# From where on a caveat is due.
FEW_UNITS = 50
CAVEATS = """
held_out_rows: The tests are about predictions for rows that the model was not made from.
independent_rows: Rows count as independent: if several belong to one person, name the column with --cluster.
no_correction: Without a correction for {number} tests, the chance of a false rejection among them is more than
  {alpha:g} (up to {chance:.2f} if they were independent).
correction_by_metric: max-T corrects over the pairs of each metric, not over the {families} metrics and groupings.
several_tests: The intervals are those of each test by itself; adjusted p-values allow for the number of tests.
one_hypothesis_twice: Rates that are equal together (tpr and fnr, fpr and tnr) are one hypothesis of the correction.
few_units: A group with {fewest} {what}, fewer than {least}: the test is valid in the limit of large groups, and may
  reject equal values far more often than at its level ({where}{more}).
binned_scores: The tests of scores are on {basis}: scores of one bin count as equal.
method_to_compare_with: {told}
near_the_level: {many} so near {alpha:g} that more --draws may change the decision ({where}).
stopped_early: Drawing stops when the decision at {alpha:g} is safe but for a risk of {risk:g}: this holds for equal or
  not, neither for the group that is named nor for the ends of the interval. The p-value's interval is at {level}.
undefined_draws: {count:,} permutations left a group without the rows of the metric; they count as extreme.
"""
COMPARISONS = {
    "unstudentized": "Method unstudentized rejects too often or too rarely where the groups differ in size and in "
    "anything but the metric: it is there to compare with.",
    "lift": "Method lift has no guarantee where the groups differ in size and composition: it is there to compare "
    "with.",
    "bootstrap": "Method bootstrap is valid only for large groups, and rejects too often in small ones.",
}
NAMED = 3
"""How many differences the sentence names before it only counts the rest."""
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}
CORRECTIONS |= {"max_t": "max-T", "none": "no correction"}
SIDES: Mapping[str | None, str] = {
    "greater": ", against larger in the first",
    "less": ", against smaller in the first",
}
UNBOUNDED = "any value"
TESTED = """
null: {null}
level: {alpha:g}{correction}
data: {rows:,} rows; label {label}
read as: {basis}
seed: {seed}
"""
LEAST_UNITS = 20
"""Of fewer units in a group (of the AUC: positives or negatives) a test that is not exact decides nothing."""
LIMITS = """
undefined <= 0 unless rejected: {value} of {tests} tests could not be made ({first}).
small <= 0 unless rejected: {value} of {tests} tests are of a group with fewer than {least} units, or positives or
  negatives of an AUC, and hold only in the limit of large groups.
varied >= 1: The model says the same of everybody, so that nothing can differ between groups.
"""
SHOWN_TESTS = 20
Entry = Mapping[str, Any]


def from_files(asked: Settings) -> Result:
    """The tests of the rows in files. Raises ValueError for everything that the user can mend."""
    plan = planned(asked)
    with opened(asked.predictions, asked.engine, asked.threads, asked.memory) as table:
        if asked.engine == "spark":
            return audited(plan, table)
        files = {Path(path): Path(path).stat().st_size for path in local_files(asked.predictions).paths}
        hashed = sum(files.values()) <= HASHED_BYTES
        told = [
            {"path": str(one), "bytes": size, "sha256": sha256(one) if hashed else None} for one, size in files.items()
        ]
        return audited(plan, table, told)


def audited(plan: Plan, table: tables.Table, files: list[dict[str, Any]] | None = None) -> Result:
    """Count, test, say what follows; ``files`` are those that the rows are from."""
    findings, plan = gather(table, plan)
    asked = plan.asked
    results = [result(finding) for finding in findings]
    found = verdict(results, findings, plan)
    tested = plan.testing()
    facts = {
        "data": {"path": asked.predictions, "files": files, "rows": table.size(), **asked.some(*COLUMNS)},
        "parameters": {
            **asked.some("alpha", "alternative", "method"),
            **{"draws": plan.draws, "bootstraps": tested.bootstraps, "smoothing": tested.smoothing},
            "resampling_risk": asked.resampling_risk,
            **{"correction": plan.correction, "draws_own_metric": plan.own_draws},
            **asked.some("seed", "bins", "score_range", "engine"),
        },
        "results": results,
    }
    return Result(
        audit="permutation",
        title="Permutation audit",
        subject=asked.predictions,
        verdict=found,
        caveats=tuple(words.caveats(CAVEATS, conditions(findings, plan))),
        sections=tuple(_sections(facts, found, plan)),
        facts=facts,
        tables={"tests": frame_of(by_evidence(results))},
        settings=asked,
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
            "higher": test.higher if finding.rejected else None,
            "direction": test.direction if finding.rejected else 0,
            **{name: getattr(test, name) for name in ("method", "exact", "draws", "undefined_draws", "odds_ratio")},
            "guarantee": test.guarantee,
            "basis": finding.basis,
            "undefined": test.undefined or None,
        }
    )


def verdict(results: Sequence[Entry], findings: Sequence[Finding], plan: Plan) -> Verdict:
    """Whether any test rejects that rests on enough units; inconclusive where too little could be tested."""
    number = hypotheses(findings)
    small = [
        not (finding.test.exact or finding.test.undefined) and finding.fewest < LEAST_UNITS for finding in findings
    ]
    undefined = [entry["undefined"] for entry in results if entry["undefined"] is not None]
    rejected = any(entry["rejected"] and not few for entry, few in zip(results, small, strict=True))
    said = sentence(results, plan.asked.alpha, plan.correction)
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
    facts = {"tests": len(results), "hypotheses": number, "undefined": len(undefined)}
    headlines = ("UNEQUAL", "NOT REJECTED")
    return words.concluded(rejected if known else None, headlines, said, LIMITS, quantities, "rejected", facts)


def sentence(results: Sequence[Entry], alpha: float, correction: str) -> str:
    """What the tests say together, in plain sentences."""
    known = [entry for entry in results if entry["undefined"] is None]
    tested = f"at level {alpha:g}" + (f" ({CORRECTIONS[correction]})" if len(known) > 1 else "")
    if not known:
        return f"Nothing could be tested: {results[0]['undefined']}."
    correlated = {entry["metric"] in CORRELATIONS for entry in known}
    what = " or ".join("correlation" if one else "difference" for one in sorted(correlated))
    found = sorted((entry for entry in known if entry["rejected"]), key=lambda entry: entry["adjusted_p_value"])
    if not found:
        entry = known[0]
        remains = f"of {span(entry['interval'], without_ends=UNBOUNDED)} remains possible."
        if len(known) > 1:
            return (
                f"No {what} is found {tested} in {plural(len(known), 'test')}. This is no proof of equality: the "
                "intervals say what remains possible."
            )
        if entry["metric"] in CORRELATIONS:
            of = f"{entry['title']} with {entry['grouping']}"
            return f"No {of} is found {tested}. This is no proof: one {remains}"
        of = f"{entry['title']} between {' and '.join(group['name'] for group in entry['groups'])}"
        return f"No difference of {of} is found {tested}. This is no proof of equality: one {remains}"
    told = "; ".join(difference(entry) for entry in found[:NAMED])
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    if len(known) == 1:
        return f"A {what} is found {tested}: {told}."
    finds = "finds" if len(found) == 1 else "find"
    return f"{len(found)} of {plural(len(known), 'test')} {finds} a {what} {tested}: {told}{more}."


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


def frame_of(results: Sequence[Entry]) -> pd.DataFrame:
    keys = ("adjusted_p_value", "rejected", "higher", "method", "exact", "draws", "undefined")
    return pd.DataFrame(
        [
            {
                **{key: entry[key] for key in ("grouping", "metric")},
                **{
                    f"{key}_{letter}": group[key]
                    for letter, group in zip("ab", entry["groups"], strict=True)
                    for key in ("name", "rows", "units", "estimate")
                },
                **{"difference": entry["difference"], "ci_low": entry["interval"][0], "ci_high": entry["interval"][1]},
                **{key: entry[key] for key in ("statistic", "p_value")},
                **dict(zip(("p_low", "p_high"), entry["p_value_interval"], strict=True)),
                **{key: entry[key] for key in keys},
            }
            for entry in results
        ]
    )


def by_evidence(results: Sequence[Entry]) -> list[Entry]:
    """The tests that reject, then the others, then those that are undefined; the smallest p-values first."""
    p = [
        [math.inf if entry[key] is None else entry[key] for key in ("adjusted_p_value", "p_value")] for entry in results
    ]
    state = [(entry["undefined"] is not None, not entry["rejected"]) for entry in results]
    order = sorted(
        range(len(results)), key=lambda place: (*state[place], *p[place], -abs(results[place]["difference"] or 0.0))
    )
    return [results[place] for place in order]


def _sections(facts: Mapping[str, Any], found: Verdict, plan: Plan) -> Iterator[Section]:
    results, pairs = facts["results"], {_place(entry) for entry in facts["results"]}
    yield Section("What was tested", (_tested(facts, found, plan),))
    title = "Differences, the strongest evidence first"
    if len(pairs) == 1 and results[0]["metric"] not in CORRELATIONS:
        sizes = (f"{group['name']} ({group['rows']:,} rows)" for group in results[0]["groups"])
        title = f"{results[0]['grouping']}: {' and '.join(sizes)}"
    ordered = by_evidence(results)
    figure = Figure(
        "differences",
        "Differences with their intervals",
        "The metric in the first group minus that in the second (a correlation: itself), with its "
        f"{level(plan.asked.alpha)} interval. Filled: rejected after the correction. Open: not rejected. "
        "Undefined: left out.",
        "pipeline.cli.audit.permutation.figure:figure",
        (ordered,),
    )
    figures = () if found.facts["undefined"] == len(results) else (figure,)
    unknown = [entry for entry in ordered if entry["undefined"] is not None]
    reasons = dict.fromkeys(f"{one['metric']} of {one['grouping']} ({one['undefined']})" for one in unknown)
    undefined = (Text(f"Undefined: {listed(list(reasons), SHOWN)}."),) if reasons else ()
    yield Section(title, (_tests(ordered, len(pairs) > 1, plan), *undefined, *figures))


def _tested(facts: Mapping[str, Any], found: Verdict, plan: Plan) -> Facts:
    number = found.facts["hypotheses"]
    data, results = facts["data"], facts["results"]
    correlated = [entry["metric"] in CORRELATIONS for entry in results]
    null = [] if all(correlated) else ["each metric is equal in both groups"]
    null += ["there is no correlation"] if any(correlated) else []
    defined = found.facts["tests"] - found.facts["undefined"]
    counted = plural(defined, "test") if defined == number else f"{number} hypotheses"
    over = "the pairs of each metric" if plan.correction == "max_t" else counted
    correction = f"; {CORRECTIONS[plan.correction]} over {over}"
    return words.facts(
        TESTED,
        null=", and ".join(null) + SIDES.get(plan.asked.alternative, ""),
        alpha=plan.asked.alpha,
        correction=correction if number > 1 and plan.correction != "none" else "",
        rows=data["rows"],
        label=data["label"] + (f", 1 is {data['positive']!r}" if data["positive"] else ""),
        basis="; ".join(dict.fromkeys(entry["basis"] for entry in results)),
        seed=plan.asked.seed,
    )


def _place(entry: Entry) -> tuple[str, ...]:
    if entry["metric"] in CORRELATIONS:
        return (entry["grouping"],)
    return entry["grouping"], *(group["name"] for group in entry["groups"])


def named(entry: Entry) -> str:
    """``auc, sex: f - m``; ``correlation, age``."""
    grouping, *groups = _place(entry)
    return f"{entry['metric']}, {grouping}" + (f": {' - '.join(groups)}" if groups else "")


def _tests(entries: Sequence[Entry], several: bool, plan: Plan) -> Table:
    """A line for each test; ``several``: whether of several pairs of groups, which the line then names."""
    one = not several and entries[0]["metric"] not in CORRELATIONS
    heads = [group["name"] for group in entries[0]["groups"]] if one else ["first", "second"]

    def name(entry: Entry) -> str:
        return named(entry) if several or entry["metric"] in CORRELATIONS else str(entry["metric"])

    def estimate(place: int) -> Callable[[Entry], str]:
        return lambda entry: "-" if entry["metric"] in CORRELATIONS else decimal(entry["groups"][place]["estimate"])

    columns = (
        Column("", cell=name),
        *(Column(head, cell=estimate(place)) for place, head in enumerate(heads)),
        Column("difference", cell=under("difference", lambda value: f"{'+' * (value > 0)}{decimal(value)}")),
        Column(f"{level(plan.asked.alpha)} interval", cell=under("interval", partial(span, without_ends=UNBOUNDED))),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    rows: list[Row] = []
    for entry in entries:
        if entry["undefined"] is not None:
            rows.append(Row((name(entry), *["-"] * (len(columns) - 1)), "undefined"))
        else:
            rows += rows_of(columns, [entry], "rejected" if entry["rejected"] else "not rejected")
    return Table(columns, tuple(rows), SHOWN_TESTS, "tests.csv")


def conditions(every: Sequence[Finding], plan: Plan) -> dict[str, Any]:
    findings = [finding for finding in every if not finding.test.undefined]
    asked, alpha, number = plan.asked, plan.asked.alpha, hypotheses(findings)
    families = {(finding.grouping, finding.test.metric) for finding in findings}
    by_metric, alone = plan.correction == "max_t" and len(families) > 1, plan.correction == "none"
    small = sorted(
        (one for one in findings if not one.test.exact and one.fewest < FEW_UNITS), key=lambda one: one.fewest
    )
    few = small and {
        "fewest": small[0].fewest,
        "what": "positives or negatives" if small[0].test.metric == "auc" else "units",
        "least": FEW_UNITS,
        "where": f"{small[0].test.metric} of {small[0].grouping}",
        "more": f" and {len(small) - 1} more" if len(small) > 1 else "",
    }
    return {
        "held_out_rows": True,
        "independent_rows": asked.cluster is None,
        "no_correction": number > 1
        and alone
        and {"number": number, "alpha": alpha, "chance": 1 - (1 - alpha) ** number},
        "correction_by_metric": number > 1 and by_metric and {"families": len(families)},
        "several_tests": number > 1 and not (alone or by_metric),
        "one_hypothesis_twice": 1 < number < len(findings) and not (alone or plan.correction == "max_t"),
        "few_units": few,
        "binned_scores": [{"basis": basis} for basis in sorted({one.basis for one in findings if "bins" in one.basis})],
        "method_to_compare_with": asked.method in COMPARISONS and {"told": COMPARISONS[asked.method]},
        **of_draws(findings, plan),
    }


def of_draws(findings: Sequence[Finding], plan: Plan) -> dict[str, Any]:
    """What the number of draws leaves in doubt."""
    alpha, risk = plan.asked.alpha, plan.asked.resampling_risk
    ends = [(one, one.adjusted_low, one.adjusted_high) for one in findings]
    close = [one for one, low, high in ends if low is not None and high is not None and low <= alpha < high]
    undefined = sum(finding.test.undefined_draws for finding in findings)
    stopped = risk is not None and not all(finding.test.exact for finding in findings)
    return {
        "near_the_level": close
        and {
            "many": f"{len(close)} p-value{'s are' if len(close) > 1 else ' is'}",
            "alpha": alpha,
            "where": f"{close[0].test.metric} of {close[0].grouping}",
        },
        "stopped_early": stopped and {"alpha": alpha, "risk": risk, "level": level(risk or 0.0)},
        "undefined_draws": undefined and {"count": undefined},
    }
