r"""Whether two marks fall on the same people: the odds ratio of Mantel and Haenszel, with an error clustered by person.

Each person i has two marks, :math:`f_i` and :math:`g_i`, and belongs to a stratum k of :math:`n_k` people. With the
numbers :math:`a_k` of people who have both marks, :math:`b_k` and :math:`c_k` with one of them, and :math:`d_k` with
none,

.. math:: \theta = \log \frac R S, \qquad R = \sum_k \frac{a_k d_k}{n_k}, \qquad S = \sum_k \frac{b_k c_k}{n_k}.

The *influence* of a person is the derivative of :math:`\theta` in the person's weight. With :math:`\dot R_i` and
:math:`\dot S_i` the derivatives of both sums,

.. math:: \psi_i = \frac{\dot R_i}{R} - \frac{\dot S_i}{S}, \qquad
          \dot R_i = \frac{f_i g_i\, d_k + (1 - f_i)(1 - g_i)\, a_k}{n_k} - \frac{a_k d_k}{n_k^2},

and :math:`\dot S_i` alike. The same people come back in every partition of the data. The influence of a person on a
mean over partitions is the mean of the person's influences, so the standard error :math:`\sqrt{\sum_i \bar\psi_i^2}`
is right for any dependence between partitions.

Sources: Mantel and Haenszel 1959; Efron and Stein 1981 (the jackknife over partitions).
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fairness_audits.values import Array


class Influenced(NamedTuple):
    """Numbers (...,) and the influence (..., N) of each of N people on them."""

    value: Array
    influence: Array

    def minus(self, other: "Influenced") -> "Influenced":
        """Return the difference from numbers of the same people."""
        return Influenced(self.value - other.value, self.influence - other.influence)

    @classmethod
    def stacked(cls, parts: Sequence["Influenced"]) -> "Influenced":
        """Stack numbers along a new first axis."""
        return cls(*map(np.stack, zip(*parts, strict=True)))


def log_odds_ratio(one: Array, other: Array, stratum: Array) -> Influenced:
    """Compare two marks (N,) of people in strata (N,). People with a negative stratum do not count.

    A mark that nobody or everybody has, and marks that never or always meet, have no odds ratio (NaN).
    """
    inside = stratum >= 0
    f, g, k = one[inside].astype(bool), other[inside].astype(bool), stratum[inside]
    n = np.bincount(k)
    kinds = (f & g, f & ~g, ~f & g, ~f & ~g)
    a, b, c, d = (np.bincount(k, kind, minlength=len(n)) for kind in kinds)
    with np.errstate(divide="ignore", invalid="ignore"):
        r, s = (np.where(n > 0, product / n, 0.0) for product in (a * d, b * c))
        value = np.log(r.sum()) - np.log(s.sum())
    influence = np.zeros(len(one))
    if not np.isfinite(value):
        return Influenced(np.array(np.nan), np.full(len(one), np.nan))
    both, first, second, none = kinds
    of_r = (both * d[k] + none * a[k] - r[k]) / n[k]
    of_s = (first * c[k] + second * b[k] - s[k]) / n[k]
    influence[inside] = of_r / r.sum() - of_s / s.sum()
    return Influenced(np.array(value), influence)


def ratio(numerator: Array, denominator: Array) -> Influenced:
    """Return the ratio of two sums over people, of (..., N) numbers each; NaN if the second sum is 0."""
    total = denominator.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.where(total > 0, numerator.sum(axis=-1) / total, np.nan)
        return Influenced(value, (numerator - value[..., None] * denominator) / total[..., None])


def error_of_mean(found: Influenced, left_out: Array | None = None) -> float:
    r"""Return the standard error of the mean over B partitions, from numbers (B,) and influences (B, N).

    It has two parts. The first is over people, clustered by person. The second is over partitions and models, by the
    jackknife: ``left_out`` (B,) holds the mean without each partition. The second part also holds some of the noise of
    people, so the sum is slightly too large rather than too small. A single partition has no second part.
    """
    count, people = found.influence.shape
    of_people = (found.influence.mean(axis=0) ** 2).sum() * people / (people - 1)
    if left_out is None and count > 1:
        left_out = (found.value.sum() - found.value) / (count - 1)
    of_partitions = 0.0 if left_out is None else (count - 1) * left_out.var()
    return float(np.sqrt(of_people + of_partitions))
