"""What follows from an audit: rejected, not rejected, or inconclusive where what was measured carries neither."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pipeline.cli.document import Outcome, Verdict
from pipeline.cli.words import entries

RELATIONS = {"<=": operator.le, ">=": operator.ge, ">": operator.gt}
UNLESS = " unless rejected"
STATUS: Mapping[Outcome, int] = {"not rejected": 0, "rejected": 3, "inconclusive": 4}
"""The exit status of each outcome under --gate."""
INCONCLUSIVE = "INCONCLUSIVE"


def beyond(limits: str, quantities: Mapping[str, Any], rejected: bool) -> list[str]:
    """The sentences of the limits that are not kept.

    ``limits`` has a line ``quantity <= number: sentence`` for each (or ``>=``, ``>``); its sentence may name the
    {value}, the {limit} and all quantities. A line ``... unless rejected`` is for what only keeps a test from
    rejecting. A quantity of None does not apply; one that is NaN keeps no limit.
    """
    told = []
    for line, sentence in entries(limits):
        quantity, relation, limit = line.removesuffix(UNLESS).split()
        value = quantities[quantity]
        if value is None or (rejected and line.endswith(UNLESS)) or RELATIONS[relation](value, float(limit)):
            continue
        told.append(sentence.format(**{**quantities, "value": value, "limit": float(limit)}))
    return told


def concluded(verdict: Verdict, limits: str, quantities: Mapping[str, Any], decision: str) -> Verdict:
    """The verdict, or an inconclusive one where a limit is not kept; ``decision`` is its key in the facts.

    There the fact is null, and the sentences of the limits are the reason, which comes before what was found.
    """
    reasons = beyond(limits, quantities, verdict.outcome == "rejected")
    if reasons:
        verdict = replace(verdict, outcome="inconclusive", headline=INCONCLUSIVE, reason=" ".join(reasons))
    if verdict.outcome == "inconclusive":
        found = (
            verdict.sentence if verdict.reason in (None, verdict.sentence) else f"{verdict.reason} {verdict.sentence}"
        )
        verdict = replace(verdict, reason=verdict.reason or verdict.sentence, sentence=found)
    known = {"rejected": True, "not rejected": False, "inconclusive": None}
    return replace(verdict, facts={decision: known[verdict.outcome], **verdict.facts})
