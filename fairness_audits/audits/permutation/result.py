"""Run the permutation tests and assemble their result. The JSON is described in ``docs/guide/permutation.md``."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fairness_audits.audits.permutation.brief import brief
from fairness_audits.audits.permutation.compute import WIDTH, Finding, gather, hypotheses
from fairness_audits.audits.permutation.equivalence import Bounds
from fairness_audits.audits.permutation.plan import CORRELATION, Plan, planned
from fairness_audits.audits.permutation.settings import Settings
from fairness_audits.audits.permutation.units import LEAST_UNITS
from fairness_audits.inputs.table import sha256
from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import stated
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import decimal, level, p_text, plain, plural, span
from fairness_audits.results.formats import factor as ratio_text
from fairness_audits.results.formats import sentence as sentence_case
from fairness_audits.results.result import Column, Figure, Result, Row, Section, Table, Text, Verdict, rows_of, under
from fairness_audits.tables import frame as tables
from fairness_audits.tables import opened
from fairness_audits.tables.source import local_files

CAVEATS = """
held_out_rows: The tests are valid for rows that were not used to build the model.
one_row_each: The tests treat rows as independent, and correlations cannot use clusters. If several rows belong to one
  person, keep one row of each person.
independent_rows: The tests treat rows as independent. If several rows belong to one person, pass the column of persons
  as --cluster.
no_correction: Without a correction for {number} hypotheses, the probability of any false rejection can exceed {alpha:g}
  (up to {chance:.2f} for independent tests).
correction_by_metric: Intervals are not corrected for the number of tests. max-T corrects the p-values over the pairs of
  each metric, not over all {families} combinations of
  a metric and a grouping.
several_tests: Intervals are not corrected for the number of tests. The adjusted p-values are.
correlation_to_compare_with: Method unstudentized rejects too often or too rarely if the score and the attribute are
  dependent but not correlated. Use it for comparison only.
all_shown: The conclusion that all comparisons are within the bound needs no correction: the probability that it is
  wrong is at most {alpha:g}. Only findings beyond the bound need one.
one_hypothesis_twice: If two rates sum to 1 (tpr and fnr, fpr and tnr), either both differ between groups or neither
  does, so the correction counts them as one hypothesis.
method_to_compare_with: Method unstudentized rejects too often or too rarely if groups differ in size and in ways other
  than the metric. Use it for comparison only.
stopped_early: Drawing stops when the probability that more draws change the decision at level {alpha:g} is at most
  {risk:g}. This applies to the decision about equality, not to the direction of the difference or the ends of the
  interval. The p-value's interval has level {level}.
"""
SAID = {"shown": "shown", "not shown": "not shown", "exceeded": "refuted"}
"""The conclusions about a bound, such as "a ratio of at least 0.8", in words."""
NAMED = 3
"""Number of differences that the sentence names before it counts the rest."""
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}
CORRECTIONS |= {"max_t": "max-T", "none": "no correction"}
UNBOUNDED = "any value"
EQUAL, CORRELATED = "the metric is equal in both groups", "the score is not correlated with the attribute"
BEYOND = {
    "difference": "the metric differs between the groups by at least {high:g}",
    "ratio": "the ratio of the rates is below {low:g}{order}",
}
"""The null hypotheses, without and with a bound."""
RULED_OUT = {"difference": "A gap of zero", "ratio": "A ratio of 1"}
"""The equality that a test rejects, in the terms of a bound."""
LIMITS = """
undefined <= 0 unless rejected: {value} of {tests} tests could not be computed ({first}).
small <= 0 unless rejected: In {value} of {tests} tests, a group has fewer than {least} units (for an AUC, positives or
  negatives; with weights, their effective number). These tests are valid only for large groups.
wide <= 0 unless rejected: In {value} of {tests} tests, equality is not rejected but the interval is wider than {width},
  so there are too few rows to tell. Test a --margin, or choose another --width.
unshown <= 0 unless rejected: {bound} is not shown in {value} of {tests} tests.
varied >= 1: The model's answers (for base_rate, the labels) are the same in all rows, so groups cannot differ in
  them.
