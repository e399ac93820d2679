"""The space in which counterparts are found: numbers in comparable units, categories as indicators.

A transport map sees a data frame as points of this space. Points can be converted back to rows of a data frame.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from fairness_audits.inputs.native import keys_of
from fairness_audits.messages import unlike
from fairness_audits.transport.plan import levels_in_shares
from fairness_audits.values import Array

MISSING = "missing"
ROUNDING = 1e-9
"""Largest part of a number, or of its unit, that is rounding."""


@dataclass(frozen=True)
class Input:
    """An input of the model as p columns of the space.

    A number is z = (x - shift) / scale in one column. It may be restricted to the two values of a ``pair`` or to
    ``whole`` numbers. A category has ``levels``. One or two levels are a single column, 0 or 1; more levels are one
    indicator column each. The ``weight`` makes the L1 distance between two different categories 1 in both cases.

    A missing category is one more level. A missing number is replaced by ``fill``, because no distance is defined for
    it. A further input with levels False and True, the ``gap_of`` the number's column, marks the missing values.
    """

    name: str
    shift: float = 0.0
    scale: float = 1.0
    pair: tuple[float, float] | None = None
    whole: bool = False
    levels: pd.Series | None = None
    fill: float = 0.0
    gap_of: str = ""

    @property
    def indicators(self) -> bool:
        """Return whether the input has one column for each level."""
        return self.levels is not None and len(self.levels) > 2

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the columns in results."""
        if self.levels is None or self.gap_of:
            return (self.name,)
        shown = (self.levels if self.indicators else self.levels.iloc[-1:]).tolist()
        return tuple(f"{self.name}={MISSING if pd.isna(level) else level}" for level in shown)

    @property
    def weight(self) -> float:
        """Return the factor on the columns for a map."""
        return 0.5 if self.indicators else 1.0

    @property
    def snaps(self) -> bool:
        """Return whether only some values are possible."""
        return self.levels is not None or self.pair is not None or self.whole

    def encoded(self, values: pd.Series) -> Array:
        """Encode values (n,) as (n, p)."""
        if self.levels is None:
            z = (values.to_numpy(dtype=np.float64, na_value=np.nan)[:, None] - self.shift) / self.scale
            return np.where(np.isnan(z), self.fill, z)
        code = keys_of(self.levels).get_indexer(keys_of(values))[:, None]
        return (code == np.arange(len(self.levels)) if self.indicators else code).astype(np.float64)

    def decoded(self, block: Array) -> pd.Series:
        """Decode columns (n, p) to the nearest possible values of the input, in its own type."""
        if self.levels is not None:
            binary = (block[:, 0] > 0.5) & (len(self.levels) > 1)
            code = block.argmax(axis=1) if self.indicators else binary.astype(np.int64)
            return self.levels.take(code).reset_index(drop=True)
        values = block[:, 0] * self.scale + self.shift
        if self.pair is not None:
            low, high = self.pair
            return pd.Series(np.where(values > (low + high) / 2, high, low))
        return pd.Series(np.round(values) + 0.0 if self.whole else values)

    def snapped(self, block: Array, target: Array) -> Array:
        """Replace finite columns (n, p) by possible values of the input.

        Numbers become the nearest whole numbers. Categories and pairs have the shares that they have in the ``target``
        (m, p).
        """
        if self.indicators:
            return np.eye(block.shape[1])[levels_in_shares(block, target.mean(axis=0))]
        if self.levels is None and self.pair is None:
            return self.encoded(self.decoded(block)) if self.whole else block
        low, high = (0.0, 1.0) if self.pair is None else (np.array(self.pair) - self.shift) / self.scale
        weight, share = (block - low) / (high - low), (target > (low + high) / 2).mean()
        above = levels_in_shares(np.hstack([1 - weight, weight]), np.array([1 - share, share]))
        return np.where(above[:, None] == 1, high, low)


