"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pipeline.cli import words
from pipeline.cli.audit.permutation.asked import Asked
from pipeline.cli.audit.permutation.evidence import Finding, hypotheses
from pipeline.cli.document import Caveat
from pipeline.cli.numbers import level

FEW_UNITS = 50
"""With fewer units in a group, or fewer positives or negatives of an AUC, what holds in the limit may be far."""
CAVEATS = """
held_out_rows: The tests are about predictions for rows that the model was not made from.
independent_rows: Rows count as independent: if several belong to one person, name the column with --cluster.
no_correction: Without a correction for {number} tests, the chance of a false rejection among them is more than
  {alpha:g} (up to {chance:.2f} if they were independent).
correction_by_metric: max-T corrects over the pairs of each metric, not over the {families} metrics and groupings.
several_tests: The intervals are those of each test by itself; adjusted p-values allow for the number of tests.
one_hypothesis_twice: Rates that are equal together (tpr and fnr, fpr and tnr) are one hypothesis of the correction.
few_units: A group with {fewest} {what}, fewer than {least}: the test is valid in the limit of large groups, and may
  reject equal values far more often than at its level ({where}{more}).
binned_scores: The tests of scores are on {basis}: scores of one bin count as equal.
method_to_compare_with: {told}
near_the_level: {many} so near {alpha:g} that more --draws may change the decision ({where}).
stopped_early: Drawing stops when the decision at {alpha:g} is safe but for a risk of {risk:g}: this holds for equal or
  not, neither for the group that is named nor for the ends of the interval. The p-value's interval is at {level}.
undefined_draws: {count:,} permutations left a group without the rows of the metric; they count as extreme.
"""
COMPARISONS = {
    "unstudentized": "Method unstudentized rejects too often or too rarely where the groups differ in size and in "
    "anything but the metric: it is there to compare with.",
    "lift": "Method lift has no guarantee where the groups differ in size and composition: it is there to compare "
    "with.",
    "bootstrap": "Method bootstrap is valid only for large groups, and rejects too often in small ones.",
}


def caveats(every: Sequence[Finding], asked: Asked) -> Iterator[Caveat]:
    """The conditions that hold of this audit, the general ones first."""
    findings = [finding for finding in every if not finding.test.undefined]
    always = {"held_out_rows": True, "independent_rows": asked.cluster is None}
    found = {**always, **_of_number(findings, asked), **_of_size(findings, asked), **_of_draws(findings, asked)}
    yield from words.caveats(CAVEATS, found)


def of_draws(findings: Sequence[Finding], asked: Asked) -> Iterator[Caveat]:
    """What the number of draws leaves in doubt."""
    yield from words.caveats(CAVEATS, _of_draws(findings, asked))


def _of_number(findings: Sequence[Finding], asked: Asked) -> dict[str, Any]:
    number, alpha = hypotheses(findings), asked.settings.alpha
    families = {(finding.grouping, finding.test.metric) for finding in findings}
    if number < 2:
        return {}
    if asked.correction == "none":
        return {"no_correction": {"number": number, "alpha": alpha, "chance": 1 - (1 - alpha) ** number}}
    if asked.correction == "max_t" and len(families) > 1:
        return {"correction_by_metric": {"families": len(families)}}
    return {
        "several_tests": True,
        "one_hypothesis_twice": number < len(findings) and asked.correction != "max_t",
    }


def _of_size(findings: Sequence[Finding], asked: Asked) -> dict[str, Any]:
    small = [finding for finding in findings if not finding.test.exact and finding.fewest < FEW_UNITS]
    few: Mapping[str, Any] = {}
    if small:
        first = min(small, key=lambda finding: finding.fewest)
        few = {
            "fewest": first.fewest,
            "what": "positives or negatives" if first.test.metric == "auc" else "units",
            "least": FEW_UNITS,
            "where": f"{first.test.metric} of {first.grouping}",
            "more": f" and {len(small) - 1} more" if len(small) > 1 else "",
        }
    compared = COMPARISONS.get(asked.settings.method)
    return {
        "few_units": few,
        "binned_scores": [
            {"basis": basis} for basis in sorted({finding.basis for finding in findings if "bins" in finding.basis})
        ],
        "method_to_compare_with": compared and {"told": compared},
    }


def _of_draws(findings: Sequence[Finding], asked: Asked) -> dict[str, Any]:
    alpha, risk = asked.settings.alpha, asked.settings.resampling_risk
    close = [
        finding
        for finding in findings
        if finding.adjusted_low is not None
        and finding.adjusted_high is not None
        and finding.adjusted_low <= alpha < finding.adjusted_high
    ]
    undefined = sum(finding.test.undefined_draws for finding in findings)
    near = close and {
        "many": f"{len(close)} p-value{'s are' if len(close) > 1 else ' is'}",
        "alpha": alpha,
        "where": f"{close[0].test.metric} of {close[0].grouping}",
    }
    stopped = risk is not None and not all(finding.test.exact for finding in findings)
    return {
        "near_the_level": near,
        "stopped_early": stopped and {"alpha": alpha, "risk": risk, "level": level(risk or 0.0)},
        "undefined_draws": undefined and {"count": undefined},
    }
