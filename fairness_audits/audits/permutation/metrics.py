r"""The metrics compared between two groups. Each metric is a small object with a name.

A *rate* is a ratio of counts; numerator and denominator are sums over the table label x prediction. A *mean* is the
mean over rows of a value of label and score. The *AUC* is the probability that a positive scores above a negative.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import xlogy

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest
from fairness_audits.values import Array

Mask = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Rate:
    """#(rows in ``event``) / #(rows in ``among``); masks [label][prediction], event being a subset of among.

    Given the rows in ``among``, the events are Bernoulli with the rate as parameter. If the rate is equal in both
    groups, the events are exchangeable. Permuting them among these rows (all rows, or the rows of a label or
    prediction) is then an exact test of equal rates, whatever else differs between the groups.
    """

    name: str
    title: str
    event: Mask
    among: Mask

    def split(self, table: Array) -> Array:
        """Split the rows into events, other rows in among, and rows outside the rate: table (..., 2, 2) -> (..., 3)."""
        event, among = np.array(self.event), np.array(self.among)
        kinds = np.stack([event, among - event, 1 - among]).reshape(3, 4)
        return np.asarray(table).reshape(*np.shape(table)[:-2], 4) @ kinds.T


@dataclass(frozen=True)
class Mean:
    """sum over rows of ``value(label, score)`` / sum of ``base(label, score)``: with base 1, the mean of a value.

    ``binary`` restricts labels to 0 and 1, ``probability`` restricts scores to [0, 1]; with ``decisions``, decisions
    replace the scores. The metric ``moves`` if adding a number to all scores adds this number to the mean.
    """

    name: str
    title: str
    value: Callable[[Array, Array], Array]
    binary: bool = False
    probability: bool = False
    decisions: bool = False
    moves: bool = False
    base: Callable[[Array, Array], Array] = lambda label, score: np.ones(len(score))


@dataclass(frozen=True)
class Auc:
    """P(score of a positive > score of a negative) + P(equal) / 2."""

    name: str = "auc"
    title: str = "AUC"


@dataclass(frozen=True)
class UserMetric:
    """Any ``function(y, score, weight) -> float`` of the rows of one group; y, score and weight are (n,).

    The weight of a row is how often it counts; a row of weight 0 must not matter. A function is ``batched`` if it also
    accepts weights (T, n) and then returns (T,), one value for each row of weights. This is much faster.
    """

    name: str
    function: Callable[[Array, Array, Array], float | Array]
    batched: bool = False

    @property
    def title(self) -> str:
        """The metric's name for readers."""
        return self.name


Metric = Rate | Mean | Auc | UserMetric


def log_loss(label: Array, score: Array) -> Array:
    """-y log s - (1 - y) log(1 - s), infinite if a certain prediction is wrong."""
    return -xlogy(label, score) - xlogy(1 - label, 1 - score)


POSITIVE, NEGATIVE, EVERYTHING = ((0, 0), (1, 1)), ((1, 1), (0, 0)), ((1, 1), (1, 1))
ACCEPTED, REFUSED = ((0, 1), (0, 1)), ((1, 0), (1, 0))

METRICS: Mapping[str, Rate | Mean | Auc] = {
    metric.name: metric
    for metric in (
        Rate("tpr", "true positive rate (recall)", ((0, 0), (0, 1)), POSITIVE),
        Rate("fnr", "false negative rate", ((0, 0), (1, 0)), POSITIVE),
        Rate("fpr", "false positive rate", ((0, 1), (0, 0)), NEGATIVE),
        Rate("tnr", "true negative rate", ((1, 0), (0, 0)), NEGATIVE),
        Rate("precision", "precision", ((0, 0), (0, 1)), ACCEPTED),
        Rate("npv", "negative predictive value", ((1, 0), (0, 0)), REFUSED),
        Rate("accuracy", "accuracy", ((1, 0), (0, 1)), EVERYTHING),
        Rate("selection_rate", "selection rate", ACCEPTED, EVERYTHING),
        Rate("base_rate", "base rate of the label", POSITIVE, EVERYTHING),
        # 2 TP / (2 TP + FP + FN): true negatives do not count.
        Mean(
            "f1",
            "F1 score",
            lambda label, decision: 2 * label * decision,
            binary=True,
            decisions=True,
            base=lambda label, decision: label + decision,
        ),
        Auc(),
        Mean("mean_score", "mean score", lambda label, score: score, moves=True),
        Mean("mean_error", "mean error (score - label)", lambda label, score: score - label, moves=True),
        Mean("absolute_error", "mean absolute error", lambda label, score: np.abs(score - label)),
        Mean("squared_error", "mean squared error", lambda label, score: (score - label) ** 2),
        Mean("log_loss", "log loss", log_loss, binary=True, probability=True),
    )
}
CALIBRATION = Rate("calibration", "rate of positive labels", POSITIVE, EVERYTHING)
"""The base rate, compared within bins of the score."""
EXPOSURE = Mean("exposure", "exposure", lambda label, score: score)
"""The mean exposure of a group's positions in a ranking, which take the place of the scores."""
WITHOUT_LABEL = ("selection_rate", "mean_score", EXPOSURE.name)
"""Metrics that do not use the label."""
HIGH_IS_WORSE = ("fnr", "fpr", "absolute_error", "squared_error", "log_loss")
"""Metrics for which high values are bad."""
NEUTRAL = ("selection_rate", "base_rate", "mean_score", CALIBRATION.name, EXPOSURE.name)
"""Metrics for which neither high nor low values are bad."""


