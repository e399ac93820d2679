"""Performance and group fairness of predicted labels.

All functions take arrays that broadcast to (R, n) with values in {0, 1} and reduce the last axis; positive means 1. A
rate over no points (a group without positives, an absent class) is NaN, and so is everything computed from it.

Differences are group 0 minus group 1: negative if the group coded 0 gets fewer positive predictions. If the privileged
group is coded 1, this is the direction of Bellamy et al. 2018 (unprivileged minus privileged). Appendix F.5 of Maity et
al. 2021 writes G = 1 minus G = 0 without saying who is G = 1; its values have the sign of Bellamy et al.
"""

from collections.abc import Mapping

import numpy as np

from fairness_audits.values import Array


def positive_rate(predicted: Array, among: Array) -> Array:
    """Compute P(Y^ = 1 | among): the share of predicted positives where ``among`` holds; NaN if it holds nowhere."""
    among = np.asarray(among, dtype=bool)
    hits, count = np.sum((np.asarray(predicted) == 1) & among, axis=-1), np.sum(among, axis=-1)
    hits, count = np.broadcast_arrays(hits, count)
    return np.divide(hits, count, out=np.full(np.shape(count), np.nan), where=count > 0)


def accuracy(label: Array, predicted: Array) -> Array:
    """Compute P(Y^ = Y)."""
    return np.mean(np.asarray(label) == np.asarray(predicted), axis=-1)


def balanced_accuracy(label: Array, predicted: Array) -> Array:
    """Compute (P(Y^ = 1 | Y = 1) + P(Y^ = 0 | Y = 0)) / 2. Source: Maity et al. 2021, appendix F.5."""
    label = np.asarray(label)
    return (positive_rate(predicted, label == 1) + 1.0 - positive_rate(predicted, label == 0)) / 2


def average_odds_difference(label: Array, predicted: Array, group: Array) -> Array:
    """Average P(Y^ = 1 | Y = y, G = 0) - P(Y^ = 1 | Y = y, G = 1) over y = 0, 1: 0 under equalized odds.

    Source: Bellamy et al. 2018; Maity et al. 2021, appendix F.5.
    """
    return (_gap(label, predicted, group, 1) + _gap(label, predicted, group, 0)) / 2


def equal_opportunity_difference(label: Array, predicted: Array, group: Array) -> Array:
    """Compute P(Y^ = 1 | Y = 1, G = 0) - P(Y^ = 1 | Y = 1, G = 1). Source: Hardt et al. 2016."""
    return _gap(label, predicted, group, 1)


def statistical_parity_difference(predicted: Array, group: Array) -> Array:
    """Compute P(Y^ = 1 | G = 0) - P(Y^ = 1 | G = 1). Source: Dwork et al. 2011."""
    group = np.asarray(group)
    return positive_rate(predicted, group == 0) - positive_rate(predicted, group == 1)


def group_metrics(label: Array, predicted: Array, protected: Mapping[str, Array]) -> dict[str, Array]:
    """Compute all metrics above, (R,) each.

    The keys are ``accuracy``, ``balanced_accuracy`` and, for each attribute, ``aod_<name>``, ``parity_<name>`` and
    ``equal_opportunity_<name>``; ``undefined_group_metrics`` counts the NaN among them.
    """
    metrics = {"accuracy": accuracy(label, predicted), "balanced_accuracy": balanced_accuracy(label, predicted)}
    for name, group in protected.items():
        metrics[f"aod_{name}"] = average_odds_difference(label, predicted, group)
        metrics[f"parity_{name}"] = statistical_parity_difference(predicted, group)
        metrics[f"equal_opportunity_{name}"] = equal_opportunity_difference(label, predicted, group)
    metrics["undefined_group_metrics"] = np.sum([np.isnan(values) for values in metrics.values()], axis=0)
    return metrics


def _gap(label: Array, predicted: Array, group: Array, y: int) -> Array:
    label, group = np.asarray(label), np.asarray(group)
    return positive_rate(predicted, (label == y) & (group == 0)) - positive_rate(predicted, (label == y) & (group == 1))
