"""Plain-language summary of a plan, for the top of its page."""

from fairness_audits.audits.plan.settings import Settings
from fairness_audits.results.document import Brief
from fairness_audits.results.formats import level, percent


def brief(settings: Settings, sentence: str, power: float | None, found: bool) -> Brief:
    """Describe what a plan promises."""
    aim = "show that two groups are alike" if settings.margin else "find that two groups differ"
    return Brief(
        question=f"How many rows does an audit need to {aim}?"
        if settings.rows is None
        else f"Can an audit of {settings.rows:,} rows {aim}?",
        people="None: no rows were read. The numbers follow from what you expect of both groups.",
        found=sentence,
        sure=_certainty(settings, settings.wanted_power if power is None else power) if found else "No plan was found.",
        limits="Whether the model has such a difference, and which difference matters. If the groups are not as "
        "expected, the audit needs a different number of rows.",
    )


def _certainty(settings: Settings, power: float) -> str:
    opposite = f"differ by at least {settings.margin:g}" if settings.margin else "are equal"
    return (
        f"If the groups are as expected, about {percent(power)} of audits of this size reach the aim. The others do "
        f"not. If the groups {opposite}, an audit reaches the aim in at most {level(1 - settings.alpha)} of cases."
    )
