"""One model input as columns of the space of a map, and back: a number, or a category."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd

from pipeline.types import Array


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

    def snapped(self, block: Array) -> Array:
        """A column (n, 1) of the nearest values that the input can take; NaN stays NaN."""
        if not self.snaps:
            return block
        values = self.decoded(block).to_numpy()[:, None]
        return np.where(np.isnan(block), np.nan, (values - self.shift) / self.scale)

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

    def snapped(self, block: Array) -> Array:
        """Columns (n, p) of the nearest category; NaN stays NaN."""
        code = self._code(block)
        made = np.eye(len(self.levels))[code] if self._indicators else code[:, None].astype(np.float64)
        return np.where(np.isnan(block).any(axis=1, keepdims=True), np.nan, made)

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
            return np.asarray(np.nan_to_num(block).argmax(axis=1))
        return np.asarray((block[:, 0] > 0.5) & (len(self.levels) > 1)).astype(np.int64)


Input: TypeAlias = Number | Category
