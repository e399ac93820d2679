"""Plain-language summary of a robustness audit, for the top of its page."""

from fairness_audits.audits.robustness_bias.measured import Measured
from fairness_audits.messages import listed
from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import level


def brief(first: Measured, path: str, alpha: float, verdict: Verdict) -> Brief:
    """Return, in plain words, which group's images or rows change class under smaller perturbations."""
    found, one, many = first.entry, first.unit.name, first.unit.many
    groups = list(dict.fromkeys(f"{one['partition']} = {one['level']}" for one in found["groups"]))
    closer = [f"{one['partition']} = {one['level']}" for one in verdict.facts.get("closer", ())]
    return Brief(
        asked=f"Is a smaller change of the {one} enough to make the model err about one group than about the others?",
        people=f"{found['images']:,} {many} in {path}; groups: {listed(groups, 8)}. Check that the model was not made "
        f"from these {many}, and that the groups are right: the audit assumes both and cannot see it.",
        found=f"A smaller change is enough for {listed(closer, 6)}." if closer else verdict.sentence,
        sure=certainty(
            verdict,
            "If no group were easier to upset, an audit like this would name one in at most "
            f"{level(1 - alpha)} of cases.",
            "A difference of this size can be chance. This is no proof that the groups are alike.",
        ),
        unsaid=f"That anybody makes such changes. How often the model errs about {many} as they are. Why groups "
        "differ.",
    )
