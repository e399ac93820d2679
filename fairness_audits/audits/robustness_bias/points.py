"""The audited points, their groups, and the model's predictions for them; images and rows of a table alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from pandas.api.types import is_float_dtype

from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.probe import Answers, Scores
from fairness_audits.inputs.table import Source
from fairness_audits.messages import SHOWN, check_columns, listed
from fairness_audits.sampling import stratified_order
from fairness_audits.seeds import generators
from fairness_audits.tables.levels import in_order, level_name
from fairness_audits.tables.table import as_written, precision_of
from fairness_audits.values import Array

if TYPE_CHECKING:
    from fairness_audits.inputs.images import Images

FEW_LEVELS = 20
"""Largest number of levels of a column that is compared by default."""
MOST_LEVELS = 1000
MANY = 0.01
"""Smallest share of a group's points that a caveat names the group for."""


@dataclass(frozen=True)
class Points:
    """The audited ``rows`` (n,) of the table, which are people or name ``images``; true class ``label`` (n,) or None.

    ``partitions`` are partitions of these n points.
    """

    images: Images | None
    rows: Array
    label: Array | None
    partitions: tuple[Partition, ...]

    @property
    def unit(self) -> str:
        """Return what a point is: ``image`` or ``row``."""
        return "image" if self.images is not None else "row"

    @property
    def names(self) -> list[str]:
        """Return the names of the audited images."""
        assert self.images is not None
        return [self.images.names[row] for row in self.rows]

    def only(self, chosen: Array) -> Points:
        """Return the points where ``chosen`` (n,) is true."""
        return replace(
            self,
            rows=self.rows[chosen],
            label=None if self.label is None else self.label[chosen],
            partitions=tuple(Partition(one.name, one.levels, one.codes[chosen]) for one in self.partitions),
        )


@dataclass(frozen=True)
class Subjects:
    """The n ``points``, with the ``classifier`` tried on them."""

    points: Points
    classifier: Scores | Answers

    @property
    def prediction(self) -> Array:
        """Return the predicted class of each point, (n,)."""
        return self.classifier.prediction

    @property
    def classes(self) -> int:
        """Return the number of classes of the network."""
        return self.classifier.trial.shape[1]

    def mostly(self, few: Array) -> list[str]:
        """Return the groups where many of the correct points are among the ``few`` (n,), with their numbers."""
        found = []
        for one in self.points.partitions:
            for level, name in enumerate(one.levels):
                inside = one.codes == level
                count, right = int(few[inside].sum()), int(self.correct[inside].sum())
                found += [f"{one.name} = {name} ({count})"] if count > MANY * max(1, right) else []
        return found

    def failures(self, distance: Array) -> dict[str, Any]:
        """Return the quantities of the caveat on correct points without a distance (n,), empty if there are none."""
        failed = self.correct & np.isnan(distance)
        if not failed.any():
            return {}
        return {"failed": int(failed.sum()), "correct": int(self.correct.sum()), "where": self.mostly(failed)}

    @property
    def correct(self) -> Array:
        """Return which points are classified correctly, (n,); all points if there are no true classes."""
        return self.prediction == (self.prediction if self.points.label is None else self.points.label)


def sampled(everyone: Points, points: int | None, least: int, seed: int) -> Points:
    """Return a number of points, all if it is None, so that the shares of classes and groups are preserved.

    Raises InvalidInput if there are fewer points, or fewer than ``least`` of a level.
    """
    n = len(everyone.rows)
    if points is None:
        check_sizes(everyone, least)
        return everyone
    if points > n:
        problem = f"points={points} is more than the {n:,} {everyone.unit}s of the data"
        raise InvalidInput(problem, option="points", remedy="Leave it out to audit all of them")
    traits = [one.codes for one in everyone.partitions] + ([] if everyone.label is None else [everyone.label])
    _, cells = np.unique(np.stack(traits, axis=1), axis=0, return_inverse=True)
    (rng,) = generators("audit", "robustness", "points", str(seed), repetitions=1)
    some = everyone.only(np.isin(np.arange(n), stratified_order(cells.ravel(), rng)[:points]))
    check_sizes(some, least)
    return some


def compared(source: Source, group: Sequence[str], label: str | None, file: str | None = None) -> list[str]:
    """Return the columns to compare: ``group``, or all columns except the label and the file names.

    Raises InvalidInput if a named column does not exist, or if a column has one level or too many.
    """
    table, path, most = source.table, source.name, MOST_LEVELS if group else FEW_LEVELS
    check_columns(table, group, "group", path)
    if file in group:
        problem = f"group names {file!r}, the column of file names"
        raise InvalidInput(problem, source=path, option="group", column=file, remedy="Name a column of groups")
    names = list(dict.fromkeys(group)) or [name for name in table if name not in (file, label)]
    if not names:
        remedy = "Add a column of groups, or name one (group)"
        raise InvalidInput(f"{path} has no column of groups", source=path, option="group", remedy=remedy)
    for name in names:
        levels = table[name].nunique()
        if not 2 <= levels <= most:
            raise InvalidInput(
                f"{path}: a column of groups needs 2 to {most:,} levels, but {name!r} has {levels:,}",
                source=path,
                option="group",
                column=name,
                remedy="Compare other columns (group), or merge its values into fewer levels",
            )
    return names


def partition_of(column: pd.Series) -> Partition:
    """Return the partition of all rows by a column; a missing value is an unknown level."""
    if is_float_dtype(column):
        precision = precision_of(column)
        column = pd.Series(as_written(column.to_numpy(precision, na_value=np.nan), precision), name=column.name)
    texts = column.map(level_name, na_action="ignore")
    levels = in_order(texts.dropna())
    codes = pd.Index(levels, dtype=object).get_indexer(texts.astype(object)).astype(np.int64)
    return Partition(str(column.name), tuple(levels), codes)


def check_sizes(points: Points, least: int) -> None:
    """Raise InvalidInput if a level has fewer than ``least`` audited points."""
    for partition in points.partitions:
        sizes = np.bincount(partition.codes[partition.codes >= 0], minlength=len(partition))
        if small := [f"{name} ({size})" for name, size in zip(partition.levels, sizes, strict=True) if size < least]:
            raise InvalidInput(
                f"every group needs at least {least} audited {points.unit}s, but {partition.name} has fewer in "
                f"{listed(small, SHOWN)}",
                option="min_group",
                column=partition.name,
                remedy=f"Audit more {points.unit}s, merge these levels, empty their cells ({points.unit}s without a "
                "level are skipped), compare other columns (group), or lower min_group",
            )
