"""What the datasets that are drawn from an equation share: no files, and fresh rows for every repetition.

The draws are stacked: repetition r owns the rows r n to (r + 1) n - 1, and its splits point there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import pandas as pd

from pipeline.types import Array, Dataset, Origin


@dataclass(frozen=True)
class Draw:
    """The n rows of one repetition: ``features`` (n, d), ``label`` and ``group`` (n,), of 0 and 1.

    ``train`` and ``test`` are row numbers within the draw.
    """

    features: Array
    label: Array
    group: Array
    train: Array
    test: Array


def nothing_to_parse(folder: Path) -> NoReturn:
    """There are no raw files: raises ValueError."""
    raise ValueError(f"simulated data are drawn, not read: nothing to parse in {folder}")


def expect_no_rows(rows: pd.DataFrame | None, origin: Origin) -> None:
    """Raise ValueError unless ``rows`` is None and ``origin`` is ``"simulated"``."""
    if rows is not None or origin != "simulated":
        raise ValueError(f"simulated data are drawn: expected no rows and origin 'simulated', found {origin!r}")


def stacked(
    name: str,
    draws: Sequence[Draw],
    *,
    feature_names: tuple[str, ...],
    continuous: tuple[str, ...],
    label_name: str,
    attribute: str,
    levels: tuple[str, str],
) -> Dataset:
    """The dataset of R draws of n rows each; ``group`` is its one protected attribute."""
    starts = np.arange(len(draws))[:, None] * len(draws[0].label)
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
        train=starts + np.stack([draw.train for draw in draws]),
        test=starts + np.stack([draw.test for draw in draws]),
    )
