"""The units in which an audit measures distances: the columns' own, or standard deviations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import SHOWN, listed
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

DISTINCT = 1000
"""Largest number of distinct values of a column that are converted back exactly."""
UNIT_SCALE = (0.2, 5.0)
"""Bounds of a standard deviation that counts as unit scale and needs no decision."""


@dataclass(frozen=True)
class Units:
    """z = (x - shift) / scale: x in the columns' own units, z in the audit's units. ``shift`` and ``scale`` are (d,).

    ``standardized`` are the columns whose shift and scale are their mean and standard deviation on the audited rows.
    ``values`` are the distinct values of columns that have few, in order, by position. They are converted back exactly,
    because a code that is off by rounding is another category to a model.
    """

    shift: Array
    scale: Array
    standardized: tuple[str, ...] = ()
    values: Mapping[int, Array] = field(default_factory=dict)

    def knowing(self, x: Array) -> Units:
        """Return the units that also convert the values of these rows (n, d) back exactly."""
        scaled = np.flatnonzero((self.scale != 1) | (self.shift != 0)).tolist()
        every = {j: np.unique(np.concatenate([self.values.get(j, x[:0, j]), x[:, j]])) for j in scaled}
        return replace(self, values={j: known for j, known in every.items() if 0 < len(known) <= DISTINCT})

    def inward(self, x: Array) -> Array:
        """Convert points to the units of the audit."""
        return (x - self.shift) / self.scale

    @cached_property
    def _inside(self) -> Mapping[int, Array]:
        return {j: (known - self.shift[j]) / self.scale[j] for j, known in self.values.items()}

    def outward(self, z: Array) -> Array:
        """Convert points to the columns' own units."""
        x = z * self.scale + self.shift
        for j, known in self.values.items():
            inside = self._inside[j]
            place = np.minimum(np.searchsorted(inside, z[..., j]), len(known) - 1)
            x[..., j] = np.where(inside[place] == z[..., j], known[place], x[..., j])
        return x

    def network_input(self, z: torch.Tensor) -> torch.Tensor:
        """Convert points in the units of the audit to inputs of the network, differentiably."""
        return z * z.new_tensor(self.scale) + z.new_tensor(self.shift)


def units(features: Array, names: Sequence[str], standardize: Literal["continuous", "none"] | None) -> Units:
    """Return the units for an audit of rows ``features`` (n, d); missing numbers are ignored.

    The penalty and the step size treat one unit of each column alike. In unsuitable units, an audit hardly moves some
    columns and finds nothing. ``standardize``: ``none`` keeps the units, ``continuous`` standardises each column with
    more than two values and gives columns of two values the range 1. With None, the units are kept if all columns with
    more than two values are near unit scale; otherwise InvalidInput asks for a decision.
    """
    d = len(names)
    mean, std = (np.nanmean, np.nanstd) if np.isnan(features).any() else (np.mean, np.std)
    spread = std(features, axis=0)
    continuous = [j for j in range(d) if len(np.unique(features[:, j])) > 2]
    if standardize is None:
        lowest, highest = UNIT_SCALE
        if off := [j for j in continuous if not lowest <= spread[j] <= highest]:
            found = listed([f"{names[j]} ({spread[j]:.3g})" for j in off], SHOWN)
            problem = (
                f"columns with a standard deviation far from 1: {found}. The audit treats one unit of each column alike"
            )
            remedy = (
                "Choose standardize='continuous', which measures columns of more than two values in standard "
                "deviations (the model still sees the original values), or standardize='none', which keeps "
                "their units"
            )
            raise InvalidInput(problem, option="standardize", column=names[off[0]], remedy=remedy)
    shift, scale = np.zeros(d), np.ones(d)
    if standardize != "continuous":
        return Units(shift, scale)
    shift[continuous], scale[continuous] = mean(features[:, continuous], axis=0), spread[continuous]
    # The coding of two values, such as 0 and 12, says nothing about their distance.
    for j in set(range(d)) - set(continuous):
        known = features[~np.isnan(features[:, j]), j]
        scale[j] = (np.ptp(known) if len(known) else 0.0) or 1.0
    return Units(shift, scale, tuple(names[j] for j in continuous)).knowing(features)
