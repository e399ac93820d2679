"""The two groups of a map, and the space in which their counterparts are found."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from fairness_audits.arguments import Given
from fairness_audits.audits.fliptest.space import MISSING, Input, Space
from fairness_audits.audits.scaling import units
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.encoding import levels_of
from fairness_audits.inputs.table import Source, drawn, feature_names, numeric, two_classes
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.tables.levels import in_order, level_name, matching_level
from fairness_audits.tables.rows import Values, grouped
from fairness_audits.values import Array

LEAST_ROWS = 20
"""Fewest rows in a group. Smaller groups are not a distribution to map to."""


@dataclass(frozen=True)
class Group:
    """One group: ``level`` is its name, ``features`` are its rows of model inputs, indexed by their row in the file.

    ``ids`` (n,) are the values in the column ``id``, None without this option. ``label`` (n,) are the true classes
    0 and 1, None if they are unknown.
    """

    level: str
    features: pd.DataFrame
    ids: Array | None
    label: Array | None = None

    @property
    def rows(self) -> Array:
        """Return the rows' numbers in the file, counted from 0."""
        return self.features.index.to_numpy()


@dataclass(frozen=True)
class Groups:
    """The source group, which is mapped, and the target group.

    ``left_out`` counts the other rows of the file by reason. ``label_levels`` are the label values coded as 0 and 1.
    """

    source: Group
    target: Group
    left_out: Mapping[str, int]
    label_levels: tuple[str, str] | None


def read_groups(data: Source, given: Given, drop: Sequence[str] = (), include_group: bool = False) -> Groups:
    """Return the two requested groups.

    Raises InvalidInput for columns and levels that do not exist, columns with two roles, and groups with too few rows.
    """
    table, path = data.table, data.name
    apart = () if given.id is None else (given.id,)
    check_columns(table, apart, "id", path)
    names = feature_names(data, given.features, (*drop, *apart), given.label, [given.group], "group", include_group)
    values = Values.of(data, given.group, "group", table[given.group])
    levels = [level_name(value) for value in values.distinct]
    group = np.array(levels)[values.which]
    source = matching_level(data, given.group, levels, given.source, "source")
    target = matching_level(data, given.group, levels, given.target, "target")
    if source == target:
        other = next((level for level in in_order(levels) if level != source), None)
        remedy = (
            f"Name another group, target={other}" if other is not None else "There is no other group to compare with"
        )
        raise InvalidInput(
            f"{path}: source and target are both {source}",
            source=path,
            option="target",
            column=given.group,
            remedy=remedy,
        )
    either = np.isin(group, [source, target])
    label, label_levels = _labels(data, either, given)
    of_label = np.ones(len(table), dtype=bool) if given.given_label is None else label == given.given_label
    left_out = {"of other groups": int((~either).sum())}
    if given.given_label is not None:
        left_out["of the other label"] = int((either & ~of_label).sum())
    place = places_by_content(table, list(names))
    found, limited = [], 0
    for option, level in (("source", source), ("target", target)):
        members = np.flatnonzero((group == level) & of_label)
        members = members[np.argsort(place[members])]
        chosen = drawn(members, given.limit, "fliptest", "limit", str(given.seed), level)
        chosen = chosen[np.argsort(place[chosen])]
        limited += len(members) - len(chosen)
        if len(chosen) < LEAST_ROWS:
            note = "" if given.given_label is None else f" with label {given.given_label}"
            raise InvalidInput(
                f"{path}: the group {level} ({option}) has {len(chosen)} rows{note}, expected at least {LEAST_ROWS}",
                source=path,
                option=option,
                column=given.group,
                remedy="A map needs enough rows to fit. Use more rows, a larger group, or a larger limit, if set",
            )
        # Beside an empty cell, whole numbers are read as floating-point numbers.
        ids = None if given.id is None else table[given.id].convert_dtypes().to_numpy(dtype=object)[chosen]
        known = None if label_levels is None else label[chosen]
        found.append(Group(level, table.loc[chosen, list(names)], ids, known))
    if given.id is not None:
        ids = table.loc[[*found[0].rows, *found[1].rows], given.id].astype(str).sort_index()
        if repeated := sorted(set(ids[ids.duplicated()])):
            raise InvalidInput(
                f"{path}: expected distinct values in {given.id!r} (id), found repeated values "
                f"{listed(repeated, SHOWN)}",
                source=path,
                option="id",
                column=given.id,
                row=int(ids.index[ids.duplicated()][0]),
                remedy="Name a column with distinct values, or keep one row for each value",
            )
    if given.limit is not None:
        left_out["beyond the limit"] = limited
    return Groups(found[0], found[1], left_out, label_levels)


