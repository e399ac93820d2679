"""From what a scan found to a table of counts, or, where counts are not enough, to the rows themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.audits.permutation.outcomes import Counts, Predictions, decided
from pipeline.tabulate import levels
from pipeline.tabulate.frames import numbers
from pipeline.tabulate.levels import group_names, in_order, label_classes, prediction_classes
from pipeline.tabulate.table import FAULTS, Bins, Cell, Decision, Fault, Request, Score, Table, Threshold, TooManyCells
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd


def counted(
    table: Table, request: Request, cells: list[Cell] | TooManyCells, positive: str | None, against: str | None
) -> Counts:
    """The table group x label x cell; only cells with rows. Raises ValueError for whatever the user can mend."""
    if isinstance(cells, TooManyCells):
        raise levels.too_many_cells(table, cells, request.cells)
    if not cells:
        raise ValueError(f"{table.name} has no rows: an audit needs rows of data")
    by_group = tally((cell.group, cell.count) for cell in cells)
    by_label = tally((cell.label, cell.count) for cell in cells)
    by_outcome = tally((cell.outcome, cell.count) for cell in cells)
    levels.check_present(table, request.group, "group", by_group)
    levels.check_present(table, request.label, "label", by_label)
    if isinstance(request.outcome, Decision):
        levels.check_present(table, request.outcome.column, "prediction", by_outcome)
    else:
        by_fault: dict[Fault, int] = tally((cell.fault, cell.count) for cell in cells)
        levels.check_scores(table, request.outcome, "score", by_fault)
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
        total[None if levels.is_missing(value) else value] += count
    return dict(total)


def _bounds(request: Request, outcomes: list[Any]) -> tuple[Array, Array]:
    """The lower and the upper bound of the scores in each cell."""
    if not isinstance(request.outcome, Bins):
        scores = np.array(outcomes, dtype=np.float64)
        return scores, scores
    edges, bins = request.outcome.edges, np.array(outcomes, dtype=np.int64)
    edges[-1] = request.outcome.high  # which the expression of an edge may miss by a rounding
    return edges[bins], edges[bins + 1]


@dataclass(frozen=True)
class Roles:
    """Which columns play which part. ``real_label`` allows any number as label; ``bounds`` are those of the scores."""

    label: str
    group: str
    score: str | None = None
    prediction: str | None = None
    cluster: str | None = None
    weight: str | None = None
    real_label: bool = False
    bounds: tuple[float, float] = (-np.inf, np.inf)

    @property
    def columns(self) -> Mapping[str, str | None]:
        """The columns by role."""
        roles = ("label", "group", "score", "prediction", "cluster", "weight")
        return {role: getattr(self, role) for role in roles}


def fetched(table: Table, columns: Sequence[str], values: int) -> pd.DataFrame:
    """The columns in the order of the rows. Raises ValueError where they would hold more than ``values`` values."""
    import pandas as pd

    rows = table.size()
    if rows == 0:
        raise ValueError(f"{table.name} has no rows: an audit needs rows of data")
    if rows * len(columns) > values:
        raise ValueError(
            f"{table.name}: {rows:,} rows of {len(columns)} columns are {rows * len(columns):,} values, more than the "
            f"{values:,} that may be fetched into memory. Metrics of counts need no rows: give predictions, a "
            "threshold or bins; otherwise audit a random sample, or allow more"
        )
    return pd.DataFrame(table.arrays(columns))


def predicted(
    table: Table, roles: Roles, threshold: float | None, positive: str | None, against: str | None, values: int
) -> Predictions:
    """One entry for each row, checked as the counts are. Raises ValueError for whatever the user can mend."""
    levels.check_named(table, roles.columns)
    columns = [column for column in roles.columns.values() if column is not None]
    frame = fetched(table, columns, values)
    group, groups = _grouped(table, roles.group, frame[roles.group], against)
    labels: Mapping[Any, int] = {}
    if roles.real_label:
        label = _numeric(table, Score(roles.label), "label", frame[roles.label])
    else:
        label, labels = _labelled(table, roles.label, frame[roles.label], positive)
    prediction = None
    if roles.prediction is not None:
        made = Values.of(table, roles.prediction, "prediction", frame[roles.prediction])
        prediction = made.coded(prediction_classes(table, roles.prediction, made.counts, labels))
    score = prediction
    if roles.score is not None:
        score = _numeric(table, Score(roles.score, *roles.bounds), "score", frame[roles.score])
        if threshold is not None:
            prediction = decided(score, threshold)
    if score is None:
        raise ValueError("expected a score or a prediction column, found neither: name one of them")
    weight, cluster = None, None
    if roles.weight is not None:
        weight = _numeric(table, Score(roles.weight, 0.0), "weight", frame[roles.weight])
    if roles.cluster is not None:
        cluster = _clustered(table, roles, frame, group)
    return Predictions(label, score.astype(np.float64), group, groups, prediction, weight, cluster)


def measured(
    table: Table, columns: Sequence[str], label: str | None, positive: str | None, values: int
) -> dict[str, Array]:
    """Columns as doubles; the one called ``label`` holds two classes, and becomes 0 and 1."""
    levels.check_named(table, {f"column {position + 1}": column for position, column in enumerate(columns)})
    frame = fetched(table, columns, values)
    found: dict[str, Array] = {}
    for column in columns:
        if column == label:
            found[column] = _labelled(table, column, frame[column], positive)[0].astype(np.float64)
        else:
            found[column] = _numeric(table, Score(column), "numbers", frame[column])
    return found


@dataclass(frozen=True)
class Values:
    """A column without gaps: ``which`` (n,) of its ``distinct`` values each row has, and the numbers of rows."""

    which: Array
    distinct: Sequence[Any]
    counts: Mapping[Any, int]

    @classmethod
    def of(cls, table: Table, column: str, role: str, found: pd.Series) -> Values:
        """Raises ValueError where a row has no value."""
        import pandas as pd

        which, levels = pd.factorize(found, use_na_sentinel=True)
        counts = np.bincount(which + 1, minlength=len(levels) + 1).tolist()
        distinct = np.asarray(levels, dtype=object).tolist()
        by_value = tally(zip(distinct, counts[1:], strict=True)) | ({None: counts[0]} if counts[0] else {})
        levels.check_present(table, column, role, by_value)
        return cls(which, distinct, by_value)

    def coded(self, codes: Mapping[Any, int]) -> Array:
        """The code of each row's value, (n,)."""
        return np.array([codes[value] for value in self.distinct], dtype=np.int64)[self.which]


