"""How rows become a dataset: columns by their names, and a random split for each repetition."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pipeline.datasets.splits import Split
from pipeline.types import Array, Dataset, Origin


def filtered(
    rows: pd.DataFrame, rules: Mapping[str, Callable[[pd.DataFrame], pd.Series]]
) -> tuple[pd.DataFrame, dict[str, int]]:
    """The rows that every rule keeps, applied in this order, and how many each of them drops, where it drops any."""
    dropped = {}
    for reason, kept in rules.items():
        keep = kept(rows)
        dropped[reason] = int((~keep).sum())
        rows = rows[keep]
    return rows.reset_index(drop=True), {reason: count for reason, count in dropped.items() if count}


def indicators(values: pd.Series, categories: Sequence[str]) -> dict[str, Array]:
    """The inputs ``column=category`` (n,), 1 where the value is that category.

    Raises ValueError for a value that is none of them.
    """
    unknown = ~values.isin(list(categories))
    if unknown.any():
        row = int(np.argmax(unknown))
        raise ValueError(
            f"kept row {row}, column {values.name!r}: {values.iloc[row]!r} has no one-hot column; "
            f"expected one of {list(categories)}"
        )
    return {f"{values.name}={category}": (values == category).to_numpy() for category in categories}


def dataset(
    name: str,
    origin: Origin,
    inputs: Mapping[str, Any],
    splits: Sequence[Split],
    *,
    label: Any,
    protected: Mapping[str, Any],
    continuous: tuple[str, ...] = (),
    **content: Any,
) -> Dataset:
    """The dataset of ``inputs``, ``label`` and ``protected``, (n,) each, split as in ``splits``.

    ``content`` are its other fields.
    """
    return Dataset(
        name=name,
        origin=origin,
        features=np.column_stack([np.asarray(column, dtype=float) for column in inputs.values()]),
        feature_names=tuple(inputs),
        continuous=continuous,
        label=np.asarray(label, dtype=np.int64),
        protected={key: np.asarray(values, dtype=np.int64) for key, values in protected.items()},
        train=np.stack([train for train, _ in splits]),
        test=np.stack([test for _, test in splits]),
        **content,
    )
