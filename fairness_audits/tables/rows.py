"""Conversion of a scan into a table of counts, or into arrays of rows if counts are not enough."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.audits.permutation.outcomes import Counts, MatchedRows, Predictions, decided
from fairness_audits.errors import InvalidInput
from fairness_audits.tables import levels
from fairness_audits.tables.levels import group_names, in_order, label_classes, prediction_classes
from fairness_audits.tables.table import (
    FAULTS,
    Decision,
    Fault,
    Placed,
    Request,
    Score,
    Threshold,
    as_written,
    in_precision_of,
    precision_of,
)
from fairness_audits.tables.typed import nested
from fairness_audits.values import Array

if TYPE_CHECKING:
    import pandas as pd

    from fairness_audits.tables.frame import Table


VALUES = 200_000_000
"""Maximum number of values (rows times columns, 8 bytes each) to fetch into memory."""


def counted(table: Table, request: Request, positive: str | None, against: str | None) -> Counts:
    """Return the table group x label x cell with the cells that have rows. Raises InvalidInput for invalid data."""
    if not (cells := table.cells(request)):
        raise InvalidInput(f"{table.name} has no rows. An audit needs rows of data", source=table.name)
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
    labels = label_classes(table, request.label, by_label, positive, several=True)
    names = group_names(table, request.group, by_group, against)
    if isinstance(request.outcome, Decision):
        made = prediction_classes(table, request.outcome.column, by_outcome, labels)
    elif isinstance(request.outcome, Threshold):
        made = {0: 0, 1: 1}
    else:
        made = {score: k for k, score in enumerate(sorted(by_outcome))}
    groups = group_order(names, against)
    code = {name: g for g, name in enumerate(groups)}
    decided = isinstance(request.outcome, Decision | Threshold)
    summed = np.zeros((len(groups), 2, 2 if decided else len(made)), dtype=np.int64)
    for cell in cells:
        summed[code[names[cell.group]], labels[cell.label], made[cell.outcome]] += cell.count
    if decided:
        return Counts.of_decisions(summed, groups)
    return Counts(summed, groups, np.array(list(made), dtype=np.float64))


def group_order(names: Mapping[Any, str], against: str | None) -> tuple[str, ...]:
    """Return the groups in order, starting with ``against`` if it is given."""
    return tuple(in_order(names.values()) if against is None else sorted(set(names.values()), key=against.__ne__))


def tally(pairs: Iterable[tuple[Any, int]]) -> dict[Any, int]:
    """Sum the counts of each value; all missing values are counted under None."""
    total: Counter[Any] = Counter()
    for value, count in pairs:
        total[None if levels.is_missing(value) else value] += count
    return dict(total)


def predictions(
    table: Table,
    *,
    label: str,
    group: str,
    score: str | None = None,
    prediction: str | None = None,
    threshold: float | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    matched: str | None = None,
    regression: bool = False,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    positive: str | None = None,
    against: str | None = None,
    values: int = VALUES,
) -> Predictions:
    """Return the rows of an ``opened`` table in their order, with the same checks as ``contingency``.

    ``cluster`` is a column of people (or other units) whose rows belong together. ``weight`` is a column of row
    weights; rows of weight 0 are left out. ``matched`` is a column of pairs; a cluster holds whole pairs. With
    ``regression``, the label is any number. Without a score, the prediction takes its place. ``values`` is the maximum
    number of values (rows times columns).
    """
    roles = {"label": label, "group": group, "score": score, "prediction": prediction, "cluster": cluster}
    roles |= {"weight": weight, "matched": matched}
    frame = _fetched(table, roles, values)
    codes, groups = grouped(table, group, frame[group], against)
    outcome, scores, decision = outcomes(
        table,
        frame,
        label=label,
        score=score,
        prediction=prediction,
        threshold=threshold,
        bounds=bounds,
        regression=regression,
        positive=positive,
    )
    assert outcome is not None
    if scores is None:
        if decision is None:
            problem = "expected a score or a prediction column, found neither"
            raise InvalidInput(problem, source=table.name, option="score", remedy="Name one of them")
        scores = decision.astype(np.float64)
    if matched is not None:
        rows = Predictions(outcome, scores, codes, groups, decision)
        return _matched(table, frame, rows, matched, cluster)
    units = None if cluster is None else _clustered(table, cluster, frame[cluster], group, codes)
    weights = None if weight is None else numeric(table, Score(weight, low=0.0), "weight", frame[weight])
    found = Predictions(outcome, scores, codes, groups, decision, units, weights)
    if weights is None or weights.all():
        return found
    table.notes["no_weight"] = {"count": int((weights == 0).sum())}
    return found.select(weights > 0, groups, codes)


def outcomes(
    table: Table,
    frame: pd.DataFrame,
    *,
    label: str | None,
    score: str | None,
    prediction: str | None,
    threshold: float | None,
    positive: str | None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
    regression: bool = False,
) -> tuple[Array | None, Array | None, Array | None]:
    """Check and return the label, score and decision of each row of a ``frame``; None for a column without a name."""
    outcome, classes = None, dict[Any, int]()
    if label is not None and regression:
        outcome = numeric(table, Score(label), "label", frame[label])
    elif label is not None:
        outcome, known = labelled(table, label, frame[label], positive, several=True)
        classes = dict(known)
    decision, scores = None, None
    if prediction is not None:
        made = Values.of(table, prediction, "prediction", frame[prediction])
        decision = made.coded(prediction_classes(table, prediction, made.counts, classes))
    if score is not None:
        precision = table.precision(score)
        bounded = in_precision_of(Score(score, *bounds), precision)
        scores = numeric(table, bounded, "score", frame[score]).astype(precision)
        if threshold is not None:
            decision = decided(scores, threshold)
    return outcome, scores, decision


def numbers(table: Table, columns: Sequence[str], values: int = VALUES, role: str = "numbers") -> dict[str, Array]:
    """Return columns of an ``opened`` table as doubles (n,) in the order of the rows.

    Raises InvalidInput as :func:`predictions` does, also if a row does not have a finite number; its option is that of
    the ``role``, if there is one.
    """
    roles = [role] if len(columns) == 1 else [f"column {position + 1}" for position in range(len(columns))]
    frame = _fetched(table, dict(zip(roles, columns, strict=True)), values)
    return {column: numeric(table, Score(column), role, frame[column]) for column in columns}


def _fetched(table: Table, roles: Mapping[str, str | None], values: int) -> pd.DataFrame:
    """Fetch the columns, by role, in the order of the rows; at most ``values`` values."""
    import pandas as pd

    levels.check_named(table, roles)
    columns, rows = [column for column in roles.values() if column is not None], table.size()
    if rows == 0:
        raise InvalidInput(f"{table.name} has no rows. An audit needs rows of data", source=table.name)
    if rows * len(columns) > values:
        raise InvalidInput(
            f"{table.name}: {rows:,} rows of {len(columns)} columns are {rows * len(columns):,} values, more than "
            f"the {values:,} that fit the limit for memory",
            source=table.name,
            remedy=("Use predictions or a threshold, for which counts are enough. Otherwise, audit a random sample"),
        )
    return pd.DataFrame(table.arrays(columns))


@dataclass(frozen=True)
class Values:
    """A column without missing values: row i has the value ``distinct[which[i]]``; ``counts`` has rows per value."""

    which: Array
    distinct: Sequence[Any]
    counts: Mapping[Any, int]

    @classmethod
    def of(cls, table: Placed, column: str, role: str, found: pd.Series) -> Values:
        """Encode a column. Raises InvalidInput for missing values and for nested or binary values, such as lists."""
        import pandas as pd
        from pandas.api.types import is_float_dtype

        if kind := nested(found):
            raise levels.of_other_type(table, column, kind, role)
        if is_float_dtype(found) and isinstance(found.dtype, pd.ArrowDtype):
            found = pd.Series(found.to_numpy(dtype=precision_of(found), na_value=np.nan))
        which, distinct = pd.factorize(found, use_na_sentinel=True)
        counts = np.bincount(which + 1, minlength=len(distinct) + 1).tolist()
        if is_float_dtype(found):
            distinct = as_written(distinct, precision_of(found))
        distinct = np.asarray(distinct, dtype=object).tolist()
        by_value = tally(zip(distinct, counts[1:], strict=True)) | ({None: counts[0]} if counts[0] else {})
        levels.check_present(table, column, role, by_value)
        return cls(which, distinct, by_value)

    def coded(self, codes: Mapping[Any, int]) -> Array:
        """Return the code of each row's value, (n,)."""
        return np.array([codes[value] for value in self.distinct], dtype=np.int64)[self.which]


