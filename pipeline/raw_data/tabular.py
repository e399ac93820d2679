"""Tabular data sets from rows: one-hot columns, random splits, and simulated rows for every repetition."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.validation import Checked, Count, Share, Size
from fairness_audits.values import Array, Dataset, Provenance

if TYPE_CHECKING:
    import pandas as pd


Split = tuple[Array, Array]
"""Row numbers of the training set and of the test set."""


@dataclass(frozen=True)
class SplitConfig(Checked, of="dataset"):
    """``train_fraction``: share of rows in each repetition's training set, rounded down.

    ``first_repetition``: number of the first repetition. With 100, the splits and all that is random in their models
    and audits are those of repetitions 100, 101, and so on. ``trainings``: number of consecutive repetitions that share
    a split, and differ in what is random in their models and audits. ``folds``, if above 1: number of consecutive
    repetitions that divide the rows among their test sets, see :func:`folded`. ``train_fraction`` then has no effect.
    """

    train_fraction: Share
    first_repetition: Size
    trainings: Count = field(default=1, kw_only=True)
    folds: Count = field(default=1, kw_only=True)


def random_split(n: int, train_fraction: float, rng: np.random.Generator) -> Split:
    """Split the rows 0 to n - 1 at random; the training set has the share ``train_fraction``, rounded down."""
    order = rng.permutation(n)
    n_train = math.floor(Fraction(str(train_fraction)) * n)
    return order[:n_train], order[n_train:]


def stratified_split(label: Array, train_fraction: float, rng: np.random.Generator) -> Split:
    """Split at random, stratified by ``label`` (n,), 0 or 1.

    Class c gets floor(fraction n_c) training rows. The remaining rows of floor(fraction n) go to the classes with the
    largest remainders. Both sides are in random order.
    """
    share = Fraction(str(train_fraction))
    exact = [share * int((label == c).sum()) for c in (0, 1)]
    sizes = [math.floor(size) for size in exact]
    for c in sorted((0, 1), key=lambda c: sizes[c] - exact[c])[: math.floor(share * len(label)) - sum(sizes)]:
        sizes[c] += 1
    order = rng.permutation(len(label))
    classes = [order[label[order] == c] for c in (0, 1)]
    train = np.concatenate([rows[:size] for rows, size in zip(classes, sizes, strict=True)])
    test = np.concatenate([rows[size:] for rows, size in zip(classes, sizes, strict=True)])
    return rng.permutation(train), rng.permutation(test)


def folded(train: Array, test: Array, folds: int) -> Split:
    """Return the training sets and the test sets of k folds, (k R, m) and (k R, n // k), from R splits of n rows.

    The folds of a split are consecutive parts of its rows in random order. The last n mod k rows are in every training
    set and in no test set, so that all folds have the same size.
    """
    order = np.concatenate([test, train], axis=1)
    size = order.shape[1] // folds
    inside = np.arange(order.shape[1]) // size == np.arange(folds)[:, None]
    parts = ([[rows[part] for part in side] for rows in order] for side in (~inside, inside))
    training, held_out = (np.concatenate(side) for side in parts)
    return training, held_out


def filtered(
    rows: pd.DataFrame, rules: Mapping[str, Callable[[pd.DataFrame], pd.Series]]
) -> tuple[pd.DataFrame, dict[str, int]]:
    """Apply the rules in this order; return the remaining rows and the number dropped by each rule that drops any."""
    dropped = {}
    for reason, kept in rules.items():
        keep = kept(rows)
        dropped[reason] = int((~keep).sum())
        rows = rows[keep]
    return rows.reset_index(drop=True), {reason: count for reason, count in dropped.items() if count}


def indicators(values: pd.Series, categories: Sequence[str]) -> dict[str, Array]:
    """Return the one-hot inputs ``column=category`` (n,).

    Raises ValueError for a value that is not one of the categories.
    """
    unknown = ~values.isin(list(categories))
    if unknown.any():
        row = int(np.argmax(unknown))
        raise InvalidInput(
            f"kept row {row}, column {values.name!r}: {values.iloc[row]!r} has no one-hot column; "
            f"expected one of {list(categories)}",
            column=str(values.name),
            row=row,
        )
    return {f"{values.name}={category}": (values == category).to_numpy() for category in categories}


def dataset(
    name: str,
    origin: Provenance,
    inputs: Mapping[str, Any],
    splits: Sequence[Split],
    *,
    label: Any,
    protected: Mapping[str, Any],
    continuous: tuple[str, ...] = (),
    **content: Any,
) -> Dataset:
    """Return the data set of ``inputs``, ``label`` and ``protected``, (n,) each, with these ``splits``.

    ``content`` holds the other fields.
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


@dataclass(frozen=True)
class Draw:
    """The n rows of one repetition: ``features`` (n, d), ``label`` and ``group`` (n,), 0 or 1.

    The first ``train`` rows are the training set and the others the test set; None means that all rows are both.
    """

    features: Array
    label: Array
    group: Array
    train: int | None = None


def numbered(letter: str, count: int) -> tuple[str, ...]:
    """Return the names x1, x2, ... of this many features."""
    return tuple(f"{letter}{j}" for j in range(1, count + 1))


def stacked(
    name: str,
    draws: Sequence[Draw],
    *,
    feature_names: tuple[str, ...],
    attribute: str,
    levels: tuple[str, str],
    label_name: str = "none",
    continuous: tuple[str, ...] = (),
) -> Dataset:
    """Return the data set of R samples of n rows each; ``group`` is its only protected attribute."""
    rows = np.arange(len(draws) * len(draws[0].label)).reshape(len(draws), -1)
    train = draws[0].train
    return Dataset(
        name=name,
        origin="simulated",
        features=np.concatenate([draw.features for draw in draws]),
        feature_names=feature_names,
        continuous=continuous,
        label=np.concatenate([draw.label for draw in draws]),
        label_name=label_name,
        protected={attribute: np.concatenate([draw.group for draw in draws])},
        levels={attribute: levels},
        train=rows[:, :train],
        test=rows[:, train or 0 :],
    )
