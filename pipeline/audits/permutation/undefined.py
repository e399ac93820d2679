"""Why a metric, or its test, does not exist."""

from __future__ import annotations

import numpy as np

from pipeline.audits.permutation.metrics import Auc, Metric, Rate
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.statistics import MetricEstimate
from pipeline.types import Array

NEEDED = {"tpr": "label 1", "fnr": "label 1", "fpr": "label 0", "tnr": "label 0"}
NEEDED |= {"precision": "prediction 1", "npv": "prediction 0"}


def missing(data: Predictions | Counts, metric: Metric, value: Array) -> str:
    """Which group lacks what the metric is computed of; empty where the metric (G,) exists in both."""
    for group, name in enumerate(data.groups):
        if np.isfinite(value[group]):
            continue
        lacks = "no rows" if isinstance(data, Counts) or data.weight is None else "no weight on rows"
        if isinstance(metric, Rate):
            needs = NEEDED.get(metric.name)
            return f"group {name!r} has {lacks}" + (f" with {needs}" if needs else " that count")
        if isinstance(metric, Auc):
            return f"group {name!r} has {lacks} with label {0 if _positives(data, group) else 1}"
        if np.isinf(value[group]):
            return f"the {metric.title} of group {name!r} is infinite: a prediction that was certain was wrong"
        return f"the {metric.title} of group {name!r} does not exist (the function gave NaN, or no row has weight)"
    return ""


def without_variance(data: Predictions | Counts, metric: Metric, observed: MetricEstimate) -> str:
    """Which group's variance says nothing about the metric's error; empty where both do.

    Smoothed rates always have a variance. Elsewhere 0 means that the rows of a group happen to be all alike (a perfect
    AUC in a few rows, say). Dividing by it would make any difference significant; and where the metrics are equal, the
    interval would be the one point 0, as if no difference were possible.
    """
    if isinstance(metric, Rate):
        return ""
    for group, name in enumerate(data.groups):
        if not observed.variance[group] > 0:
            found = "zero" if observed.variance[group] == 0 else "undefined (too few rows)"
            return (
                f"the estimated variance of the {metric.title} in group {name!r} is {found}, so the difference cannot "
                "be studentised: get more rows of this group, or use method unstudentized knowing its limits"
            )
    return ""


def _positives(data: Predictions | Counts, group: int) -> int:
    if isinstance(data, Counts):
        return int(data.table[group, 1].sum())
    counts = data.group == group if data.weight is None else (data.group == group) & (data.weight > 0)
    return int((data.label[counts] == 1).sum())
