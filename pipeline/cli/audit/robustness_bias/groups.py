"""The true class of each image, and the groups that are compared: columns of few levels, each a partition."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.cli.columns import level_text
from pipeline.messages import SHOWN, check_columns, listed
from pipeline.types import Array

FEW_LEVELS = 20
"""Columns of more levels are compared only where they are named."""
MOST_LEVELS = 1000


def chosen(table: pd.DataFrame, arguments: Namespace, file: str | None) -> tuple[list[str], dict[str, str]]:
    """The columns to compare by, and why other columns were passed over.

    Raises ValueError where a named column does not exist, is constant or has a level in every row, and where no column
    is left.
    """
    path = arguments.partition
    if arguments.group:
        names = list(dict.fromkeys(arguments.group))
        check_columns(table, names, "--group", str(path))
        if file in names:
            raise ValueError(f"--group names {file!r}, the column of file names: name a column of groups")
        for name in names:
            _check(table[name], path)
        return names, {}
    counts = {
        str(name): table[name].dropna().nunique() for name in table.columns if name not in (file, arguments.label)
    }
    names = [name for name, levels in counts.items() if 2 <= levels <= FEW_LEVELS]
    passed_over = {
        name: f"{levels:,} levels" if levels > FEW_LEVELS else "the same in every row" if levels else "empty"
        for name, levels in counts.items()
        if name not in names
    }
    if not names:
        why = listed([f"{name} ({told})" for name, told in passed_over.items()]) or "there is no other column"
        raise ValueError(
            f"{path}: expected a column of 2 to {FEW_LEVELS} levels to compare by, found none: {why}. Add a column of "
            "groups, or name one with --group"
        )
    return names, passed_over


def _check(column: pd.Series, path: Path) -> None:
    levels = sorted(map(str, column.dropna().unique()))
    if len(levels) < 2:
        what = f"is {levels[0]!r} in every row" if levels else "is empty"
        raise ValueError(
            f"{path}: expected two or more levels in --group {column.name}, but it {what}: a constant attribute makes "
            "no groups; name another column"
        )
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"{path}: --group {column.name} has {len(levels):,} levels, expected at most {MOST_LEVELS:,}: sort the "
            "values into classes"
        )


def partition_of(column: pd.Series, path: Path) -> Partition:
    """The partition of all rows by a column; a missing value is an unknown level."""
    texts = column.map(level_text, na_action="ignore")
    try:
        ordered = sorted(column.dropna().unique().tolist())
    except TypeError as error:
        raise ValueError(
            f"{path}: column {column.name!r} holds values that cannot be compared, of types "
            f"{listed(sorted({type(value).__name__ for value in column.dropna()}))}: write all of them alike"
        ) from error
    levels = list(dict.fromkeys(map(level_text, ordered)))
    codes = pd.Categorical(texts, categories=levels).codes.astype(np.int64)
    return Partition(str(column.name), tuple(levels), codes)


def sizes(partition: Partition) -> Array:
    """How many audited images each level has, (L,)."""
    return np.bincount(partition.codes[partition.codes >= 0], minlength=len(partition))


def check_sizes(partitions: Sequence[Partition], least: int) -> None:
    """ValueError for a level of fewer than ``least`` audited images."""
    for partition in partitions:
        small = [
            f"{name} ({size})" for name, size in zip(partition.levels, sizes(partition), strict=True) if size < least
        ]
        if small:
            raise ValueError(
                f"expected at least {least} audited images in every group, found fewer in {partition.name}: "
                f"{listed(small, SHOWN)}. Audit more images, merge these levels or empty their cells (a level unknown "
                f"is left out), compare other columns with --group, or lower --min-group"
            )


def true_classes(column: pd.Series, classes: Sequence[str] | None, path: Path) -> Array:
    """Labels (n,) int64 from 0: names among ``classes``, or whole numbers.

    Raises ValueError for missing labels, names without ``classes``, and names that are not among them.
    """
    holds = f"{path}: the label {column.name!r}"
    missing = column.index[column.isna()].tolist()
    if missing:
        raise ValueError(
            f"{holds} is missing in {listed(missing, SHOWN)} (rows counted from 0): fill it in or remove these rows"
        )
    texts = [level_text(value) for value in column]
    number = {name: place for place, name in enumerate(classes or ())}
    if classes is not None and len(number) < len(classes):
        raise ValueError(f"--classes names a class more than once: {listed(classes)}")
    if classes is not None and set(texts) <= set(classes):
        return np.array([number[text] for text in texts], dtype=np.int64)
    if all(text.isdigit() for text in texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    odd = sorted({text for text in texts if text not in number and (classes is not None or not text.isdigit())})
    if classes is None:
        raise ValueError(
            f"{holds} holds {listed(odd, SHOWN)}, expected the numbers of the model's outputs, from 0: give their "
            "names in the outputs' order with --classes A,B,C"
        )
    raise ValueError(f"{holds} holds {listed(odd, SHOWN)}, which --classes does not name. It names: {listed(classes)}")


def check_range(label: Array, count: int, arguments: Namespace) -> None:
    """ValueError unless the labels are outputs of a model of ``count`` classes and ``--classes`` names them all."""
    classes = arguments.classes
    if classes is not None and len(classes) != count:
        raise ValueError(
            f"--classes names {len(classes)} classes, but the model returns scores of {count}: name all, in the order "
            "of the outputs"
        )
    beyond = sorted(set(label[label >= count].tolist()))
    if beyond:
        raise ValueError(
            f"{arguments.partition}: the label {arguments.label!r} holds {listed(beyond, SHOWN)}, out of range: the "
            f"model has {count} classes, so expected 0 to {count - 1}. If classes are numbered from 1, or otherwise, "
            "name them with --classes"
        )
