r"""Whether measures agree on models: rank correlations corrected for noise, and the models that measures choose.

Each of K measures is taken of M models on two halves of the rows, which share no row. Rank the models by
measure A on each half, and regress these ranks on the ranks of the accuracy. Let :math:`e_A^1` and :math:`e_A^2` be the
residuals. With Pearson's correlation r,

.. math:: \rho_A = r(e_A^1, e_A^2), \qquad
          \rho_{AB} = \frac{r(e_A^1, e_B^2) + r(e_A^2, e_B^1)}{2 \sqrt{\rho_A\, \rho_B}}

:math:`\rho_A` is the *reliability* of A. Errors of estimation are independent between halves, so they only shrink the
numerator. The denominator corrects for this. In small samples :math:`\rho_{AB}` may exceed 1.

Source: Spearman 1904, "The proof and measurement of association between two things".
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from fairness_audits.values import Array

LEAST_RELIABILITY = 0.2
"""A measure below it is too noisy to be compared."""
FEWEST = 10
"""Fewest models that are compared."""


@dataclass(frozen=True)
class Agreement:
    """Partial rank correlations between halves: ``reliability`` (K,), ``raw`` (K, K) and ``corrected`` (K, K).

    A measure that does not vary has no correlation (NaN). A pair has no ``corrected`` one if the reliability of a
    measure is below ``LEAST_RELIABILITY``.
    """

    reliability: Array
    raw: Array
    corrected: Array


def agreement(first: Array, second: Array, accuracy: Array) -> Agreement:
    """Compare measures of M models on the ``first`` and the ``second`` half, (K, M) each, given ``accuracy`` (M,)."""
    count, models = first.shape
    if models < FEWEST:
        return Agreement(np.full(count, np.nan), *np.full((2, count, count), np.nan))
    left, right = (_unit_residuals(half, accuracy) for half in (first, second))
    cross = left @ right.T
    raw, reliability = (cross + cross.T) / 2, np.diag(cross)
    enough = np.where(reliability >= LEAST_RELIABILITY, reliability, np.nan)
    return Agreement(reliability, raw, raw / np.sqrt(np.outer(enough, enough)))


def _unit_residuals(values: Array, accuracy: Array) -> Array:
    """Return the residuals (K, M) of the ranks after regression on the ranks of accuracy, scaled to length 1.

    A constant row is NaN.
    """
    ranks, given = (rankdata(one, axis=-1) - (values.shape[1] + 1) / 2 for one in (values, accuracy))
    if given.any():
        ranks = ranks - np.outer(ranks @ given, given) / (given @ given)
    length = np.linalg.norm(ranks, axis=1, keepdims=True)
    # Ranks are multiples of a half, so a shorter residual is a rounding error.
    known = (length > 1e-6) & ~np.isnan(values).any(axis=1, keepdims=True)
    return np.divide(ranks, length, out=np.full_like(ranks, np.nan), where=known)


def chosen(by: Array, measured: Array) -> Array:
    """Return the measures (C, K) of the models that C criteria choose, from ``by`` (C, M) and ``measured`` (K, M).

    A criterion chooses the model of the smallest value, or one of these models at random.
    """
    smallest = by == by.min(axis=1, keepdims=True)
    return (smallest / smallest.sum(axis=1, keepdims=True)) @ measured.T
