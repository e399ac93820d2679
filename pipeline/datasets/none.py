"""No data: the dataset of audits that draw their own populations, such as simulations of a test's level.

Two rows, one of each group and label, which say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.datasets.download import Source
from pipeline.types import Dataset, Origin

SOURCES: tuple[Source, ...] = ()
TWIN = None


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def parse(folder: Path) -> pd.DataFrame:
    """There are no raw files: raises ValueError."""
    raise ValueError(f"there are no data to read: nothing to parse in {folder}")


def prepare(rows: pd.DataFrame | None, config: Config, rngs: Sequence[np.random.Generator], origin: Origin) -> Dataset:
    """Two rows that are training and test rows of every repetition; ``rows`` is None and ``origin`` "simulated"."""
    if rows is not None or origin != "simulated":
        raise ValueError(f"there are no data: expected no rows and origin 'simulated', found {origin!r}")
    both = np.arange(2)
    split = np.tile(both, (len(rngs), 1))
    return Dataset(
        name="none",
        origin=origin,
        features=np.zeros((2, 1)),
        feature_names=("nothing",),
        continuous=(),
        label=both,
        label_name="label",
        protected={"group": both},
        levels={"group": ("A", "B")},
        train=split,
        test=split.copy(),
    )
