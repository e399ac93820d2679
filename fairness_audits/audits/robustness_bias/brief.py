"""Plain-language summary of a robustness audit, for the top of its page."""

from fairness_audits.audits.robustness_bias.measured import FAIR, Measured
from fairness_audits.messages import listed
from fairness_audits.results.document import Brief, Verdict, certainty
from fairness_audits.results.formats import level


def _closer(first: Measured, groups: str) -> str:
    if first.entry["bound"] == "lower":
        return (
            f"The certified radii of {groups} are smaller. They are lower bounds for a smoothed copy of the model, so "
            "they do not show that a smaller change is enough for the model itself."
        )
    smaller = "By the fair metric, a smaller" if first.unit.metric == FAIR else "A smaller"
    return f"{smaller} change is enough for {groups}."


def brief(first: Measured, path: str, alpha: float, verdict: Verdict) -> Brief:
    """Return, in plain words, which group's images or rows change class under smaller perturbations."""
    found, one, many = first.entry, first.unit.name, first.unit.many
    groups = list(dict.fromkeys(f"{one['partition']} = {one['level']}" for one in found["groups"]))
    closer = [f"{one['partition']} = {one['level']}" for one in verdict.facts.get("closer", ())]
    return Brief(
        question=f"For some groups, is a smaller change of the {one} enough to make the model err?",
        people=(
            f"{found['points']:,} {many} in {path}; groups: {listed(groups, 8)}. Check that the model was not "
            f"trained on these {many}, and that the groups are correct. The audit assumes both and cannot check them."
        ),
        found=_closer(first, listed(closer, 6)) if closer else verdict.sentence,
        sure=certainty(
            verdict,
            f"If no group were easier to fool, an audit like this would name one in at most {level(1 - alpha)} of "
            "cases.",
            "A difference of this size can arise by chance. This is no proof that the groups are alike.",
        ),
        limits=f"Whether anybody makes such changes. How often the model errs on unchanged {many}. Why groups differ.",
    )
