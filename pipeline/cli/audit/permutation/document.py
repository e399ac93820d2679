"""The result as a JSON document; the verdict in the terminal is a reading of it. Schema: ``docs/permutation.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pipeline.cli.audit.permutation.asked import CORRELATIONS, Asked
from pipeline.cli.audit.permutation.evidence import Evidence, Finding, hypotheses
from pipeline.cli.json_numbers import finite

if TYPE_CHECKING:
    import pandas as pd

SCHEMA = 1
"""Version of the document's layout: raised when a key changes its meaning or goes; new keys do not raise it."""
NAMED = 3
"""How many differences the sentence names before it only counts the rest."""
CORRECTIONS = {"holm": "Holm", "bonferroni": "Bonferroni", "bh": "Benjamini-Hochberg", "by": "Benjamini-Yekutieli"}
CORRECTIONS |= {"max_t": "max-T", "none": "no correction"}


def measured(evidence: Evidence, asked: Asked) -> dict[str, Any]:
    """The verdict and every test."""
    results = [result(finding) for finding in evidence.findings]
    return {
        "verdict": {
            "rejected": any(entry["rejected"] for entry in results),
            "tests": len(results),
            "hypotheses": hypotheses(evidence.findings),
            "undefined": sum(entry["undefined"] is not None for entry in results),
            "sentence": sentence(results, asked.settings.alpha, asked.correction) + _untested(results),
        },
        "results": results,
    }


def result(finding: Finding) -> dict[str, Any]:
    """One test; what does not exist is null."""
    test = finding.test
    return {
        "grouping": finding.grouping,
        "metric": test.metric,
        "title": finding.title,
        "groups": [
            {"name": name, "rows": rows, "units": units, "estimate": estimate}
            for name, rows, units, estimate in zip(test.groups, test.sizes, test.units, test.estimates, strict=True)
        ],
        "difference": test.difference,
        "interval": [finite(test.ci_low), finite(test.ci_high)],
        "statistic": finite(test.statistic),
        "p_value": test.p_value,
        "p_value_interval": [test.p_low, test.p_high],
        "adjusted_p_value": finding.adjusted,
        "rejected": finding.rejected,
        "rejected_unadjusted": test.rejected,
        "higher": finding.higher,
        "direction": test.direction if finding.rejected else 0,
        "method": test.method,
        "exact": test.exact,
        "draws": test.draws,
        "undefined_draws": test.undefined_draws,
        "odds_ratio": None if test.odds_ratio is None else [finite(value) for value in test.odds_ratio],
        "guarantee": test.guarantee,
        "basis": finding.basis,
        "undefined": test.undefined or None,
    }


def sentence(results: Sequence[Mapping[str, Any]], alpha: float, correction: str) -> str:
    """What the tests say together, in plain sentences."""
    known = [entry for entry in results if entry["undefined"] is None]
    level = f"at level {alpha:g}" + (f" ({CORRECTIONS[correction]})" if len(known) > 1 else "")
    if not known:
        return f"Nothing could be tested: {results[0]['undefined']}."
    found = sorted((entry for entry in known if entry["rejected"]), key=lambda entry: entry["adjusted_p_value"])
    if not found and len(known) == 1:
        entry = known[0]
        names = " and ".join(group["name"] for group in entry["groups"])
        if entry["metric"] in CORRELATIONS:
            return (
                f"No {entry['title']} with {entry['grouping']} is found {level}. This is no proof: values from "
                f"{span(*entry['interval'])} remain possible."
            )
        return (
            f"No difference of {entry['title']} between {names} is found {level}. This is no proof of equality: "
            f"differences from {span(*entry['interval'])} remain possible."
        )
    if not found:
        return (
            f"No difference is found {level} in {_many(len(known))}. This is no proof of equality: the intervals say "
            "which differences remain possible."
        )
    named = "; ".join(difference(entry) for entry in found[:NAMED])
    more = f"; and {len(found) - NAMED} more" if len(found) > NAMED else ""
    if len(known) == 1:
        return f"A difference is found {level}: {named}."
    finds = "finds" if len(found) == 1 else "find"
    return f"{len(found)} of {_many(len(known))} {finds} a difference {level}: {named}{more}."


def difference(entry: Mapping[str, Any]) -> str:
    """One rejected test: ``AUC of sex: higher for M than for F by 0.03 (0.01 to 0.05)``."""
    low, high = entry["interval"]
    (a, b), size = (group["name"] for group in entry["groups"]), abs(entry["difference"])
    if entry["metric"] in CORRELATIONS:
        return f"{entry['title']} with {b} is {decimal(entry['difference'])} ({span(low, high)})"
    what = f"{entry['title']}, {entry['grouping']}"
    if entry["higher"] is None:
        return f"{what}: {a} and {b} differ by {decimal(size)}, the direction is not certain"
    other = b if entry["higher"] == a else a
    if entry["higher"] == b:
        low, high = (None if high is None else -high), (None if low is None else -low)
    return f"{what}: higher for {entry['higher']} than for {other} by {decimal(size)} ({span(low, high)})"


def span(low: float | None, high: float | None) -> str:
    """An interval in words; None is an end without a bound."""
    if low is None or high is None:
        return (
            f"at least {decimal(low)}"
            if low is not None
            else "any value"
            if high is None
            else f"at most {decimal(high)}"
        )
    return f"{decimal(low)} to {decimal(high)}"


def decimal(value: float) -> str:
    """Four decimals; fewer digits of a number that is large or tiny."""
    return f"{value:.4g}" if abs(value) >= 10 else f"{value:.1e}" if 0 < abs(value) < 5e-5 else f"{value:.4f}"


def table(document: Mapping[str, Any]) -> pd.DataFrame:
    """One row for each test."""
    import pandas as pd

    rows = []
    for entry in document["results"]:
        row = {key: entry[key] for key in ("grouping", "metric")}
        for letter, group in zip("ab", entry["groups"], strict=True):
            row |= {f"{key}_{letter}": group[key] for key in ("name", "rows", "units", "estimate")}
        row |= {"difference": entry["difference"], "ci_low": entry["interval"][0], "ci_high": entry["interval"][1]}
        row |= {key: entry[key] for key in ("statistic", "p_value")}
        row |= {"p_low": entry["p_value_interval"][0], "p_high": entry["p_value_interval"][1]}
        row |= {key: entry[key] for key in ("adjusted_p_value", "rejected", "higher", "method", "exact", "draws")}
        rows.append(row | {"undefined": entry["undefined"]})
    return pd.DataFrame(rows)


def _untested(results: Sequence[Mapping[str, Any]]) -> str:
    """How many tests are undefined, where some but not all are."""
    count = sum(entry["undefined"] is not None for entry in results)
    if not 0 < count < len(results):
        return ""
    return f" {count} of {_many(len(results))} {'is' if count == 1 else 'are'} undefined."


def _many(count: int) -> str:
    return f"{count} test{'s' * (count != 1)}"
