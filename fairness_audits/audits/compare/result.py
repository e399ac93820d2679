"""Run a comparison of two versions and assemble its result."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from scipy.special import ndtri

from fairness_audits.audits.compare.brief import brief
from fairness_audits.audits.compare.no_worse import Combined, of_gap, of_group, of_means, of_samples
from fairness_audits.audits.compare.settings import DRAWS, Settings
from fairness_audits.audits.inference import Ends, adjusted_p, least_draws
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.metrics import WITHOUT_LABEL, Auc, Mean, Rate, better, metric_named
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.paired import change, values
from fairness_audits.audits.permutation.paired_samples import (
    SampleChange,
    auc_change,
    normal_p,
    precision_change,
)
from fairness_audits.audits.permutation.reading import grouped_by
from fairness_audits.audits.permutation.result import first
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_columns
from fairness_audits.progress import track
from fairness_audits.results import sentences as words
from fairness_audits.results.formats import decimal, level, p_text, plain, plural, sentence, span
from fairness_audits.results.result import Column, Result, Section, Table, Verdict, rows_of, under
from fairness_audits.seeds import generators
from fairness_audits.tables import frame as tables
from fairness_audits.tables import opened
from fairness_audits.tables.levels import prediction_classes, rest_of
from fairness_audits.tables.rows import Values, grouped, labelled, outcomes
from fairness_audits.values import Array

CAVEATS = """
same_rows: The tests compare both versions on the same rows. They are valid for rows that were not used to build either
  version.
independent_rows: The tests treat rows as independent.
no_direction: Neither a high nor a low {metric} is better, so only its gaps are compared with {margin:g}.
gaps: A gap is the metric of the first group minus the metric of the second. Its change is tested by permuting the rows'
  changes between groups, or by the normal approximation for the AUC, precision and negative predictive value.
"""
LIMITS = """
unshown <= 0 unless rejected: The claim that {claim} is not shown in {value} of {bounded} comparisons.
varied >= 1: Both versions give the same answers in all rows that the metrics use, so no metric changes.
undefined <= 0 unless rejected: Changes that could not be tested: {value}. Possible reasons: nothing changes, a group
  has too few rows, or the metric of a version is undefined, infinite or without an estimated variance.
small <= 0 unless rejected: For {value} of {tests} changes, the test is not exact and a group has fewer than {least}
  rows (AUC: of the rarer label; precision: with a positive decision, npv: with a negative decision, in total or of the
  rarer label). These tests are valid only for large groups.
"""
SHOWN, LEAST = 40, 20
SAID = {"shown": "shown", "not shown": "not shown", "exceeded": "refuted"}
"""The conclusions about the claim that a group or a gap is not worse, in words."""
SELECTED = {"precision": 1, "npv": 0}
"""Rates of the rows with this decision: each version has its own rows."""
NORMAL = ("auc", *SELECTED)
"""Metrics with a normal approximation. The tests of others are exact or draw permutations."""
Test: TypeAlias = Callable[[Array], dict[str, Any]]
"""The entry of the rows of a mask (n,): of a group, or of the gap between these rows and all others."""


class Tests(NamedTuple):
    """The tests of a metric's changes, and the estimates that tell by how much it gets worse."""

    of_group: Test
    of_gap: Test
    combined: Combined


@dataclass(frozen=True)
class Job:
    """One entry to compute: ``common`` and ``own`` values of the entry, and the rows of its group in a mask (n,)."""

    common: Mapping[str, Any]
    gap: bool
    own: Array
    tests: Tests

    def entry(self, settings: Settings, corrected: float) -> dict[str, Any]:
        """Return the change, and by how much the group or gap gets worse."""
        found = (self.tests.of_gap if self.gap else self.tests.of_group)(self.own)
        worse = None
        if settings.no_worse_than is not None:
            of = (self.tests.combined, self.own, settings.alpha, corrected)
            worse = of_gap(*of) if self.gap else of_group(self.common["metric"], *of)
        return plain({**self.common, **found, "worse": _worse(worse, found["n"], settings.no_worse_than)})


def from_files(settings: Settings) -> Result:
    """Return the comparison of the rows in files. Raises ValueError for every error that the user can correct."""
    with opened(settings.predictions, "duckdb", **settings.some("missing", "separator")) as table:
        return audited(settings, table)


