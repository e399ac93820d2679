"""What the test of a metric rests on: units, rows and events of each group, and the least number of units."""

from typing import NamedTuple

import numpy as np

from fairness_audits.audits.permutation.metrics import Auc, Metric, Rate
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.audits.permutation.statistics import EQUAL
from fairness_audits.values import Array

LEAST_UNITS = 20
"""With fewer units in a group (AUC: positives or negatives) a test that is not exact is inconclusive."""


class Support(NamedTuple):
    """Number of rows ``n`` of a group behind a metric, and of ``events`` among them.

    Events are the numerator of a rate, and the positives of an AUC. They are None for other metrics and with weights,
    because the number of events divided by n is then not the metric.
    """

    n: int
    events: int | None


def support(data: Counts | Predictions, metric: Metric) -> tuple[Support, ...]:
    """Return the number of rows and events behind the metric of each group."""
    weighted = isinstance(data, Predictions) and data.weight is not None
    if isinstance(metric, Rate):
        table = data.table if isinstance(data, Counts) else data.decision_table()
        return tuple(Support(int(x + z), None if weighted else int(x)) for x, z, _ in metric.split(table))
    counted = isinstance(metric, Auc) and not weighted
    sizes = zip(data.sizes, data.positives(), strict=True)
    return tuple(Support(int(n), int(x) if counted else None) for n, x in sizes)


def fewest(data: Counts | Predictions, metric: Metric) -> int | None:
    """Return the smallest number of units of one kind in a group; None for metrics with a single kind of unit."""
    each = units_of(data, metric)
    return None if each is None else int(each.min())


def units_of(data: Counts | Predictions, metric: Metric) -> Array | None:
    """Return the number of units of the rarest kind in each group, (G,); None for metrics with a single kind of unit.

    The kinds are positives and negatives for the AUC, and the rows in the denominator of a rate. With weights, the
    number is the effective one.
    """
    if isinstance(data, Predictions) and data.weight is not None:
        return (effective(data, metric) + EQUAL).astype(np.int64)
    return independent(data, metric) if isinstance(metric, Auc | Rate) else None


def independent(data: Predictions | Counts, metric: Auc | Rate) -> Array:
    """Count the units in the denominator of a rate in each group, (G,); for the AUC, the units of the rarer label.

    Units are clusters if there are any, else rows.
    """
    groups = len(data.groups)
    if isinstance(data, Counts):
        counts = data.table.sum(axis=2) if isinstance(metric, Auc) else metric.split(data.table)[:, :2].sum(axis=1)
        return np.asarray(counts.reshape(groups, -1).min(axis=1))
    (unit, group), counts = data.units(), []
    for kind in _kinds(data, metric):
        held = np.zeros(len(group), dtype=bool)
        held[unit[kind]] = True
        counts.append(np.bincount(group[held], minlength=groups))
    return np.minimum.reduce(counts)


def effective(data: Predictions, metric: Metric) -> Array:
    r"""Compute the effective number of units of the rarest kind in each group, (G,).

    .. math:: n = \frac{(\sum_i w_i^2)^2}{\sum_i w_i^4}

    for the weights w_i of the units: rows, or sums over clusters. These are the degrees of freedom of a variance that
    sums w_i^2 (Satterthwaite 1946). Kish's number (sum w)^2 / sum w^2 is larger: it overlooks that a few heavy units
    can carry the variance.
    """
    assert data.weight is not None
    (unit, group), weight, counts = data.units(), data.weight, []
    for kind in _kinds(data, metric):
        squares = np.bincount(unit[kind], weight[kind], len(group)) ** 2
        total, spread = (np.bincount(group, w, len(data.groups)) for w in (squares, squares**2))
        counts.append(np.divide(total**2, spread, where=spread > 0, out=np.zeros(len(spread))))
    return np.minimum.reduce(counts)


def _kinds(data: Predictions, metric: Metric) -> list[Array]:
    """Return the masks (n,) of the kinds of rows that a metric needs: of both labels, in a denominator, or all."""
    if isinstance(metric, Auc):
        return [data.label == label for label in (0, 1)]
    if isinstance(metric, Rate):
        assert data.prediction is not None
        return [np.array(metric.among, dtype=bool)[data.label.astype(int), data.prediction.astype(int)]]
    return [np.ones(len(data.group), dtype=bool)]
