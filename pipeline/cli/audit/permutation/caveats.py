"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from pipeline.cli.audit.permutation.asked import Asked
from pipeline.cli.audit.permutation.evidence import Evidence, Finding, hypotheses
from pipeline.permutation.correction import corrected_once

FEW_UNITS = 50
"""With fewer units in a group, or fewer positives or negatives of an AUC, what holds in the limit may be far."""
COMPARISONS: Mapping[str, str] = {
    "unstudentized": "Method unstudentized rejects too often or too rarely where the groups differ in size and in "
    "anything but the metric: it is there to compare with.",
    "lift": "Method lift has no guarantee where the groups differ in size and composition: it is there to compare "
    "with.",
    "bootstrap": "Method bootstrap is valid only for large groups, and rejects too often in small ones.",
}


def caveats(evidence: Evidence, asked: Asked) -> list[str]:
    """Sentences for this audit, the general ones first."""
    findings = [finding for finding in evidence.findings if not finding.test.undefined]
    said = ["The tests are about predictions for rows that the model was not made from."]
    if asked.cluster is None:
        said.append("Rows count as independent: if several belong to one person, name the column with --cluster.")
    return said + _of_number(findings, asked) + _of_size(findings, asked) + _of_draws(findings, asked)


def _of_number(findings: list[Finding], asked: Asked) -> list[str]:
    number = hypotheses(findings)
    if number < 2:
        return []
    if asked.correction == "none":
        chance = 1 - (1 - asked.settings.alpha) ** number
        return [
            f"Without a correction for {number} tests, the chance of a false rejection among them is more than "
            f"{asked.settings.alpha:g} (up to {chance:.2f} if they were independent)."
        ]
    families = {(finding.grouping, finding.test.metric) for finding in findings}
    if asked.correction == "max_t" and len(families) > 1:
        return [f"max-T corrects over the pairs of each metric, not over the {len(families)} metrics and groupings."]
    said = ["The intervals are those of each test by itself; adjusted p-values allow for the number of tests."]
    if number < len(findings) and asked.correction != "max_t":
        said.append("Rates that are equal together (tpr and fnr, fpr and tnr) are one hypothesis of the correction.")
    return said


def _of_size(findings: list[Finding], asked: Asked) -> list[str]:
    said = []
    small = sorted(
        (finding for finding in findings if not finding.test.exact and finding.fewest < FEW_UNITS),
        key=lambda finding: finding.fewest,
    )
    if small:
        first = small[0]
        what = "positives or negatives" if first.test.metric == "auc" else "units"
        more = f" and {len(small) - 1} more" if len(small) > 1 else ""
        said.append(
            f"A group with {first.fewest} {what}, fewer than {FEW_UNITS}: the test is valid in the limit of large "
            f"groups, and may reject equal values far more often than at its level ({first.test.metric} of "
            f"{first.grouping}{more})."
        )
    binned = sorted({finding.basis for finding in findings if "bins" in finding.basis})
    said += [f"The tests of scores are on {basis}: scores of one bin count as equal." for basis in binned]
    if asked.settings.method in COMPARISONS:
        said.append(COMPARISONS[asked.settings.method])
    return said


def _of_draws(findings: list[Finding], asked: Asked) -> list[str]:
    said = []
    alpha = asked.settings.alpha
    close = [
        finding
        for finding in findings
        if finding.adjusted_low is not None
        and finding.adjusted_high is not None
        and finding.adjusted_low <= alpha < finding.adjusted_high
    ]
    if close:
        said.append(
            f"{len(close)} p-value{'s are' if len(close) > 1 else ' is'} so near {alpha:g} that more --draws may "
            f"change the decision ({close[0].test.metric} of {close[0].grouping})."
        )
    said += _too_few(findings, asked)
    if asked.settings.resampling_risk is not None and not all(finding.test.exact for finding in findings):
        risk = asked.settings.resampling_risk
        said.append(
            f"Drawing stops when the decision at {alpha:g} is safe but for a risk of {risk:g}: this holds for equal or "
            f"not, neither for the group that is named nor for the ends of the interval. The p-value's interval is at "
            f"{100 * (1 - risk):g} %."
        )
    undefined = sum(finding.test.undefined_draws for finding in findings)
    if undefined:
        said.append(f"{undefined:,} permutations left a group without the rows of the metric; they count as extreme.")
    return said


def _too_few(findings: Sequence[Finding], asked: Asked) -> list[str]:
    """What cannot be rejected because B draws give no p-value below 1 / (B + 1).

    After a correction the least p-value is larger, by how much depends on the other tests: it is least where all of
    them are as small as they can be. max-T compares with the largest of all pairs: there it is 1 / (B + 1) again.
    """
    least = np.array([_least(finding, asked) for finding in findings])
    alpha, of = asked.settings.alpha, [finding.hypothesis for finding in findings]
    correction = "none" if asked.correction == "max_t" else asked.correction
    number = 1 if correction == "none" else len(set(of))
    if not least.any():
        return []
    worst = int(np.argmax(least))
    others = np.array([own != of[worst] for own in of])
    if corrected_once(least, of, correction)[worst] > alpha:
        what = f"after a correction for {number} tests" if number > 1 else f"at level {alpha:g}"
    elif corrected_once(np.where(others, 1.0, least), of, correction)[worst] > alpha:
        what = f"one of {number} tests alone after the correction"
    else:
        return []
    draws = round(1 / least[worst]) - 1
    return [f"{draws:,} draws are too few to reject {what}, whatever the difference: ask for more --draws."]


def _least(finding: Finding, asked: Asked) -> float:
    """The least p-value that a test can have; 0 where it comes from no draws."""
    settled = finding.test.exact and (asked.correction != "max_t" or finding.adjusted == finding.test.p_value)
    # A test that stopped early had the draws that were asked for.
    stopping = asked.settings.resampling_risk is not None
    drawn = asked.settings.draws if stopping or not finding.test.draws else finding.test.draws
    return 0.0 if settled else 1 / (drawn + 1)
