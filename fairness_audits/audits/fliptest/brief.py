"""Plain-language summary of a FlipTest, for the top of its page."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import percent


def brief(facts: Mapping[str, Any], verdict: Verdict, alpha: float, label: str) -> Brief:
    """Return the finding from the source group to the target group in plain words.

    ``label`` describes the people of both groups, such as `` with true label 1``; empty for everybody.
    """
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
        question=(
            f"Do people of group {source} get other decisions than their statistical counterparts in {target}? A "
            f"counterpart has the same place among the people of {target} as the person has among the people of "
            f"{source}."
        ),
        people=(
            f"{n:,} people of {source} and {found['n_target']:,} of {target}{label}. Check that the model is used on "
            "such people, and that it was not trained on them. The audit assumes both and cannot check them."
        ),
        found=(
            f"{down:,} people ({percent(down / n)}) get no positive decision while their counterparts do; for {up:,} "
            f"({percent(up / n)}) it is the other way round. {group}"
        ),
        sure=certainty(verdict, _beyond(found["noise"], alpha), _within(down + up)) + _held(refits),
        limits=(
            "Whether a decision is unjust: other features of the counterpart may justify the difference. What the "
            f"decision would be if the person belonged to {target}: a counterpart is a similar member of the "
            "other group, not the same person. Whether a positive decision is good for people."
        ),
    )


def _beyond(noise: Mapping[str, Any] | None, alpha: float) -> str:
    chance = "than between random groups, where flips come only from the map and from chance."
    if noise is not None and noise["p_either_adjusted"] > alpha:
        return (
            f"The two numbers of people who flip are further apart {chance} The number of all flips is "
            "not shown to be larger."
        )
    return f"More people flip {chance}"


def _within(flips: int) -> str:
    found = "Nobody flips" if not flips else "Chance may explain the flips"
    return f"{found}, so no difference is shown. This is no proof that everybody is treated alike."


def _held(refits: Mapping[str, Any] | None) -> str:
    if refits is None:
        return (
            " The list of names comes from one fit of the map, and another fit can give another list. Do not act "
            "on a single name."
        )
    held, ever = (sum(refits[name].values()) for name in ("held", "ever"))
    return (
        f" The list of names can differ from fit to fit: {ever:,} people flip in at least one of {refits['maps']} "
        f"fits, and {held:,} in at least {refits['needed']}. Only the latter are stable."
    )
