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

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from data.twins.draws import drawn_cells, root_cells, within
from data.twins.preserved import FEWEST_IN_INTERVAL, significant, trimmed
from fairness_audits.values import Array

LARGE = 1_000
"""A group of that many rows is a block of its own."""
OTHERS = "all others"
MOST_INTERVALS = 50
DIGITS = 2
"""Decimals of what is fitted of a block; numbers of a group have three significant digits."""
MOST_DECIMALS = 3


def twin(rows: pd.DataFrame, root: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """As many rows as ``rows``, drawn from the model fitted to them.

    ``root`` names the group's column and the second attribute's, the others are numbers. Raises ValueError for fewer
    than :data:`FEWEST_IN_INTERVAL` rows of a group or of a value of the second attribute in a block.
    """
    first, second = root
    _, drawn = drawn_cells(root_cells(rows, root), len(rows), rng)
    names = [name for name in rows.columns if name not in root]
    block_of = {group: group if n >= LARGE else OTHERS for group, n in _sizes(rows[first]).items()}
    values = np.empty((len(drawn), len(names)))
    for block in sorted(set(block_of.values())):
        official, members = rows[rows[first].map(block_of) == block], drawn[first].map(block_of) == block
        groups = (drawn.loc[members, first], drawn.loc[members, second])
        values[members] = _block(official[names], official[first], official[second], *groups, rng)
    for name, column in zip(names, values.T, strict=True):
        ordered = trimmed(rows[name].to_numpy())
        drawn[name] = column.round(_decimals(rows[name])).clip(ordered[0], ordered[-1])
    return drawn[list(rows.columns)]


def _sizes(values: pd.Series) -> pd.Series:
    """How often each value occurs; ValueError for one of fewer than :data:`FEWEST_IN_INTERVAL` rows."""
    sizes = values.value_counts()
    if sizes.min() < FEWEST_IN_INTERVAL:
        raise ValueError(f"{values.name} {sizes.idxmin()!r}: expected {FEWEST_IN_INTERVAL} rows, found {sizes.min()}")
    return sizes


def _block(
    numbers: pd.DataFrame,
    group: pd.Series,
    second: pd.Series,
    drawn_group: pd.Series,
    drawn_second: pd.Series,
    rng: np.random.Generator,
) -> Array:
    """The numbers (n, J) of n drawn rows of a block, from its official ``numbers``."""
    _sizes(second)
    means = numbers.groupby(group).mean()
    left = numbers - means.loc[group].to_numpy()
    shift = left.groupby(second).mean()
    left = left - shift.loc[second].to_numpy()
    deviations = np.sqrt((left**2).groupby(group).mean())
    left = left / deviations.loc[group].to_numpy()
    scale = np.sqrt((left**2).groupby(second).mean())
    scores = (left / scale.loc[second].to_numpy()).to_numpy()
    correlation = np.corrcoef(_normal_scores(scores).T).round(DIGITS)
    u = ndtr(rng.standard_normal((len(drawn_group), len(correlation))) @ np.linalg.cholesky(correlation).T)
    quantiles = np.column_stack([_quantile(*_knots(column), v) for column, v in zip(scores.T, u.T, strict=True)])
    middle = means.map(significant).loc[drawn_group].to_numpy() + shift.round(DIGITS).loc[drawn_second].to_numpy()
    spread = deviations.map(significant).loc[drawn_group].to_numpy()
    return middle + spread * (scale.round(DIGITS).loc[drawn_second].to_numpy() * quantiles)


def _normal_scores(values: Array) -> Array:
    """Phi^-1((rank - 1/2) / n) of each column (n, J), equal values sharing their mean rank."""
    return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / len(values)))


def _quantile(knots: Array, means: Array, u: Array) -> Array:
    """Q(u) of probabilities (n,): ``knots`` (K,) at equally spaced ones, and the ``means`` (K - 1,) between two."""
    place = u * len(means)
    interval = np.minimum(place.astype(np.int64), len(means) - 1)
    return within(knots[interval], knots[interval + 1], means[interval], place - interval)


def _knots(values: Array) -> tuple[Array, Array]:
    """Values (K,) at equally spaced probabilities, and the means (K - 1,) between two of them.

    The ten lowest values are taken for the tenth lowest, the ten highest for the tenth highest; what that takes off the
    spread is given back to all, so that the function has mean 0 and variance 1.
    """
    ordered = trimmed(values)
    intervals = max(1, min(MOST_INTERVALS, len(values) // FEWEST_IN_INTERVAL))
    pieces = np.array_split(ordered, intervals)
    quantiles = np.array([*(piece[0] for piece in pieces), ordered[-1]])
    means = np.array([piece.mean() for piece in pieces])
    middle, deviation = _moments(quantiles, means)
    quantiles, means = ((part - middle) / deviation for part in (quantiles, means))
    # A mean on its interval's limit, by rounding or because all values are one, has no exponent.
    inside = 10.0 ** -(DIGITS + 1)
    low, high = quantiles[:-1].round(DIGITS), quantiles[1:].round(DIGITS)
    highest = np.maximum(high, low + 2 * inside) - inside
    return quantiles.round(DIGITS), means.round(DIGITS + 1).clip(low + inside, highest)


def _moments(quantiles: Array, means: Array) -> tuple[float, float]:
    """Mean and standard deviation of Q(u), u uniform: v^a has mean 1 / (a + 1) and mean square 1 / (2 a + 1)."""
    low, width = quantiles[:-1], np.diff(quantiles)
    m = np.divide(means - low, width, out=np.full(len(means), 0.5), where=width > 0)
    square = low**2 + 2 * low * width * m + width**2 * m / (2 - m)
    return float(means.mean()), float(np.sqrt(square.mean() - means.mean() ** 2))


def _decimals(values: pd.Series) -> int:
    """Decimals that most values need."""
    scaled = [values.to_numpy() * 10**decimals for decimals in range(MOST_DECIMALS)]
    fits = [np.isclose(number, np.rint(number), atol=1e-6).mean() > 1 / 2 for number in scaled]
    return fits.index(True) if True in fits else MOST_DECIMALS
