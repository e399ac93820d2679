"""What each metric is computed of: counts of decisions, counts of scores, or the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pipeline.audits.permutation.metrics import Auc, Metric, Rate, UserMetric
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.cli.audit.permutation.asked import UNIT, Asked
from pipeline.cli.columns import Attribute
from pipeline.tabulate import contingency, numbers, predictions
from pipeline.tabulate.table import Table
from pipeline.types import Array

ROWS = 100_000
"""Up to this many rows, scores are taken as they are; beyond it, they are counted where the user does not object."""
DISTINCT = 2_000
"""So many distinct scores are counted one by one, without bins."""
BINS = 1_000


@dataclass(frozen=True)
class Data:
    """What the tests of a metric see, and in words how it was read."""

    content: Counts | Predictions
    basis: str


def read(table: Table, asked: Asked, grouping: Attribute) -> Iterator[tuple[Metric, Data]]:
    """The metrics with their data, each kind of which is read once."""
    columns = {
        "label": asked.label,
        "group": grouping.column,
        "against": grouping.level,
        "positive": asked.positive,
        "score": asked.score,
    }
    kinds = {"decisions": decisions, "scores": scores, "rows": rows}
    found: dict[str, Data] = {}
    for metric in asked.metrics:
        kind = _kind(asked, metric)
        if kind not in found:
            found[kind] = kinds[kind](table, asked, columns)
        yield metric, found[kind]


def decisions(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Counts of group x label x decision."""
    cut = {"prediction": asked.prediction, "threshold": asked.threshold, "bounds": asked.score_range}
    counted = contingency(table, **{**columns, **cut, "score": None if asked.prediction else asked.score})
    how = asked.prediction if asked.prediction else f"{asked.score} >= {asked.threshold:g}"
    return Data(counted, f"counts of decisions ({how})")


def scores(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Counts of group x label x score where there are many rows, else the rows."""
    if asked.bins == "none" or (asked.bins == "auto" and table.size() <= ROWS):
        return rows(table, asked, columns)
    score, bins = str(asked.score), BINS if asked.bins == "auto" else asked.bins
    # The number is an estimate, good to a few per cent; where it matters the counts themselves decide.
    if asked.bins == "auto" and table.distinct((score,))[score] <= 2 * DISTINCT:
        exact = contingency(table, **columns, bounds=asked.bounds)
        if len(exact.lower) <= DISTINCT:
            return Data(exact, f"counts of {len(exact.lower):,} distinct scores")
    low, high = asked.score_range or UNIT
    counted = contingency(table, **columns, bins=bins, bounds=asked.score_range)
    return Data(counted, f"counts of scores in {bins:,} bins from {low:g} to {high:g}")


def rows(table: Table, asked: Asked, columns: dict[str, Any]) -> Data:
    """Every row as it is."""
    as_given = ("real_label", "prediction", "threshold", "cluster", "weight", "bounds")
    content = predictions(table, **columns, **{name: getattr(asked, name) for name in as_given})
    return Data(content, f"rows, together by {asked.cluster}" if asked.cluster else "every row")


def correlated(table: Table, asked: Asked, metric: str, attribute: str) -> tuple[Array, Array]:
    """What is correlated: the score or the error of each row (n,), and the attribute (n,)."""
    columns = [str(asked.score), attribute] + ([asked.label] if metric == "error_correlation" else [])
    label = None if asked.real_label else asked.label
    found = numbers(table, columns, label=label, positive=asked.positive)
    value = found[str(asked.score)]
    return (value - found[asked.label] if metric == "error_correlation" else value), found[attribute]


def _kind(asked: Asked, metric: Metric) -> str:
    if asked.cluster or asked.weight or asked.real_label or isinstance(metric, UserMetric):
        return "rows"
    return "decisions" if isinstance(metric, Rate) else "scores"


def against_rest(content: Counts | Predictions, place: int) -> Counts | Predictions:
    """One group, and all the others together."""
    name = content.groups[place]
    names = (name, f"not {name}")
    if isinstance(content, Predictions):
        return replace(content, group=(content.group != place).astype(np.int64), groups=names)
    own = content.table[place]
    return replace(content, table=np.stack([own, content.table.sum(axis=0) - own]), groups=names)


def varies(content: Counts | Predictions, metric: Metric) -> bool:
    """Whether the decisions or scores that a metric is of are not all the same."""
    if isinstance(content, Counts):
        return int((content.table.sum(axis=(0, 1)) > 0).sum()) > 1
    values = content.prediction if isinstance(metric, Rate) else content.score
    return values is not None and bool(np.ptp(values) > 0)


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
        yield from (counts & (content.label == label) for label in (0, 1))
    else:
        assert content.prediction is not None
        among = np.array(metric.among, dtype=bool)
        yield counts & among[content.label.astype(int), content.prediction.astype(int)]


def _units(content: Predictions, rows: Array) -> int:
    return int(rows.sum()) if content.cluster is None else len(np.unique(content.cluster[rows]))
