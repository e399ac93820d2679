"""Choose how to permute: counts of kinds if rows repeat, compiled passes over rows if they do not."""

import numpy as np

from fairness_audits.audits.permutation.draws import CountResampler, Resampler
from fairness_audits.audits.permutation.metrics import Auc, Mean, Metric, Rate, UserMetric
from fairness_audits.audits.permutation.outcomes import Counts, Predictions, check_binary, tabulated
from fairness_audits.audits.permutation.rows import ClusteredRanks, RankedRows, SummedRows, UserRows, sizes, summed
from fairness_audits.audits.permutation.statistics import BinnedAuc, Proportion, RatioOfSums
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

LARGEST = 1e140
"""If sums are larger, the squares in variances overflow; if they are smaller than the inverse, the squares vanish."""
ROWS_PER_KIND = 60
"""Drawing the count of one kind takes about as long as a compiled pass over this many rows."""


def resampler(
    data: Predictions | Counts, metric: Metric, seed: int, smoothing: float, bootstraps: int, within: bool = False
) -> Resampler:
    """Return the resampler of a metric on this data.

    ``within`` permutes a rate only among the rows of its denominator (its label, its prediction). Raises ValueError if
    the data lack what the metric needs.
    """
    if isinstance(data, Predictions) and data.weight is not None and isinstance(metric, UserMetric):
        raise InvalidInput(
            f"Metric {metric.name} cannot use weights",
            option="weight",
            remedy="Use a rate, the AUC or a mean, or leave out the weights",
        )
    if isinstance(metric, UserMetric):
        if isinstance(data, Counts):
            raise InvalidInput(
                f"metric {metric.name!r} needs rows, found a table of counts: give Predictions", option="metric"
            )
        cluster, group = data.units()
        units = sizes(group, len(data.groups))
        return UserRows(metric, data.label, data.score, cluster, group, units, bootstraps, seed)
    if isinstance(metric, Rate) and countable(data):
        strata = np.array([0, 0, 1]) if within else None
        return CountResampler(Proportion(smoothing), metric.split(decisions(data).table), seed, strata)
    if within:
        raise InvalidInput(f"{metric.name} of clustered rows has no exact permutation: choose another test")
    if isinstance(data, Counts):
        if data.decided and not (isinstance(metric, Mean) and metric.decisions):
            raise InvalidInput(
                f"{metric.name} needs scores, found counts of decisions: count the rows by score", option="score"
            )
        if 2 * len(data.score) * ROWS_PER_KIND <= data.sizes.sum():
            return _of_scores(data, metric, seed)
        data = _spread(data)
    if isinstance(metric, Auc):
        return _auc(data, seed)
    return _ratio(data, metric, seed)


def decisions(data: Predictions | Counts) -> Counts:
    """Return the table group x label x predicted label. Raises ValueError if there is none."""
    if isinstance(data, Predictions):
        return data.counted()
    if not data.decided:
        raise InvalidInput(
            "rates need decisions: these counts are of scores, so count them at a threshold", option="prediction"
        )
    return data


def countable(data: Predictions | Counts) -> bool:
    """Return whether the data are a table of counts, or rows that can be counted."""
    return isinstance(data, Counts) or (data.cluster is None and data.weight is None)


def _of_scores(data: Counts, metric: Auc | Mean | Rate, seed: int) -> Resampler:
    kinds = data.table.reshape(len(data.groups), -1)
    if isinstance(metric, Auc):
        return CountResampler(BinnedAuc(len(data.score)), kinds, seed)
    assert isinstance(metric, Mean)
    seen = kinds.any(axis=0)
    label, score = np.repeat([0, 1], len(data.score))[seen], np.tile(data.score, 2)[seen]
    return CountResampler(RatioOfSums(_parts(metric, label, score)), kinds[:, seen], seed)


def _spread(data: Counts) -> Predictions:
    """Return one row per counted row: faster to permute if there are hardly more rows than cells."""
    group, label, cell = (np.repeat(index, data.table.ravel()) for index in np.indices(data.table.shape).reshape(3, -1))
    return Predictions(label, data.score[cell], group, data.groups)


def _parts(metric: Mean, label: Array, score: Array) -> Array:
    """Return value and base of each row, (n, 2)."""
    score = score.astype(float)
    if metric.binary:
        check_binary("label", label)
    if metric.probability and ((score < 0) | (score > 1)).any():
        odd = score[(score < 0) | (score > 1)][0]
        raise InvalidInput(
            f"{metric.name} needs scores that are probabilities, found {odd:.6g}: rescale them to [0, 1]",
            option="score",
        )
    with np.errstate(over="ignore"):
        value = np.asarray(metric.value(label, score), dtype=float)
    finite = value[np.isfinite(score) & (np.isfinite(value) | (np.abs(score) > LARGEST))]
    extent = np.abs(finite).max(initial=0.0)
    if extent > LARGEST or (0 < extent < 1 / LARGEST and np.ptp(finite) > 0):
        raise InvalidInput(
            f"{metric.name} is computed from scores up to {np.abs(score).max():.3g} in size, whose squares "
            "overflow or underflow: multiply the scores by a constant first",
            option="score",
        )
    return np.stack([value, metric.base(label, score)], axis=-1).astype(float)


def _auc(data: Predictions, seed: int) -> Resampler:
    check_binary("label", data.label)
    groups = len(data.groups)
    if not countable(data):
        return ClusteredRanks.of(data.label, data.score, *data.units(), groups, seed, data.weight)
    rows = RankedRows.of(data.label, data.score, data.group, groups, seed)
    if 2 * rows.distinct * ROWS_PER_KIND > len(data.label):
        return rows
    scores, cell = np.unique(data.score, return_inverse=True)
    kinds = tabulated((groups, 2, len(scores)), data.group, data.label, cell).reshape(groups, -1)
    return CountResampler(BinnedAuc(len(scores)), kinds, seed)


def _ratio(data: Predictions, metric: Rate | Mean, seed: int) -> Resampler:
    cluster, group = data.units()
    if isinstance(metric, Mean):
        decided = metric.decisions and data.prediction is not None
        parts = _parts(metric, data.label, data.prediction if decided else data.score)  # type: ignore[arg-type]
    else:
        if data.prediction is None:
            raise InvalidInput(
                "rates need decisions: give `prediction`, or a threshold for the scores", option="prediction"
            )
        check_binary("label", data.label)
        cell = data.label.astype(np.int64), data.prediction.astype(np.int64)
        parts = np.stack([np.array(metric.event)[cell], np.array(metric.among)[cell]], axis=-1).astype(float)
    if data.weight is not None:
        parts = parts * data.weight[:, None]
    if data.cluster is not None:
        parts = summed(parts, cluster)
    return _of_units(parts, group, len(data.groups), seed)


def _of_units(parts: Array, group: Array, groups: int, seed: int) -> Resampler:
    """Return counts of the kinds of units if there are few kinds, otherwise the units themselves."""
    # Real and imaginary part make one sortable key of the pair.
    kinds, kind = np.unique(parts[:, 0] + 1j * parts[:, 1], return_inverse=True)
    if len(kinds) * ROWS_PER_KIND > len(parts):
        return SummedRows(RatioOfSums(parts), group, sizes(group, groups), seed)
    counts = tabulated((groups, len(kinds)), group, kind)
    return CountResampler(RatioOfSums(np.stack([kinds.real, kinds.imag], axis=-1)), counts, seed)
