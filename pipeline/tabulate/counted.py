"""From what a scan found to a table of counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from pipeline.audits.permutation.outcomes import Counts
from pipeline.tabulate import faults
from pipeline.tabulate.levels import group_names, in_order, label_classes, prediction_classes
from pipeline.tabulate.reading import Bins, Decision, Threshold
from pipeline.tabulate.table import Cell, Fault, Request, Table, TooManyCells
from pipeline.types import Array


def counted(
    table: Table, request: Request, cells: list[Cell] | TooManyCells, positive: str | None, against: str | None
) -> Counts:
    """The table group x label x cell; only cells with rows. Raises ValueError for whatever the user can mend."""
    if isinstance(cells, TooManyCells):
        raise faults.too_many_cells(table, cells, request.cells)
    if not cells:
        raise ValueError(f"{table.name} has no rows: an audit needs rows of data")
    by_group = tally((cell.group, cell.count) for cell in cells)
    by_label = tally((cell.label, cell.count) for cell in cells)
    by_outcome = tally((cell.outcome, cell.count) for cell in cells)
    faults.check_present(table, request.group, "group", by_group)
    faults.check_present(table, request.label, "label", by_label)
    if isinstance(request.outcome, Decision):
        faults.check_present(table, request.outcome.column, "prediction", by_outcome)
    else:
        by_fault: dict[Fault, int] = tally((cell.fault, cell.count) for cell in cells)
        faults.check_scores(table, request.outcome, "score", by_fault)
    labels = label_classes(table, request.label, by_label, positive)
    names = group_names(table, request.group, by_group, against)
    if isinstance(request.outcome, Decision):
        made = prediction_classes(table, request.outcome.column, by_outcome, labels)
    elif isinstance(request.outcome, Threshold):
        made = {0: 0, 1: 1}
    else:
        made = {outcome: k for k, outcome in enumerate(sorted(by_outcome))}
    groups = group_order(names, against)
    code = {name: g for g, name in enumerate(groups)}
    decided = isinstance(request.outcome, Decision | Threshold)
    summed = np.zeros((len(groups), 2, 2 if decided else len(made)), dtype=np.int64)
    for cell in cells:
        summed[code[names[cell.group]], labels[cell.label], made[cell.outcome]] += cell.count
    if decided:
        return Counts.of_decisions(summed, groups)
    return Counts(summed, groups, *_bounds(request, list(made)))


def group_order(names: Mapping[Any, str], against: str | None) -> tuple[str, ...]:
    """The groups in order; the one that is set against the others is the first."""
    distinct = dict.fromkeys(names.values())
    return tuple(in_order(distinct)) if against is None else (against, f"not {against}")


def tally(pairs: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """The sum of the counts of each value; all missing values are one, None."""
    total: Counter[Any] = Counter()
    for value, count in pairs:
        total[None if faults.is_missing(value) else value] += count
    return dict(total)


def _bounds(request: Request, outcomes: list[Any]) -> tuple[Array, Array]:
    """The lower and the upper bound of the scores in each cell."""
    if not isinstance(request.outcome, Bins):
        scores = np.array(outcomes, dtype=np.float64)
        return scores, scores
    edges, bins = request.outcome.edges, np.array(outcomes, dtype=np.int64)
    edges[-1] = request.outcome.high  # which the expression of an edge may miss by a rounding
    return edges[bins], edges[bins + 1]
