"""Marginal histograms of one feature in several named groups of people, over the same bins."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from pipeline.types import Array


@dataclass(frozen=True)
class Marginal:
    """``counts[name]`` (b,) people of each group in bins with ``edges`` (b + 1,); ``sizes[name]`` in all.

    A flipset is a small part of its group: ``shares`` (counts over size) are what to compare.
    """

    edges: Array
    counts: Mapping[str, Array]
    sizes: Mapping[str, int]

    @property
    def shares(self) -> dict[str, Array]:
        """The part of each group in each bin; zeros for a group without people."""
        return {name: count / max(self.sizes[name], 1) for name, count in self.counts.items()}


def marginal(groups: Mapping[str, Array], bins: int) -> Marginal:
    """The histogram of one feature's values in each named group, (n_g,) each.

    All bins are equally wide. A count (or any feature that spans fewer than ``bins`` steps of its smallest gap) has a
    bin around each value; otherwise ``bins`` of them span all groups. Raises ValueError without values or with values
    that are not finite.
    """
    if bins < 1:
        raise ValueError(f"expected at least 1 bin, found {bins}")
    pooled = np.concatenate(list(groups.values())) if groups else np.empty(0)
    if not len(pooled) or not np.isfinite(pooled).all():
        raise ValueError(
            f"expected finite values to count, found {len(pooled)} of which {int((~np.isfinite(pooled)).sum())} are not"
        )
    edges = _edges(np.unique(pooled), bins)
    return Marginal(
        edges,
        {name: np.histogram(values, edges)[0] for name, values in groups.items()},
        {name: len(values) for name, values in groups.items()},
    )


def _edges(distinct: Array, bins: int) -> Array:
    """Edges of equally wide bins over sorted values that differ."""
    low, high = distinct[0], distinct[-1]
    if len(distinct) == 1:
        return low + np.array([-0.5, 0.5])
    steps = round((high - low) / np.diff(distinct).min()) if len(distinct) <= bins else bins
    if steps >= bins:
        return np.linspace(low, high, bins + 1)
    half = (high - low) / steps / 2
    return np.linspace(low - half, high + half, steps + 2)