def audited(settings: Settings, table: tables.Table) -> Result:
    """Compare two versions on the rows of a table."""
    entries = _entries(settings, table)
    if (least := _least_draws(entries, settings)) > settings.draws:
        if settings.draws != DRAWS:
            problem = f"--draws={settings.draws} is too small to reject in {plural(len(entries), 'test')}"
            raise InvalidInput(problem, option="draws", remedy=f"Use at least --draws={least}, or drop it")
        settings = replace(settings, draws=least)
        entries = _entries(settings, table)
    adjusted = adjusted_p([entry["p_value"] for entry in entries], range(len(entries)), settings.correct)
    results = [
        {**one, "adjusted_p_value": p, "rejected": p is not None and p <= settings.alpha and _counts(one)}
        for one, p in zip(entries, adjusted, strict=True)
    ]
    facts = {"rows": table.size(), "versions_compared": list(settings.versions), "results": results}
    found = _verdict(results, settings)
    neutral = {one["metric"]: one["title"] for one in results if better(one["metric"]) is None}
    undirected = [{"metric": title, "margin": settings.no_worse_than} for title in neutral.values()]
    return Result(
        audit="compare",
        title="Comparison of two versions",
        subject=settings.predictions,
        verdict=found,
        brief=brief(facts, settings, found),
        caveats=(
            *words.caveats(
                CAVEATS,
                {
                    **{"same_rows": True, "independent_rows": True, "gaps": True},
                    "no_direction": undirected if settings.no_worse_than is not None else [],
                },
            ),
            *words.caveats(words.READING, table.notes),
        ),
        sections=tuple(_sections(results, settings)),
        facts=facts,
        tables={"changes": _frame(gaps_first(results))},
        settings=settings,
    )


def _counts(entry: Mapping[str, Any]) -> bool:
    """Return whether a rejection counts: the test is exact, or both groups are large enough."""
    return bool(entry["exact"] or entry["n"] >= LEAST)


