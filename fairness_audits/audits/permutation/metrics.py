r"""The metrics that are compared between two groups, each one a small object found by its name.

A *rate* is a share of counts, numerator over denominator, both sums over the table label x prediction; a *mean* is the
mean over rows of a value of label and score; the *AUC* is the probability that a positive scores above a negative.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import xlogy

from fairness_audits.values import Array

Mask = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class Rate:
    """#(rows in ``event``) / #(rows in ``among``); masks are indexed [label][prediction] and event lies in among.

    Given the rows in ``among``, the events are Bernoulli with the rate itself as parameter. Where the rate is equal in
    both groups they are exchangeable, and permuting them among these rows (those of a label, of a prediction, or all)
    is exact for the hypothesis of equal rates, whatever else differs between the groups.
    """

    name: str
    title: str
    event: Mask
    among: Mask

    def split(self, table: Array) -> Array:
        """Rows (events, the others among, rows that do not concern the rate): table (..., 2, 2) -> (..., 3)."""
        event, among = np.array(self.event), np.array(self.among)
        kinds = np.stack([event, among - event, 1 - among]).reshape(3, 4)
        return np.asarray(table).reshape(*np.shape(table)[:-2], 4) @ kinds.T


@dataclass(frozen=True)
class Mean:
    """sum over rows of ``value(label, score)`` / sum of ``base(label, score)``: with base 1, the mean of a value.

    ``binary`` labels and ``probability`` scores are what it accepts; with ``decisions`` they take the scores' place. It
    ``moves`` if adding a number to all scores adds it to the mean.
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
    """Any ``function(y, score, weight) -> float`` of the rows of one group, y, score and weight being (n,).

    The weights are how often a row counts; a row of weight 0 must not matter. A function is ``batched`` if it also
    takes weights (T, n) and then gives (T,), one value for each row of weights: much faster.
    """

    name: str
    function: Callable[[Array, Array, Array], float | Array]
    batched: bool = False

    @property
    def title(self) -> str:
        """What a reader calls it."""
        return self.name


Metric = Rate | Mean | Auc | UserMetric


def log_loss(label: Array, score: Array) -> Array:
    """-y log s - (1 - y) log(1 - s), infinite where a certain prediction is wrong."""
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
        # 2 TP / (2 TP + FP + FN), in which a true negative does not count.
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
WITHOUT_LABEL = ("selection_rate", "mean_score")
"""Metrics that do not look at the label."""
HIGH_IS_WORSE = ("fnr", "fpr", "absolute_error", "squared_error", "log_loss")
"""Metrics of which the highest value is the worst."""
RATES: Mapping[str, Rate] = {name: metric for name, metric in METRICS.items() if isinstance(metric, Rate)}
ALIASES = {"recall": "tpr", "sensitivity": "tpr", "specificity": "tnr", "ppv": "precision"}
ALIASES |= {"demographic_parity": "selection_rate", "equal_opportunity": "tpr"}
"""Other names of the metrics; the last are those of notions of fairness that say that they are equal."""


def metric_named(name: str) -> Rate | Mean | Auc:
    """The metric of this name. Raises ValueError that lists the names for any other."""
    key = ALIASES.get(name, name)
    if key not in METRICS:
        known = ", ".join([*METRICS, *ALIASES])
        raise ValueError(f"expected a metric among {known}; found {name!r}: or give a function(y, score, weight)")
    return METRICS[key]


def hypothesis(metric: Metric) -> str:
    """The first metric that is equal in two groups exactly where this one is: ``tpr`` for ``fnr``, ``fpr`` for ``tnr``.

    Two shares of the same rows that make up the whole are one hypothesis: f_A = f_B if and only if 1 - f_A = 1 - f_B.
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
