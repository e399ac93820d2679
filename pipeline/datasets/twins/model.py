"""The fitted model of a twin, and sampling from it. The package's docstring gives the equations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.types import Array

FORMAT = 1
"""Version of the JSON layout."""


@dataclass(frozen=True)
class Column:
    """One sequentially drawn column with K levels.

    ``levels`` are texts, or (K, 3) numbers: lower limit, upper limit and mean of each interval. ``dtype`` is what the
    parsed column has (``"str"``, ``"int64"`` or ``"float64"``). ``bias`` (K,) is b_j; ``weights`` (D, K) stacks A_j and
    the W_ij of all columns before, one row for each root cell and then for each level of each earlier column.
    """

    name: str
    dtype: str
    levels: tuple[str, ...] | Array
    bias: Array
    weights: Array

    def encode(self, values: pd.Series) -> Array:
        """The level (n,) of each value; a number between or beyond the intervals belongs to the nearest one.

        Of two intervals that hold a number the narrower counts. A category without a level belongs to the first.
        """
        if isinstance(self.levels, tuple):
            return np.maximum(pd.Index(self.levels).get_indexer(values), 0)
        low, high, _ = self.levels.T
        distinct, inverse = np.unique(values.to_numpy(dtype=float), return_inverse=True)
        distance = np.maximum(np.maximum(low - distinct[:, None], distinct[:, None] - high), 0)
        nearest = np.lexsort((np.broadcast_to(high - low, distance.shape), distance), axis=1)[:, 0]
        return nearest[inverse]

    def decode(self, codes: Array, rng: np.random.Generator) -> pd.Series:
        """Values (n,) of the given levels, numbers drawn within their interval."""
        if isinstance(self.levels, tuple):
            return pd.Series(np.array(self.levels, dtype=object)[codes], dtype="str")
        low, high, mean = self.levels[codes].T
        width = high - low
        # A single number has no width; any exponent does.
        m = np.divide(mean - low, width, out=np.full(len(codes), 0.5), where=width > 0)
        values = np.rint(low + width * rng.random(len(codes)) ** ((1 - m) / m))
        return pd.Series(values, dtype=self.dtype)


@dataclass(frozen=True)
class Twin:
    """A fitted twin of a dataset's kept rows.

    ``rows``: how many the official data keep. ``order``: the parsed columns, in order. ``root``: the columns drawn
    together; ``cells`` their value tuples, with ``counts`` (C,). ``columns``: the others, as drawn one after the other.
    ``preserved``: statistics of the official rows (see :mod:`pipeline.datasets.twins.preserved`).
    """

    dataset: str
    rows: int
    order: tuple[str, ...]
    root: tuple[str, ...]
    cells: tuple[tuple[str | int, ...], ...]
    counts: Array
    columns: tuple[Column, ...]
    preserved: Mapping[str, Any]


def sample(twin: Twin, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw n rows with the columns, order and types of the parsed data.

    The root cells come in fixed proportion (largest remainders) and random order, so that group sizes and base rates
    do not vary from draw to draw; everything else is random.
    """
    if n < 1:
        raise ValueError(f"a twin of {n} rows was asked for: expected at least 1")
    cell = rng.permutation(np.repeat(np.arange(len(twin.counts)), apportion(n, twin.counts)))
    drawn = {
        name: pd.Series([values[position] for values in twin.cells])[cell].reset_index(drop=True)
        for position, name in enumerate(twin.root)
    }
    known = [cell]  # rows of the weight matrices that are switched on
    offset = len(twin.cells)
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


def to_json(twin: Twin) -> dict[str, Any]:
    """Plain JSON values; a row of numbers is one string, which keeps the file small and its lines readable."""
    return {
        "format": FORMAT,
        "dataset": twin.dataset,
        "rows": twin.rows,
        "order": list(twin.order),
        "root": {
            "columns": list(twin.root),
            "cells": [list(cell) for cell in twin.cells],
            "counts": as_text(twin.counts),
        },
        "columns": [
            {
                "name": column.name,
                "dtype": column.dtype,
                "levels": list(column.levels)
                if isinstance(column.levels, tuple)
                else [as_text(v) for v in column.levels],
                "bias": as_text(column.bias),
                "weights": [as_text(row) for row in column.weights],
            }
            for column in twin.columns
        ],
        "preserved": dict(twin.preserved),
    }


def from_json(content: Mapping[str, Any]) -> Twin:
    """The twin that :func:`to_json` wrote; ValueError when the layout is another."""
    if content.get("format") != FORMAT:
        raise ValueError(
            f"the twin's file has format {content.get('format')!r}, expected {FORMAT}: restore the one that comes with "
            "the project, or fit it again with python -m pipeline.datasets.twins.fit"
        )
    return Twin(
        dataset=content["dataset"],
        rows=content["rows"],
        order=tuple(content["order"]),
        root=tuple(content["root"]["columns"]),
        cells=tuple(tuple(cell) for cell in content["root"]["cells"]),
        counts=as_numbers(content["root"]["counts"]),
        columns=tuple(
            Column(
                name=column["name"],
                dtype=column["dtype"],
                levels=tuple(column["levels"]) if column["dtype"] == "str" else _rows(column["levels"]),
                bias=as_numbers(column["bias"]),
                weights=_rows(column["weights"]),
            )
            for column in content["columns"]
        ),
        preserved=content["preserved"],
    )


def as_text(numbers: Array) -> str:
    """A row of numbers as one string."""
    return " ".join(f"{number + 0.0:.10g}" for number in numbers)


def as_numbers(text: str) -> Array:
    """The numbers that :func:`as_text` wrote."""
    return np.array(text.split(), dtype=float)


def _rows(texts: list[str]) -> Array:
    return np.stack([as_numbers(text) for text in texts])