def _grouped(table: Table, column: str, found: pd.Series, against: str | None) -> tuple[Array, tuple[str, ...]]:
    """The code of each row's group, and the groups' names in order."""
    values = Values.of(table, column, "group", found)
    names = group_names(table, column, values.counts, against)
    order = group_order(names, against)
    return values.coded({value: order.index(name) for value, name in names.items()}), order


def _labelled(table: Table, column: str, found: pd.Series, positive: str | None) -> tuple[Array, Mapping[Any, int]]:
    """The label as 0 and 1, and which class each of its values is."""
    values = Values.of(table, column, "label", found)
    labels = label_classes(table, column, values.counts, positive)
    return values.coded(labels), labels


def _numeric(table: Table, bounds: Score, role: str, found: pd.Series) -> Array:
    values, fault = numbers(found, bounds)
    levels.check_scores(table, bounds, role, {name: int((fault == code).sum()) for code, name in enumerate(FAULTS)})
    return values


def _clustered(table: Table, roles: Roles, frame: pd.DataFrame, group: Array) -> Array:
    """The code of each row's cluster. Raises ValueError for a cluster that has rows in two groups."""
    import pandas as pd

    column = str(roles.cluster)
    codes, levels = pd.factorize(frame[column])
    if missing := int((codes < 0).sum()):
        levels.check_present(table, column, "cluster", {None: missing, "": len(codes) - missing})
    group_of = np.full(len(levels), -1)
    group_of[codes] = group
    if (torn := np.unique(codes[group_of[codes] != group])).size:
        raise ValueError(
            f"{table.name}: {torn.size:,} values of column {column!r} (cluster) have rows in more than one group of "
            f"{roles.group!r}, the first being {str(levels[torn[0]])!r}: the rows of a cluster are permuted "
            "together, so they must all be of one group"
        )
    return codes.astype(np.int64)