"""
SHOWN_TESTS, SHOWN_GROUPS = 20, 12
Entry = Mapping[str, Any]


def from_files(settings: Settings) -> Result:
    """Test the rows in files. Raises ValueError for every error that the user can correct."""
    plan = planned(settings)
    how = settings.some("engine", "threads", "memory", "missing", "separator")
    with opened(settings.predictions, **how) as table:
        if settings.engine == "spark":
            return audited(plan, table)
        files = [Path(path) for path in local_files(settings.predictions).paths]
        hashes = [{"path": str(one), "bytes": one.stat().st_size, "sha256": sha256(one)} for one in files]
        return audited(plan, table, hashes)


def audited(plan: Plan, table: tables.Table, files: list[dict[str, Any]] | None = None) -> Result:
    """Count, test and conclude; ``files`` are the sources of the rows."""
    findings, groups, plan = gather(table, plan)
    settings = plan.settings
    results = [result(finding) for finding in findings]
    found, ordered = verdict(results, findings, plan), by_evidence(results)
    facts: dict[str, Any] = {
        "data": {"files": files, "rows": table.size()},
        "correction": plan.correction,
        "results": results,
        "groups": groups,
    }
    return Result(
        audit="permutation",
        title="Permutation audit",
        subject=settings.predictions,
        verdict=found,
        brief=brief(facts | {"results": ordered}, settings, found, bound_text(plan.shown)),
        caveats=(*words.caveats(CAVEATS, conditions(findings, plan)), *words.caveats(words.READING, table.notes)),
        sections=tuple(_sections(facts, found, plan)),
        facts=facts,
        tables={"tests": frame_of(ordered), **({"groups": groups_frame(groups)} if groups else {})},
        settings=settings,
    )


def result(finding: Finding) -> dict[str, Any]:
    """One test; missing values are null."""
    test = finding.test
    return plain(
        {
            "grouping": finding.grouping,
            "metric": test.metric,
            "title": finding.title,
            "groups": [
                {"name": name, "rows": rows, "units": units, **rests_on._asdict(), "estimate": estimate}
                for name, rows, units, rests_on, estimate in zip(
                    test.groups, test.sizes, test.units, finding.rests_on, test.estimates, strict=True
                )
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
            **{name: getattr(test, name) for name in ("method", "exact", "draws", "undefined_draws")},
            "guarantee": test.guarantee,
            "basis": finding.basis,
            "undefined": test.undefined or None,
            "bounds": bounds_of(finding),
        }
    )


def groups_frame(entries: Sequence[Entry]) -> pd.DataFrame:
    keys = ("grouping", "metric", "name", "rows", "n", "events", "estimate")
    ends = [dict(zip(("ci_low", "ci_high"), entry["interval"], strict=True)) for entry in entries]
    return pd.DataFrame([{**{key: one[key] for key in keys}, **two} for one, two in zip(entries, ends, strict=True)])


def bounds_of(finding: Finding) -> dict[str, Any] | None:
    """The conclusion about the bounds; None without bounds, or if the test is undefined."""
    found = finding.test.equivalence
    if found is None:
        return None
    return {
        "comparison": found.bounds.comparison,
        "order": "lowest to highest" if found.bounds.lowest_first else "first to second",
        "low": found.bounds.low,
        "high": found.bounds.high,
        "estimate": found.estimate,
        "interval": list(found.interval),
        "p_within": found.p_within,
        "p_beyond": found.p_beyond,
        "adjusted_p_beyond": finding.beyond,
        "method": found.method,
        "outcome": finding.bounds,
    }


def verdict(results: Sequence[Entry], findings: Sequence[Finding], plan: Plan) -> Verdict:
    """Return whether any test with enough units rejects; inconclusive if too little could be tested."""
    number = hypotheses(findings)
    small = [
        not (finding.test.exact or finding.test.undefined) and finding.fewest < LEAST_UNITS for finding in findings
    ]
    undefined = [entry["undefined"] for entry in results if entry["undefined"] is not None]
    known = [entry for entry in results if entry["undefined"] is None]
    refuted = ("exceeded" if plan.shown else True,)
    decided = [finding.bounds if plan.shown else finding.rejected for finding in findings]
    rejected = any(one in refuted and not few for one, few in zip(decided, small, strict=True))
    alpha, bound = plan.settings.alpha, bound_text(plan.shown)
    text = shown_sentence(results, alpha, bound) if plan.shown else sentence(results, alpha, plan.correction)
    if rejected and 0 < len(undefined) < len(results):
        text += (
            f" {len(undefined)} of {plural(len(results), 'test')} {'is' if len(undefined) == 1 else 'are'} undefined."
        )
    width = plan.settings.width
    quantities = {
        **{"tests": len(results), "undefined": len(undefined) if known else None, "small": sum(small)},
        **{"first": undefined[0] if undefined else "", "least": LEAST_UNITS},
        "varied": sum(finding.varied for finding in findings),
        **{"wide": None if plan.shown else sum(one.wide(width) for one in findings), "width": width or WIDTH},
        **{"unshown": decided.count("not shown") if plan.shown else None, "bound": sentence_case(bound)},
    }
    facts = {"tests": len(results), "hypotheses": number, "undefined": len(undefined)}
    if plan.shown:
        facts |= {name.replace(" ", "_"): decided.count(name) for name in ("shown", "not shown", "exceeded")}
    headlines = ("BOUND REFUTED", "BOUND SHOWN") if plan.shown else ("UNEQUAL", "NOT REJECTED")
    return words.concluded(rejected if known else None, headlines, text, LIMITS, quantities, "rejected", facts)


def bound_text(bounds: Bounds | None) -> str:
    """Return ``a difference of at most 0.02`` or ``a ratio of at least 0.8``."""
    if bounds is None:
        return ""
    if bounds.comparison == "difference":
        return f"a difference of at most {bounds.high:g}"
    return f"a ratio of at least {bounds.low:g}" + (
        ", lowest to highest," if bounds.lowest_first else " in both directions"
    )


def null(bounds: Bounds | None) -> str:
    """Return the null hypothesis of a comparison."""
    if bounds is None:
        return EQUAL
    order = ", lowest to highest" if bounds.lowest_first else ", in one direction or the other"
    return BEYOND[bounds.comparison].format(low=bounds.low, high=bounds.high, order=order)


def shown_sentence(results: Sequence[Entry], alpha: float, bound: str) -> str:
    """Say how often the bound is shown, not shown and refuted, by which comparisons, and where equality is rejected."""
    known = by_evidence([entry for entry in results if entry["undefined"] is None])
    if not known:
        return f"Nothing could be tested: {results[0]['undefined']}."
    order = list(SAID)
    ordered = sorted(known, key=lambda entry: -order.index(entry["bounds"]["outcome"]))
    each = (f"{text} in {sum(entry['bounds']['outcome'] == name for entry in known)}" for name, text in SAID.items())
    lines = [f"{compared(entry)}: {SAID[entry['bounds']['outcome']]}" for entry in ordered]
    count = plural(len(known), "test")
    apart = [f"{named(entry)} (adjusted p {p_text(entry['adjusted_p_value'])})" for entry in known if entry["rejected"]]
    text = f"{sentence_case(bound)} is {', '.join(each)} of {count} at level {alpha:g}: {first(lines)}."
    if not apart:
        return text
    return (
        f"{text} {RULED_OUT[known[0]['bounds']['comparison']]} is ruled out in {len(apart)} of {count}: {first(apart)}."
    )


def compared(entry: Entry) -> str:
    """Describe one comparison: ``TPR, sex: F 0.5 (4 of 8), M 0.6 (6 of 10), ratio 0.833 (0.4 to 1.7)``."""
    bounds = entry["bounds"]
    groups = ", ".join(f"{group['name']} {estimate_text(group)}" for group in entry["groups"])
    text = ratio_text if bounds["comparison"] == "ratio" else signed
    value = "undefined" if bounds["estimate"] is None else text(bounds["estimate"])
    ends = span(bounds["interval"], text=ratio_text if text is ratio_text else decimal)
    return f"{entry['title']}, {entry['grouping']}: {groups}, {bounds['comparison']} {value} ({ends})"


def estimate_text(group: Entry) -> str:
    """Return the metric of a group with its events and rows, such as ``0.5455 (330 of 605)``."""
    estimate = "-" if group["estimate"] is None else decimal(group["estimate"])
    return f"{estimate} ({rests_on(group)})"


def rests_on(group: Entry) -> str:
    """Return ``330 of 605``; only the rows if the metric counts no events."""
    return f"{group['n']:,}" if group["events"] is None else f"{group['events']:,} of {group['n']:,}"


def sentence(results: Sequence[Entry], alpha: float, correction: str) -> str:
    """Say how many tests reject and what they find; if none rejects, give the strongest evidence first."""
    known = by_evidence([entry for entry in results if entry["undefined"] is None])
    if not known:
        return f"Nothing could be tested: {results[0]['undefined']}."
    found = [entry for entry in known if entry["rejected"]]
    corrected = f" ({CORRECTIONS[correction]})" if len(known) > 1 else ""
    of = f"{len(found)} of {plural(len(known), 'test')} at level {alpha:g}{corrected}"
    correlated = all(entry["metric"] == CORRELATION for entry in known)
    absence, others = ("that there is no correlation", "correlations") if correlated else ("of equality", "differences")
    no_proof = "" if found else f" This is no proof {absence}: the intervals show which {others} remain possible."
    return f"The null hypothesis is rejected in {of}: {first(list(map(difference, found or known)))}.{no_proof}"


def first(lines: Sequence[str]) -> str:
    """Return the first lines and the number of the rest, such as ``a; b; c; and 2 more``."""
    return "; ".join([*lines[:NAMED], *([f"and {len(lines) - NAMED} more"] if len(lines) > NAMED else [])])


def difference(entry: Entry) -> str:
    """Describe one test.

    For example: ``AUC, sex: F 0.9409 (354 of 3,225), M 0.8803 (1,968 of 6,493), +0.0606 (0.0465 to 0.0748)``.
    """
    groups = [] if entry["metric"] == CORRELATION else entry["groups"]
    estimates = "".join(f"{group['name']} {estimate_text(group)}, " for group in groups)
    interval = span(entry["interval"], without_ends=UNBOUNDED)
    return f"{entry['title']}, {entry['grouping']}: {estimates}{signed(entry['difference'])} ({interval})"


def signed(value: float) -> str:
    """Return a signed number, such as ``+0.0606``."""
    return f"{'+' * (value > 0)}{decimal(value)}"


def frame_of(results: Sequence[Entry]) -> pd.DataFrame:
    keys = ("adjusted_p_value", "rejected", "higher", "method", "exact", "draws", "undefined")
    return pd.DataFrame(
        [
            {
                **{key: entry[key] for key in ("grouping", "metric")},
                **{
                    f"{key}_{letter}": group[key]
                    for letter, group in zip("ab", entry["groups"], strict=True)
                    for key in ("name", "rows", "units", "n", "events", "estimate")
                },
                **{"difference": entry["difference"], "ci_low": entry["interval"][0], "ci_high": entry["interval"][1]},
                **{key: entry[key] for key in ("statistic", "p_value")},
                **dict(zip(("p_low", "p_high"), entry["p_value_interval"], strict=True)),
                **{key: entry[key] for key in keys},
                **({} if entry["bounds"] is None else flat_bounds(entry["bounds"])),
            }
            for entry in results
        ]
    )


def flat_bounds(bounds: Entry) -> dict[str, Any]:
    """The columns of a comparison with its bounds."""
    low, high = bounds["interval"]
    keys = ("comparison", "order", "estimate", "p_within", "p_beyond", "adjusted_p_beyond", "outcome")
    return {"bound_low": bounds["low"], "bound_high": bounds["high"]} | {
        f"bound_{key}": value
        for key, value in ({key: bounds[key] for key in keys} | {"ci_low": low, "ci_high": high}).items()
    }


def by_evidence(results: Sequence[Entry]) -> list[Entry]:
    """Sort the tests: rejections, the largest difference first; other tests, the smallest p-value first; undefined."""

    def place(entry: Entry) -> tuple[Any, ...]:
        size = -abs(entry["difference"] or 0.0)
        p = (math.inf if entry[key] is None else entry[key] for key in ("adjusted_p_value", "p_value"))
        return entry["undefined"] is not None, not entry["rejected"], *([] if entry["rejected"] else p), size

    return sorted(results, key=place)


def _sections(facts: Mapping[str, Any], found: Verdict, plan: Plan) -> Iterator[Section]:
    results, pairs = facts["results"], {_place(entry) for entry in facts["results"]}
    nulls = (CORRELATED if entry["metric"] == CORRELATION else null(plan.shown) for entry in results)
    tested = {
        "null": "; ".join(dict.fromkeys(nulls)),
        "rows": f"{facts['data']['rows']:,}",
        "read as": "; ".join(dict.fromkeys(entry["basis"] for entry in results)),
    }
    yield words.tested(Settings, stated(plan.settings), tested)
    title = "Differences: significant ones first, the largest first; then by p-value"
    if len(pairs) == 1 and results[0]["metric"] != CORRELATION:
        sizes = (f"{group['name']} ({group['rows']:,} rows)" for group in results[0]["groups"])
        title = f"{results[0]['grouping']}: {' and '.join(sizes)}"
    ordered = by_evidence(results)
    figure = Figure(
        "differences",
        "Differences with their intervals",
        "The metric in the first group minus the metric in the second (or the correlation itself), with its "
        f"{level(plan.settings.alpha)} interval. Filled: rejected after the correction. Open: not rejected. "
        "Differences that are undefined or do not fit on the page are only in tests.csv.",
        "fairness_audits.audits.permutation.figures:figure",
        (ordered,),
    )
    figures = () if found.facts["undefined"] == len(results) else (figure,)
    unknown = [entry for entry in ordered if entry["undefined"] is not None]
    reasons = dict.fromkeys(f"{one['metric']} of {one['grouping']} ({one['undefined']})" for one in unknown)
    undefined = (Text(f"Undefined: {listed(list(reasons), SHOWN)}."),) if reasons else ()
    if plan.shown is not None and found.facts["undefined"] < len(results):
        yield Section(f"Is {bound_text(plan.shown)} shown?", (_bounds(ordered, plan),))
    yield Section(title, (_tests(ordered, len(pairs) > 1, plan), *undefined, *figures))
    if facts["groups"]:
        yield Section("Groups, worst first", (_groups(facts["groups"], plan),))


def _place(entry: Entry) -> tuple[str, ...]:
    if entry["metric"] == CORRELATION:
        return (entry["grouping"],)
    return entry["grouping"], *(group["name"] for group in entry["groups"])


def named(entry: Entry) -> str:
    """Return ``auc, sex: f - m`` or ``correlation, age``."""
    grouping, *groups = _place(entry)
    return f"{entry['metric']}, {grouping}" + (f": {' - '.join(groups)}" if groups else "")


def _tests(entries: Sequence[Entry], several: bool, plan: Plan) -> Table:
    """Return a line for each test. With ``several`` pairs of groups, the line names its pair."""
    one = not several and entries[0]["metric"] != CORRELATION
    heads = [group["name"] for group in entries[0]["groups"]] if one else ["first", "second"]

    def name(entry: Entry) -> str:
        return named(entry) if several or entry["metric"] == CORRELATION else str(entry["metric"])

    def estimate(place: int) -> Callable[[Entry], str]:
        return lambda entry: "-" if entry["metric"] == CORRELATION else decimal(entry["groups"][place]["estimate"])

    columns = (
        Column("", cell=name),
        *(Column(head, cell=estimate(place)) for place, head in enumerate(heads)),
        Column("difference", cell=under("difference", signed)),
        Column(f"{level(plan.settings.alpha)} interval", cell=under("interval", partial(span, without_ends=UNBOUNDED))),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    rows: list[Row] = []
    for entry in entries:
        if entry["undefined"] is not None:
            rows.append(Row((name(entry), *["-"] * (len(columns) - 1)), "undefined"))
        else:
            rows += rows_of(columns, [entry], "rejected" if entry["rejected"] else "not rejected")
    return Table(columns, tuple(rows), SHOWN_TESTS, "tests.csv")


def _compared_by(plan: Plan) -> str:
    """Return the name of the comparison with the bounds."""
    if plan.shown is None or plan.shown.comparison == "difference":
        return "difference"
    return "lowest / highest" if plan.shown.lowest_first else "ratio"


def _bounds(entries: Sequence[Entry], plan: Plan) -> Table:
    """Return a line for each comparison with its bounds, refuted bounds first."""
    ratio = plan.shown is not None and plan.shown.comparison == "ratio"
    text = ratio_text if ratio else decimal

    def of_bounds(cell: Callable[[Entry], str]) -> Callable[[Entry], str]:
        return lambda entry: cell(entry["bounds"])

    columns = (
        Column("", cell=named),
        Column(_compared_by(plan), cell=of_bounds(under("estimate", ratio_text if ratio else signed))),
        Column(
            f"{level(2 * plan.settings.alpha)} interval",
            cell=of_bounds(under("interval", partial(span, text=text, without_ends=UNBOUNDED))),
        ),
        Column("p (null: beyond)", cell=of_bounds(under("p_within", p_text))),
        Column("adjusted p (null: within)", cell=of_bounds(under("adjusted_p_beyond", p_text))),
    )
    rows = [
        row
        for outcome, text in reversed(SAID.items())
        for row in rows_of(
            columns, [one for one in entries if one["bounds"] and one["bounds"]["outcome"] == outcome], text
        )
    ]
    return Table(columns, tuple(rows), SHOWN_TESTS, "tests.csv")


def _groups(entries: Sequence[Entry], plan: Plan) -> Table:
    """Return a line for each group and metric, with the metric's rows and events."""
    columns = (
        Column("", cell=under("name")),
        Column("estimate", cell=under("estimate", decimal)),
        Column(f"{level(plan.settings.alpha)} interval", cell=under("interval", partial(span, without_ends="-"))),
        Column("n", cell=under("n", "{:,}".format)),
        Column("events", cell=under("events", "{:,}".format)),
    )
    titles = dict.fromkeys(f"{entry['title']}, {entry['grouping']}" for entry in entries)
    rows = [
        row
        for title in titles
        for row in rows_of(columns, [e for e in entries if f"{e['title']}, {e['grouping']}" == title], title)
    ]
    return Table(columns, tuple(rows), SHOWN_GROUPS, "groups.csv")


