"""Run a comparison of two versions and assemble its result."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtri

from fairness_audits import texts
from fairness_audits.arguments import Given
from fairness_audits.audits.compare.no_worse import Combined, of_gap, of_group, of_means, of_samples
from fairness_audits.audits.inference import Ends, adjusted_p, least_draws
from fairness_audits.audits.permutation.compute import References
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.equivalence import Conclusion, check_margin
from fairness_audits.audits.permutation.metrics import RATES, WITHOUT_LABEL, Auc, Mean, Rate, better, metric_named
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.paired import change, values
from fairness_audits.audits.permutation.paired_samples import (
    SampleChange,
    auc_change,
    normal_p,
    precision_change,
)
from fairness_audits.audits.permutation.reading import grouped_by
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import check_columns
from fairness_audits.progress import track
from fairness_audits.results.formats import decimal, level, p_text, plain, plural, span
from fairness_audits.results.result import Column, Result, Section, Table, rows_of, under
from fairness_audits.seeds import generators
from fairness_audits.tables import frame as tables
from fairness_audits.tables import opened
from fairness_audits.tables.levels import prediction_classes, rest_of
from fairness_audits.tables.rows import Values, grouped, labelled, outcomes
from fairness_audits.values import Array

SHOWN, LEAST, NAMED = 40, 20, 3
OVERALL = "all rows"
SELECTED = {"precision": 1, "npv": 0}
"""Rates of the rows with this decision: each version has its own rows."""
NORMAL = ("auc", *SELECTED)
"""Metrics with a normal approximation. The tests of others are exact or draw permutations."""
CONCLUSIONS: Mapping[Conclusion, str] = {
    "exceeded": "worse by more than the margin",
    "not shown": "cannot tell",
    "shown": "not worse by more than the margin",
}
"""The conclusions about a margin in words, in the order of a table."""


class Tests(NamedTuple):
    """The tests of a metric's changes, and the estimates that tell by how much it gets worse."""

    of_group: Callable[[Array], dict[str, Any]]
    of_gap: Callable[[Array, Array], dict[str, Any]]
    combined: Combined


@dataclass(frozen=True)
class Job:
    """One entry to compute: its ``common`` values, and masks (n,) of its rows: a group's, or the two sides of a gap."""

    common: Mapping[str, Any]
    rows: tuple[Array, ...]
    tests: Tests

    @property
    def gap(self) -> bool:
        """Return whether it is a gap."""
        return len(self.rows) == 2

    def entry(self, given: Given, corrected: float) -> dict[str, Any]:
        """Return the change, and by how much the group or gap gets worse."""
        own, *others = self.rows
        found = self.tests.of_gap(own, *others) if others else self.tests.of_group(own)
        worse = None
        if given.no_worse_than is not None:
            levels = {"alpha": given.alpha, "corrected": corrected}
            if others:
                worse = of_gap(self.tests.combined, own, others[0], **levels)
            else:
                worse = of_group(self.common["metric"], self.tests.combined, own, **levels)
        return plain({**self.common, "gap": self.gap, **found, "worse": _worse(worse, found["n"], given.no_worse_than)})


def from_files(given: Given) -> Result:
    """Return the comparison of the rows in files. Raises InvalidInput for everything that the user can correct."""
    with opened(given.predictions, "duckdb", **given.some("missing", "separator")) as table:
        return audited(given, table)


def audited(given: Given, table: tables.Table) -> Result:
    """Compare two versions on the rows of a table."""
    entries = _entries(given, table)
    if (least := _least_draws(entries, given)) > given.draws:
        if not given.is_default("draws"):
            problem = f"draws={given.draws} is too small to reject in {plural(len(entries), 'test')}"
            raise InvalidInput(problem, option="draws", remedy=f"Use at least {least} draws, or drop draws")
        given = given.but(draws=least)
        entries = _entries(given, table)
    adjusted = adjusted_p([entry["p_value"] for entry in entries], range(len(entries)), given.correct)
    results = [
        {**one, "adjusted_p_value": p, "rejected": p is not None and p <= given.alpha and _counts(one)}
        for one, p in zip(entries, adjusted, strict=True)
    ]
    facts = {"rows": table.size(), "versions_compared": list(given.versions), "results": results}
    said = _said(facts, given, table.notes)
    outcomes = {name.replace(" ", "_"): said[name.replace(" ", "_")] for name in CONCLUSIONS}
    own = {"tests": said["tested"], "changed": len(said["changed"])}
    if given.no_worse_than is not None:
        own |= outcomes
        rejected: bool | None = bool(outcomes["exceeded"])
    else:
        rejected = bool(said["changed"]) if said["tested"] else None
    verdict = texts.verdict("compare", said, rejected, own)
    return texts.result(
        "compare",
        said,
        verdict,
        given,
        subject=given.predictions,
        sections=_sections(results, given, said),
        facts=facts,
        tables={"changes": _frame(gaps_first(results))},
    )


