r"""A twin whose numbers are continuous: a Gaussian copula within groups, about the groups' means.

.. math::
    (g, s) \sim \text{table of the group and the second attribute}, \qquad z \sim N(0, R_b), \qquad
    x_j = \mu_{gj} + \delta_{bsj} + \sigma_{gj} \kappa_{bsj} Q_{bj}(\Phi(z_j))

with j the number columns, g the group (a race), s the second attribute (sex) and b the block of g: a group of many rows
is a block of its own, all smaller ones share one. mu and sigma are a group's mean and standard deviation, delta and
kappa what the second attribute adds to one and makes of the other, Q_bj the block's quantile function of what is left,
in standard deviations, and R_b the correlation of its normal scores. Between two knots
Q(u) = lo + (hi - lo) v^((1 - m)/m), v the share of the way, has the interval's own mean, m = (mean - lo) / (hi - lo).
x_j is rounded to the column's decimals and kept within its limits.

Kept: each group's size (to the ten), each column's mean, spread and shape in each group, the correlation of every pair
of columns in each block, and so the least-squares weights of one column on the others. Not kept: curved or uneven
dependence, correlations that differ between two small groups, and a grid that is finer in places (a tenth of the LSAT
scores are no whole numbers).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pipeline.datasets.twins.model import apportion
from pipeline.datasets.twins.stored import Root
from pipeline.types import Array


@dataclass(frozen=True)
class Number:
    """A number column: rounded to ``decimals``, kept within [``low``, ``high``]."""

    name: str
    decimals: int
    low: float
    high: float


@dataclass(frozen=True)
class Group:
    """``mean`` mu and ``deviation`` sigma (J,) of the J columns, and the ``block`` b that the group belongs to."""

    block: str
    mean: Array
    deviation: Array


@dataclass(frozen=True)
class Block:
    """``shift`` delta and ``scale`` kappa (J,) by second attribute, ``correlation`` R (J, J), J quantile functions Q.

    ``quantiles`` (J, K) are those of the probabilities 0, 1 / (K - 1), ..., 1, and ``means`` (J, K - 1) the means of
    the values between two of them.
    """

    shift: Mapping[str, Array]
    scale: Mapping[str, Array]
    correlation: Array
    quantiles: Array
    means: Array

    def left(self, u: Array, j: int) -> Array:
        """Q_j(u) of probabilities (n,)."""
        place = u * self.means.shape[1]
        interval = np.minimum(place.astype(np.int64), self.means.shape[1] - 1)
        low, high = self.quantiles[j][interval], self.quantiles[j][interval + 1]
        width = high - low
        # Several knots may share one value; any exponent does.
        m = np.divide(self.means[j][interval] - low, width, out=np.full(len(u), 0.5), where=width > 0)
        return np.asarray(low + width * (place - interval) ** ((1 - m) / m))


@dataclass(frozen=True)
class CopulaTwin:
    """A fitted twin of ``rows`` rows.

    ``root``: the group's and the second attribute's column. ``preserved``: statistics of the official rows.
    """

    dataset: str
    rows: int
    root: Root
    numbers: tuple[Number, ...]
    groups: Mapping[str, Group]
    blocks: Mapping[str, Block]
    preserved: Mapping[str, Any]


def sample(twin: CopulaTwin, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw n rows; the cells of the root come in fixed proportion and random order, the numbers are random."""
    from scipy.special import ndtr

    if n < 1:
        raise ValueError(f"a twin of {n} rows was asked for: expected at least 1")
    cell = rng.permutation(np.repeat(np.arange(len(twin.root.counts)), apportion(n, twin.root.counts)))
    u = np.empty((n, len(twin.numbers)))
    names = np.array([twin.groups[group].block for group, _ in twin.root.cells], dtype=object)[cell]
    for name, block in twin.blocks.items():
        members = names == name
        root = np.linalg.cholesky(block.correlation)
        u[members] = ndtr(rng.standard_normal((int(members.sum()), len(root))) @ root.T)
    values = np.empty_like(u)
    for code, (group_name, second) in enumerate(twin.root.cells):
        members, group = cell == code, twin.groups[group_name]
        block = twin.blocks[group.block]
        for j in range(len(twin.numbers)):
            left = block.scale[second][j] * block.left(u[members, j], j)
            values[members, j] = group.mean[j] + block.shift[second][j] + group.deviation[j] * left
    columns: dict[str, Any] = {
        name: pd.Series([pair[position] for pair in twin.root.cells], dtype="str")[cell].reset_index(drop=True)
        for position, name in enumerate(twin.root.columns)
    }
    for j, number in enumerate(twin.numbers):
        columns[number.name] = values[:, j].round(number.decimals).clip(number.low, number.high)
    return pd.DataFrame(columns)
