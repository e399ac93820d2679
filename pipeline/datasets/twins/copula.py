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

from pipeline.datasets.twins.model import apportion, as_numbers, as_text
from pipeline.types import Array

FORMAT = 1
"""Version of the JSON layout."""


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

    ``root``: the names of the group's and of the second attribute's column; ``cells`` their value pairs, with
    ``counts`` (C,). ``preserved``: statistics of the official rows.
    """

    dataset: str
    rows: int
    root: tuple[str, str]
    cells: tuple[tuple[str, str], ...]
    counts: Array
    numbers: tuple[Number, ...]
    groups: Mapping[str, Group]
    blocks: Mapping[str, Block]
    preserved: Mapping[str, Any]


def sample(twin: CopulaTwin, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Draw n rows; the cells of the root come in fixed proportion and random order, the numbers are random."""
    from scipy.special import ndtr

    if n < 1:
        raise ValueError(f"a twin of {n} rows was asked for: expected at least 1")
    cell = rng.permutation(np.repeat(np.arange(len(twin.counts)), apportion(n, twin.counts)))
    u = np.empty((n, len(twin.numbers)))
    names = np.array([twin.groups[group].block for group, _ in twin.cells], dtype=object)[cell]
    for name, block in twin.blocks.items():
        members = names == name
        root = np.linalg.cholesky(block.correlation)
        u[members] = ndtr(rng.standard_normal((int(members.sum()), len(root))) @ root.T)
    values = np.empty_like(u)
    for code, (group_name, second) in enumerate(twin.cells):
        members, group = cell == code, twin.groups[group_name]
        block = twin.blocks[group.block]
        for j in range(len(twin.numbers)):
            left = block.scale[second][j] * block.left(u[members, j], j)
            values[members, j] = group.mean[j] + block.shift[second][j] + group.deviation[j] * left
    columns: dict[str, Any] = {
        name: pd.Series([pair[position] for pair in twin.cells], dtype="str")[cell].reset_index(drop=True)
        for position, name in enumerate(twin.root)
    }
    for j, number in enumerate(twin.numbers):
        columns[number.name] = values[:, j].round(number.decimals).clip(number.low, number.high)
    return pd.DataFrame(columns)


def to_json(twin: CopulaTwin) -> dict[str, Any]:
    """Plain JSON values."""
    return {
        "format": FORMAT,
        "kind": "copula",
        "dataset": twin.dataset,
        "rows": twin.rows,
        "root": {
            "columns": list(twin.root),
            "cells": [list(pair) for pair in twin.cells],
            "counts": as_text(twin.counts),
        },
        "numbers": [
            {"name": number.name, "decimals": number.decimals, "low": number.low, "high": number.high}
            for number in twin.numbers
        ],
        "groups": {
            name: {"block": group.block, "mean": as_text(group.mean), "deviation": as_text(group.deviation)}
            for name, group in twin.groups.items()
        },
        "blocks": {
            name: {
                "shift": {second: as_text(shift) for second, shift in block.shift.items()},
                "scale": {second: as_text(scale) for second, scale in block.scale.items()},
                "correlation": [as_text(row) for row in block.correlation],
                "quantiles": [as_text(row) for row in block.quantiles],
                "means": [as_text(row) for row in block.means],
            }
            for name, block in twin.blocks.items()
        },
        "preserved": dict(twin.preserved),
    }


def from_json(content: Mapping[str, Any]) -> CopulaTwin:
    """The twin that :func:`to_json` wrote; ValueError when the layout is another."""
    if content.get("format") != FORMAT:
        raise ValueError(
            f"the twin's file has format {content.get('format')!r}, expected {FORMAT}: restore the one that comes with "
            "the project, or fit it again with python -m pipeline.datasets.twins.fit"
        )
    root = content["root"]
    return CopulaTwin(
        dataset=content["dataset"],
        rows=content["rows"],
        root=(root["columns"][0], root["columns"][1]),
        cells=tuple((group, second) for group, second in root["cells"]),
        counts=as_numbers(root["counts"]),
        numbers=tuple(Number(**number) for number in content["numbers"]),
        groups={
            name: Group(group["block"], as_numbers(group["mean"]), as_numbers(group["deviation"]))
            for name, group in content["groups"].items()
        },
        blocks={
            name: Block(
                shift={second: as_numbers(shift) for second, shift in block["shift"].items()},
                scale={second: as_numbers(scale) for second, scale in block["scale"].items()},
                correlation=np.stack([as_numbers(row) for row in block["correlation"]]),
                quantiles=np.stack([as_numbers(row) for row in block["quantiles"]]),
                means=np.stack([as_numbers(row) for row in block["means"]]),
            )
            for name, block in content["blocks"].items()
        },
        preserved=content["preserved"],
    )
