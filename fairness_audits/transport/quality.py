r"""Quality measures of a map: how well its images match the target distribution, and how far the map moves rows.

- KS of a feature: :math:`\sup_v |F(v) - F'(v)|`, the largest difference of two empirical distribution functions.
- MSE difference of a feature: fit a linear regression of the feature on the others on a random half of the real rows,
  and subtract its mean squared error on the other half from its mean squared error on generated rows.
- Distance: the mean of :math:`c(x, G(x))`, to be compared with the distance of exact transport.

Source: Black et al. 2020, section 5.1 and Table 1, whose "squared L1" distances are plain L1.
"""

from collections.abc import Sequence

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.transport.cost import paired_costs
from fairness_audits.transport.plan import best_plan
from fairness_audits.values import Array

WORST_HEALTHY_KS = 0.12
"""Largest KS statistic of a healthy map; a map with a larger statistic in any feature has failed."""
SMALL_ERROR = 1e-3
"""An error of a plan's cost is negligible below this share of a column's contribution to the cost."""


def ks(real: Array, generated: Array) -> Array:
    """Compute the two-sample Kolmogorov-Smirnov statistic of each feature.

    Parameters
    ----------
    real, generated : ndarray of shape (m, d) and (n, d)
        Finite rows of the target group, and images of the source group.

    Returns
    -------
    ndarray of shape (d,)
        The largest difference of the two empirical distribution functions.

    Raises
    ------
    InvalidInput
        If rows are not finite.

    Examples
    --------
    >>> ks(np.array([[0.0], [1.0]]), np.array([[0.5], [1.0]]))
    array([0.5])

    """
    _finite(real, generated)
    return np.array([_largest_gap(a, b) for a, b in zip(real.T, generated.T, strict=True)])


def nearest_values(real: Array, generated: Array) -> Array:
    """Replace each generated value by the nearest value of the real feature, (m, d) and (n, d) to (n, d).

    A learned map never hits the atoms of a discrete feature exactly. However close it comes, its KS statistic is at
    least half the largest atom's share. In a continuous feature, values move by no more than the gap between two rows.
    """
    _finite(real, generated)
    snapped = np.empty(generated.shape)
    for j, column in enumerate(real.T):
        values = np.unique(column)
        above = np.clip(np.searchsorted(values, generated[:, j]), 1, max(len(values) - 1, 1))
        low, high = values[above - 1], values[np.minimum(above, len(values) - 1)]
        snapped[:, j] = np.where(generated[:, j] - low <= high - generated[:, j], low, high)
    return snapped


def nearest_ks(real: Array, generated: Array) -> Array:
    """Compute the KS statistic of each feature after :func:`nearest_values`, (m, d) and (n, d) to (d,)."""
    return ks(real, nearest_values(real, generated))


def regression_errors(real: Array, generated: Array, rng: np.random.Generator) -> tuple[Array, Array]:
    """Compute the mean squared error of each feature's regression on the others, with an intercept; (m, d) and (n, d).

    Returns the errors on held-out real rows (d,) and on generated rows (d,). Raises InvalidInput unless half of the
    real rows outnumber the features.
    """
    _finite(real, generated)
    d = real.shape[1]
    order = rng.permutation(len(real))
    half, other = real[order[: len(real) // 2]], real[order[len(real) // 2 :]]
    if len(half) <= d:
        problem = f"regressions of {d} features need more than {2 * d} real rows, found {len(real)}"
        raise InvalidInput(problem, option="real")
    errors = np.empty((2, d))
    for j in range(d):
        weights, *_ = np.linalg.lstsq(_without(half, j), half[:, j], rcond=None)
        errors[:, j] = [np.mean((rows[:, j] - _without(rows, j) @ weights) ** 2) for rows in (other, generated)]
    return errors[0], errors[1]


def mean_distance(rows: Array, images: Array, cost: str = "squared_l1") -> float:
    """Return the mean of c(x, G(x)), (n, d) and (n, d); Table 1 prints the cost "l1"."""
    _finite(rows, images)
    return float(paired_costs(rows, images, cost).mean())


def exact_distances(source: Array, target: Array) -> dict[str, float]:
    """Return the mean L1 and squared L1 distances under the plan that is optimal for squared L1, (n, d) to (m, d)."""
    _finite(source, target)
    found = best_plan(source, target)
    pairs = found.source[found.row], found.target[found.column]
    return {name: float(found.mass @ paired_costs(*pairs, name) / found.total) for name in ("l1", "squared_l1")}


def orientation(rows: Array, images: Array) -> Array:
    """Return the correlation of rows (n, d) and their images (n, d) in each feature (d,).

    A negative value means that the map mirrors the feature, which the marginals of a symmetric distribution do not
    show. The correlation of a constant feature is NaN.
    """
    one, other = rows - rows.mean(axis=0), images - images.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = (one * other).sum(axis=0) / np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    return found


def healthy(statistics: Array) -> bool:
    """Return True if no feature's KS statistic is above :data:`WORST_HEALTHY_KS`."""
    return bool(np.max(statistics) <= WORST_HEALTHY_KS)


def unseen(source: Array, target: Array, cost: str = "squared_l1", gap: float = 0.0) -> Array:
    r"""Return the columns that a plan with this optimality ``gap`` cannot see, (n, d) and (m, d) to (d,).

    Rounding gives costs an error of :math:`\epsilon\, c_{max}`, where c_max is the largest cost between two points. The
    plan is arbitrary in a column whose spread within the groups adds no more than this error and the gap to a cost.
    """
    both = np.concatenate([source, target])
    largest = float(paired_costs(both.max(axis=0), both.min(axis=0), cost))
    spread = np.sqrt(source.var(axis=0) + target.var(axis=0))
    own = {"l1": spread, "l2": spread**2 / max(2 * largest, np.finfo(float).tiny)}.get(cost, spread**2)
    return np.asarray(gap + np.finfo(float).eps * largest > SMALL_ERROR * own)


def chance_ks(sizes: Sequence[int], columns: int, alpha: float) -> float:
    r"""Return the KS statistic that a correct map exceeds by chance in any of d columns with probability <= alpha.

    .. math:: \sqrt{\tfrac12 \log(2 d / \alpha)\, (1/n + 1/m + 1/n' + 1/m')},

    the bound of Dvoretzky, Kiefer and Wolfowitz with Massart's constant and a Bonferroni correction. The empirical
    process is the sum of four independent ones: a map fitted on n and m points maps n' other points, and the images
    are compared with m' other points.
    """
    return float(np.sqrt(np.log(2 * columns / alpha) / 2 * sum(1 / size for size in sizes)))


def _largest_gap(a: Array, b: Array) -> float:
    a, b = np.sort(a), np.sort(b)
    values = np.concatenate([a, b])
    gap = np.searchsorted(a, values, side="right") / len(a) - np.searchsorted(b, values, side="right") / len(b)
    return float(np.abs(gap).max())


def _without(rows: Array, feature: int) -> Array:
    """Return the other features and a column of ones."""
    return np.column_stack([np.delete(rows, feature, axis=1), np.ones(len(rows))])


def _finite(*arrays: Array) -> None:
    for array in arrays:
        if (bad := (~np.isfinite(array)).any(axis=1)).any():
            problem = f"{int(bad.sum())} of {len(array)} rows hold NaN or infinite values"
            raise InvalidInput(problem, row=int(bad.argmax()), remedy="Leave them out and count them")
