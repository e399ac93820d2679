"""Permutation tests in plain words: the introduction of their report."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.messages import listed
from fairness_audits.results.document import Brief, Verdict
from fairness_audits.results.formats import level

SHOWN = 3
SURE = {
    "rejected": "If the groups were equal in truth, an audit like this would find a difference in at most {alpha} of "
    "cases.",
    "not rejected": "A difference of this size can be chance. This is no proof that the groups are equal.",
    "inconclusive": "The audit cannot tell: {reason}",
}


def brief(facts: Mapping[str, Any], path: str, alpha: float, verdict: Verdict) -> Brief:
    """Describe which metrics are compared between which groups, and the largest differences."""
    results, rows = facts["results"], facts["data"]["rows"]
    metrics = list(dict.fromkeys(entry["metric"] for entry in results))
    groupings = list(dict.fromkeys(entry["grouping"] for entry in results))
    known = [entry for entry in results if entry["difference"] is not None]
    apart = sorted(known, key=lambda entry: -abs(entry["difference"]))[:SHOWN]
    told = [
        f"{entry['metric']}: " + " and ".join(f"{one['estimate']:.3g} ({one['name']})" for one in entry["groups"])
        for entry in apart
        if len(entry["groups"]) == 2 and None not in [one["estimate"] for one in entry["groups"]]
    ]
    return Brief(
        asked=f"Does the model do as well for one group as for another? Compared: {listed(metrics, 6)}, by "
        f"{listed(groupings, 6)}.",
        people=f"{rows:,} rows of {path}. Check that the model was not made from these rows, and that each row is "
        "another person: the audit assumes both and cannot see it.",
        found="The groups are furthest apart in " + "; ".join(told) + "." if told else verdict.sentence,
        sure=SURE[verdict.outcome].format(reason=verdict.reason, alpha=level(1 - alpha)),
        unsaid="Why groups differ, and whether the difference is just. Nothing about people one by one, nor about "
        "groups that were not compared.",
    )
