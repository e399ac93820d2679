"""The space in which counterparts are sought: numbers in comparable units, categories as indicators."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pandas as pd

from pipeline.cli.audit.fliptest.groups import Groups
from pipeline.cli.columns import distinct, numeric
from pipeline.cli.units import units
from pipeline.messages import check_columns
from pipeline.transport.plan import assigned
from pipeline.types import Array

MOST_LEVELS = 100
"""A column of text with more levels than this is a name or an identifier, not a category."""


@dataclass(frozen=True)
class Number:
    """z = (x - shift) / scale in one column.

    ``pair``: the two values of an input that takes no others, else None. ``whole``: it takes whole numbers only.
    """

    name: str
    shift: float
    scale: float
    pair: tuple[float, float] | None
    whole: bool

    @property
    def labels(self) -> tuple[str, ...]:
        """What the column is called in results."""
        return (self.name,)

    @property
    def weight(self) -> float:
        """What the column is multiplied by for a map."""
        return 1.0

    def encoded(self, values: pd.Series) -> Array:
        """Finite values (n,) as (n, 1)."""
        return (values.to_numpy(dtype=np.float64)[:, None] - self.shift) / self.scale

    def snapped(self, block: Array, target: Array) -> Array:
        """A finite column (n, 1) of values that the input can take: the nearest; of two, with the target's shares."""
        if not self.snaps:
            return block
        if self.pair is None:
            return self.encoded(self.decoded(block))
        low, high = (np.array(self.pair) - self.shift) / self.scale
        return np.where(_ones((block - low) / (high - low), target > (low + high) / 2), high, low)

    def decoded(self, block: Array) -> pd.Series:
        """A column (n, 1) as float64 values of the input."""
        values = block[:, 0] * self.scale + self.shift
        if self.pair is not None:
            low, high = self.pair
            return pd.Series(np.where(values > (low + high) / 2, high, low))
        return pd.Series(np.round(values) + 0.0 if self.whole else values)

    @property
    def snaps(self) -> bool:
        """Whether it takes some values only."""
        return self.pair is not None or self.whole


@dataclass(frozen=True)
class Category:
    """Of two levels (or one), a single column: 0 or 1. Of more, a column for each level: 1 where it is this one.

    With the ``weight`` the L1 distance between two different categories is 1 in both cases.
    """

    name: str
    levels: pd.Series

    @property
    def labels(self) -> tuple[str, ...]:
        """What the columns are called in results."""
        shown = self.levels if self._indicators else self.levels.iloc[-1:]
        return tuple(f"{self.name}={level}" for level in shown)

    @property
    def weight(self) -> float:
        """What the columns are multiplied by for a map."""
        return 0.5 if self._indicators else 1.0

    def encoded(self, values: pd.Series) -> Array:
        """Values (n,) as (n, p)."""
        code = pd.Index(self.levels.tolist()).get_indexer(pd.Index(values.tolist()))
        if self._indicators:
            return (code[:, None] == np.arange(len(self.levels))).astype(np.float64)
        return code[:, None].astype(np.float64)

    def snapped(self, block: Array, target: Array) -> Array:
        """Finite columns (n, p) of one category each, with the shares of the target group's columns (m, p)."""
        if not self._indicators:
            return _ones(block, target)
        return np.eye(len(self.levels))[assigned(block, target.mean(axis=0))]

    def decoded(self, block: Array) -> pd.Series:
        """Columns (n, p) as values of the input, in its own type."""
        return self.levels.take(self._code(block)).reset_index(drop=True)

    @property
    def snaps(self) -> bool:
        """Whether it takes some values only."""
        return True

    @property
    def _indicators(self) -> bool:
        return len(self.levels) > 2

    def _code(self, block: Array) -> Array:
        if self._indicators:
            return np.asarray(block.argmax(axis=1))
        return np.asarray((block[:, 0] > 0.5) & (len(self.levels) > 1)).astype(np.int64)


def _ones(weight: Array, target: Array) -> Array:
    """0 or 1 for each weight (n, 1) of a 1, as many of them 1 as is the target group's share (m, 1)."""
    share = target.mean()
    return assigned(np.hstack([1 - weight, weight]), np.array([1 - share, share]))[:, None].astype(np.float64)


Input: TypeAlias = Number | Category


