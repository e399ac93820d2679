"""Permutation tests in plain words: the introduction of their report."""

from collections.abc import Mapping
from typing import Any

from fairness_audits.audits.permutation.monte_carlo import SIDED
from fairness_audits.audits.permutation.plan import CORRELATION
from fairness_audits.audits.permutation.settings import Settings
from fairness_audits.messages import listed
from fairness_audits.results.document import INDEPENDENT_ROWS, Brief, Verdict, certainty
from fairness_audits.results.formats import level, sentence

SHOWN = 3
EQUAL = (
    "If the groups were equal, an audit like this would find a difference in at most {} of cases.",
    "A difference of this size can arise by chance. This is no proof that the groups are equal.",
    "No difference in the tested direction is shown. This is no proof that the groups are equal.",
)
CORRELATED = (
    "If there were no correlation, an audit like this would find one in at most {} of cases.",
    "A correlation of this size can arise by chance. This is no proof that there is none.",
    "No correlation in the tested direction is shown. This is no proof that there is none.",
)
BOUND = (
    "The bound is refuted. If it held, an audit like this would refute it in at most {} of cases.",
    "The bound is shown. If it did not hold, an audit like this would show it in at most {} of cases.",
)
UNCORRECTED = " This holds for each of several tests, which are not corrected. Together they go wrong more often."
BY_METRIC = " This holds for the tests of each metric and each column of groups. Together they go wrong more often."
"""How sure a rejection is, then no rejection (two-sided, one-sided): of equality, of no correlation, of a bound."""
CLUSTERED = (
    "Check that the model was not trained on these rows, and that all rows of a person have the same value of {}. The "
    "audit assumes both and cannot check them."
)
"""What the reader must check in rows with clusters."""


def brief(facts: Mapping[str, Any], settings: Settings, verdict: Verdict, bound: str) -> Brief:
    """Describe which metrics are compared between which groups, the ``bound`` if there is one, and the differences.

    The results in ``facts`` are in the order of their evidence.
    """
    results, rows = facts["results"], facts["data"]["rows"]
    metrics = list(dict.fromkeys(entry["title"] for entry in results))
    groupings = list(dict.fromkeys(entry["grouping"] for entry in results))
    known = [entry for entry in results if entry["difference"] is not None]
    correlated = all(entry["metric"] == CORRELATION for entry in results)
    significant = [entry for entry in known if entry["rejected"]]
    lines = [_line(entry) for entry in (significant or known)[:SHOWN]]
    lead = "the largest significant differences" if significant else "no difference is significant. Smallest p-values"
    found = "; ".join(lines) if correlated else f"{lead}: {'; '.join(lines)}"
    question = f"Is {bound} between groups shown?" if bound else "Do the groups differ by more than chance?"
    question += f" Compared: {listed(metrics, 6)}, by {listed(groupings, 6)}."
    rejected, *others = (
        text.format(level(1 - settings.alpha)) for text in (BOUND if bound else CORRELATED if correlated else EQUAL)
    )
    kept = others[-1] if settings.alternative in SIDED else others[0]
    guarantee = _together(facts, verdict, known, bound) if verdict.outcome == "rejected" else ""
    return Brief(
        question=f"Is the score correlated with {listed(groupings, 6)}?" if correlated else question,
        people=f"{rows:,} rows of {settings.predictions}. "
        + (INDEPENDENT_ROWS if settings.cluster is None else CLUSTERED.format(settings.cluster)),
        found=f"{sentence(found)}." if lines else verdict.sentence,
        sure=certainty(verdict, rejected, kept) + guarantee,
        limits="Why they are correlated, and whether that is just. Anything about single people, or about attributes "
        "that were not tested."
        if correlated
        else "Why groups differ, and whether the difference is just. Anything about single people, or about groups "
        "that were not compared.",
    )


def _line(entry: Mapping[str, Any]) -> str:
    """Return a correlation, or the metric in both groups."""
    if entry["metric"] == CORRELATION:
        return f"{entry['title']} with {entry['grouping']}: {entry['difference']:.3g}"
    return f"{entry['title']}: " + " and ".join(f"{one['estimate']:.3g} ({one['name']})" for one in entry["groups"])


def _together(facts: Mapping[str, Any], verdict: Verdict, known: list[Mapping[str, Any]], bound: str) -> str:
    """Return a sentence if the probability of any false rejection is not controlled over all tests."""
    if facts["correction"] == "none":
        return UNCORRECTED if (len(known) if bound else verdict.facts["hypotheses"]) > 1 else ""
    families = {(entry["grouping"], entry["metric"]) for entry in known}
    # Holm's method corrects the tests of a bound.
    return BY_METRIC if facts["correction"] == "max_t" and len(families) > 1 and not bound else ""
