"""In words: what a test guarantees, and why there is none."""

import numpy as np

from fairness_audits.audits.permutation.metrics import Auc, Metric, Rate
from fairness_audits.audits.permutation.monte_carlo import MonteCarlo, Settings
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.audits.permutation.statistics import MetricEstimate
from fairness_audits.values import Array

GUARANTEES = {
    "exact": "if the rates are equal, the probability of rejection is at most alpha for every number of independent "
    "rows, even if the groups differ in other ways",
    "studentized": "if the metrics are equal, the probability of rejection tends to alpha as both groups grow; if the "
    "groups have the same distribution, it is at most alpha for every number of rows",
    "stratified": "if the rates are equal in every stratum, the probability of rejection is at most alpha for every "
    "number of independent rows, even if the strata differ in other ways",
    "asymptotic": "if the rates are equal in every stratum, the probability of rejection tends to alpha as the number "
    "of rows or of strata grows",
    "mcnemar": "if the rates are equal, the probability of rejection is at most alpha for every number of independent "
    "pairs, even if the groups differ in other ways",
    "signs": "if the metrics are equal, the probability of rejection tends to alpha as the number of independent "
    "pairs, or clusters of pairs, grows; if the groups are exchangeable within each of them, it is at most alpha for "
    "every number",
    "top": "if the ranking of the rows does not depend on the group, the probability of rejection is at most alpha for "
    "every number of rows",
    "unstudentized": "if the groups have the same distribution, the probability of rejection is at most alpha; if "
    "only the metric is equal, it can be far from alpha",
}

NEEDED = {"tpr": "label 1", "fnr": "label 1", "fpr": "label 0", "tnr": "label 0"}
NEEDED |= {"precision": "prediction 1", "npv": "prediction 0"}
"""Names of the rows in the denominator of a rate."""


def stopping(found: MonteCarlo, settings: Settings) -> str:
    """Return what stopping early means for the decision; empty if all draws are always made."""
    if settings.stop is None:
        return ""
    drawn = len(found.reference)
    if not found.stopped:
        return (
            f"; after all {drawn} draws, the probability that more draws change the decision is still above "
            f"{settings.resampling_risk}"
        )
    return (
        f"; drawing stopped after {drawn} of {settings.draws}: the probability that infinitely many draws would change "
        f"the decision is at most {settings.resampling_risk}, and the level increases by at most this amount"
    )


def missing(data: Predictions | Counts, metric: Metric, value: Array) -> str:
    """Return why a group has no metric; empty if the metric (G,) exists in both."""
    for group, name in enumerate(data.groups):
        if np.isfinite(value[group]):
            continue
        if isinstance(metric, Rate):
            return f"group {name!r} has no rows with {NEEDED[metric.name]}"
        if isinstance(metric, Auc):
            return f"group {name!r} has no rows with label {0 if data.positives()[group] else 1}"
        if np.isinf(value[group]):
            return (
                f"the {metric.title} of group {name!r} is infinite, because a prediction with probability 0 or 1 was "
                "wrong"
            )
        return f"the {metric.title} of group {name!r} is undefined: its rows give NaN"
    return ""


def without_variance(data: Predictions | Counts, metric: Metric, observed: MetricEstimate) -> str:
    """Return which group has too few rows for a variance; empty if both have one.

    A variance of 0 counts as one: T then uses the variance of the other group, before and after a permutation.
    """
    for group, name in enumerate(data.groups):
        if not observed.variance[group] < np.inf:
            return (
                f"the {metric.title} of group {name!r} has no variance estimate (too few rows), so the difference "
                "cannot be studentised: get more rows of this group, or accept the limits of method unstudentized"
            )
    return ""
