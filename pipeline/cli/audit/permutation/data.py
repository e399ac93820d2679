"""What each metric is computed of: counts of decisions, counts of scores, or the rows themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.audits.permutation.metrics import Metric, Rate, UserMetric
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
    kinds = {"decisions": decisions, "scores": scores, "rows": rows}
    found: dict[str, Data] = {}
    for metric in asked.metrics:
        kind = _kind(asked, metric)
        if kind not in found:
            found[kind] = kinds[kind](table, asked, grouping)
        yield metric, found[kind]


def decisions(table: Table, asked: Asked, grouping: Attribute) -> Data:
    """Counts of group x label x decision."""
    content = contingency(
        table,
        label=asked.label,
        group=grouping.column,
        against=grouping.level,
        positive=asked.positive,
        prediction=asked.prediction,
        score=None if asked.prediction else asked.score,
        threshold=asked.threshold,
        bounds=asked.score_range,
    )
    how = asked.prediction if asked.prediction else f"{asked.score} >= {asked.threshold:g}"
    return Data(content, f"counts of decisions ({how})")


def scores(table: Table, asked: Asked, grouping: Attribute) -> Data:
    """Counts of group x label x score where there are many rows, else the rows."""
    if asked.bins == "none" or (asked.bins == "auto" and table.size() <= ROWS):
        return rows(table, asked, grouping)
    score, bins = str(asked.score), BINS if asked.bins == "auto" else asked.bins
    # The number is an estimate, good to a few per cent; where it matters the counts themselves decide.
    if asked.bins == "auto" and table.distinct((score,))[score] <= 2 * DISTINCT:
        exact = _score_counts(table, asked, grouping, None)
        if len(exact.lower) <= DISTINCT:
            return Data(exact, f"counts of {len(exact.lower):,} distinct scores")
    low, high = asked.score_range or UNIT
    return Data(
        _score_counts(table, asked, grouping, bins), f"counts of scores in {bins:,} bins from {low:g} to {high:g}"
    )


def rows(table: Table, asked: Asked, grouping: Attribute) -> Data:
    """Every row as it is."""
    content = predictions(
        table,
        label=asked.label,
        group=grouping.column,
        against=grouping.level,
        positive=asked.positive,
        real_label=asked.real_label,
        score=asked.score,
        prediction=asked.prediction,
        threshold=asked.threshold,
        cluster=asked.cluster,
        weight=asked.weight,
        bounds=asked.bounds,
    )
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


def _score_counts(table: Table, asked: Asked, grouping: Attribute, bins: int | None) -> Counts:
    return contingency(
        table,
        label=asked.label,
        group=grouping.column,
        against=grouping.level,
        positive=asked.positive,
        score=asked.score,
        bins=bins,
        bounds=asked.score_range if bins else asked.bounds,
    )
