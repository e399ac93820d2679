"""Plain-language summary of a loss-ratio audit, for the top of its page."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import factor, level


def brief(facts: Mapping[str, Any], delta: float, alpha: float, verdict: Verdict, placebo: str) -> Brief:
    """Return, in plain words, how much larger the model's error is for comparable people."""
    test, data = facts["results"]["loss_ratio"], facts["data"]
    return Brief(
        question=(
            "Does the model make larger errors for comparable people, who differ only in ways that should not matter? "
            "The fair metric defines who is comparable."
        ),
        people=(
            f"{data['audited']:,} of {data['rows']:,} rows of {data['path']}. Check that the model was not trained "
            "on these rows, and that you agree with the fair metric. The audit assumes both and cannot check them."
        ),
        found=(
            f"For the comparable people that the search found, the model's loss is on average {factor(test['S_n'])} "
            f"times the loss for the people themselves; up to {delta:g} times is tolerated.{placebo}"
        ),
        sure=certainty(
            verdict,
            "If the model were within the tolerance, an audit like this would reject it in at most "
            f"{level(1 - alpha)} of cases.",
            "The search may miss comparable people with a larger error, so this is no proof of fairness.",
        ),
        limits=(
            "Whether the comparable people exist. Who is treated worse, or why. Whether the fair metric and the "
            "tolerance are the right ones."
        ),
    )
