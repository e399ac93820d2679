"""What the datasets that are drawn from an equation share: fresh rows for every repetition.

The draws are stacked: repetition r owns the rows r n to (r + 1) n - 1, and its splits point there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.types import Array, Dataset


@dataclass(frozen=True)
class Draw:
    """The n rows of one repetition: ``features`` (n, d), ``label`` and ``group`` (n,), of 0 and 1.

    The first ``train`` rows are to train on and the others to test; where it is None all rows are both.
    """

    features: Array
    label: Array
    group: Array
    train: int | None = None


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
    """The dataset of R draws of n rows each; ``group`` is its one protected attribute."""
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
