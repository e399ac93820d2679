"""Draws shared by two kinds of twins: jointly drawn columns, and numbers within an interval."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from data.twins.preserved import FEWEST
from fairness_audits.transport.plan import whole_counts
from fairness_audits.values import Array


def root_cells(rows: pd.DataFrame, columns: Sequence[str]) -> pd.Series:
    """Count each tuple of values of ``columns``, rounded to multiples of ten, without tuples that round to 0."""
    sizes = rows.groupby(list(columns), sort=True).size()
    rounded = (np.rint(sizes / FEWEST) * FEWEST).astype(int)
    return rounded[rounded > 0]


def drawn_cells(cells: pd.Series, n: int, rng: np.random.Generator) -> tuple[Array, pd.DataFrame]:
    """Draw the cells (n,) of n rows, and return them with the columns of the cells.

    Cells have fixed proportions (largest remainders) and random order, which preserves group sizes and base rates.
    """
    cell = rng.permutation(np.repeat(np.arange(len(cells)), whole_counts(cells.to_numpy(), n)))
    return cell, cells.index.to_frame(index=False).iloc[cell].reset_index(drop=True)


def within(low: Array, high: Array, mean: Array, u: Array) -> Array:
    """Map uniform u (n,) to low + (high - low) u^((1 - m) / m), m = (mean - low) / (high - low); it has this mean."""
    width = high - low
    # If the interval is a single number, any exponent works.
    m = np.divide(mean - low, width, out=np.full(len(u), 0.5), where=width > 0)
    return np.asarray(low + width * u ** ((1 - m) / m))
