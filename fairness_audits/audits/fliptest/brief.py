"""Plain-language summary of a FlipTest, for the top of its page."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import percent


def brief(facts: Mapping[str, Any], verdict: Verdict) -> Brief:
    """Return the finding from the source group to the target group in plain words."""
    found = facts["results"][0]
    source, target, n = found["source"], found["target"], found["n_source"]
    sets, refits, alone = found["flipsets"], found["refits"], found["attribute_alone"]
    down, up = (sets[name]["size"] for name in ("negative", "positive"))
    changed = alone["positive"] + alone["negative"]
    group = (
        f"Changing {', '.join(alone['columns'])} alone changes the decision about {changed:,} people."
        if alone["columns"]
        else "The model does not see the group itself, so changing the group alone changes no decision."
    )
    return Brief(
        asked=f"Are people of group {source} decided otherwise than their statistical counterparts in {target}? A "
        f"counterpart stands among the people of {target} where the person stands among those of {source}.",
        people=f"{n:,} people of {source} and {found['n_target']:,} of {target}. Check that they are people whom the "
        "model is used on, and that the model was not made from them: the audit assumes both and cannot see it.",
        found=f"{down:,} people ({percent(down / n)}) are not decided positively while their counterparts are; {up:,} "
        f"({percent(up / n)}) the other way round. {group}",
        sure=certainty(
            verdict,
            "More people flip than between groups that were dealt at random, by the map's doing or by chance.",
            "As many people flip between groups that were dealt at random, so nothing is shown. This is no proof that "
            "everybody is treated alike.",
        )
        + _held(refits),
        unsaid="That a decision is unjust: the features in which a person and the counterpart differ may justify it. "
        f"What the decision about a person would be if they had lived as one of {target}: a counterpart is another "
        "point, not another life. Whether a positive decision is good for people.",
    )


def _held(refits: Mapping[str, Any] | None) -> str:
    if refits is None:
        return " The list of names rests on one fit, and another would name others: do not act on a single name."
    held, ever = (sum(refits[name].values()) for name in ("held", "ever"))
    return (
        f" Names differ from fit to fit: {ever:,} people flip in at least one of {refits['maps']} fits, and {held:,} "
        f"in {refits['needed']} or more. Only these names hold."
    )
