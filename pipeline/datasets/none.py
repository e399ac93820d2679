"""No data, for audits that draw their own populations, such as simulations of a test's level.

Two placeholder rows, one of each group and label.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.validation import Checked, Size
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """``first_repetition``: number of the first repetition, from which the random streams of the audits follow."""

    first_repetition: Size


def prepare(rows: None, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Return two rows that are the training and the test rows of every repetition."""
    both = np.arange(2)
    groups: Any = {"protected": {"group": both}, "levels": {"group": ("A", "B")}}
    splits = [(both, both)] * len(rngs)
    return tabular.dataset("none", origin, {"nothing": np.zeros(2)}, splits, label=both, label_name="label", **groups)
