"""In which units an audit measures distances: the columns' own, or standard deviations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.cli.settings import Standardize
from pipeline.messages import SHOWN, listed
from pipeline.types import Array

if TYPE_CHECKING:
    import torch

Asked = Standardize | None
UNIT_SCALE = (0.2, 5.0)
"""Standard deviations within these bounds count as a unit scale, where no decision is needed."""


@dataclass(frozen=True)
class Units:
    """z = (x - shift) / scale: x in the columns' own units, z in those of the audit. ``shift`` and ``scale`` are (d,).

    ``standardized`` names the columns with scale other than 1: their mean and standard deviation on the audited rows.
    """

    shift: Array
    scale: Array
    standardized: tuple[str, ...] = ()

    def inward(self, x: Array) -> Array:
        """Points in the units of the audit."""
        return (x - self.shift) / self.scale

    def outward(self, z: Array) -> Array:
        """Points in the columns' own units."""
        return z * self.scale + self.shift

    def network_input(self, z: torch.Tensor) -> torch.Tensor:
        """What the network sees for points in the units of the audit, differentiable."""
        return z * z.new_tensor(self.scale) + z.new_tensor(self.shift)


def units(features: Array, names: Sequence[str], asked: Asked) -> Units:
    """The units of an audit of rows ``features`` (n, d), in which a missing number does not count.

    The penalty and the step size take one unit of each column alike, so an audit in wrong units moves some columns
    hardly at all and finds nothing. ``asked``: ``none`` keeps the units, ``continuous`` standardises each column of
    more than two values, a tuple the columns that it names. With None the units are kept where all such columns are
    near unit scale; elsewhere ValueError asks for a decision.
    """
    d = len(names)
    mean, std = (np.nanmean, np.nanstd) if np.isnan(features).any() else (np.mean, np.std)
    spread = std(features, axis=0)
    continuous = [j for j in range(d) if len(np.unique(features[:, j])) > 2]
    if asked is None:
        lowest, highest = UNIT_SCALE
        off = [j for j in continuous if not lowest <= spread[j] <= highest]
        if off:
            found = listed([f"{names[j]} ({spread[j]:.3g})" for j in off], SHOWN)
            raise ValueError(
                f"columns with a standard deviation far from 1: {found}. The audit takes one unit of each column "
                "alike, so say what it shall do: --standardize continuous measures columns of more than "
                "two values in standard deviations (the model still sees the columns as they are); --standardize none "
                "keeps their units"
            )
    if asked is None or asked == "none":
        return Units(np.zeros(d), np.ones(d))
    if asked != "continuous" and (unknown := [name for name in asked if name not in names]):
        raise ValueError(f"--standardize names {unknown[0]!r}, which is no feature. Features: {listed(names)}")
    chosen = continuous if asked == "continuous" else [names.index(name) for name in asked]
    constant = [names[j] for j in chosen if spread[j] == 0]
    if constant:
        raise ValueError(f"--standardize: {listed(constant)} is the same in all rows: leave it out of the list")
    shift, scale = np.zeros(d), np.ones(d)
    shift[chosen], scale[chosen] = mean(features[:, chosen], axis=0), spread[chosen]
    return Units(shift, scale, tuple(names[j] for j in chosen))