def conditions(every: Sequence[Finding], plan: Plan) -> dict[str, Any]:
    findings = [finding for finding in every if not finding.test.undefined]
    settings, alpha, number = plan.settings, plan.settings.alpha, hypotheses(findings)
    families = {(finding.grouping, finding.test.metric) for finding in findings}
    by_metric, alone = plan.correction == "max_t" and len(families) > 1, plan.correction == "none"
    risk, drawn = settings.resampling_risk, not all(finding.test.exact for finding in findings)
    correlated = [finding.test.metric == CORRELATION for finding in every]
    return {
        "held_out_rows": True,
        "independent_rows": settings.cluster is None and not any(correlated),
        "one_row_each": any(correlated),
        "no_correction": number > 1
        and alone
        and {"number": number, "alpha": alpha, "chance": 1 - (1 - alpha) ** number},
        "correction_by_metric": number > 1 and by_metric and {"families": len(families)},
        "all_shown": number > 1 and plan.shown is not None and {"alpha": alpha},
        "several_tests": number > 1 and not (alone or by_metric),
        "one_hypothesis_twice": 1 < number < len(findings)
        and plan.shown is None
        and not (alone or plan.correction == "max_t"),
        "method_to_compare_with": settings.method == "unstudentized" and not all(correlated),
        "correlation_to_compare_with": settings.method == "unstudentized" and any(correlated),
        "stopped_early": drawn and risk is not None and {"alpha": alpha, "risk": risk, "level": level(risk)},
    }
