"""From a table to the two groups of an audit: whose rows are mapped, whose rows they are mapped to."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.cli.columns import Attribute, Choice, distinct, feature_names, level_named, two_classes
from pipeline.messages import SHOWN, check_columns, listed
from pipeline.seeds import generators
from pipeline.types import Array

LEAST_ROWS = 20
"""With fewer rows in a group there is no distribution to map to."""


@dataclass(frozen=True)
class Group:
    """``level`` is the group's name; ``features`` its rows' model inputs, indexed by their number in the file.

    ``ids`` (n,) are the rows' values in the column of ``--id``, None without one; ``label`` (n,) their true classes 0
    and 1, None where they are not known.
    """

    level: str
    features: pd.DataFrame
    ids: Array | None
    label: Array | None = None

    @property
    def rows(self) -> Array:
        """The rows' numbers in the file, counted from 0."""
        return self.features.index.to_numpy()


@dataclass(frozen=True)
class Groups:
    """The group that is mapped and the group that it is mapped to.

    ``left_out`` counts the file's other rows by reason; ``label_levels`` say what the label's 0 and 1 stand for.
    """

    source: Group
    target: Group
    left_out: Mapping[str, int]
    label_levels: tuple[str, str] | None


def read_groups(table: pd.DataFrame, arguments: Namespace) -> Groups:
    """The two groups that the arguments ask for.

    Raises ValueError for columns and levels that do not exist, columns with two parts, and groups of too few rows.
    """
    path: Path = arguments.data
    names = _inputs(table, arguments)
    column = table[arguments.group]
    levels = distinct(column, "--group", path)
    source = level_named(levels, arguments.source, "--source", column, path)
    target = level_named(levels, arguments.target, "--target", column, path)
    if source == target:
        other = next((level for level in levels if level != source), None)
        remedy = f"name another group, --target {other}" if other is not None else "there is nobody to compare with"
        raise ValueError(f"{path}: --source and --target are both {source}: {remedy}")
    label, label_levels = _labels(table, column.isin([source, target]), arguments)
    asked_for = np.ones(len(table), dtype=bool) if arguments.given_label is None else label == arguments.given_label
    found, left_out = [], {"of other groups": int((~column.isin([source, target])).sum())}
    if arguments.given_label is not None:
        left_out["of the other label"] = int((column.isin([source, target]) & ~asked_for).sum())
    limited = 0
    for option, level in (("--source", source), ("--target", target)):
        members = np.flatnonzero((column == level).to_numpy() & asked_for)
        kept = _drawn(members, arguments.limit, arguments.seed, str(level))
        limited += len(members) - len(kept)
        if len(kept) < LEAST_ROWS:
            given = "" if arguments.given_label is None else f" with label {arguments.given_label}"
            raise ValueError(
                f"{path}: the group {level} ({option}) has {len(kept)} rows{given}, expected at least {LEAST_ROWS}: "
                "a map needs enough rows to find counterparts among; give more rows, or a larger group"
            )
        ids = None if arguments.id is None else table[arguments.id].to_numpy()[kept]
        known = None if label_levels is None else label[kept]
        found.append(Group(str(level), table.loc[kept, list(names)], ids, known))
    if arguments.id is not None:
        _check_ids(np.concatenate([one.ids for one in found if one.ids is not None]), arguments)
    if arguments.limit is not None:
        left_out["beyond the limit"] = limited
    return Groups(found[0], found[1], left_out, label_levels)


def _inputs(table: pd.DataFrame, arguments: Namespace) -> tuple[str, ...]:
    """The model's input columns."""
    path = str(arguments.data)
    apart = () if arguments.id is None else (arguments.id,)
    check_columns(table, apart, "--id", path)
    check_columns(table, (arguments.group,), "--group", path)
    choice = Choice(
        label=arguments.label,
        sensitive=(Attribute(arguments.group),),
        include_sensitive=arguments.include_group,
        features=arguments.features,
        drop=(*arguments.drop, *apart),
        option="--group",
    )
    return feature_names(table, choice, arguments.data)


def _labels(table: pd.DataFrame, rows: pd.Series, arguments: Namespace) -> tuple[Array, tuple[str, str] | None]:
    """The true classes (n,) of the ``rows`` (n,), -1 elsewhere, and the names of 0 and 1, None where not known.

    Raises ValueError where they are needed and not known.
    """
    label = np.full(len(table), -1)
    if arguments.label is None:
        for option in ("given_label", "positive"):
            if getattr(arguments, option) is not None:
                name = option.replace("_", "-")
                raise ValueError(f"--{name} is about the true label: name its column with --label, or leave it out")
        return label, None
    column = table.loc[rows, arguments.label]
    known = set(column.unique()) == {0, 1}
    if arguments.given_label is None and arguments.positive is None and not known:
        return label, None
    label[rows.to_numpy()], levels = two_classes(column, arguments.positive, arguments.data)
    return label, levels


def _check_ids(ids: Array, arguments: Namespace) -> None:
    values, counts = np.unique(ids.astype(str), return_counts=True)
    repeated = values[counts > 1].tolist()
    if repeated:
        raise ValueError(
            f"{arguments.data}: expected one row for each {arguments.id!r} (--id), found several for "
            f"{listed(repeated, SHOWN)}: name a column that tells the rows apart, or keep one row of each"
        )


def accuracies(label: Array | None, decision: Array) -> dict[str, float | None]:
    """The share of right decisions (n,), and its mean over the true classes; None where these are not known."""
    if label is None:
        return {"accuracy": None, "balanced_accuracy": None}
    right = decision == label
    by_class = [float(right[label == one].mean()) for one in (0, 1) if (label == one).any()]
    return {"accuracy": float(right.mean()), "balanced_accuracy": sum(by_class) / 2 if len(by_class) == 2 else None}


def _drawn(members: Array, limit: int | None, seed: int, level: str) -> Array:
    """At most ``limit`` of the rows, drawn at random, in the order of the file."""
    if limit is None or len(members) <= limit:
        return members
    (rng,) = generators("audit", "fliptest", "limit", str(seed), level, repetitions=1)
    return np.sort(rng.choice(members, size=limit, replace=False))
