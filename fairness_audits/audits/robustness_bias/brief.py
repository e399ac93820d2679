"""Plain-language summary of a robustness audit, for the top of its page."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.messages import listed
from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import level


def brief(found: Mapping[str, Any], path: str, alpha: float, verdict: Verdict) -> Brief:
    """Return, in plain words, which group's images change class under smaller perturbations."""
    groups = list(dict.fromkeys(f"{one['partition']} = {one['level']}" for one in found["groups"]))
    closer = [f"{one['partition']} = {one['level']}" for one in verdict.facts.get("closer", ())]
    return Brief(
        asked="Is a smaller change of the image enough to make the model err about one group than about the others?",
        people=f"{found['images']:,} images in {path}; groups: {listed(groups, 8)}. Check that the model was not made "
        "from these images, and that the groups are right: the audit assumes both and cannot see it.",
        found=f"A smaller change is enough for {listed(closer, 6)}." if closer else verdict.sentence,
        sure=certainty(
            verdict,
            "If no group were easier to upset, an audit like this would name one in at most "
            f"{level(1 - alpha)} of cases.",
            "A difference of this size can be chance. This is no proof that the groups are alike.",
        ),
        unsaid="That anybody makes such changes. How often the model errs about images as they are. Why groups differ.",
    )
