r"""Is a value (a score, an error) correlated with a continuous attribute, such as age?

With x and y centred at their means,

.. math:: r = \frac{\sum x_i y_i}{\sqrt{\sum x_i^2 \sum y_i^2}}, \qquad
          T = \frac{\sqrt{n}\, r}{\hat\tau} = \frac{\sum x_i y_i}{\sqrt{\sum x_i^2 y_i^2}}, \qquad
          \hat\tau^2 = \frac{n \sum x_i^2 y_i^2}{\sum x_i^2 \sum y_i^2}.

Permuting y makes x and y independent, so that tau = 1. If they are merely uncorrelated, tau can take any value, and the
test of r has no guaranteed level. T is asymptotically standard normal in both cases (DiCiccio and Romano 2017).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from fairness_audits.audits.permutation.core import PermutationTest, completed
from fairness_audits.audits.permutation.draws import BLOCK
from fairness_audits.audits.permutation.monte_carlo import (
    Method,
    MonteCarlo,
    Settings,
    two_sided_p,
    until_safe,
)
from fairness_audits.audits.permutation.reasons import GUARANTEES
from fairness_audits.audits.permutation.statistics import CANCELLED
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

NEAR = 1e-6
"""If the range of the values is a smaller share of their size, their mean loses digits: one value is subtracted first.
"""
SETS_AT_ONCE = 16
"""Number of data sets that share a permutation: as many as fill a few registers."""


def correlation_test(
    value: Array,
    attribute: Array,
    *,
    rng: np.random.Generator,
    names: tuple[str, str] = ("score", "attribute"),
    **settings: Any,
) -> PermutationTest:
    """Test whether ``value`` and ``attribute`` are uncorrelated, by T (studentized) or r (unstudentized).

    The interval for r is r +- q s, cut to [-1, 1], with q from the permuted |T| and s the delta-method standard error
    of r.

    Parameters
    ----------
    value, attribute : array (n,)
    rng : numpy.random.Generator
    names : pair of str
        Names of the two in the result.
    **settings
        The fields of ``monte_carlo.Settings``.

    Returns
    -------
    PermutationTest
        ``groups`` holds the two names, ``difference`` and both ``estimates`` the correlation, ``sizes`` n.

    Raises
    ------
    InvalidInput
        For arrays of other shapes, values that are not finite, and unknown methods.

    References
    ----------
    DiCiccio and Romano 2017; DiCiccio et al. 2020, section 4.1.
    """
    chosen = Settings(**settings)
    for name, values in zip(names, (value, attribute), strict=True):
        if values.shape != (len(value),) or not np.isfinite(values).all():
            raise InvalidInput(
                f"expected {name} as {len(value)} finite numbers, found shape {values.shape}: drop missing and "
                "infinite values"
            )
    used, n = _method(chosen.method), len(value)
    sides, size = (chosen.alternative, chosen.alpha), (n, n)
    blank = PermutationTest("correlation", names, used, *sides, (None, None), size, size, guarantee=GUARANTEES[used])
    if constant := [
        name for name, values in zip(names, (value, attribute), strict=True) if values.min() == values.max()
    ]:
        return replace(blank, undefined=f"{constant[0]} has a single value, so its correlation is undefined")
    x, y = _centred(value)[:, None], _centred(attribute)[:, None]
    scale = float(np.sqrt((x**2).sum() * (y**2).sum()))
    r = float((x * y).sum()) / scale
    observed = float(_statistic(np.stack([(x * y).sum(axis=0), (x * x * y * y).sum(axis=0)]), scale, used)[0])
    seed = int(rng.integers(2**63))

    def block(number: int, drawn: int) -> Array:
        return _statistic(_permuted(seed, number * BLOCK, drawn, x, y), scale, used)[:, 0]

    reference, stopped = until_safe(block, observed, chosen)
    error = _standard_error(x[:, 0], y[:, 0], r) if used == "studentized" else 1.0
    # Points on a line have a standard error of 0: the interval then ends where the test does.
    found = MonteCarlo(r, observed, error if error > CANCELLED else np.inf, reference, stopped)
    return completed(replace(blank, estimates=(r, r)), found, chosen, limits=(-1.0, 1.0))


def correlation_p(x: Array, y: Array, *, rng: np.random.Generator, method: Method, draws: int) -> Array:
    """Compute the two-sided p-values of S independent data sets, x and y (S, n) -> (S,).

    Sixteen data sets share the same permutations. Each p-value is as accurate as with separate permutations, at a tenth
    of the cost. We share no further, because rejection rates over the data sets would then depend on one sample of
    permutations.
    """
    used, seed = _method(method), int(rng.integers(2**63))
    x, y = (np.asarray(v, dtype=float) - np.mean(v, axis=1, keepdims=True) for v in (x, y))
    p = np.empty(len(x))
    for first in range(0, len(x), SETS_AT_ONCE):
        some = slice(first, first + SETS_AT_ONCE)
        u, v = np.ascontiguousarray(x[some].T), np.ascontiguousarray(y[some].T)
        size = np.sqrt((u**2).sum(axis=0) * (v**2).sum(axis=0))
        observed = _statistic(np.stack([(u * v).sum(axis=0), (u * u * v * v).sum(axis=0)]), size, used)
        reference = _statistic(_permuted(seed, first * draws, draws, u, v), size, used)
        p[some] = two_sided_p(reference.T, observed)
    return p


def pooled_shuffle_p(x: Array, y: Array, *, rng: np.random.Generator, draws: int) -> Array:
    r"""Compute the two-sided p-values of FairTest's test, for comparison only: x and y (S, n) -> (S,).

    FairTest pools the n values of x and the n values of y, shuffles all 2 n values and correlates the two halves. This
    is not a permutation of y against x: the reference distribution is that of two samples from the mixture of x and y.
    The p-value is FairTest's, the share of draws with a larger |r| (at least 1 / B), without the +1 correction. Source:
    Tramer et al. 2017; DiCiccio et al. 2020, section 4.1.
    """
    from fairness_audits.audits.permutation.kernels import pooled_products

    seed, n, p = int(rng.integers(2**63)), x.shape[1], np.empty(len(x))
    for first in range(0, len(x), SETS_AT_ONCE):
        some = slice(first, first + SETS_AT_ONCE)
        u, v = x[some], y[some]
        values = np.concatenate([u, v], axis=1)
        values = np.ascontiguousarray((values - values.mean(axis=1, keepdims=True)).T)
        sums = np.zeros((draws, 3, values.shape[1]))
        pooled_products(seed, first * draws, values, sums)
        total, squares, products = np.moveaxis(sums, 1, 0)
        # The values are centred, so the sums of the other half follow from the totals.
        spread = (squares - total**2 / n) * ((values**2).sum(axis=0) - squares - total**2 / n)
        r = (products + total**2 / n) / np.sqrt(spread)
        u, v = u - u.mean(axis=1, keepdims=True), v - v.mean(axis=1, keepdims=True)
        observed = (u * v).sum(axis=1) / np.sqrt((u**2).sum(axis=1) * (v**2).sum(axis=1))
        p[some] = np.maximum((np.abs(r) > np.abs(observed)).mean(axis=0), 1 / draws)
    return p


def _centred(values: Array) -> Array:
    """Return deviations from the mean, scaled by a power of two to a largest value near 1, so that products fit."""
    scaled = np.ldexp(values, -np.frexp(np.abs(values).max())[1])
    scaled = scaled - scaled[0] if np.ptp(scaled) < NEAR * np.abs(scaled).max() else scaled
    centred = scaled - scaled.mean()
    centred[np.abs(centred) <= CANCELLED] = 0.0
    return np.ldexp(centred, -np.frexp(np.abs(centred).max())[1])


def _method(method: Method) -> Method:
    if method not in ("auto", "studentized", "unstudentized"):
        raise InvalidInput(
            f"expected method studentized or unstudentized for a correlation, found {method!r}", option="method"
        )
    return "unstudentized" if method == "unstudentized" else "studentized"


def _permuted(seed: int, first: int, draws: int, x: Array, y: Array) -> Array:
    """Compute the sums of x y and of x^2 y^2 after each permutation of y's rows: x, y (n, S) -> (draws, 2, S)."""
    from fairness_audits.audits.permutation.kernels import permuted_products

    products = np.zeros((draws, 2, x.shape[1]))
    permuted_products(seed, first, x, y, products)
    return products


def _statistic(products: Array, size: Array | float, method: Method) -> Array:
    """Compute T or r from the sums (..., 2, S); ``size`` is the root of sum x^2 sum y^2."""
    total, squares = products[..., 0, :], products[..., 1, :]
    if method == "unstudentized":
        return total / size
    return np.divide(total, np.sqrt(squares), where=squares > 0, out=np.zeros(total.shape))


def _standard_error(x: Array, y: Array, r: float) -> float:
    """Return the delta-method error.

    It is the root of sum psi_i^2 / n^2 with psi = z_x z_y - r (z_x^2 + z_y^2) / 2, z standardised.
    """
    z_x, z_y = x / x.std(), y / y.std()
    psi = z_x * z_y - r * (z_x**2 + z_y**2) / 2
    return float(np.sqrt((psi**2).sum()) / len(x))
