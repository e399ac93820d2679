r"""Power and sample size of a studentised test of a difference of rates, by the normal approximation.

The test at level alpha rejects if \|D\| exceeds z sd(D), where D is normal with mean delta, the true difference:

.. math:: sd(D)^2 = \frac{\sigma_A^2}{n_A} + \frac{\sigma_B^2}{n_B}, \qquad
          \text{power} = \Phi\Big(\frac{|\delta|}{sd(D)} - z\Big), \qquad
          n_A = n_B = (z + z_{power})^2 \, \frac{\sigma_A^2 + \sigma_B^2}{\delta^2},

with z = z_{1 - alpha/2}; the wrong side of the test is neglected. With power one half, z_power = 0, this is the formula
of DiCiccio et al. 2020, section 5.1.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

Pair = tuple[float | Array, float | Array]
"""A number for each of the groups A and B."""


def rate_variance(rate: float | Array, share: float | Array) -> Array:
    r"""Return the variance :math:`\sigma^2 = f (1 - f) / \pi` that one row contributes to a rate.

    Parameters
    ----------
    rate : float or array
        The rate f, in [0, 1].
    share : float or array
        The share pi in (0, 1] of a group's rows that the rate is computed on.

    Raises
    ------
    InvalidInput
        If a rate or a share is out of range.

    References
    ----------
    DiCiccio et al. 2020, section 3.3, for the false negative rate.
    """
    rate, share = np.asarray(rate, dtype=float), np.asarray(share, dtype=float)
    if ((rate < 0) | (rate > 1)).any() or ((share <= 0) | (share > 1)).any():
        raise InvalidInput(f"expected a rate in [0, 1] and a share in (0, 1], found {rate} and {share}")
    return rate * (1 - rate) / share


def sample_size(difference: float, variances: tuple[float, float], *, alpha: float, power: float) -> int:
    """Return the smallest n_A = n_B that detects ``difference`` with probability ``power``.

    ``variances`` holds the variance of one row of each group (:func:`rate_variance`).
    """
    reach = float(ndtri(1 - alpha / 2) + ndtri(power))
    return int(np.ceil(reach**2 * sum(variances) / difference**2))


def power_of(difference: float | Array, variances: Pair, sizes: Pair, alpha: float) -> Array:
    """Return the probability of rejecting and naming the right group, for a true ``difference``."""
    return np.asarray(ndtr(np.abs(difference) / _deviation(variances, sizes) - ndtri(1 - alpha / 2)))


def detectable(variances: Pair, sizes: Pair, alpha: float) -> Array:
    """Return the difference that groups of these ``sizes`` detect with probability one half."""
    return np.asarray(ndtri(1 - alpha / 2) * _deviation(variances, sizes))


def _deviation(variances: Pair, sizes: Pair) -> Array:
    """Return sd(D)."""
    return np.sqrt(variances[0] / np.asarray(sizes[0]) + variances[1] / np.asarray(sizes[1]))
