"""The strata of a result: the facts for the JSON, the sentence to quote, and the table."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd

from fairness_audits import texts
from fairness_audits.audits.inference import adjusted_p, least_size
from fairness_audits.audits.permutation.asked import Asked
from fairness_audits.audits.permutation.compute import Finding
from fairness_audits.audits.permutation.core import PermutationTest, Within
from fairness_audits.results.formats import fixed, level, p_text, plain, span
from fairness_audits.results.result import Column, Table, rows_of, under

SHOWN = 20


def strata_of(findings: Sequence[Finding], asked: Asked) -> list[dict[str, Any]]:
    """Return the strata of all tests: significant ones first, the interval farthest from 0 first; then by p-value.

    p-values are corrected over the strata of all tests. Strata without units of both groups come last.
    """
    every = [(one, name, test) for one, within in _within(findings) for name, test in within.strata.items()]
    of = [(*one.hypothesis, name) for one, name, _ in every]
    adjusted = adjusted_p([test.p_value for *_, test in every], of, asked.correction)
    found = [
        {
            **_named(finding, name, test.units, test.estimates),
            "difference": test.difference,
            "interval": [test.ci_low, test.ci_high],
            "p_value": test.p_value,
            "adjusted_p_value": p,
            "rejected": p is not None and p <= test.alpha,
        }
        for (finding, name, test), p in zip(every, adjusted, strict=True)
    ]
    found.sort(key=lambda one: (-least_size(*one["interval"]),) if one["rejected"] else (1, one["p_value"]))
    unknown = {**dict.fromkeys(("difference", "p_value", "adjusted_p_value")), "interval": [None, None]}
    for finding, within in _within(findings):
        for name, units in within.alone.items():
            found.append({**_named(finding, name, units, (None, None)), **unknown, "rejected": False})
    return [plain(one) for one in found]


def _within(findings: Sequence[Finding]) -> Iterator[tuple[Finding, Within]]:
    return ((one, one.test.within) for one in findings if one.test.within)


def _named(
    finding: Finding, stratum: str, units: tuple[int, int], estimates: tuple[float | None, float | None]
) -> dict[str, Any]:
    groups = [
        {"name": name, "n": n, "estimate": estimate}
        for name, n, estimate in zip(finding.test.groups, units, estimates, strict=True)
    ]
    same = {"grouping": finding.grouping, "metric": finding.test.metric, "title": finding.title}
    return {**same, "stratum": stratum, "groups": groups}


def with_strata(
    results: Sequence[Mapping[str, Any]],
    findings: Sequence[Finding],
    strata: Sequence[Mapping[str, Any]],
    asked: Asked,
) -> list[dict[str, Any]]:
    """Return the results with the facts about their strata and the sentences to quote."""
    homogeneity = [one.test.within.homogeneity if one.test.within else None for one in findings]
    tests = [(*one.hypothesis, one.test.metric) for one in findings]
    adjusted = adjusted_p([one.p_value if one else None for one in homogeneity], tests, asked.correction)
    found = []
    for entry, finding, same, p in zip(results, findings, homogeneity, adjusted, strict=True):
        within = finding.test.within
        assert within is not None
        own = [one for one in strata if _of(one) == _of(entry)]
        facts = {
            "strata": len(within.strata),
            "alone": list(within.alone),
            "overall": _overall(within.overall),
            "homogeneity": None if same is None else {**same._asdict(), "adjusted_p_value": p},
            "different": [one["stratum"] for one in own if one["rejected"]],
        }
        said = {
            **entry,
            **plain(facts),
            "columns": asked.strata,
            "calibrated": asked.calibrated,
            "parts": ("bin", "bins") if asked.calibrated else ("stratum", "strata"),
            **asked.given.some("alpha", "ratio", "reference"),
        }
        told = ("undefined", "spread") if entry["undefined"] else ("sentence", "spread")
        sentence, spread = (texts.named("permutation", f"within_{name}", said) for name in told)
        found.append({**entry, "within": {**plain(facts), "sentence": sentence, "spread": spread}})
    return found


def _of(entry: Mapping[str, Any]) -> tuple[str, ...]:
    return entry["grouping"], entry["metric"], *(group["name"] for group in entry["groups"])


def _overall(test: PermutationTest) -> dict[str, Any]:
    """Return the comparison of the same groups without strata."""
    interval = [test.ci_low, test.ci_high]
    return {
        "estimates": list(test.estimates),
        "difference": test.difference,
        "interval": interval,
        "p_value": test.p_value,
    }


def frame_of(strata: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    keys = ("p_value", "adjusted_p_value", "rejected")
    return pd.DataFrame(
        {
            **{key: entry[key] for key in ("grouping", "metric", "stratum")},
            **{
                f"{key}_{letter}": group[key]
                for letter, group in zip("ab", entry["groups"], strict=True)
                for key in ("name", "n", "estimate")
            },
            **{"difference": entry["difference"], "ci_low": entry["interval"][0], "ci_high": entry["interval"][1]},
            **{key: entry[key] for key in keys},
        }
        for entry in strata
    )


def table_of(strata: Sequence[Mapping[str, Any]], asked: Asked) -> Table:
    """Return a line for each stratum of each test."""
    heads = [group["name"] for group in strata[0]["groups"]]
    heads = heads if len({tuple(_of(one)[2:]) for one in strata}) == 1 else ["first", "second"]

    def of_group(place: int, key: str, text: Any) -> Any:
        return lambda entry: under(key, text)(entry["groups"][place])

    columns = (
        Column("", cell=under("stratum")),
        *(Column(head, cell=of_group(place, "estimate", fixed(3))) for place, head in enumerate(heads)),
        Column("difference", cell=under("difference", fixed(3, "+"))),
        Column(
            f"{level(asked.given.alpha)} interval",
            cell=under("interval", partial(span, text=fixed(3), without_ends="-")),
        ),
        Column("n", cell=lambda entry: f"{sum(group['n'] for group in entry['groups']):,}"),
        Column("adjusted p", cell=under("adjusted_p_value", p_text)),
    )
    rows = rows_of(columns, strata, lambda one: "{1}, {0}: {2} - {3}".format(*_of(one)))
    return Table(columns, rows, SHOWN, "strata.csv")
