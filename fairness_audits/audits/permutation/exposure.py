r"""The exposure of rows in a ranking: how much attention their positions get.

.. math:: v(r) = \frac{1}{\log_2 (1 + r)}

for rank r from 1, and 0 beyond the top, if there is one. The exposure of a group is the mean over its rows.

References
----------
Singh and Joachims 2018, "Fairness of exposure in rankings".
"""

from dataclasses import replace

import numpy as np

from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.values import Array


def exposures(rows: Array, top: int | None = None) -> Array:
    """Return the exposure (K,) of the rows with each of K scores, from the highest; ``rows`` (K,) are their numbers.

    Rows with the same score share the mean exposure of their positions.

    Examples
    --------
    >>> exposures(np.array([1, 2, 1])).round(4).tolist()
    [1.0, 0.5655, 0.4307]
    """
    last = np.cumsum(rows)
    value = 1 / np.log2(1 + np.arange(1, last[-1] + 1))
    if top is not None:
        value[top:] = 0
    return np.add.reduceat(value, last - rows) / rows


def exposed(data: Counts | Predictions, top: int | None = None) -> Counts | Predictions:
    """Return the data with the exposure of each row in place of its score. The ranking has the rows of all groups."""
    if isinstance(data, Predictions):
        _, place, rows = np.unique(-data.score, return_inverse=True, return_counts=True)
        return replace(data, score=exposures(rows, top)[place])
    value = exposures(data.table.sum(axis=(0, 1))[::-1], top)[::-1]
    # All rows beyond the top have the same exposure.
    kept, first = np.unique(value, return_index=True)
    return replace(data, table=np.add.reduceat(data.table, first, axis=2), score=kept)
