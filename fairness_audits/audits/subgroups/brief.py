"""Plain-language summary of a search for the worst subgroup, for the top of its page."""

from collections.abc import Mapping, Sequence
from typing import Any

from fairness_audits.audits.subgroups.settings import Settings
from fairness_audits.messages import listed
from fairness_audits.results.document import INDEPENDENT_ROWS, Brief, Verdict, certainty
from fairness_audits.results.formats import level, percent, plural

SHOWN = 3


def clearest(entries: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the entries by their evidence, whichever side of the others they are on."""
    return sorted(entries, key=lambda entry: (entry["adjusted_p_value"], -abs(entry["difference"])))


def brief(facts: Mapping[str, Any], settings: Settings, title: str, verdict: Verdict) -> Brief:
    """Describe which subgroups differ most in a rate with this ``title``."""
    lines = [
        f"{', '.join(f'{column} {value}' for column, value in one['subgroup'].items())}: {percent(one['estimate'])} of "
        f"{one['n']:,}, others {percent(one['rest'])}"
        for one in clearest(facts["results"])[:SHOWN]
    ]
    return Brief(
        question=f"Does the {title} of some group of people differ from that of all others? All intersections of up to "
        f"{plural(settings.depth, 'column')} were searched: {listed(list(settings.columns), 8)}.",
        people=f"{facts['rows_of_the_rate']:,} of {facts['rows']:,} rows of {settings.predictions} count for the rate, "
        f"in {plural(facts['subgroups'], 'subgroup')} of {settings.least} rows or more. {INDEPENDENT_ROWS}",
        found=f"The clearest differences are {'; '.join(lines)}." if lines else verdict.sentence,
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