def gaps_first(results: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the entries in their order, with those of gaps first in each metric and grouping."""
    results = list(results)
    place = {
        key: number for number, key in enumerate(dict.fromkeys((one["grouping"], one["metric"]) for one in results))
    }
    return sorted(results, key=lambda one: (place[one["grouping"], one["metric"]], not one["gap"]))


def _worse(found: Ends | None, n: int, margin: float | None) -> dict[str, Any] | None:
    """Return by how much a group or gap gets worse, and whether it is shown that this is at most the margin."""
    if found is None or margin is None:
        return None
    counts = n >= LEAST
    outcome = (
        "shown" if counts and found.high < margin else "exceeded" if counts and found.low > margin else "not shown"
    )
    return {"by": found.estimate, "at_least": found.low, "at_most": found.high, "outcome": outcome}


def _least_draws(entries: Sequence[Mapping[str, Any]], settings: Settings) -> int:
    """Return the smallest number of permutations with which a single test can be rejected after the correction."""
    if all(one["exact"] or one["metric"] in NORMAL for one in entries):
        return 0
    number = sum(one["p_value"] is not None for one in entries)
    return least_draws(settings.alpha, 2, number, settings.correct)


def _metrics(settings: Settings) -> list[Rate | Mean | Auc]:
    """Return the metrics. Raises InvalidInput for a metric without the columns that it needs."""
    found: list[Rate | Mean | Auc] = []
    for name in dict.fromkeys(settings.metric):
        metric = metric_named(name)
        if settings.label is None and metric.name not in WITHOUT_LABEL:
            raise InvalidInput(f"Metric {name} needs the true class", option="label", remedy="Pass --label")
        found.append(metric)
    return found


def _entries(settings: Settings, table: tables.Table) -> list[dict[str, Any]]:
    """Return the change of each group's metric, then the changes of the gaps, for each grouping and metric."""
    jobs = list(_jobs(settings, table))
    bounded = sum(job.gap or better(job.common["metric"]) is not None for job in jobs)
    corrected = settings.alpha / (1 if settings.correct == "none" else bounded)
    return [job.entry(settings, corrected) for job in track("changes", jobs)]


def _jobs(settings: Settings, table: tables.Table) -> Iterator[Job]:
    metrics, groupings = _metrics(settings), [grouped_by(text, table) for text in dict.fromkeys(settings.group)]
    columns = [*([settings.label] if settings.label else []), *settings.versions, *(one.column for one in groupings)]
    check_columns(table, columns, "label, versions or group", table.name)
    frame = pd.DataFrame(table.arrays(list(dict.fromkeys(columns))))
    versions = [_versions(settings, table, frame, metric) for metric in metrics]
    for grouping in groupings:
        every, names = grouped(table, grouping.column, frame[grouping.column], grouping.level)
        for metric, (label, *both) in zip(metrics, versions, strict=True):
            if isinstance(metric, Auc) or metric.name in SELECTED:
                codes, pair = every, np.stack(both)
                tests = _samples(settings, metric, label, pair)
            else:
                (old, among), (new, _) = (values(metric, label, one) for one in both)
                codes, pair = every[among], np.stack([old, new])[:, among]
                (rng,) = generators("audit", "compare", str(settings.seed), grouping.name, metric.name, repetitions=1)
                tests = _means(settings, isinstance(metric, Rate), pair, rng)
            common = {
                **{"grouping": grouping.name, "metric": metric.name, "title": metric.title},
                "varied": not (np.isfinite(pair).all() and (pair[0] == pair[1]).all()),
            }
            for code, name in enumerate(names):
                yield Job({**common, "what": name, "gap": False}, False, codes == code, tests)
            for what, own in _gaps(codes, names):
                yield Job({**common, "what": what, "gap": True}, True, own, tests)


def _versions(
    settings: Settings, table: tables.Table, frame: pd.DataFrame, metric: Rate | Mean | Auc
) -> tuple[Array, Array, Array]:
    """Return the label, and the decisions or scores of both versions."""
    decided = isinstance(metric, Rate) or (isinstance(metric, Mean) and metric.decisions)
    probability = isinstance(metric, Mean) and metric.probability
    roles: dict[str, Any] = {
        **settings.some("label", "positive"),
        "threshold": settings.threshold if decided else None,
        "bounds": (0.0, 1.0) if probability else (-np.inf, np.inf),
        "prediction": None,
    }
    outputs: list[Any]
    if decided and settings.threshold is None:
        name = settings.label
        known = None if name is None else labelled(table, name, frame[name], settings.positive, several=True)
        label, classes = known or (None, {})
        outputs = _decisions(table, frame, settings.versions, classes)
    else:
        (label, *one), (_, *two) = (outcomes(table, frame, score=version, **roles) for version in settings.versions)
        outputs = [one[decided], two[decided]]
    return np.zeros(len(frame), dtype=np.int64) if label is None else label, outputs[0], outputs[1]


def _decisions(
    table: tables.Table, frame: pd.DataFrame, versions: tuple[str, str], classes: Mapping[Any, int]
) -> list[Array]:
    """Return the decisions of both versions.

    With labels 1 and 2, a version that is 1 in all rows may hold decisions or labels. So both versions are read
    together if their values allow it, and otherwise one by one.
    """
    each = [Values.of(table, version, "prediction", frame[version]) for version in versions]
    together = {**each[0].counts, **each[1].counts}
    try:
        codes = [prediction_classes(table, versions[0], together, classes)] * 2
    except InvalidInput:
        named = zip(versions, each, strict=True)
        codes = [prediction_classes(table, version, one.counts, classes) for version, one in named]
    return [one.coded(code) for one, code in zip(each, codes, strict=True)]


def _entry(
    n: int,
    first: float | None = None,
    second: float | None = None,
    change: float | None = None,
    interval: Sequence[float | None] = (None, None),
    p_value: float | None = None,
    exact: bool = False,
) -> dict[str, Any]:
    """Return the numbers of a change. Without a p-value it has no interval, and nothing is drawn."""
    tested = p_value is not None and not np.isnan(p_value)
    return {
        **{"n": n, "first": first, "second": second, "change": change},
        **{"interval": interval if tested else (None, None), "p_value": p_value, "exact": exact or not tested},
    }


def _means(settings: Settings, rate: bool, pair: Array, rng: np.random.Generator) -> Tests:
    """Return the tests of a mean over rows with the values ``pair`` (2, n)."""
    finite = np.isfinite(pair).all(axis=0)
    delta = np.where(finite, pair[1] - np.where(finite, pair[0], 0.0), np.nan)

    def of_group(own: Array) -> dict[str, Any]:
        n = int(own.sum())
        if n == 0 or not finite[own].all():
            # A loss can be infinite.
            return _entry(n)
        found = change(delta[own], rate=rate, alpha=settings.alpha, draws=settings.draws, rng=rng)
        ends = found.low, found.high
        return _entry(n, pair[0, own].mean(), pair[1, own].mean(), found.estimate, ends, found.p_value, found.exact)

    def of_gap(own: Array) -> dict[str, Any]:
        least = int(min(own.sum(), (~own).sum()))
        if least < 2 or not delta.any() or not finite.all():
            return _entry(least)
        data = Predictions(np.zeros(len(delta), dtype=np.int64), delta, (~own).astype(np.int64), ("own", "rest"))
        options: dict[str, Any] = {"alpha": settings.alpha, "draws": settings.draws, "alternative": "equal-tailed"}
        test = permutation_test(data, "mean_score", rng=rng, **options)
        if test.p_value is None:
            return _entry(least)
        old, new = pair[:, own].mean(axis=1) - pair[:, ~own].mean(axis=1)
        return _entry(least, old, new, test.difference, (test.ci_low, test.ci_high), test.p_value)

    return Tests(of_group, of_gap, of_means(pair, rate))


def _samples(settings: Settings, metric: Rate | Auc | Mean, label: Array, pair: Array) -> Tests:
    """Return the tests of a metric that is no mean; ``pair`` (2, n) holds both versions."""

    def found(own: Array, opposite: bool = False) -> SampleChange:
        y, one, two = (values[own] for values in (label, *pair))
        if metric.name not in SELECTED:
            return auc_change(y, one, two, opposite=opposite)
        # A negative predictive value is the precision of the opposite label and decisions.
        y, one, two = ((values == SELECTED[metric.name]).astype(np.int64) for values in (y, one, two))
        return precision_change(y, one, two, opposite=opposite)

    def of_group(own: Array) -> dict[str, Any]:
        one = found(own)
        ends = one.interval(settings.alpha)
        return _entry(one.n, one.first, one.second, one.second - one.first, ends, one.p_value, one.exact)

    def of_gap(own: Array) -> dict[str, Any]:
        here, rest = found(own), found(~own)
        first, second = here.first - rest.first, here.second - rest.second
        variance = here.doubt(settings.alpha) + rest.doubt(settings.alpha)
        reach = float(ndtri(1 - settings.alpha / 2) * np.sqrt(variance))
        ends = second - first - reach, second - first + reach
        return _entry(min(here.n, rest.n), first, second, second - first, ends, normal_p(second - first, variance))

    return Tests(of_group, of_gap, of_samples(found))


def _gaps(codes: Array, names: tuple[str, ...]) -> Iterator[tuple[str, Array]]:
    """Yield the name of each gap, and the mask (n,) of its first group; its second group is all others."""
    for code in range(1 if len(names) == 2 else len(names)):
        yield f"gap {names[code]} - {names[1] if len(names) == 2 else rest_of(names[code], names)}", codes == code


def _verdict(results: Sequence[Mapping[str, Any]], settings: Settings) -> Verdict:
    """Say which gaps and metrics change, and with a margin whether any gets worse by more."""
    known = [one for one in results if one["p_value"] is not None]
    found = [one for one in known if one["rejected"]]
    facts: dict[str, Any] = {"tests": len(known), "changed": len(found)}
    quantities: dict[str, Any] = {
        "varied": int(any(one["varied"] for one in results)),
        "undefined": len(results) - len(known),
        "small": sum(not _counts(one) for one in known),
        **{"tests": len(known), "least": LEAST, "unshown": None, "claim": "", "bounded": 0},
    }
    changes, margin = _changes(known, found, settings), settings.no_worse_than
    if margin is None:
        headlines = ("CHANGED", "NO CHANGE SHOWN")
        rejected = bool(found) if known else None
        return words.concluded(rejected, headlines, changes, LIMITS, quantities, "rejected", facts)
    bounded = [one for one in gaps_first(results) if one["worse"] is not None]
    counts = {name: sum(one["worse"]["outcome"] == name for one in bounded) for name in SAID}
    order = list(SAID)
    ordered = sorted(bounded, key=lambda one: (-order.index(one["worse"]["outcome"]), not one["gap"]))
    text = f"{sentence(claim(margin))}: {', '.join(f'{said} in {counts[name]}' for name, said in SAID.items())} of "
    text += f"{plural(len(bounded), 'comparison')} at level {settings.alpha:g}: {first(list(map(_bound, ordered)))}. "
    text += changes
    # The claim can hold for versions that give the same answers, and has its own limit for few rows.
    quantities |= {"varied": None, "undefined": None, "small": None}
    quantities |= {"unshown": counts["not shown"], "claim": claim(margin), "bounded": len(bounded)}
    facts |= {name.replace(" ", "_"): number for name, number in counts.items()}
    return words.concluded(bool(counts["exceeded"]), ("WORSE", "NO WORSE"), text, LIMITS, quantities, "rejected", facts)


def claim(margin: float) -> str:
    """Return the claim that a bound on what gets worse states."""
    return f"no group gets worse by more than {margin:g} and no gap grows by more than {margin:g}"


def _bound(entry: Mapping[str, Any]) -> str:
    """Return ``tpr, sex f: worse by 0.010 (worse by at most 0.031), not shown``."""
    worse, (up, down) = entry["worse"], ("larger", "smaller") if entry["gap"] else ("worse", "better")
    if worse["by"] is None:
        return f"{_name(entry)}: undefined"
    end, key = ("at least", "at_least") if worse["outcome"] == "exceeded" else ("at most", "at_most")
    by = f"{up if worse['by'] > 0 else down} by {decimal(abs(worse['by']))}" if worse["by"] else "unchanged"
    return f"{_name(entry)}: {by} ({up} by {end} {decimal(worse[key])}), {SAID[worse['outcome']]}"


def _name(entry: Mapping[str, Any]) -> str:
    return f"{entry['title']}, {entry['grouping']} {entry['what']}"


def _changes(known: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]], settings: Settings) -> str:
    """Say which changes are significant: all gaps, then the clearest of the groups."""
    ordered = sorted(found, key=lambda one: (not one["gap"], one["adjusted_p_value"]))
    lines = [f"{_name(one)}: {decimal(one['first'])} to {decimal(one['second'])}{_turn(one)}" for one in ordered]
    verb = "is" if len(found) == 1 else "are"
    old, new = settings.versions
    text = f"{len(found)} of {plural(len(known), 'change')} from {old} to {new} {verb} significant at level "
    text += f"{settings.alpha:g}"
    return f"{text}: {first(lines)}." if lines else f"{text}."