RATES: Mapping[str, Rate] = {name: metric for name, metric in METRICS.items() if isinstance(metric, Rate)}
EQUALIZED_ODDS = "equalized_odds"
OTHER_NAMES: Mapping[str, str] = {
    "tpr": "true_positive_rate recall recall_score sensitivity hit_rate "
    "equal_opportunity equal_opportunity_difference true_positive_rate_difference",
    "fnr": "false_negative_rate miss_rate false_negative_rate_difference",
    "fpr": "false_positive_rate fall_out predictive_equality false_positive_rate_difference",
    "tnr": "true_negative_rate specificity specificity_score selectivity true_negative_rate_difference",
    "precision": "precision_score ppv positive_predictive_value predictive_parity",
    "npv": "negative_predictive_value",
    "accuracy": "accuracy_score accuracy_score_difference overall_accuracy",
    "selection_rate": "demographic_parity demographic_parity_difference statistical_parity "
    "statistical_parity_difference mean_difference acceptance_rate",
    "base_rate": "prevalence",
    "f1": "f1_score",
    "auc": "roc_auc roc_auc_score",
    "mean_score": "mean_prediction",
    "absolute_error": "mean_absolute_error mae",
    "squared_error": "mean_squared_error mse brier_score brier_score_loss",
    "log_loss": "cross_entropy",
    EQUALIZED_ODDS: "equalised_odds equalized_odds_difference",
}
"""Names of the metrics in other libraries, and of the fairness notions that require them to be equal."""
ALIASES = {other: name for name, others in OTHER_NAMES.items() for other in others.split()}
RELATED = {
    "demographic_parity_ratio": "selection_rate with ratio",
    "disparate_impact": "selection_rate with ratio",
    "impact_ratio": "selection_rate with ratio",
    "equalized_odds_ratio": "equalized_odds with ratio",
    "average_odds_difference": "equalized_odds, which tests tpr and fpr",
    "balanced_accuracy_score": "tpr and tnr",
}
"""What answers the question of a measure that is not the metric of a group."""


def our_name(name: str) -> str:
    """Return our name of a metric, whatever the case and hyphens of the name; an unknown name is unchanged."""
    key = re.sub(r"[\s-]+", "_", name.strip().lower())
    return ALIASES.get(key, key if key in METRICS else name)


def metric_named(name: str) -> Rate | Mean | Auc:
    """Return the metric of this name, which may be that of another library. Raises InvalidInput if there is none."""
    if our_name(name) not in METRICS:
        raise InvalidInput(
            f"expected a metric among {', '.join(METRICS)}; found {name!r}{suggestion(name)}", option="metric"
        )
    return METRICS[our_name(name)]


def suggestion(name: str, *others: str) -> str:
    """Return what to use in place of an unknown metric, to end a sentence: a related metric, or the nearest name."""
    if instead := RELATED.get(name.lower()):
        return f" (use {instead})"
    return nearest(name.lower(), [*METRICS, *ALIASES, *others])


def better(metric: str) -> Literal["high", "low", "zero"] | None:
    """Return which values of a metric are good; None if no values are better than others."""
    if metric in NEUTRAL:
        return None
    return "zero" if metric == "mean_error" else "low" if metric in HIGH_IS_WORSE else "high"


def badness(metric: str, value: Any) -> Any:
    """Return a number that is larger for worse values. Of values that are neither good nor bad, low ones are worse."""
    good = better(metric)
    return abs(value) if good == "zero" else value if good == "low" else -value


def hypothesis(metric: Metric) -> str:
    """Return the first metric that is equal in two groups exactly if this one is, such as ``tpr`` for ``fnr``.

    Complementary shares of the same rows are one hypothesis: f_A = f_B if and only if 1 - f_A = 1 - f_B.
    """
    if isinstance(metric, UserMetric):
        return f"{metric.name} (user)"
    if isinstance(metric, Rate):
        for other in METRICS.values():
            if isinstance(other, Rate) and _complementary(metric, other):
                return min(metric.name, other.name, key=list(METRICS).index)
    return metric.name


def _complementary(one: Rate, other: Rate) -> bool:
    both = np.array(one.event) + np.array(other.event)
    return one.among == other.among and bool((both == np.array(one.among)).all())