def places_by_content(table: pd.DataFrame, features: Sequence[str]) -> Array:
    """Return the position (n,) of each row in an order that does not depend on the order of rows and columns.

    The order is by feature, column by column in the order of the names, then by the other columns. Only rows that are
    equal in all columns keep their order.
    """
    others = [name for name in table.columns if name not in features]
    order = np.lexsort([_codes(table[name]) for name in [*sorted(features), *sorted(others)]][::-1])
    place = np.empty(len(table), dtype=np.int64)
    place[order] = np.arange(len(table))
    return place


def _codes(column: pd.Series) -> Array:
    """Return numbers (n,) in the order of the values: numbers by size, other values by their text."""
    if pd.api.types.is_numeric_dtype(column.dtype) and not pd.api.types.is_complex_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = np.array([str(value) for value in column.tolist()], dtype=object)  # includes missing values
    return np.unique(values, return_inverse=True)[1].reshape(-1)


def _labels(data: Source, rows: Array, given: Given) -> tuple[Array, tuple[str, str] | None]:
    """Return the true classes (n,) of the ``rows`` (n,), -1 elsewhere, and the names of 0 and 1, None if unknown."""
    label = np.full(len(data.table), -1)
    if given.label is None:
        if given.given_label is not None:
            problem = "given_label is a value of the true label, but there is no label"
            raise InvalidInput(problem, option="given_label", remedy="Give the label, or drop given_label")
        return label, None
    some = replace(data, table=data.table[rows])
    column = some.table[given.label]
    if given.given_label is None and given.positive is None and set(column.unique().tolist()) != {0, 1}:
        return label, None
    if given.positive is not None and column.nunique() > 2:
        codes, (one, rest) = grouped(some, given.label, column, given.positive, "label", "positive")
        label[rows] = 1 - codes
        return label, (rest, one)
    label[rows], levels = two_classes(some, given.label, given.positive)
    return label, levels


def space_of(groups: Groups, standardize: Literal["continuous", "none"], codes: Collection[str], path: str) -> Space:
    """Return the space of the two groups' rows, in which numeric ``codes`` are categories.

    Raises InvalidInput for infinite values, for columns that are neither numbers nor categories, and if nothing is left
    to map.
    """
    ordered = pd.concat([groups.source.features, groups.target.features])
    frame = ordered.sort_index()  # messages refer to rows in this order
    texts = ("O", "U", "S", "b")  # NumPy kinds of objects, text and booleans
    categories = [
        name
        for name, kind in frame.dtypes.items()
        if name in codes
        or kind == "category"
        or getattr(kind, "kind", "O") in texts
        or (frame[name].isna().any() and frame[name].nunique() <= 2)
    ]
    numbers = [name for name in frame.columns if name not in categories]
    source = Source(path, frame)
    values = numeric(source, numbers, True, "numbers or text") if numbers else np.zeros((len(frame), 0))
    values = values[frame.index.get_indexer(ordered.index)]  # rounding must not depend on the row order
    measured = units(values, numbers, standardize)
    inputs = []
    for name in frame.columns:
        if name in categories:
            missing = [np.nan] * bool(frame[name].isna().any())
            levels = pd.Series([*levels_of(source, frame[name]), *missing], dtype=frame[name].dtype)
            inputs.append(Input(name, levels=levels))
            continue
        j = numbers.index(name)
        own = values[~np.isnan(values[:, j]), j]
        distinct_values = np.unique(own)
        pair = (float(distinct_values[0]), float(distinct_values[1])) if len(distinct_values) == 2 else None
        whole = bool((distinct_values == np.round(distinct_values)).all())
        shift, scale = float(measured.shift[j]), float(measured.scale[j])
        inputs.append(Input(name, shift, scale, pair, whole, fill=(float(own.mean()) - shift) / scale))
        if len(own) < len(frame):
            inputs.append(Input(f"{name} is {MISSING}", levels=pd.Series([False, True]), gap_of=name))
    still = Space(tuple(inputs), np.arange(0), measured.standardized)
    sides = [still.points(group.features) for group in (groups.source, groups.target)]
    # An input moves if it varies within at least one group. A category moves as a whole, a number together with its
    # gaps.
    varies = np.any([np.ptp(points, axis=0) > 0 for points in sides], axis=0)
    owner = np.array([one.gap_of or one.name for one in inputs for _ in one.labels])
    moving = np.flatnonzero(np.isin(owner, owner[varies]))
    moving = moving[np.argsort(np.array(still.labels)[moving], kind="stable")]  # nor on the column order
    if not len(moving):
        raise InvalidInput(
            f"{path}: every feature is constant in {groups.source.level} and in {groups.target.level}",
            source=path,
            option="features",
            remedy="A map needs features that vary. Choose other features",
        )
    return replace(still, moving=moving)
