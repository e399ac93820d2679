"""How few units a test that is valid in the limit of large groups rests upon."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from pipeline.audits.permutation.metrics import Auc, Metric, Rate
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.types import Array


def fewest(content: Counts | Predictions, metric: Metric) -> int | None:
    """The smallest number of units of one kind in a group: of the AUC, positives and negatives; of a rate, the rows
    that it is a share of. Units are clusters where there are any, else rows; rows of weight 0 are none.

    None for other metrics, whose units are all of the group's.
    """
    if not isinstance(metric, Auc | Rate):
        return None
    if isinstance(content, Counts):
        kinds = content.table.sum(axis=2) if isinstance(metric, Auc) else metric.split(content.table)[:, :2].sum(axis=1)
        return int(kinds.min())
    return min(_units(content, kind & (content.group == g)) for kind in _kinds(content, metric) for g in (0, 1))


def _kinds(content: Predictions, metric: Auc | Rate) -> Iterator[Array]:
    """Which rows (n,) are of each kind."""
    counts = np.ones(len(content.label), dtype=bool) if content.weight is None else content.weight > 0
    if isinstance(metric, Auc):
        for label in (0, 1):
            yield counts & (content.label == label)
    else:
        assert content.prediction is not None
        among = np.array(metric.among, dtype=bool)
        yield counts & among[content.label.astype(int), content.prediction.astype(int)]


def _units(content: Predictions, rows: Array) -> int:
    return int(rows.sum()) if content.cluster is None else len(np.unique(content.cluster[rows]))
