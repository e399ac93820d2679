"""Run the permutation tests and assemble their result. The JSON is described in ``docs/guide/permutation.md``."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.inference import least_size
from fairness_audits.audits.permutation import within
from fairness_audits.audits.permutation.asked import CORRELATION, Asked, asked_by
from fairness_audits.audits.permutation.compute import WIDTH, Finding, gather, hypotheses
from fairness_audits.audits.permutation.equivalence import CONCLUSIONS
from fairness_audits.audits.permutation.metrics import CALIBRATION, EXPOSURE, RATES, better
from fairness_audits.audits.permutation.units import LEAST_UNITS
from fairness_audits.inputs.table import sha256
from fairness_audits.results.formats import decimal, factor, level, p_text, plain, signed, span
from fairness_audits.results.result import Column, Figure, Result, Row, Section, Table, Text, rows_of, under
from fairness_audits.tables import Engine, opened
from fairness_audits.tables import frame as tables
from fairness_audits.tables.source import local_files

UNBOUNDED = "any value"
SHOWN_TESTS, SHOWN_GROUPS = 20, 12
FIRST = {"high": "lowest", "low": "highest", "zero": "farthest from 0", None: "lowest"}
"""Which values of a metric come first, by the values that are good."""
PERCENTAGES = (*RATES, CALIBRATION.name)
Entry = Mapping[str, Any]


def from_files(given: Given) -> Result:
    """Test the rows in files. Raises InvalidInput for everything that the user can correct."""
    asked = asked_by(given)
    engine: Engine = given.engine or "duckdb"
    with opened(given.predictions, engine, **given.some("threads", "memory", "missing", "separator")) as table:
        if engine == "spark":
            return audited(asked, table)
        files = [Path(path) for path in local_files(given.predictions).paths]
        hashes = [{"path": str(one), "bytes": one.stat().st_size, "sha256": sha256(one)} for one in files]
        return audited(asked, table, hashes)


def audited(asked: Asked, table: tables.Table, files: list[dict[str, Any]] | None = None) -> Result:
    """Count, test and conclude; ``files`` are the sources of the rows."""
    findings, groups, asked = gather(table, asked)
    results = [result(finding) for finding in findings]
    strata = within.strata_of(findings, asked)
    if asked.strata:
        results = within.with_strata(results, findings, strata, asked)
    facts: dict[str, Any] = {
        "data": {"files": files, "rows": table.size()},
        "correction": asked.correction,
        "results": results,
        "groups": groups,
        "strata": strata,
    }
    ordered = by_evidence(results)
    said = {**asked.given.values, **facts, **_said(ordered, findings, asked), "notes": table.notes}
    said["within"] = asked.strata
    said["bound"] = texts.named("permutation", "bound", said)
    own = {"tests": len(results), "hypotheses": said["hypotheses"], "undefined": len(said["undefined"])}
    if asked.bounds:
        own |= {name: said[name] for name in ("shown", "not_shown", "exceeded")}
    verdict = texts.verdict("permutation", said, _rejects(findings, asked) if said["known"] else None, own)
    return texts.result(
        "permutation",
        said,
        verdict,
        asked.given,
        subject=asked.given.predictions,
        sections=_sections(ordered, said, asked),
        facts=facts,
        tables={
            "tests": frame_of(ordered),
            **({"groups": groups_frame(groups)} if groups else {}),
            **({"strata": within.frame_of(strata)} if strata else {}),
            **({"curve": curve_frame(groups)} if asked.calibrated else {}),
        },
    )


def _few(finding: Finding) -> bool:
    """Return whether a test that is valid only in large groups has too few units."""
    return not (finding.test.exact or finding.test.undefined) and finding.fewest < LEAST_UNITS


def _rejects(findings: Sequence[Finding], asked: Asked) -> bool:
    """Return whether any test with enough units rejects equality, or refutes the bounds if there are any."""
    decided = [one.bounds == "exceeded" if asked.bounds else one.rejected for one in findings]
    return any(rejects and not _few(one) for rejects, one in zip(decided, findings, strict=True))


def _said(ordered: Sequence[Entry], findings: Sequence[Finding], asked: Asked) -> dict[str, Any]:
    """Return what the texts name besides the options and the facts of the JSON.

    ``ordered`` are the results by their evidence, ``known`` those with a test, ``estimated`` those with a difference
    and ``different`` those that reject. ``first`` are the results that the sentence names.
    """
    known = [one for one in ordered if one["undefined"] is None]
    different = [{**one, "label": named(one)} for one in known if one["rejected"]]
    outcomes = [one["bounds"]["outcome"] if one["bounds"] else "" for one in known]
    refuted_first = [one for name in CONCLUSIONS for one, own in zip(known, outcomes, strict=True) if own == name]
    correlated = [one["metric"] == CORRELATION for one in ordered]
    pairs = {_place(one) for one in ordered}
    reasons = (f"{one['metric']} of {one['grouping']} ({one['undefined']})" for one in ordered if one["undefined"])
    return {
        **{"known": known, "different": different, "first": refuted_first or different or known},
        "conclusions": asked.bounds.conclusions if asked.bounds else {},
        "rates": sorted({one.test.metric for one in findings if one.test.metric in PERCENTAGES}),
        "estimated": [one for one in ordered if one["difference"] is not None],
        "undefined": [one.test.undefined for one in findings if one.test.undefined],
        "reasons": list(dict.fromkeys(reasons)),
        **{name.replace(" ", "_"): outcomes.count(name) for name in CONCLUSIONS},
        **{"correlated": any(correlated), "all_correlated": all(correlated)},
        "titles": list(dict.fromkeys(one["title"] for one in ordered)),
        "groupings": list(dict.fromkeys(one["grouping"] for one in ordered)),
        "pair": ordered[0]["groups"] if len(pairs) == 1 and not correlated[0] else None,
        "hypotheses": hypotheses(findings),
        "families": len({(one["grouping"], one["metric"]) for one in known}),
        "drawn": any(not one.test.exact for one in findings if not one.test.undefined),
        **{"small": sum(map(_few, findings)), "least": LEAST_UNITS},
        "varied": any(one.varied for one in findings),
        "calibrated": asked.calibrated,
        "exposed": EXPOSURE in asked.metrics,
        "uneven": any(one["within"] and _uneven(one["within"], asked) for one in known),
        "wide": 0 if asked.bounds else sum(one.wide(asked.given.width) for one in findings),
        "width": asked.given.width or WIDTH,
        "alone_in": list(dict.fromkeys(name for one in ordered if one["within"] for name in one["within"]["alone"])),
        "at_least": asked.bounds.low if asked.given.ratio and asked.bounds else None,
    }


def _uneven(within: Mapping[str, Any], asked: Asked) -> bool:
    """Return whether some strata differ, or differ in their differences."""
    same = within["homogeneity"]
    return bool(within["different"]) or (same is not None and same["adjusted_p_value"] <= asked.given.alpha)


def result(finding: Finding) -> dict[str, Any]:
    """One test; missing values are null."""
    test = finding.test
    return plain(
        {
            "grouping": finding.grouping,
            "metric": test.metric,
            "class": finding.of_class or None,
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
            "within": None,
            "matched": test.matched and {"pairs": test.matched.pairs, "higher": test.matched.higher},
        }
    )


def groups_frame(entries: Sequence[Entry]) -> pd.DataFrame:
    every = ("grouping", "metric", "class", "name", "rows", "n", "events", "few", "estimate", "ratio", "reference")
    keys = [key for key in every if key in entries[0] and (key != "class" or any(one[key] for one in entries))]
    ends = [dict(zip(("ci_low", "ci_high"), entry["interval"], strict=True)) for entry in entries]
    return pd.DataFrame([{**{key: one[key] for key in keys}, **two} for one, two in zip(entries, ends, strict=True)])


def curve_frame(groups: Sequence[Entry]) -> pd.DataFrame:
    """Return the calibration curves: a row for each group and bin."""
    return pd.DataFrame(
        {
            **{key: entry[key] for key in ("grouping", "name")},
            **{key: one[key] for key in ("bin", "score", "n", "events", "estimate")},
            **dict(zip(("ci_low", "ci_high"), one["interval"], strict=True)),
        }
        for entry in groups
        for one in entry["curve"]
    )


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


def frame_of(results: Sequence[Entry]) -> pd.DataFrame:
    keys = ("adjusted_p_value", "rejected", "higher", "method", "exact", "draws", "undefined")
    classes = any(entry["class"] for entry in results)
    return pd.DataFrame(
        [
            {
                **{key: entry[key] for key in ("grouping", "metric", *(["class"] if classes else ()))},
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
    """Sort the tests: rejections, the interval farthest from 0 first; others, the smallest p-value first; undefined.

    The end nearest 0 is the difference that is shown, so a small group with an extreme rate does not lead by chance.
    """

    def place(entry: Entry) -> tuple[Any, ...]:
        p = (math.inf if entry[key] is None else entry[key] for key in ("adjusted_p_value", "p_value"))
        first = (-least_size(*entry["interval"]),) if entry["rejected"] else p
        return entry["undefined"] is not None, not entry["rejected"], *first, -abs(entry["difference"] or 0.0)

    return sorted(results, key=place)


def _sections(ordered: Sequence[Entry], said: Mapping[str, Any], asked: Asked) -> Iterator[Section]:
    text = partial(texts.named, "permutation", facts=said)
    drawing = "fairness_audits.audits.permutation.figures:figure"
    figure = Figure("differences", text("figure"), text("caption"), drawing, (ordered,))
    undefined = (Text(text("undefined")),) if said["reasons"] else ()
    if asked.bounds and said["known"]:
        yield Section(text("bounds"), (_bounds(ordered, asked),))
    tests = _tests(ordered, said["pair"] is None, asked)
    yield Section(text("tests"), (tests, *undefined, *((figure,) if said["known"] else ())))
    if asked.calibrated and said["groups"]:
        drawing = "fairness_audits.audits.permutation.figures:curves"
        yield Section(
            text("curves"), (Figure("calibration", text("curve"), text("curves_of"), drawing, (said["groups"],)),)
        )
    if said["strata"]:
        notes = (Text(entry["within"]["spread"]) for entry in ordered[:SHOWN_TESTS] if entry["undefined"] is None)
        yield Section(text("strata"), (*notes, within.table_of(said["strata"], asked)))
    if said["groups"]:
        yield Section(text("groups"), (_groups(said["groups"], asked),))


def _place(entry: Entry) -> tuple[str, ...]:
    if entry["metric"] == CORRELATION:
        return (entry["grouping"],)
    return entry["grouping"], *(group["name"] for group in entry["groups"])


def _metric(entry: Entry) -> str:
    return f"{entry['metric']} of {entry['class']}" if entry["class"] else str(entry["metric"])


def named(entry: Entry) -> str:
    """Return ``auc, sex: f - m`` or ``correlation, age``."""
    grouping, *groups = _place(entry)
    metric = _metric(entry)
    return f"{metric}, {grouping}" + (f": {' - '.join(groups)}" if groups else "")


def _tests(entries: Sequence[Entry], several: bool, asked: Asked) -> Table:
    """Return a line for each test. With ``several`` pairs of groups, the line names its pair."""
    one = not several and entries[0]["metric"] != CORRELATION
    heads = [group["name"] for group in entries[0]["groups"]] if one else ["first", "second"]

    def name(entry: Entry) -> str:
        return named(entry) if several or entry["metric"] == CORRELATION else _metric(entry)

    def estimate(place: int) -> Callable[[Entry], str]:
        return lambda entry: "-" if entry["metric"] == CORRELATION else decimal(entry["groups"][place]["estimate"])

    columns = (
        Column("", cell=name),
        *(Column(head, cell=estimate(place)) for place, head in enumerate(heads)),
        Column("difference", cell=under("difference", signed)),
        Column(f"{level(asked.given.alpha)} interval", cell=under("interval", partial(span, without_ends=UNBOUNDED))),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    known = (one for one in entries if one["undefined"] is None)
    rows = rows_of(columns, known, lambda entry: f"{'' if entry['rejected'] else 'no '}difference shown")
    dashes = ["-"] * (len(columns) - 1)
    undefined = (Row((name(one), *dashes), "undefined") for one in entries if one["undefined"] is not None)
    return Table(columns, (*rows, *undefined), SHOWN_TESTS, "tests.csv")


def _compared_by(asked: Asked) -> str:
    """Return the name of the comparison with the bounds."""
    if asked.bounds is None or asked.bounds.comparison == "difference":
        return "difference"
    return "lowest / highest" if asked.bounds.lowest_first else "ratio"


def _bounds(entries: Sequence[Entry], asked: Asked) -> Table:
    """Return a line for each comparison with its bounds, refuted bounds first."""
    ratio = asked.bounds is not None and asked.bounds.comparison == "ratio"
    text = factor if ratio else decimal

    def of_bounds(cell: Callable[[Entry], str]) -> Callable[[Entry], str]:
        return lambda entry: cell(entry["bounds"])

    columns = (
        Column("", cell=named),
        Column(_compared_by(asked), cell=of_bounds(under("estimate", factor if ratio else signed))),
        Column(
            f"{level(2 * asked.given.alpha)} interval",
            cell=of_bounds(under("interval", partial(span, text=text, without_ends=UNBOUNDED))),
        ),
        Column("p (null: beyond)", cell=of_bounds(under("p_within", p_text))),
        Column("adjusted p (null: within)", cell=of_bounds(under("adjusted_p_beyond", p_text))),
    )
    bounded = (one for one in entries if one["bounds"])
    ordered = sorted(bounded, key=lambda one: list(CONCLUSIONS).index(one["bounds"]["outcome"]))
    words = asked.bounds.conclusions if asked.bounds else CONCLUSIONS
    rows = rows_of(columns, ordered, lambda one: words[one["bounds"]["outcome"]])
    return Table(columns, rows, SHOWN_TESTS, "tests.csv")


def _groups(entries: Sequence[Entry], asked: Asked) -> Table:
    """Return a line for each group and metric, with the metric's rows and events."""
    columns = (
        Column("", cell=under("name")),
        Column("estimate", cell=under("estimate", decimal)),
        Column(f"{level(asked.given.alpha)} interval", cell=under("interval", partial(span, without_ends="-"))),
        *([Column("ratio", cell=under("ratio", factor))] if asked.given.ratio else ()),
        Column("n", cell=under("n", "{:,}".format)),
        Column("events", cell=under("events", "{:,}".format)),
    )

    def heading(entry: Entry) -> str:
        compared = f"; ratio to {entry['reference']}" if asked.given.ratio else ""
        few = f"fewer than {LEAST_UNITS} rows{' of one label' if entry['metric'] == 'auc' else ''}"
        order = few if entry["few"] else f"{FIRST[better(entry['metric'])]} first"
        return f"{entry['title']}, {entry['grouping']}{compared}: {order}"

    rows = rows_of(columns, entries, heading)
    return Table(columns, rows, SHOWN_GROUPS, "groups.csv")
