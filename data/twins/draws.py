"""What two kinds of twins draw alike: columns that go together, and numbers of an interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from data.twins.preserved import FEWEST
from fairness_audits.transport.plan import whole_counts
from fairness_audits.values import Array


def root_cells(rows: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """How often each tuple of values of ``columns`` occurs, in tens, without those that are then empty."""
    sizes = rows.groupby(list(columns), sort=True).size()
    rounded = (np.rint(sizes / FEWEST) * FEWEST).astype(int)
    return rounded[rounded > 0]


def drawn_cells(cells: pd.Series, n: int, rng: np.random.Generator) -> tuple[Array, pd.DataFrame]:
    """The cell (n,) of each of n rows, and the columns that the cells hold.

    Cells come in fixed proportion (largest remainders) and random order, so that group sizes and base rates are kept.
    """
    cell = rng.permutation(np.repeat(np.arange(len(cells)), whole_counts(cells.to_numpy(), n)))
    return cell, cells.index.to_frame(index=False).iloc[cell].reset_index(drop=True)


def within(low: Array, high: Array, mean: Array, u: Array) -> Array:
    """low + (high - low) u^((1 - m) / m), m = (mean - low) / (high - low): of uniform u (n,) numbers of that mean."""
    width = high - low
    # A single number has no width; any exponent does.
    m = np.divide(mean - low, width, out=np.full(len(u), 0.5), where=width > 0)
    return np.asarray(low + width * u ** ((1 - m) / m))
