r"""What a student's grades say of the latent knowledge behind them.

.. math:: u \sim N(0, 1), \qquad G \mid u \sim N(m_G + w_G u, \sigma^2), \qquad
          L \mid u \sim \text{Poisson}(e^{m_L + w_L u})

The log density of u given (G, L) is strictly concave, so its mode is found by Newton's method, and the posterior lives
on an even grid about the mode, a few posterior standard deviations wide, where sums are integrals up to a rounding
error. Source: Kusner et al. 2017, section 5, model "level 2".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

Array = np.ndarray

SPAN = 8.0
"""Standard deviations between the mode and either end of the grid."""
NODES = 129
TOLERANCE = 1e-10
MAXIMUM_ITERATIONS = 200


class Grades(NamedTuple):
    """How grade and score depend on the knowledge u of n rows: means m_G, m_L (n,) at u = 0; loadings w; sigma."""

    grade_mean: Array
    score_mean: Array
    grade_loading: float
    score_loading: float
    sigma: float


def posterior(grade: Array, score: Array, model: Grades) -> tuple[Array, Array]:
    """Values of u (n, NODES), evenly spaced in each row, and their probabilities given ``grade`` and ``score`` (n,)."""
    mode, precision = _mode(grade, score, model)
    u = mode[:, None] + np.linspace(-SPAN, SPAN, NODES) / np.sqrt(precision)[:, None]
    residual = (grade - model.grade_mean)[:, None] - model.grade_loading * u
    log_rate = model.score_mean[:, None] + model.score_loading * u
    log_density = -(u**2 + (residual / model.sigma) ** 2) / 2 + score[:, None] * log_rate - np.exp(log_rate)
    probability = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return u, probability / probability.sum(axis=1, keepdims=True)


def drawn(u: Array, probability: Array, rng: np.random.Generator) -> Array:
    """One value for each row of a posterior: a node by its probability, and a place in the node's cell: (n,)."""
    below = probability.cumsum(axis=1)
    chosen = (rng.random(len(u))[:, None] * below[:, -1:] > below).sum(axis=1)
    width = u[:, 1] - u[:, 0]
    return u[np.arange(len(u)), chosen] + width * (rng.random(len(u)) - 0.5)


def _mode(grade: Array, score: Array, model: Grades) -> tuple[Array, Array]:
    """The most probable u of each row and the curvature of its log density there: (n,) each.

    A step raises the Poisson rate by a factor of e at most: from far below a full one would overshoot into rates that
    no floating-point number holds.
    """
    w_g, w_l, variance = model.grade_loading, model.score_loading, model.sigma**2
    u = np.zeros(len(grade))
    for _ in range(MAXIMUM_ITERATIONS):
        rate = np.exp(model.score_mean + w_l * u)
        slope = -u + w_g * (grade - model.grade_mean - w_g * u) / variance + w_l * (score - rate)
        precision = 1 + w_g**2 / variance + w_l**2 * rate
        step = slope / precision
        step /= np.maximum(1, w_l * step)
        u = u + step
        if (np.abs(step) < TOLERANCE * (1 + np.abs(u))).all():
            break
    return u, 1 + w_g**2 / variance + w_l**2 * np.exp(model.score_mean + w_l * u)
