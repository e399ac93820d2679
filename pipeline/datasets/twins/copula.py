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

A block's quantile function has as many intervals as leave :data:`FEWEST_IN_INTERVAL` rows in each, at most
:data:`MOST_INTERVALS`; the outermost limits are the tenth smallest and the tenth largest value. Normal scores are those
of the middle of the ranks that a value shares with its equals.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from pipeline.datasets.twins import preserved
from pipeline.datasets.twins.model import Root, within
from pipeline.datasets.twins.preserved import FEWEST, FEWEST_IN_INTERVAL
from pipeline.types import Array

LARGE = 1_000
"""A group of that many rows is a block of its own."""
OTHERS = "all others"
MOST_INTERVALS = 50
DIGITS = 2
"""Decimals of what is stored of a block; numbers of a group have three significant digits."""
MOST_DECIMALS = 3


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
        return within(low, high, self.means[j][interval], place - interval)


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

    cell, columns = twin.root.drawn(n, rng)
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
    for j, number in enumerate(twin.numbers):
        columns[number.name] = values[:, j].round(number.decimals).clip(number.low, number.high)
    return pd.DataFrame(columns)


def fit(dataset: str, rows: pd.DataFrame, root: Sequence[str]) -> CopulaTwin:
    """The twin of ``rows``; ``root`` names the group's column and the second attribute's, the others are numbers.

    Raises ValueError for a missing value, and for fewer than :data:`FEWEST_IN_INTERVAL` rows of a group or, within a
    block, of a value of the second attribute.
    """
    if rows.isna().any(axis=None):
        raise ValueError(f"{dataset}: rows hold missing values: fit the twin on rows without")
    first, second = root
    sizes = _expect_many(rows[first])
    names = [name for name in rows.columns if name not in root]
    block_of = {group: group if size >= LARGE else OTHERS for group, size in sorted(sizes.items())}
    groups: dict[str, Group] = {}
    blocks: dict[str, Block] = {}
    for name in dict.fromkeys(block_of.values()):
        members = rows[rows[first].map(block_of) == name]
        blocks[name], means, deviations = _block(members[names], members[first], members[second])
        groups |= {group: Group(name, means[group], deviations[group]) for group in means}
    return CopulaTwin(
        dataset=dataset,
        rows=len(rows),
        root=Root.of(rows, root, FEWEST),
        numbers=tuple(_number(rows[name]) for name in names),
        groups=groups,
        blocks=blocks,
        preserved=summary(rows, root),
    )


def _expect_many(values: pd.Series) -> pd.Series:
    """How often each value occurs; ValueError for one of fewer than :data:`FEWEST_IN_INTERVAL` rows."""
    sizes = values.value_counts()
    if sizes.min() < FEWEST_IN_INTERVAL:
        raise ValueError(
            f"{values.name} {sizes.idxmin()!r} has {sizes.min()} rows, expected at least {FEWEST_IN_INTERVAL}: merge "
            "rare values before fitting"
        )
    return sizes


def _block(
    numbers: pd.DataFrame, group: pd.Series, second: pd.Series
) -> tuple[Block, Mapping[str, Array], Mapping[str, Array]]:
    """One block of rows, and the mean and the deviation (J,) of each group in it."""
    _expect_many(second)
    means = numbers.groupby(group).mean()
    left = numbers - means.loc[group].to_numpy()
    shift = left.groupby(second).mean()
    left = left - shift.loc[second].to_numpy()
    deviations = np.sqrt((left**2).groupby(group).mean())
    left = left / deviations.loc[group].to_numpy()
    scale = np.sqrt((left**2).groupby(second).mean())
    left = left / scale.loc[second].to_numpy()
    functions = [knots(column) for column in left.to_numpy().T]
    block = Block(
        shift={str(value): row.to_numpy().round(DIGITS) for value, row in shift.iterrows()},
        scale={str(value): row.to_numpy().round(DIGITS) for value, row in scale.iterrows()},
        correlation=np.corrcoef(normal_scores(left.to_numpy()).T).round(DIGITS),
        quantiles=np.stack([quantiles for quantiles, _ in functions]),
        means=np.stack([means for _, means in functions]),
    )
    return block, _significant(means), _significant(deviations)


def knots(values: Array) -> tuple[Array, Array]:
    """Values (K,) at equally spaced probabilities, and the means (K - 1,) between two of them.

    The ten lowest values are taken for the tenth lowest, the ten highest for the tenth highest; what that takes off the
    spread is given back to all, so that the function has mean 0 and variance 1.
    """
    ordered = preserved.trimmed(values)
    intervals = max(1, min(MOST_INTERVALS, len(values) // FEWEST_IN_INTERVAL))
    pieces = np.array_split(ordered, intervals)
    quantiles = np.array([*(piece[0] for piece in pieces), ordered[-1]])
    means = np.array([piece.mean() for piece in pieces])
    middle, deviation = _moments(quantiles, means)
    quantiles, means = ((part - middle) / deviation for part in (quantiles, means))
    # A mean on its interval's limit, by rounding or because all values are one, has no exponent.
    inside = 10.0 ** -(DIGITS + 1)
    low, high = quantiles[:-1].round(DIGITS), quantiles[1:].round(DIGITS)
    return quantiles.round(DIGITS), means.round(DIGITS + 1).clip(
        low + inside, np.maximum(high, low + 2 * inside) - inside
    )


def _moments(quantiles: Array, means: Array) -> tuple[float, float]:
    """Mean and standard deviation of Q(u), u uniform: v^a has mean 1 / (a + 1) and mean square 1 / (2 a + 1)."""
    low, width = quantiles[:-1], np.diff(quantiles)
    m = np.divide(means - low, width, out=np.full(len(means), 0.5), where=width > 0)
    square = low**2 + 2 * low * width * m + width**2 * m / (2 - m)
    return float(means.mean()), float(np.sqrt(square.mean() - means.mean() ** 2))


def normal_scores(values: Array) -> Array:
    """Phi^-1((rank - 1/2) / n) of each column (n, J), equal values sharing their mean rank."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / len(values)))


def _number(values: pd.Series) -> Number:
    """Decimals that most values need, and the tenth smallest and largest value."""
    scaled = [values.to_numpy() * 10**decimals for decimals in range(MOST_DECIMALS)]
    fits = [np.isclose(number, np.rint(number), atol=1e-6).mean() > 1 / 2 for number in scaled]
    decimals = fits.index(True) if True in fits else MOST_DECIMALS
    low, *_, high = preserved.trimmed(values.to_numpy())
    return Number(str(values.name), decimals, float(low), float(high))


def _significant(table: pd.DataFrame) -> dict[str, Array]:
    """Each row by its name, its numbers to three significant digits."""
    return {str(name): np.array([preserved.significant(value) for value in row]) for name, row in table.iterrows()}


def summary(rows: pd.DataFrame, root: Sequence[str]) -> dict[str, Any]:
    """What the twin is to preserve: means and standard deviations by group, and correlations of the numbers by group.

    Groups of fewer than :data:`pipeline.datasets.twins.preserved.FEWEST_IN_GROUP` rows are left out.
    """
    names = [name for name in rows.columns if name not in root]
    correlations = {
        group: {f"{a} * {b}": round(float(members[a].corr(members[b])), DIGITS) for a, b in combinations(names, 2)}
        for group, members in preserved.groups(rows, root[:1])
    }
    return {"marginals": preserved.marginals(rows, root), "correlations": correlations}