def _said(facts: Mapping[str, Any], given: Given, notes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of the sentences."""
    metrics = list(dict.fromkeys((one["metric"], one["title"]) for one in facts["results"]))
    found: dict[str, Any] = {
        **{**given.values, **facts, "words": CONCLUSIONS, "notes": notes, "least": LEAST, "NAMED": NAMED},
        "metrics": [title for _, title in metrics],
        "rates": [name for name, _ in metrics if name in RATES],
        "undirected": [{"metric": title} for name, title in metrics if better(name) is None],
    }
    if given.no_worse_than is not None:
        found["margin"] = texts.named("compare", "margin", found)
    results = [_quoted(one, found) for one in facts["results"]]
    known = [one for one in results if one["p_value"] is not None]
    known.sort(key=lambda one: (not one["gap"], one["p_value"]))
    bounded = [one for one in gaps_first(results) if one["worse"] is not None]
    outcomes = {outcome: [one for one in bounded if one["worse"]["outcome"] == outcome] for outcome in CONCLUSIONS}
    found |= {
        **{outcome.replace(" ", "_"): len(entries) for outcome, entries in outcomes.items()},
        "bounded": len(bounded),
        "bounds": sorted(bounded, key=lambda one: (list(CONCLUSIONS).index(one["worse"]["outcome"]), not one["gap"])),
        "known": known,
        "tested": len(known),
        "changed": [one for one in known if one["rejected"]],
        "varied": any(one["varied"] for one in results),
        "undefined": len(results) - len(known),
        "small": sum(not _counts(one) for one in known),
    }
    return {**found, "claim": texts.named("compare", "claim", found) if given.no_worse_than is not None else ""}


def _quoted(entry: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return an entry with its sentences: that of its change, and that of what gets worse."""
    facts = {**known, **entry, "rate": entry["metric"] in known["rates"]}
    found = {**entry, "sentence": "" if entry["change"] is None else texts.named("compare", "change", facts)}
    if entry["worse"] is not None:
        found["worse"] = {**entry["worse"], "sentence": texts.named("compare", "worse", facts)}
    return found


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


def _least_draws(entries: Sequence[Mapping[str, Any]], given: Given) -> int:
    """Return the smallest number of permutations with which a single test can be rejected after the correction."""
    if all(one["exact"] or one["metric"] in NORMAL for one in entries):
        return 0
    number = sum(one["p_value"] is not None for one in entries)
    return least_draws(given.alpha, 2, number, given.correct)


def _metrics(given: Given) -> list[Rate | Mean | Auc]:
    """Return the metrics. Raises InvalidInput for a metric without the columns that it needs."""
    found: list[Rate | Mean | Auc] = []
    for name in dict.fromkeys(given.metric):
        metric = metric_named(name)
        if given.label is None and metric.name not in WITHOUT_LABEL:
            raise InvalidInput(f"Metric {name} needs the true class", option="label", remedy="Give the label")
        if isinstance(metric, Rate | Auc):
            check_margin(given.no_worse_than, metric.name, "no_worse_than")
        found.append(metric)
    return found


def _entries(given: Given, table: tables.Table) -> list[dict[str, Any]]:
    """Return the change of each group's metric, then the changes of the gaps, for each grouping and metric."""
    jobs = list(_jobs(given, table))
    bounded = sum(job.gap or better(job.common["metric"]) is not None for job in jobs)
    if given.no_worse_than is not None and not bounded:
        problem = "without groups, no_worse_than needs a metric whose high or low values are better"
        remedy = "Give the group, or use a metric such as accuracy"
        raise InvalidInput(problem, option="no_worse_than", remedy=remedy)
    corrected = given.alpha / (1 if given.correct == "none" else max(1, bounded))
    return [job.entry(given, corrected) for job in track("changes", jobs)]


def _jobs(given: Given, table: tables.Table) -> Iterator[Job]:
    metrics, groupings = _metrics(given), [grouped_by(text, table) for text in dict.fromkeys(given.group)]
    columns = [*([given.label] if given.label else []), *given.versions, *(one.column for one in groupings)]
    check_columns(table, columns, "label, versions or group", table.name)
    frame = pd.DataFrame(table.arrays(list(dict.fromkeys(columns))))
    references = References(given.reference)
    versions = [_versions(given, table, frame, metric) for metric in metrics]
    rows: list[tuple[str, Array, tuple[str, ...]]] = [
        (one.name, *grouped(table, one.column, frame[one.column], one.level)) for one in groupings
    ]
    referred = {place: references.of(names, place) for place, _, names in rows}
    references.check()
    for place, every, names in rows or [("", np.zeros(len(frame), dtype=np.int64), (OVERALL,))]:
        for metric, (label, *both) in zip(metrics, versions, strict=True):
            if isinstance(metric, Auc) or metric.name in SELECTED:
                codes, pair = every, np.stack(both)
                tests = _samples(given, metric, label, pair)
            else:
                (old, among), (new, _) = (values(metric, label, one) for one in both)
                codes, pair = every[among], np.stack([old, new])[:, among]
                (rng,) = generators("audit", "compare", str(given.seed), place, metric.name, repetitions=1)
                tests = _means(given, isinstance(metric, Rate), pair, rng)
            common = {
                **{"grouping": place, "metric": metric.name, "title": metric.title},
                "varied": not (np.isfinite(pair).all() and (pair[0] == pair[1]).all()),
            }
            for code, name in enumerate(names):
                yield Job({**common, "what": name}, (codes == code,), tests)
            for what, *sides in _gaps(codes, names, referred[place]) if place else ():
                yield Job({**common, "what": what}, tuple(sides), tests)


def _versions(
    given: Given, table: tables.Table, frame: pd.DataFrame, metric: Rate | Mean | Auc
) -> tuple[Array, Array, Array]:
    """Return the label, and the decisions or scores of both versions."""
    decided = isinstance(metric, Rate) or (isinstance(metric, Mean) and metric.decisions)
    probability = isinstance(metric, Mean) and metric.probability
    roles: dict[str, Any] = {
        **given.some("label", "positive"),
        "threshold": given.threshold if decided else None,
        "bounds": (0.0, 1.0) if probability else (-np.inf, np.inf),
        "prediction": None,
    }
    outputs: list[Any]
    if decided and given.threshold is None:
        name = given.label
        known = None if name is None else labelled(table, name, frame[name], given.positive, several=True)
        label, classes = known or (None, {})
        outputs = _decisions(table, frame, given.versions, classes)
    else:
        (label, *one), (_, *two) = (outcomes(table, frame, score=version, **roles) for version in given.versions)
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


def _means(given: Given, rate: bool, pair: Array, rng: np.random.Generator) -> Tests:
    """Return the tests of a mean over rows with the values ``pair`` (2, n)."""
    finite = np.isfinite(pair).all(axis=0)
    delta = np.where(finite, pair[1] - np.where(finite, pair[0], 0.0), np.nan)

    def of_group(own: Array) -> dict[str, Any]:
        n = int(own.sum())
        if n == 0 or not finite[own].all():
            # A loss can be infinite.
            return _entry(n)
        found = change(delta[own], rate=rate, alpha=given.alpha, draws=given.draws, rng=rng)
        ends = found.low, found.high
        return _entry(n, pair[0, own].mean(), pair[1, own].mean(), found.estimate, ends, found.p_value, found.exact)

    def of_gap(own: Array, other: Array) -> dict[str, Any]:
        both, least = own | other, int(min(own.sum(), other.sum()))
        if least < 2 or not delta[both].any() or not finite[both].all():
            return _entry(least)
        sides = other[both].astype(np.int64)
        data = Predictions(np.zeros(len(sides), dtype=np.int64), delta[both], sides, ("own", "other"))
        options: dict[str, Any] = {"alpha": given.alpha, "draws": given.draws, "alternative": "equal-tailed"}
        test = permutation_test(data, "mean_score", rng=rng, **options)
        if test.p_value is None:
            return _entry(least)
        old, new = pair[:, own].mean(axis=1) - pair[:, other].mean(axis=1)
        ends = test.ci_low, test.ci_high
        if min(np.ptp(delta[own]), np.ptp(delta[other])) == 0:
            # The error of a group whose rows all change alike is unknown, not 0.
            here, there = (combined(rows, 1, given.alpha / 2) for rows in (own, other))
            ends = here.minus(there)[1:]
        return _entry(least, old, new, test.difference, ends, test.p_value)

    combined = of_means(pair, rate)
    return Tests(of_group, of_gap, combined)


def _samples(given: Given, metric: Rate | Auc | Mean, label: Array, pair: Array) -> Tests:
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
        ends = one.interval(given.alpha)
        return _entry(one.n, one.first, one.second, one.second - one.first, ends, one.p_value, one.exact)

    def of_gap(own: Array, other: Array) -> dict[str, Any]:
        here, there = found(own), found(other)
        first, second = here.first - there.first, here.second - there.second
        variance = here.doubt(given.alpha) + there.doubt(given.alpha)
        reach = float(ndtri(1 - given.alpha / 2) * np.sqrt(variance))
        ends = second - first - reach, second - first + reach
        return _entry(min(here.n, there.n), first, second, second - first, ends, normal_p(second - first, variance))

    return Tests(of_group, of_gap, of_samples(found))


def _gaps(codes: Array, names: tuple[str, ...], reference: str | None) -> Iterator[tuple[str, Array, Array]]:
    """Yield the name of each gap, and the masks (n,) of its groups; the second one is the reference or all others."""
    if reference is None and len(names) == 2:
        reference = names[1]
    for code, name in enumerate(names):
        if reference is None:
            yield f"gap {name} - {rest_of(name, names)}", codes == code, codes != code
        elif name != reference:
            yield f"gap {name} - {reference}", codes == code, codes == names.index(reference)


def _sections(results: Sequence[Mapping[str, Any]], given: Given, said: Mapping[str, Any]) -> Iterator[Section]:
    """Return the table of what gets worse, if it is asked for, and that of the changes."""
    ordered = gaps_first(results)
    if given.no_worse_than is not None:
        bounded = [one for one in ordered if one["worse"] is not None]
        yield Section(texts.named("compare", "bounds", said), (_bounds(bounded, given),))
    yield Section(texts.named("compare", "changes", said), (_table(ordered, given),))


def _bounds(results: Sequence[Mapping[str, Any]], given: Given) -> Table:
    """Return a line for each group and gap: by how much it gets worse, refuted first."""

    def of_worse(key: str) -> Callable[[Mapping[str, Any]], str]:
        return lambda entry: under(key, decimal)(entry["worse"])

    columns = (
        Column("", cell=lambda entry: ", ".join([entry["metric"], f"{entry['grouping']} {entry['what']}".strip()])),
        Column("worse by", cell=of_worse("by")),
        Column(f"at most ({level(given.alpha)})", cell=of_worse("at_most")),
        Column("at least (adjusted)", cell=of_worse("at_least")),
        Column("n", cell=under("n", "{:,}".format)),
    )
    ordered = sorted(results, key=lambda one: list(CONCLUSIONS).index(one["worse"]["outcome"]))
    rows = rows_of(columns, ordered, lambda one: CONCLUSIONS[one["worse"]["outcome"]])
    return Table(columns, rows, SHOWN, "changes.csv")


def _table(results: Sequence[Mapping[str, Any]], given: Given) -> Table:
    """Return a line for each group and gap."""
    columns = (
        Column("", cell=under("what")),
        Column(given.versions[0], cell=under("first", decimal)),
        Column(given.versions[1], cell=under("second", decimal)),
        Column("change", cell=under("change", lambda value: f"{'+' * (value > 0)}{decimal(value)}")),
        Column(f"{level(given.alpha)} interval", cell=under("interval", lambda ends: span(ends, without_ends="-"))),
        Column("n", cell=under("n", "{:,}".format)),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    rows = rows_of(columns, results, lambda one: ", ".join(filter(None, [one["title"], one["grouping"]])))
    return Table(columns, rows, SHOWN, "changes.csv")


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
