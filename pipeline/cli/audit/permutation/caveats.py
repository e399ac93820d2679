"""What a reader of the verdict must know beside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pipeline.audits.correction import corrected_once
from pipeline.cli.audit.permutation.asked import Asked
from pipeline.cli.audit.permutation.evidence import Evidence, Finding, hypotheses
from pipeline.cli.document import Caveat
from pipeline.cli.numbers import level

FEW_UNITS = 50
"""With fewer units in a group, or fewer positives or negatives of an AUC, what holds in the limit may be far."""
COMPARISONS: Mapping[str, str] = {
    "unstudentized": "Method unstudentized rejects too often or too rarely where the groups differ in size and in "
    "anything but the metric: it is there to compare with.",
    "lift": "Method lift has no guarantee where the groups differ in size and composition: it is there to compare "
    "with.",
    "bootstrap": "Method bootstrap is valid only for large groups, and rejects too often in small ones.",
}


def caveats(evidence: Evidence, asked: Asked) -> Iterator[Caveat]:
    """The conditions that hold of this audit, the general ones first."""
    findings = [finding for finding in evidence.findings if not finding.test.undefined]
    yield Caveat("held_out_rows", "The tests are about predictions for rows that the model was not made from.")
    if asked.cluster is None:
        yield Caveat(
            "independent_rows",
            "Rows count as independent: if several belong to one person, name the column with --cluster.",
        )
    yield from _of_number(findings, asked)
    yield from _of_size(findings, asked)
    yield from of_draws(findings, asked)


def _of_number(findings: Sequence[Finding], asked: Asked) -> Iterator[Caveat]:
    number = hypotheses(findings)
    if number < 2:
        return
    families = {(finding.grouping, finding.test.metric) for finding in findings}
    if asked.correction == "none":
        chance = 1 - (1 - asked.settings.alpha) ** number
        yield Caveat(
            "no_correction",
            f"Without a correction for {number} tests, the chance of a false rejection among them is more than "
            f"{asked.settings.alpha:g} (up to {chance:.2f} if they were independent).",
        )
    elif asked.correction == "max_t" and len(families) > 1:
        yield Caveat(
            "correction_by_metric",
            f"max-T corrects over the pairs of each metric, not over the {len(families)} metrics and groupings.",
        )
    else:
        yield Caveat(
            "several_tests",
            "The intervals are those of each test by itself; adjusted p-values allow for the number of tests.",
        )
        if number < len(findings) and asked.correction != "max_t":
            yield Caveat(
                "one_hypothesis_twice",
                "Rates that are equal together (tpr and fnr, fpr and tnr) are one hypothesis of the correction.",
            )


def _of_size(findings: Sequence[Finding], asked: Asked) -> Iterator[Caveat]:
    small = sorted(
        (finding for finding in findings if not finding.test.exact and finding.fewest < FEW_UNITS),
        key=lambda finding: finding.fewest,
    )
    if small:
        first = small[0]
        what = "positives or negatives" if first.test.metric == "auc" else "units"
        more = f" and {len(small) - 1} more" if len(small) > 1 else ""
        yield Caveat(
            "few_units",
            f"A group with {first.fewest} {what}, fewer than {FEW_UNITS}: the test is valid in the limit of large "
            f"groups, and may reject equal values far more often than at its level ({first.test.metric} of "
            f"{first.grouping}{more}).",
        )
    for basis in sorted({finding.basis for finding in findings if "bins" in finding.basis}):
        yield Caveat("binned_scores", f"The tests of scores are on {basis}: scores of one bin count as equal.")
    if asked.settings.method in COMPARISONS:
        yield Caveat("method_to_compare_with", COMPARISONS[asked.settings.method])


def of_draws(findings: Sequence[Finding], asked: Asked) -> Iterator[Caveat]:
    """What the number of draws leaves in doubt."""
    alpha, risk = asked.settings.alpha, asked.settings.resampling_risk
    close = [
        finding
        for finding in findings
        if finding.adjusted_low is not None
        and finding.adjusted_high is not None
        and finding.adjusted_low <= alpha < finding.adjusted_high
    ]
    if close:
        yield Caveat(
            "near_the_level",
            f"{len(close)} p-value{'s are' if len(close) > 1 else ' is'} so near {alpha:g} that more --draws may "
            f"change the decision ({close[0].test.metric} of {close[0].grouping}).",
        )
    yield from _too_few(findings, asked)
    if risk is not None and not all(finding.test.exact for finding in findings):
        yield Caveat(
            "stopped_early",
            f"Drawing stops when the decision at {alpha:g} is safe but for a risk of {risk:g}: this holds for equal or "
            f"not, neither for the group that is named nor for the ends of the interval. The p-value's interval is at "
            f"{level(risk)}.",
        )
    undefined = sum(finding.test.undefined_draws for finding in findings)
    if undefined:
        yield Caveat(
            "undefined_draws",
            f"{undefined:,} permutations left a group without the rows of the metric; they count as extreme.",
        )


def _too_few(findings: Sequence[Finding], asked: Asked) -> Iterator[Caveat]:
    """What cannot be rejected because B draws give no p-value below 1 / (B + 1).

    After a correction the least p-value is larger, by how much depends on the other tests: it is least where all of
    them are as small as they can be. max-T compares with the largest of all pairs: there it is 1 / (B + 1) again.
    """
    least = np.array([_least(finding, asked) for finding in findings])
    alpha, of = asked.settings.alpha, [finding.hypothesis for finding in findings]
    correction = "none" if asked.correction == "max_t" else asked.correction
    number = 1 if correction == "none" else len(set(of))
    if not least.any():
        return
    worst = int(np.argmax(least))
    others = np.array([own != of[worst] for own in of])
    if corrected_once(least, of, correction)[worst] > alpha:
        what = f"after a correction for {number} tests" if number > 1 else f"at level {alpha:g}"
    elif corrected_once(np.where(others, 1.0, least), of, correction)[worst] > alpha:
        what = f"one of {number} tests alone after the correction"
    else:
        return
    draws = round(1 / least[worst]) - 1
    yield Caveat(
        "too_few_draws",
        f"{draws:,} draws are too few to reject {what}, whatever the difference: ask for more --draws.",
    )


def _least(finding: Finding, asked: Asked) -> float:
    """The least p-value that a test can have; 0 where it comes from no draws."""
    settled = finding.test.exact and (asked.correction != "max_t" or finding.adjusted == finding.test.p_value)
    # A test that stopped early had the draws that were asked for.
    stopping = asked.settings.resampling_risk is not None
    drawn = asked.settings.draws if stopping or not finding.test.draws else finding.test.draws
    return 0.0 if settled else 1 / (drawn + 1)
