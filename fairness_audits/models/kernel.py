r"""A support vector machine with a Gaussian kernel on some of the inputs.

.. math:: f(x) = \sum_s a_s\, e^{-\gamma |x_J - v_s|^2} + b, \qquad h(x) = 1[f(x) > 0]

J are the columns used. Parameters, for R repetitions, at most S support vectors and k columns: ``support`` (R, S, k)
the v_s, ``dual`` (R, S) the a_s (label times multiplier), ``gamma`` (R,), ``intercept`` (R,) and ``columns`` (R, k),
the positions of J in x. Repetitions with fewer support vectors are padded with vectors of a = 0.

The kernel of n rows and S support vectors is computed in blocks of at most ``CELLS`` entries. Its squared distances are
|x|^2 + |v|^2 - 2 x.v, centred at the mean of the support vectors to limit cancellation.
"""

from collections.abc import Mapping

import numpy as np

from fairness_audits.values import Array

CELLS = 200_000
"""Number of kernel entries computed together: 1.6 MB, which fit into a processor's cache."""


def predict(parameters: Mapping[str, Array], x: Array) -> Array:
    """Return the decision (a tie counts as 0): x (R, n, d) -> (R, n) int64."""
    return decided(parameters, score(parameters, x))


def decided(parameters: Mapping[str, Array], score: Array) -> Array:
    """Return the decision about rows with these scores: (R, n) -> (R, n) int64."""
    return (score > 0).astype(np.int64)


def score(parameters: Mapping[str, Array], x: Array) -> Array:
    """Compute the decision value f: x (R, n, d) -> (R, n)."""
    names = ("support", "dual", "gamma", "intercept", "columns")
    each = zip(*(parameters[name] for name in names), x, strict=True)
    return np.stack([_decision(rows[:, columns], v, a, gamma) + b for v, a, gamma, b, columns, rows in each])


def _decision(x: Array, v: Array, a: Array, gamma: float) -> Array:
    """Compute sum_s a_s exp(-gamma |x - v_s|^2) for rows x (n, k) and support vectors v (S, k): (n,)."""
    v, a = v[a != 0], a[a != 0]
    if len(v) == 0:
        return np.zeros(len(x))
    centre = v.mean(axis=0)
    v, x = v - centre, x - centre
    norms = gamma * (v * v).sum(axis=1)
    size = max(1, CELLS // len(v))
    parts = []
    for start in range(0, len(x), size):
        block = x[start : start + size]
        exponent = block @ (2 * gamma * v.T)
        exponent -= norms
        exponent -= gamma * (block * block).sum(axis=1, keepdims=True)
        np.minimum(exponent, 0, out=exponent)
        parts.append(np.exp(exponent, out=exponent) @ a)
    return np.concatenate(parts) if parts else np.zeros(0)