def grouped(
    table: Placed, column: str, found: pd.Series, against: str | None, role: str = "group", names_one: str = ""
) -> tuple[Array, tuple[str, ...]]:
    """Return each row's group code and the ordered group names.

    ``role`` is the option that names the column. The option ``names_one`` (by default, the same) names a group to set
    ``against`` all others.
    """
    values = Values.of(table, column, role, found)
    names = group_names(table, column, values.counts, against, names_one or role)
    order = group_order(names, against)
    return values.coded({value: order.index(name) for value, name in names.items()}), order


def labelled(
    table: Placed, column: str, found: pd.Series, positive: str | None, several: bool = False
) -> tuple[Array, Mapping[Any, int]]:
    """Return the label as 0 and 1, and the class of each of its values; with ``several``, many values may be 0."""
    values = Values.of(table, column, "label", found)
    labels = label_classes(table, column, values.counts, positive, several)
    return values.coded(labels), labels


def doubles(column: pd.Series, bounds: Score) -> tuple[Array, Array]:
    """Return a column as doubles (NaN if there is no number), and the code of each row's fault."""
    import pandas as pd
    from pandas.api.types import is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

    if is_datetime64_any_dtype(column):
        problem = f"expected numbers in column {column.name!r}, found {column.dtype}"
        raise InvalidInput(problem, column=str(column.name))
    missing = column.isna().to_numpy()
    if is_numeric_dtype(column) or is_bool_dtype(column):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = pd.to_numeric(column, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        missing = missing | (column.astype(str).str.strip().str.lower() == "nan").to_numpy(dtype=bool)
    inside = (values >= bounds.low) & (values <= bounds.high) & np.isfinite(values)
    fault = np.select([missing, np.isnan(values), inside], [FAULTS.index(f) for f in ("missing", "text", "none")], 3)
    return values, fault


def numeric(table: Placed, bounds: Score, role: str, found: pd.Series, gaps: bool = False) -> Array:
    """Return a column as doubles (n,), checked against the bounds; with ``gaps``, missing values become NaN."""
    values, fault = doubles(found, bounds)
    counts: dict[Fault, int] = {name: int((fault == code).sum()) for code, name in enumerate(FAULTS)}
    levels.check_scores(table, bounds, role, counts | {"missing": 0} if gaps else counts)
    return values


def _matched(table: Table, frame: pd.DataFrame, rows: Predictions, matched: str, cluster: str | None) -> MatchedRows:
    """Return the rows with their pairs. Each cluster holds whole pairs.

    Raises InvalidInput, which names a pair, for one with a single row, two rows of one group, or rows in two clusters.
    """

    def named(column: str, role: str) -> tuple[Array, list[str]]:
        values = Values.of(table, column, role, frame[column])
        return values.which.astype(np.int64), list(map(levels.level_name, values.distinct))

    match, names = named(matched, "matched")
    sizes = np.bincount(match)
    cell, counts = np.unique(match * len(rows.groups) + rows.group, return_counts=True)
    whole = None if cluster is None else named(cluster, "cluster")[0]
    first = np.zeros(len(names), dtype=np.int64)
    if whole is not None:
        first[match] = whole
    torn = [] if whole is None else match[first[match] != whole]
    problems = (
        (np.flatnonzero(sizes == 1), "a single row", "Give both rows of each pair"),
        (cell[counts > 1] // len(rows.groups), "several rows of one group", "Give one row of each group"),
        (torn, "rows in several clusters", "Give all rows of a pair the same cluster"),
    )
    for wrong, problem, remedy in problems:
        if len(wrong):
            count = len(np.unique(wrong))
            found = f"has {count:,} pair{'s' * (count > 1)} with {problem}, such as {names[wrong[0]]!r}"
            raise levels.unfit(table, matched, "matched", found, remedy)
    own = None if whole is None else np.unique(whole * len(rows.groups) + rows.group, return_inverse=True)[1]
    return MatchedRows(rows.label, rows.score, rows.group, rows.groups, rows.prediction, own, None, match, names, whole)


def _clustered(table: Table, column: str, found: pd.Series, group: str, codes_of_groups: Array) -> Array:
    """Return the code of each row's cluster. Raises InvalidInput if a cluster has rows in two groups."""
    import pandas as pd

    codes, names = pd.factorize(found)
    if missing := int((codes < 0).sum()):
        levels.check_present(table, column, "cluster", {None: missing, "": len(codes) - missing})
    group_of = np.full(len(names), -1)
    group_of[codes] = codes_of_groups
    if (torn := np.unique(codes[group_of[codes] != codes_of_groups])).size:
        problem = (
            f"{table.name}: {torn.size:,} values of column {column!r} (cluster) have rows in more than one group of "
            f"{group!r}, such as {str(names[torn[0]])!r}. The rows of a cluster are permuted together, so they must "
            "belong to one group"
        )
        raise InvalidInput(problem, source=table.name, option="cluster", column=column)
    return codes.astype(np.int64)
