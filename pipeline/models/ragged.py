"""Arrays of repetitions that are not of one length."""

from collections.abc import Sequence

import numpy as np

Array = np.ndarray


def stacked(arrays: Sequence[Array], fill: float = 0.0) -> Array:
    """One array with an axis before theirs, the shorter of them filled up with ``fill`` at the end of their first."""
    longest = max(len(array) for array in arrays)
    widths = [[(0, longest - len(array)), *[(0, 0)] * (array.ndim - 1)] for array in arrays]
    return np.stack([np.pad(array, width, constant_values=fill) for array, width in zip(arrays, widths, strict=True)])
