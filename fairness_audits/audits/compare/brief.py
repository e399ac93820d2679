"""Plain-language summary of a comparison of two versions, for the top of its page."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.audits.compare.settings import Settings
from fairness_audits.audits.permutation.brief import BOUND, UNCORRECTED
from fairness_audits.messages import listed
from fairness_audits.results.document import INDEPENDENT_ROWS, Brief, Verdict, certainty
from fairness_audits.results.formats import level

SHOWN = 3
CHANGE = (
    "If nothing really changed, an audit like this would find a change in at most {} of cases.",
    "Changes of this size can arise by chance. This is no proof that nothing changes.",
)
"""How sure a change is, then no change."""


def brief(facts: Mapping[str, Any], settings: Settings, verdict: Verdict) -> Brief:
    """Describe what changes from the first version to the second, gaps first, then the clearest changes."""
    first, second = settings.versions
    metrics = list(dict.fromkeys(one["title"] for one in facts["results"]))
    known = [one for one in facts["results"] if one["p_value"] is not None]
    clearest = sorted(known, key=lambda one: (not one["gap"], one["p_value"]))[:SHOWN]
    lines = [f"{one['title']}, {one['what']}: {one['first']:.3g} before, {one['second']:.3g} after" for one in clearest]
    question = (
        f"Does version {second} do better or worse than version {first} for some groups, and does the gap between "
        "groups change?"
    )
    decided = CHANGE
    if (margin := settings.no_worse_than) is not None:
        decided, question = (
            BOUND,
            (
                f"May version {second} replace version {first}: does no group get worse by more than {margin:g}, "
                f"and does no gap between groups grow by more than {margin:g}?"
            ),
        )
    rejected, kept = (text.format(level(1 - settings.alpha)) for text in decided)
    return Brief(
        question=f"{question} Compared: {listed(metrics, 6)}, by {listed(list(settings.group), 6)}.",
        people=f"The same {facts['rows']:,} rows of {settings.predictions} under both versions. {INDEPENDENT_ROWS}",
        found=f"Gaps and the clearest changes of groups: {'; '.join(lines)}." if lines else verdict.sentence,
        sure=certainty(verdict, rejected, kept)
        + (UNCORRECTED if settings.correct == "none" and verdict.outcome == "rejected" and len(known) > 1 else ""),
        limits="Whether either version is fair: both may have the same gap. Why the versions differ.",
    )
