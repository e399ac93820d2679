"""Which images are audited, with their true classes and groups: the table of attributes joined with the images."""

from __future__ import annotations

import difflib
from argparse import Namespace
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.cli.audit.robustness_bias.groups import chosen, partition_of, true_classes
from pipeline.cli.audit.robustness_bias.images import (
    SUFFIXES,
    Images,
    array_images,
    check_path,
    files_in,
    folder_images,
)
from pipeline.datasets.image_sets import stratified_order
from pipeline.messages import SHOWN, check_columns, listed
from pipeline.seeds import generators
from pipeline.types import Array

USUAL = ("file", "filename", "file_name", "image", "path")
"""Columns that are taken for the file names without being told."""


@dataclass(frozen=True)
class Points:
    """``rows`` (n,) of the table are audited: row i holds the i-th image, of true class ``label`` (n,) or None.

    ``partitions`` part these n points. ``facts`` are for the document.
    """

    images: Images
    rows: Array
    label: Array | None
    partitions: tuple[Partition, ...]
    facts: dict[str, Any]

    @property
    def names(self) -> list[str]:
        """What the audited images are called."""
        return [self.images.names[row] for row in self.rows]

    def only(self, kept: Array) -> Points:
        """The points where ``kept`` (n,) bool."""
        return replace(
            self,
            rows=self.rows[kept],
            label=None if self.label is None else self.label[kept],
            partitions=tuple(Partition(one.name, one.levels, one.codes[kept]) for one in self.partitions),
        )


def read_points(table: pd.DataFrame, arguments: Namespace) -> Points:
    """The audited images. Raises ValueError for everything about images and table that the user can mend."""
    check_path(arguments.images)
    path: Path = arguments.partition
    name = _file_column(table, arguments) if arguments.images.is_dir() else None
    if arguments.label is not None:
        check_columns(table, [arguments.label], "--label", str(path))
    images, beside = _images(table, name, arguments)
    label = None if arguments.label is None else true_classes(table[arguments.label], arguments.classes, path)
    columns, passed_over = chosen(table, arguments, name)
    partitions = tuple(partition_of(table[column], path) for column in columns)
    facts = {"column": name, "rows": len(table), "passed_over": passed_over, **beside}
    everyone = Points(images, np.arange(len(table)), label, partitions, facts)
    everyone = everyone.only(~np.isin(everyone.rows, list(images.unreadable)))
    return everyone.only(_drawn(everyone, arguments.points, arguments.seed))


def _file_column(table: pd.DataFrame, arguments: Namespace) -> str:
    """The column of file names."""
    if arguments.file is not None:
        check_columns(table, [arguments.file], "--file", str(arguments.partition))
        return str(arguments.file)
    usual = [name for name in table.columns if str(name).lower() in USUAL]
    return str(usual[0] if usual else table.columns[0])


def _images(table: pd.DataFrame, column: str | None, arguments: Namespace) -> tuple[Images, dict[str, Any]]:
    """The images in the order of the table's rows, and what lies beside them unused."""
    path: Path = arguments.images
    if column is None:
        if arguments.file is not None:
            raise ValueError(f"--file names files, but {path} is an array: its images are in the order of the rows")
        images = array_images(path, arguments.array, arguments.layout, arguments.resize)
        if len(images.names) != len(table):
            raise ValueError(
                f"expected a row of {arguments.partition} for each image of {path}, in the same order; found "
                f"{len(table):,} rows and {len(images.names):,} images"
            )
        if arguments.channels not in (None, images.shape[0]):
            raise ValueError(f"--channels {arguments.channels}: the images of {path} have {images.shape[0]}")
        return images, {"unlisted": 0, "others": 0}
    for option in ("array", "layout"):
        if getattr(arguments, option) is not None:
            raise ValueError(f"--{option} is for a file of arrays, but {path} is a folder: leave it out")
    files, others = files_in(path)
    names = joined(table[column], files, path, arguments)
    unlisted = len(files) - len(set(names))
    return folder_images(path, names, arguments.channels, arguments.resize), {"unlisted": unlisted, "others": others}


def joined(column: pd.Series, files: Sequence[str], path: Path, arguments: Namespace) -> list[str]:
    """The file that each row names: by its path below the folder, folders and suffix left out where that is unique.

    Raises ValueError for names that are missing, not there, ambiguous or repeated, and for files that are no images.
    """
    table: Path = arguments.partition
    empty = column.index[column.isna()].tolist()
    if empty:
        raise ValueError(
            f"{table}: column {column.name!r} names no file in {listed(empty, SHOWN)} (rows counted from 0): fill it "
            "in or remove these rows"
        )
    asked = [str(value).replace("\\", "/").removeprefix("./") for value in column]
    meant = _meant(files)
    absent = [name for name in asked if name not in meant]
    if absent:
        raise ValueError(_absent(absent, files, path, str(column.name), arguments))
    ambiguous = [name for name in asked if len(meant[name]) > 1]
    if ambiguous:
        raise ValueError(
            f"{table}: {listed(ambiguous, SHOWN)} may be {listed(meant[ambiguous[0]], SHOWN)}: name images by their "
            f"path below {path}"
        )
    found = [meant[name][0] for name in asked]
    repeated = [name for name, count in Counter(found).items() if count > 1]
    if repeated:
        raise ValueError(
            f"{table}: expected one row for each image, found several for {listed(repeated, SHOWN)}: keep one of them"
        )
    return found


def _meant(files: Sequence[str]) -> dict[str, list[str]]:
    """The files that a name may stand for: a path below the folder, or the same without its folders or its suffix."""
    meant: dict[str, list[str]] = {}
    for file in files:
        name = file.rpartition("/")[2]
        for short in {name, file.rpartition(".")[0], name.rpartition(".")[0]}:
            meant.setdefault(short, []).append(file)
    return meant | {file: [file] for file in files}


def _absent(absent: Sequence[str], files: Sequence[str], path: Path, column: str, arguments: Namespace) -> str:
    """Why names of the table are no images of the folder."""
    shown = f"{arguments.partition}: column {column!r} names {listed(absent, SHOWN)}"
    other = [name for name in absent if (path / name).is_file()]
    if other:
        return (
            f"{shown}, which {'are' if len(other) > 1 else 'is'} in {path} but no image file (expected "
            f"{', '.join(SUFFIXES)}): convert it, or remove these rows"
        )
    near = difflib.get_close_matches(absent[0], files, n=1)
    hint = f" (did you mean {near[0]!r}?)" if near else f", which holds files such as {files[0]!r}"
    remedy = "" if arguments.file else "; --file names the column of file names if it is another"
    return f"{shown}: no such file below {path}{hint}. Add {len(absent):,} missing files or remove their rows{remedy}"


def _drawn(everyone: Points, points: int | None, seed: int) -> Array:
    """Which points are audited, (n,) bool: all, or so many that keep the shares of classes and groups."""
    n = len(everyone.rows)
    if points is None:
        return np.ones(n, dtype=bool)
    if points > n:
        raise ValueError(f"--points asks for {points:,} images, but there are {n:,}: leave it out to audit all of them")
    traits = [one.codes for one in everyone.partitions]
    traits += [] if everyone.label is None else [everyone.label]
    _, cells = np.unique(np.stack(traits, axis=1), axis=0, return_inverse=True)
    (rng,) = generators("audit", "robustness", "points", str(seed), repetitions=1)
    drawn = np.zeros(n, dtype=bool)
    drawn[stratified_order(cells.ravel(), rng)[:points]] = True
    return drawn
