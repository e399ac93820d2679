"""No data: the dataset of audits that draw their own populations, such as simulations of a test's level.

Two rows, one of each group and label, which say nothing.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.types import Dataset, Generators, Origin


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def prepare(rows: None, config: Config, rngs: Generators, origin: Origin) -> Dataset:
    """Two rows that are training and test rows of every repetition."""
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