@dataclass(frozen=True)
class Space:
    """The model's inputs as d columns; rows of both groups are points (n, d).

    For a map, two different categories, or the values 0 and 1, are at L1 distance 1. ``moving`` (k,) are the columns
    that a map moves, in the order of their names. In all other columns each group has a single value.
    """

    inputs: tuple[Input, ...]
    moving: Array
    standardized: tuple[str, ...]

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Return the names of the d columns, all different; numbers keep their own names."""
        taken = {one.name for one in self.inputs if one.levels is None}
        labels: list[str] = []
        for one in self.inputs:
            for label in one.labels:
                note = "gap" if one.gap_of else "level"
                labels.append(label if one.levels is None else unlike(label, taken, note))
                taken.add(labels[-1])
        return tuple(labels)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the columns of the model's inputs."""
        return tuple(one.name for one in self.inputs if not one.gap_of)

    @property
    def gaps(self) -> tuple[str, ...]:
        """Return the columns of the model's inputs with missing values."""
        category = (one.name for one in self.inputs if one.levels is not None and one.levels.isna().any())
        return (*category, *(one.gap_of for one in self.inputs if one.gap_of))

    def each(self, of: str) -> Array:
        """Return an input attribute for each column, (d,): ``scale`` is one unit and ``shift`` zero in file units."""
        return np.array([getattr(one, of) for one in self.inputs for _ in one.labels])

    @property
    def snapping(self) -> tuple[str, ...]:
        """Return the inputs that :meth:`snapped` changes, provided that a map moves them."""
        return tuple(one.name for one in self.inputs if one.snaps and (one.gap_of or one.name) not in self.unmoved)

    @property
    def unmoved(self) -> tuple[str, ...]:
        """Return the columns of the model's inputs that no map moves, because each group has a single value."""
        moved = set(np.repeat(np.arange(len(self.inputs)), [len(one.labels) for one in self.inputs])[self.moving])
        return tuple(one.name for place, one in enumerate(self.inputs) if place not in moved and not one.gap_of)

    def points(self, frame: pd.DataFrame) -> Array:
        """Convert rows of the model's inputs to points (n, d)."""
        return np.hstack(
            [one.encoded(frame[one.gap_of].isna() if one.gap_of else frame[one.name]) for one in self.inputs]
        )

    def prepared(self, frame: pd.DataFrame) -> pd.DataFrame:
        """Convert rows of a file to the model's input types, for people and counterparts alike: numbers are float64."""
        return frame.astype({one.name: np.float64 for one in self.inputs if one.levels is None})

    def frame(self, points: Array) -> pd.DataFrame:
        """Convert points (n, d) to rows of the model's inputs."""
        made: dict[str, pd.Series] = {}
        for one, block in self._blocks(points):  # a column's gaps come after it
            values = one.decoded(block)
            made[one.gap_of or one.name] = made[one.gap_of].mask(values) if one.gap_of else values
        return pd.DataFrame(made)

    def snapped(self, points: Array, target: Array) -> Array:
        """Snap finite points (n, d) to possible numbers, and to categories in the shares of ``target`` (m, d)."""
        sides = zip(self._blocks(points), self._blocks(target), strict=True)
        found = np.hstack([one.snapped(block, other) for (one, block), (_, other) in sides])
        # A missing value has no number.
        return self.points(self.frame(found)) if any(one.gap_of for one in self.inputs) else found

    def within(self, points: Array, rows: pd.DataFrame) -> tuple[Array, pd.DataFrame, pd.DataFrame]:
        """Clip the numbers of points (n, d) to the ranges that they have in ``rows``.

        Return the points, the same as rows of the model's inputs, and which of their numbers were clipped. Numbers that
        only rounding takes beyond the range do not count as clipped.
        """
        frame, units = self.frame(points), {one.name: one.scale for one in self.inputs if one.levels is None}
        known, found = rows[list(units)], frame[list(units)]
        inside = found.clip(known.min(), known.max(), axis="columns")
        size = np.maximum(inside.abs(), np.array(list(units.values())))
        clipped = (found - inside).abs() > ROUNDING * size
        frame[list(units)] = inside
        moved = np.isin(self.labels, clipped.columns[clipped.any()])
        return np.where(moved, self.points(frame), points), frame, clipped

    def to_map(self, points: Array) -> Array:
        """Convert points (n, d) to the columns that a map sees, (n, k)."""
        return np.asarray((points * self.each("weight"))[:, self.moving])

    def from_map(self, images: Array, unmoved: Array) -> Array:
        """Convert images (n, k) to points (n, d); the other columns take their values from ``unmoved`` (d,)."""
        points = np.repeat(unmoved[None, :], len(images), axis=0)
        points[:, self.moving] = images / self.each("weight")[self.moving]
        return points

    def _blocks(self, points: Array) -> list[tuple[Input, Array]]:
        ends = np.cumsum([len(one.labels) for one in self.inputs])[:-1]
        return list(zip(self.inputs, np.split(points, ends, axis=1), strict=True))
