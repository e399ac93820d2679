"""Permutation tests in plain words: the introduction of their report."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.messages import listed
from fairness_audits.results.document import INDEPENDENT_ROWS, Brief, Verdict, certainty
from fairness_audits.results.formats import level

SHOWN = 3
EQUAL = (
    "If the groups were equal, an audit like this would find a difference in at most {} of cases.",
    "A difference of this size can arise by chance. This is no proof that the groups are equal.",
)
BOUND = (
    "The bound is refuted. If it held, an audit like this would refute it in at most {} of cases.",
    "The bound is shown. If it did not hold, an audit like this would show it in at most {} of cases.",
)
UNCORRECTED = " This holds for each of several tests, which are not corrected. Together they go wrong more often."
"""How sure a rejection is, and no rejection, of equality and of a bound."""


def brief(facts: Mapping[str, Any], path: str, alpha: float, verdict: Verdict, bound: str) -> Brief:
    """Describe which metrics are compared between which groups, the ``bound`` if there is one, and the differences."""
    results, rows = facts["results"], facts["data"]["rows"]
    metrics = list(dict.fromkeys(entry["title"] for entry in results))
    groupings = list(dict.fromkeys(entry["grouping"] for entry in results))
    known = [entry for entry in results if entry["difference"] is not None]
    several = not bound and verdict.facts["hypotheses"] > 1
    apart = sorted(known, key=lambda entry: -abs(entry["difference"]))[:SHOWN]
    lines = [
        f"{entry['title']}: " + " and ".join(f"{one['estimate']:.3g} ({one['name']})" for one in entry["groups"])
        for entry in apart
        if len(entry["groups"]) == 2 and None not in [one["estimate"] for one in entry["groups"]]
    ]
    equal = "Does the model do equally well for all groups?"
    return Brief(
        question=f"{f'Is {bound} between groups shown?' if bound else equal} Compared: {listed(metrics, 6)}, by "
        f"{listed(groupings, 6)}.",
        people=f"{rows:,} rows of {path}. {INDEPENDENT_ROWS}",
        found="The largest differences: " + "; ".join(lines) + "." if lines else verdict.sentence,
        sure=certainty(verdict, *(text.format(level(1 - alpha)) for text in (BOUND if bound else EQUAL)))
        + (UNCORRECTED if several and facts["correction"] == "none" and verdict.outcome == "rejected" else ""),
        limits=(
            "Why groups differ, and whether the difference is just. Anything about single people, or about groups "
            "that were not compared."
        ),
    )