@dataclass(frozen=True)
class Space:
    """The model's inputs as d columns; rows of both groups are points (n, d) in it.

    Two different categories, and two values 0 and 1, are at L1 distance 1 of each other for a map. ``moving`` (k,) are
    the columns that a map moves; in all others each group has a single value.
    """

    inputs: tuple[Input, ...]
    moving: Array
    standardized: tuple[str, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the d columns."""
        return tuple(label for one in self.inputs for label in one.labels)

    @property
    def scales(self) -> Array:
        """(d,): one unit of each column in the units of the file."""
        return np.array([one.scale if isinstance(one, Number) else 1.0 for one in self.inputs for _ in one.labels])

    @property
    def shifts(self) -> Array:
        """(d,): where each column has its zero, in the units of the file."""
        return np.array([one.shift if isinstance(one, Number) else 0.0 for one in self.inputs for _ in one.labels])

    @property
    def snapping(self) -> tuple[str, ...]:
        """The inputs that :meth:`snapped` changes, as long as a map moves them."""
        moved = {self.labels[place] for place in self.moving}
        return tuple(one.name for one in self.inputs if one.snaps and moved & set(one.labels))

    @property
    def unmoved(self) -> tuple[str, ...]:
        """The inputs that no map moves: each group has one value."""
        moved = {self.labels[place] for place in self.moving}
        return tuple(one.name for one in self.inputs if not moved & set(one.labels))

    def points(self, frame: pd.DataFrame) -> Array:
        """Rows of the model's inputs as points (n, d)."""
        return np.hstack([one.encoded(frame[one.name]) for one in self.inputs])

    def prepared(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Rows of a file as the model sees them, people and counterparts alike: numbers are float64."""
        return frame.astype({one.name: np.float64 for one in self.inputs if isinstance(one, Number)})

    def frame(self, points: Array) -> pd.DataFrame:
        """Points (n, d) as rows of the model's inputs."""
        blocks = self._blocks(points)
        return pd.DataFrame({one.name: one.decoded(block) for one, block in zip(self.inputs, blocks, strict=True)})

    def snapped(self, points: Array, target: Array) -> Array:
        """Finite points (n, d) with whole numbers that exist, and categories in the shares of the ``target`` (m, d)."""
        sides = zip(self.inputs, self._blocks(points), self._blocks(target), strict=True)
        return np.hstack([one.snapped(block, other) for one, block, other in sides])

    def to_map(self, points: Array) -> Array:
        """Points (n, d) as a map sees them, (n, k)."""
        return np.asarray((points * self._weights)[:, self.moving])

    def from_map(self, images: Array, unmoved: Array) -> Array:
        """Images (n, k) as points (n, d); ``unmoved`` (d,) has the values of all other columns."""
        points = np.repeat(unmoved[None, :], len(images), axis=0)
        points[:, self.moving] = images / self._weights[self.moving]
        return points

    @property
    def _weights(self) -> Array:
        return np.array([one.weight for one in self.inputs for _ in one.labels])

    def _blocks(self, points: Array) -> list[Array]:
        return np.split(points, np.cumsum([len(one.labels) for one in self.inputs])[:-1], axis=1)


def space_of(groups: Groups, arguments: Namespace) -> Space:
    """The space of the two groups' rows.

    Raises ValueError for values that are missing or infinite, columns that are neither numbers nor categories, and
    where nothing is left to be mapped.
    """
    path: Path = arguments.data
    frame = pd.concat([groups.source.features, groups.target.features]).sort_index()
    check_columns(frame, arguments.categorical, "--categorical", "the model's input")
    categories = [name for name in frame.columns if name in arguments.categorical or _is_category(frame[name])]
    numbers = [name for name in frame.columns if name not in categories]
    values = numeric(frame, numbers, path) if numbers else np.zeros((len(frame), 0))
    measured = units(values, numbers, arguments.standardize)
    inputs: list[Input] = []
    for name in frame.columns:
        if name in categories:
            inputs.append(Category(name, _levels(frame[name], path)))
        else:
            j = numbers.index(name)
            pair = np.unique(values[:, j])
            two = (float(pair[0]), float(pair[1])) if len(pair) == 2 else None
            whole = bool((values[:, j] == np.round(values[:, j])).all())
            inputs.append(Number(name, float(measured.shift[j]), float(measured.scale[j]), two, whole))
    still = Space(tuple(inputs), np.arange(0), measured.standardized)
    moving = _moving(inputs, [still.points(group.features) for group in (groups.source, groups.target)])
    if not len(moving):
        raise ValueError(
            f"{path}: every feature is the same in all rows of {groups.source.level} and in all rows of "
            f"{groups.target.level}: a map needs features that vary; name others with --features"
        )
    return Space(tuple(inputs), moving, measured.standardized)


def _moving(inputs: Sequence[Input], sides: Sequence[Array]) -> Array:
    """The columns of inputs that vary within at least one of the groups; a category moves as a whole."""
    varies = np.any([np.ptp(points, axis=0) > 0 for points in sides], axis=0)
    owner = np.repeat(np.arange(len(inputs)), [len(one.labels) for one in inputs])
    return np.flatnonzero(np.isin(owner, owner[varies]))


def _is_category(column: pd.Series) -> bool:
    from pandas.api.types import is_bool_dtype, is_object_dtype, is_string_dtype

    kind = column.dtype
    return kind == "category" or is_bool_dtype(kind) or is_object_dtype(kind) or is_string_dtype(kind)


def _levels(column: pd.Series, path: Path) -> pd.Series:

    levels = distinct(column, "feature", path)
    if len(levels) > MOST_LEVELS:
        raise ValueError(
            f"{path}: column {column.name!r} has {len(levels)} different values, expected at most {MOST_LEVELS} in a "
            f"category: if it is a name or an identifier leave it out, --drop {column.name}; else group its values"
        )
    return pd.Series(levels, dtype=column.dtype)
