"""Plain-language summary of a search for the worst subgroup, for the top of its page."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from fairness_audits.audits.subgroups.settings import Settings
from fairness_audits.messages import listed
from fairness_audits.results.document import INDEPENDENT_ROWS, Brief, Verdict, certainty
from fairness_audits.results.formats import level, percent, plural

SHOWN = 3


Entries: TypeAlias = Sequence[Mapping[str, Any]]


def name(entry: Mapping[str, Any]) -> str:
    """Return the name of a subgroup, such as ``age 25 to 34, sex female``."""
    return ", ".join(f"{column} {value}" for column, value in entry["subgroup"].items())


def leading(entries: Entries) -> tuple[str, Entries]:
    """Return the subgroups to name first, with a title for them: those that are significantly worse, if there are any.

    The ``entries`` are in the order of the page.
    """
    rejected = [entry for entry in entries if entry["rejected"]]
    if worse := [entry for entry in rejected if entry["worse"]]:
        return "Worst first", worse
    return ("Only better than all others", rejected) if rejected else ("None is significant. First by p-value", entries)


def brief(facts: Mapping[str, Any], settings: Settings, title: str, verdict: Verdict) -> Brief:
    """Describe which subgroups are worse in a rate with this ``title``."""
    lead, first = leading(facts["results"])
    lines = [
        f"{name(one)}: {percent(one['estimate'])} of {one['n']:,}, others {percent(one['rest'])}"
        for one in first[:SHOWN]
    ]
    return Brief(
        question=f"Does the {title} of some group of people differ from that of all others? All intersections of up to "
        f"{plural(settings.depth, 'column')} were searched: {listed(list(settings.columns), 8)}.",
        people=f"{facts['rows_of_the_rate']:,} of {facts['rows']:,} rows of {settings.predictions} count for the rate, "
        f"in {plural(facts['subgroups'], 'subgroup')} of {settings.least} rows or more. {INDEPENDENT_ROWS}",
        found=f"{lead}: {'; '.join(lines)}." if lines else verdict.sentence,
        sure=certainty(
            verdict,
            "If the rate were the same everywhere, a search like this would report a difference in at most "
            f"{level(1 - settings.alpha)} of cases, however many subgroups it searches.",
            "Among all these subgroups, differences of this size can arise by chance. This is no proof that all are "
            "alike.",
        ),
        limits="Why a subgroup differs, and whether that is just. Anything about smaller subgroups, or about columns "
        "that were not searched.",
    )
