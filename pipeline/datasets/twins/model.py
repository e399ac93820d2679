"""The fitted model of a twin, and sampling from it. The package's docstring gives the equations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.types import Array


@dataclass(frozen=True)
class Root:
    """Columns that are drawn together: their names, the tuples of values that occur, and how often, (C,)."""

    columns: tuple[str, ...]
    cells: tuple[tuple[Any, ...], ...]
    counts: Array

    @classmethod
    def of(cls, rows: pd.DataFrame, columns: Sequence[str], fewest: int) -> Root:
        """The cells of ``rows``, their counts rounded to multiples of ``fewest``, without those that are then empty.

        Raises ValueError where none is left.
        """
        sizes = rows.groupby(list(columns), sort=True).size()
        rounded = (np.rint(sizes / fewest) * fewest).astype(int)
        kept = rounded[rounded > 0]
        if kept.empty:
            raise ValueError(f"no combination of {list(columns)} has {fewest} rows: a twin needs more data")
        cells = tuple(tuple(v.item() if isinstance(v, np.generic) else v for v in values) for values in kept.index)
        return cls(tuple(columns), cells, kept.to_numpy(dtype=float))

    def encode(self, rows: pd.DataFrame) -> Array:
        """The cell (n,) of each row, -1 where there is none."""
        return pd.MultiIndex.from_tuples(self.cells).get_indexer(pd.MultiIndex.from_frame(rows[list(self.columns)]))

    def drawn(self, n: int, rng: np.random.Generator) -> tuple[Array, dict[str, Any]]:
        """The cell (n,) of each of n rows, and the columns that the cells hold, by name.

        Cells come in fixed proportion (largest remainders) and random order, so that group sizes and base rates do not
        vary from draw to draw. Raises ValueError for fewer than one row.
        """
        if n < 1:
            raise ValueError(f"a twin of {n} rows was asked for: expected at least 1")
        cell = rng.permutation(np.repeat(np.arange(len(self.counts)), apportion(n, self.counts)))
        values = (pd.Series([values[place] for values in self.cells]) for place in range(len(self.columns)))
        return cell, {name: v[cell].reset_index(drop=True) for name, v in zip(self.columns, values, strict=True)}


@dataclass(frozen=True)
class Column:
    """One sequentially drawn column with K levels.

    ``levels`` are categories, or intervals of numbers: lower limit, upper limit and mean, as text. ``dtype`` is what
    the parsed column has (``"str"``, ``"int64"`` or ``"float64"``). ``bias`` (K,) is b_j; ``weights`` (D, K) stacks A_j
    and the W_ij of all columns before, one row for each root cell and then for each level of each earlier column.
    """

    name: str
    dtype: str
    levels: tuple[str, ...]
    bias: Array
    weights: Array

    @property
    def intervals(self) -> Array:
        """Lower limit, upper limit and mean (K, 3) of the levels of a number."""
        return np.stack([as_numbers(level) for level in self.levels])

    def encode(self, values: pd.Series) -> Array:
        """The level (n,) of each value; a number between or beyond the intervals belongs to the nearest one.

        Of two intervals that hold a number the narrower counts. A category without a level belongs to the first.
        """
        if self.dtype == "str":
            return np.maximum(pd.Index(self.levels).get_indexer(values), 0)
        low, high, _ = self.intervals.T
        distinct, inverse = np.unique(values.to_numpy(dtype=float), return_inverse=True)
        distance = np.maximum(np.maximum(low - distinct[:, None], distinct[:, None] - high), 0)
        nearest = np.lexsort((np.broadcast_to(high - low, distance.shape), distance), axis=1)[:, 0]
        return nearest[inverse]

    def decode(self, codes: Array, rng: np.random.Generator) -> pd.Series:
        """Values (n,) of the given levels, numbers drawn within their interval."""
        if self.dtype == "str":
            return pd.Series(np.array(self.levels, dtype=object)[codes], dtype="str")
        low, high, mean = self.intervals[codes].T
        return pd.Series(np.rint(within(low, high, mean, rng.random(len(codes)))), dtype=self.dtype)


@dataclass(frozen=True)
class Twin:
    """A fitted twin of a dataset's kept rows.

    ``rows``: how many the official data keep. ``order``: the parsed columns, in order. ``root``: the columns drawn
    together. ``columns``: the others, as drawn one after the other.
    ``preserved``: statistics of the official rows (see :mod:`pipeline.datasets.twins.preserved`).
    """

    dataset: str
    rows: int
    order: tuple[str, ...]
    root: Root
    columns: tuple[Column, ...]
    preserved: Mapping[str, Any]


def sample(twin: Twin, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw n rows with the columns, order and types of the parsed data; all but the root cells is random."""
    cell, drawn = twin.root.drawn(n, rng)
    known = [cell]  # rows of the weight matrices that are switched on
    offset = len(twin.root.cells)
    for column in twin.columns:
        logits = column.bias + sum(column.weights[codes] for codes in known)
        codes = _categorical(logits, rng)
        drawn[column.name] = column.decode(codes, rng)
        known.append(offset + codes)
        offset += len(column.levels)
    return pd.DataFrame({name: drawn[name] for name in twin.order})


def apportion(n: int, counts: Array) -> Array:
    """Whole numbers (C,) that sum to n, in proportion to ``counts``, by largest remainders."""
    exact = n * counts / counts.sum()
    sizes = np.floor(exact).astype(np.int64)
    sizes[np.argsort(sizes - exact, kind="stable")[: n - sizes.sum()]] += 1
    return sizes


def _categorical(logits: Array, rng: np.random.Generator) -> Array:
    """One draw (n,) for each row of softmax(logits), logits (n, K), by inverting the distribution function."""
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    cumulative = weights.cumsum(axis=1)
    threshold = rng.random((len(logits), 1)) * cumulative[:, -1:]
    return (cumulative[:, :-1] <= threshold).sum(axis=1)


def within(low: Array, high: Array, mean: Array, u: Array) -> Array:
    """low + (high - low) u^((1 - m) / m), m = (mean - low) / (high - low): of uniform u (n,) numbers of that mean."""
    width = high - low
    # A single number has no width; any exponent does.
    m = np.divide(mean - low, width, out=np.full(len(u), 0.5), where=width > 0)
    return np.asarray(low + width * u ** ((1 - m) / m))


def as_text(numbers: Array) -> str:
    """A row of numbers as one string."""
    return " ".join(f"{number + 0.0:.10g}" for number in numbers)


def as_numbers(text: str) -> Array:
    """The numbers that :func:`as_text` wrote."""
    return np.array(text.split(), dtype=float)
