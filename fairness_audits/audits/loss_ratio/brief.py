"""Plain-language summary of a loss-ratio audit, for the top of its page."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import factor, level


def brief(facts: Mapping[str, Any], delta: float, alpha: float, verdict: Verdict, placebo: str) -> Brief:
    """Return, in plain words, how much larger the model's error is for comparable people."""
    test, data = facts["results"]["loss_ratio"], facts["data"]
    return Brief(
        asked="Does the model err more about people who are comparable, by the rule that says who is alike, but differ "
        "in what should not matter?",
        people=f"{data['audited']:,} of {data['rows']:,} rows of {data['path']}. Check that the model was not made "
        "from these rows, and that you agree with the rule of who is alike: the audit assumes both and cannot see it.",
        found="For the comparable people that the search found, the model's error is on average "
        f"{factor(test['S_n'])} times that for the people themselves; {delta:g} times is tolerated here.{placebo}",
        sure=certainty(
            verdict,
            "If the model were within what is tolerated, an audit like this would say otherwise in at most "
            f"{level(1 - alpha)} of cases.",
            "Not finding a larger error does not show that there is none: the search may miss it.",
        ),
        unsaid="Whether the comparable people exist. Who is treated worse, or why. Whether another rule of who is "
        "alike, or another tolerance, is the right one.",
    )
