r"""Twins of continuous data, drawn from a Gaussian copula around the group means.

.. math::
    (g, s) \sim \text{table of the group and the second attribute}, \qquad z \sim N(0, R_b), \qquad
    x_j = \mu_{gj} + \delta_{bsj} + \sigma_{gj} \kappa_{bsj} Q_{bj}(\Phi(z_j))

for each numeric column j, group g (a race), second attribute s (sex) and block b of g. A large group is a block of its
own; all smaller groups share one block. mu and sigma are a group's mean and standard deviation. The second attribute
shifts the mean by delta and scales the standard deviation by kappa. Q_bj is the block's quantile function of the
standardised residuals, and R_b the correlation of their normal scores. Between two knots,
Q(u) = lo + (hi - lo) v^((1 - m)/m), where v is the relative position of u between the knots; it preserves the
interval's mean, with m = (mean - lo) / (hi - lo). x_j is rounded to the column's decimals and clipped to its limits.

The twin preserves each group's size (to a multiple of ten), each column's mean, spread and shape in each group, and the
correlation of every pair of columns in each block, and therefore the least-squares weights of one column on the others.
It does not preserve nonlinear or heteroscedastic dependence, different correlations in two small groups, or a locally
finer grid (a tenth of the LSAT scores are not whole numbers).

A block's quantile function has up to :data:`MOST_INTERVALS` intervals with at least :data:`FEWEST_IN_INTERVAL` rows in
each. The outermost limits are the tenth smallest and the tenth largest value. Normal scores of equal values use their
mean rank.
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
"""Minimum number of rows of a group that is a block of its own."""
OTHERS = "all others"
MOST_INTERVALS = 50
DIGITS = 2
"""Decimals of a block's fitted numbers; a group's numbers have three significant digits."""
MOST_DECIMALS = 3


def twin(rows: pd.DataFrame, root: Sequence[str], rng: np.random.Generator) -> pd.DataFrame:
    """Fit the model to ``rows`` and draw the same number of rows from it.

    ``root`` names the columns of the group and of the second attribute; the other columns are numeric. Raises
    ValueError if a group, or a value of the second attribute in a block, has fewer than :data:`FEWEST_IN_INTERVAL`
    rows.
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
    """Count each value. Raises ValueError for a value with fewer than :data:`FEWEST_IN_INTERVAL` rows."""
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
    """Draw the numbers (n, J) of n rows of a block from the model of its official ``numbers``."""
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
    """Return Phi^-1((rank - 1/2) / n) of each column (n, J), with the mean rank for equal values."""
    return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / len(values)))


def _quantile(knots: Array, means: Array, u: Array) -> Array:
    """Return Q(u) at probabilities u (n,), from equally spaced ``knots`` (K,) and ``means`` (K - 1,) between them."""
    place = u * len(means)
    interval = np.minimum(place.astype(np.int64), len(means) - 1)
    return within(knots[interval], knots[interval + 1], means[interval], place - interval)


def _knots(values: Array) -> tuple[Array, Array]:
    """Return the knots (K,) at equally spaced probabilities, and the means (K - 1,) between them.

    The ten lowest values are replaced by the tenth lowest and the ten highest by the tenth highest. The function is
    then standardised to mean 0 and variance 1.
    """
    ordered = trimmed(values)
    intervals = max(1, min(MOST_INTERVALS, len(values) // FEWEST_IN_INTERVAL))
    pieces = np.array_split(ordered, intervals)
    quantiles = np.array([*(piece[0] for piece in pieces), ordered[-1]])
    means = np.array([piece.mean() for piece in pieces])
    middle, deviation = _moments(quantiles, means)
    quantiles, means = ((part - middle) / deviation for part in (quantiles, means))
    # A mean on the limit of its interval, after rounding or because all values are equal, has no exponent.
    inside = 10.0 ** -(DIGITS + 1)
    low, high = quantiles[:-1].round(DIGITS), quantiles[1:].round(DIGITS)
    highest = np.maximum(high, low + 2 * inside) - inside
    return quantiles.round(DIGITS), means.round(DIGITS + 1).clip(low + inside, highest)


def _moments(quantiles: Array, means: Array) -> tuple[float, float]:
    """Return mean and standard deviation of Q(u), u uniform: v^a has mean 1/(a + 1) and mean square 1/(2 a + 1)."""
    low, width = quantiles[:-1], np.diff(quantiles)
    m = np.divide(means - low, width, out=np.full(len(means), 0.5), where=width > 0)
    square = low**2 + 2 * low * width * m + width**2 * m / (2 - m)
    return float(means.mean()), float(np.sqrt(square.mean() - means.mean() ** 2))


def _decimals(values: pd.Series) -> int:
    """Return the number of decimals that most values need."""
    scaled = [values.to_numpy() * 10**decimals for decimals in range(MOST_DECIMALS)]
    fits = [np.isclose(number, np.rint(number), atol=1e-6).mean() > 1 / 2 for number in scaled]
    return fits.index(True) if True in fits else MOST_DECIMALS
