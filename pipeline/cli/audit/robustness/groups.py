"""The groups that are compared: columns of few levels, each a partition of the images."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.cli.columns import level_text
from pipeline.messages import SHOWN, check_columns, listed

if TYPE_CHECKING:
    import pandas as pd

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
    names, passed_over = [], {}
    for name in table.columns:
        if name in (file, arguments.label):
            continue
        levels = table[name].dropna().nunique()
        if levels < 2:
            passed_over[str(name)] = "the same in every row" if levels else "empty"
        elif levels > FEW_LEVELS:
            passed_over[str(name)] = f"{levels:,} levels"
        else:
            names.append(str(name))
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
    import pandas as pd

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


def check_sizes(partitions: Sequence[Partition], least: int) -> None:
    """ValueError for a level of fewer than ``least`` audited images."""
    for partition in partitions:
        sizes = np.bincount(partition.codes[partition.codes >= 0], minlength=len(partition))
        small = [f"{partition.levels[level]} ({sizes[level]})" for level in np.flatnonzero(sizes < least)]
        if small:
            raise ValueError(
                f"expected at least {least} audited images in every group, found fewer in {partition.name}: "
                f"{listed(small, SHOWN)}. Audit more images, merge these levels or empty their cells (a level unknown "
                f"is left out), compare other columns with --group, or lower --min-group"
            )
