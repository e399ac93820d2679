"""From p-values to what is concluded: an interval that agrees with the test, a direction, and what they promise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipeline.audits.permutation.result import SIDED, PermutationTest
from pipeline.audits.permutation.settings import Settings
from pipeline.audits.permutation.studentized import MonteCarlo

GUARANTEES = {
    "exact": "where the rates are equal, the chance to reject is at most alpha in every sample of independent rows, "
    "whatever else differs between the groups",
    "studentized": "where the metrics are equal, the chance to reject tends to alpha as both groups grow; it is at "
    "most alpha in every sample if the groups are alike in distribution",
    "unstudentized": "the chance to reject is at most alpha if the groups are alike in distribution; if only the "
    "metric is equal, it can be far from alpha",
    "lift": "a shortcut for comparison: no guarantee where the groups differ in size and composition",
    "bootstrap": "where the metrics are equal, the chance to reject tends to alpha as both groups grow",
}


def with_monte_carlo(result: PermutationTest, found: MonteCarlo, settings: Settings) -> PermutationTest:
    """The result completed by a Monte-Carlo test."""
    value = found.p(settings.alternative)
    rejected = value <= settings.alpha
    interval = found.interval(settings.alpha, settings.alternative)
    low, high = agreeing(interval, found.difference, rejected)
    p_low, p_high = found.p_interval(settings.alternative, settings.stop)
    return replace(
        result,
        difference=found.difference,
        ci_low=low,
        ci_high=high,
        statistic=found.statistic,
        p_value=value,
        p_low=p_low,
        p_high=p_high,
        rejected=rejected,
        direction=direction(found.difference, found.p("greater"), found.p("less"), settings),
        draws=len(found.reference),
        undefined_draws=found.undefined_draws,
        guarantee=result.guarantee + _stopping(found, settings),
    )


def agreeing(interval: tuple[float, float], difference: float, rejected: bool) -> tuple[float, float]:
    """The interval with 0 in it exactly where the test does not reject.

    Intervals come from tests of D = d whose member at d = 0 is a close relative of the test made: where the two
    disagree, the interval is extended to 0, or ends just before it. Beside an exact test it is the score interval
    (Miettinen-Nurminen), extended where needed: no inversion of the exact test.
    """
    low, high = interval
    if not rejected:
        return min(low, 0.0), max(high, 0.0)
    if low <= 0 <= high:
        step = np.nextafter(0.0, difference)
        return (float(step), high) if difference > 0 else (low, float(step))
    return low, high


def direction(difference: float, p_greater: float, p_less: float, settings: Settings) -> int:
    """+1, -1 or 0: see ``PermutationTest.direction``."""
    tail = settings.alpha if settings.alternative in SIDED else settings.alpha / 2
    if difference > 0 and p_greater <= tail and settings.alternative != "less":
        return 1
    return -1 if difference < 0 and p_less <= tail and settings.alternative != "greater" else 0


def _stopping(found: MonteCarlo, settings: Settings) -> str:
    if settings.stop is None:
        return ""
    drawn = len(found.reference)
    if not found.stopped:
        return f"; all {drawn} draws were made without the decision becoming safe at risk {settings.resampling_risk}"
    return (
        f"; drawing stopped after {drawn} of {settings.draws}: the chance that infinitely many draws would decide "
        f"otherwise is at most {settings.resampling_risk}, and that much is added to the level"
    )