def _turn(entry: Mapping[str, Any]) -> str:
    """Say whether a gap shrinks or grows."""
    if not entry["gap"]:
        return ""
    return f" (the gap {'shrinks' if abs(entry['second']) < abs(entry['first']) else 'grows'})"


def _sections(results: Sequence[Mapping[str, Any]], settings: Settings) -> Iterator[Section]:
    """Return the table of what gets worse, if it is asked for, and that of the changes."""
    ordered = gaps_first(results)
    if settings.no_worse_than is not None:
        bounded = [one for one in ordered if one["worse"] is not None]
        yield Section(f"Is it shown that {claim(settings.no_worse_than)}?", (_bounds(bounded, settings),))
    yield Section("Changes from the first version to the second", (_table(ordered, settings),))


def _bounds(results: Sequence[Mapping[str, Any]], settings: Settings) -> Table:
    """Return a line for each group and gap: by how much it gets worse, refuted first."""

    def of_worse(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda entry: decimal(entry["worse"][key])

    columns = (
        Column("", cell=lambda entry: f"{entry['metric']}, {entry['grouping']} {entry['what']}"),
        Column("worse by", cell=of_worse("by")),
        Column(f"at most ({level(settings.alpha)})", cell=of_worse("at_most")),
        Column("at least (adjusted)", cell=of_worse("at_least")),
        Column("n", cell=under("n", "{:,}".format)),
    )
    rows = [
        row
        for outcome, said in reversed(SAID.items())
        for row in rows_of(columns, [one for one in results if one["worse"]["outcome"] == outcome], said)
    ]
    return Table(columns, tuple(rows), SHOWN, "changes.csv")


def _table(results: Sequence[Mapping[str, Any]], settings: Settings) -> Table:
    """Return a line for each group and gap."""
    columns = (
        Column("", cell=under("what")),
        Column(settings.versions[0], cell=under("first", decimal)),
        Column(settings.versions[1], cell=under("second", decimal)),
        Column("change", cell=under("change", lambda value: f"{'+' * (value > 0)}{decimal(value)}")),
        Column(f"{level(settings.alpha)} interval", cell=under("interval", lambda ends: span(ends, without_ends="-"))),
        Column("n", cell=under("n", "{:,}".format)),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    titles = dict.fromkeys(f"{one['title']}, {one['grouping']}" for one in results)
    rows = [
        row
        for title in titles
        for row in rows_of(columns, [one for one in results if f"{one['title']}, {one['grouping']}" == title], title)
    ]
    return Table(columns, tuple(rows), SHOWN, "changes.csv")


def _frame(results: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    keys = ("grouping", "metric", "what", "n", "first", "second", "change", "p_value", "adjusted_p_value", "rejected")
    return pd.DataFrame(
        [
            {key: one[key] for key in keys}
            | dict(zip(("ci_low", "ci_high"), one["interval"], strict=True))
            | {f"worse_{key}": value for key, value in (one["worse"] or {}).items()}
            for one in results
        ]
    )
