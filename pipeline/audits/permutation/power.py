r"""How many rows a test needs, and what it can see with the rows at hand.

A studentised test at level alpha rejects where |D| exceeds z sd(D), and D is normal about the true difference delta:

.. math:: sd(D)^2 = \frac{\sigma_A^2}{n_A} + \frac{\sigma_B^2}{n_B}, \qquad
          \text{power} = \Phi\Big(\frac{|\delta|}{sd(D)} - z\Big), \qquad
          n_A = (z + z_{power})^2 \, \frac{\sigma_A^2 + \sigma_B^2 / \rho}{\delta^2}, \quad n_B = \rho\, n_A,

z = z_{1 - alpha/2}, or z_{1 - alpha} for a one-sided test; the wrong side of a two-sided test is left out. With power
one half, z_power = 0, this is the formula of DiCiccio et al. 2020, section 5.1: delta sits just on the bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, ndtri

from pipeline.audits.permutation.result import SIDED, Alternative
from pipeline.types import Array


class SampleSize(NamedTuple):
    """Rows of each group, rounded up."""

    n_a: int
    n_b: int


def rate_variance(rate: float | Array, share: float | Array) -> Array:
    r"""sigma^2 of one row for a rate f whose rows (label, prediction) are a share pi of all: f (1 - f) / pi.

    Source: DiCiccio et al. 2020, section 3.3, for the false negative rate.
    """
    rate, share = np.asarray(rate, dtype=float), np.asarray(share, dtype=float)
    if ((rate < 0) | (rate > 1)).any() or ((share <= 0) | (share > 1)).any():
        raise ValueError(f"expected a rate in [0, 1] and a share in (0, 1], found {rate} and {share}")
    return rate * (1 - rate) / share


def sample_size(
    difference: float,
    variances: tuple[float, float],
    *,
    alpha: float = 0.05,
    power: float = 0.5,
    ratio: float = 1.0,
    alternative: Alternative = "two-sided",
) -> SampleSize:
    """The least n_A and n_B = ``ratio`` n_A that detect ``difference`` with probability ``power``.

    ``variances`` are those of one row in A and B. Raises ValueError for a difference of 0 or a setting out of range.
    """
    if difference == 0:
        raise ValueError("expected a difference other than 0: no number of rows detects none")
    if ratio <= 0 or not 0 < power < 1:
        raise ValueError(f"expected ratio > 0 and power between 0 and 1, found {ratio} and {power}")
    reach = _critical(alpha, alternative) + float(ndtri(power))
    if reach <= 0:
        raise ValueError(f"power {power} is below the level: any number of rows has more")
    n_a = reach**2 * (variances[0] + variances[1] / ratio) / difference**2
    return SampleSize(int(np.ceil(n_a)), int(np.ceil(ratio * n_a)))


def power_of(
    difference: float | Array,
    variances: tuple[float, float],
    sizes: tuple[float | Array, float | Array],
    *,
    alpha: float = 0.05,
    alternative: Alternative = "two-sided",
) -> Array:
    """The chance to reject and name the right group, for a true difference with the sign that is asked for."""
    deviation = np.sqrt(variances[0] / np.asarray(sizes[0]) + variances[1] / np.asarray(sizes[1]))
    return np.asarray(ndtr(np.abs(difference) / deviation - _critical(alpha, alternative)))


def detectable(
    variances: tuple[float, float],
    sizes: tuple[float | Array, float | Array],
    *,
    alpha: float = 0.05,
    power: float = 0.5,
    alternative: Alternative = "two-sided",
) -> Array:
    """The difference detected with probability ``power`` in groups of these sizes."""
    deviation = np.sqrt(variances[0] / np.asarray(sizes[0]) + variances[1] / np.asarray(sizes[1]))
    return np.asarray((_critical(alpha, alternative) + float(ndtri(power))) * deviation)


def _critical(alpha: float, alternative: Alternative) -> float:
    if not 0 < alpha < 1:
        raise ValueError(f"expected alpha between 0 and 1, found {alpha}")
    return float(ndtri(1 - alpha / (1 if alternative in SIDED else 2)))
