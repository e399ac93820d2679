r"""The causal model of the law school by Kusner et al. (2017), in numpyro.

.. math::
    u \sim N(0, 1), \qquad
    &G \sim N(b_G + w_G u + a^\top \beta_G, \sigma^2), \\
    &L \sim \text{Poisson}(e^{b_L + w_L u + a^\top \beta_L}), \qquad
    Z \sim N(b_Z + w_Z u + a^\top \beta_Z, 1)

with grade G (UGPA), score L (LSAT), outcome Z (first-year average), one student's knowledge u, and a, the dummies of
race and sex. Every coefficient has the prior N(0, 1), sigma^2 the prior InvGamma(1, 1). One level of each attribute has
no dummy, or the intercepts would repeat the dummies; Z then needs the intercept that the published model, with all the
dummies, leaves out.

u is integrated out: given u the three are independent, and two are Gaussian, so with r the residuals of G and Z at
u = 0, Sigma their covariance and :math:`P = 1 + w_G^2 / \sigma^2 + w_Z^2`,

.. math::
    p(G, L, Z) = N(r; 0, \Sigma)\; E_{u \sim N(\mu, 1/P)}\big[\text{Poisson}(L; e^{b_L + w_L u + a^\top \beta_L})\big],
    \qquad \mu = (w_G r_G / \sigma^2 + w_Z r_Z) / P,

and the expectation is a Gauss-Hermite sum. What is left are a few coefficients. The density does not change when u and
its three loadings w change their signs together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray
Rows = tuple[Any, Any, Any, Any]
"""Grade, score, outcome (n,) and dummies (n, k) of n students, as JAX arrays."""

NODES = 8
"""Nodes of the Gauss-Hermite sum."""
EQUATIONS = ("grade", "score", "outcome")
LOADINGS = tuple(f"{name}_loading" for name in EQUATIONS)
NUMBERS = (*LOADINGS, *(f"{name}_intercept" for name in EQUATIONS), "variance")


@dataclass(frozen=True)
class Students:
    """n students: ``grade``, ``score`` (whole numbers), ``outcome`` (n,) and dummies ``attributes`` (n, k)."""

    grade: Array
    score: Array
    outcome: Array
    attributes: Array


def log_marginal(parameters: Mapping[str, Any], students: Rows, nodes: int = NODES) -> Any:
    """Log density of each student's grade, score and outcome with u integrated out, but for the term log L!: (n,).

    ``parameters``: ``grade_``, ``score_`` and ``outcome_`` with ``intercept``, ``loading`` and ``coef`` (k,), and
    ``variance``, sigma^2. ``nodes`` of the Gauss-Hermite sum, which is as good as exact while the score says much less
    of u than grade and outcome do: while w_L, times the root of the rate and over the root of P, is well below 1.
    """
    import jax.numpy as jnp
    from jax.scipy.special import logsumexp

    grade, score, outcome, attributes = students
    at_zero = {name: parameters[f"{name}_intercept"] + attributes @ parameters[f"{name}_coef"] for name in EQUATIONS}
    w_g, w_l, w_z = (parameters[name] for name in LOADINGS)
    variance = parameters["variance"]
    r_grade, r_outcome = grade - at_zero["grade"], outcome - at_zero["outcome"]
    precision = 1 + w_g**2 / variance + w_z**2
    mu = (w_g * r_grade / variance + w_z * r_outcome) / precision
    # |Sigma| = sigma^2 P, and r' Sigma^-1 r by completing the square in u.
    quadratic = r_grade**2 / variance + r_outcome**2 - precision * mu**2
    gaussian = -(quadratic + jnp.log(variance) + jnp.log(precision)) / 2 - jnp.log(2 * jnp.pi)
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    log_rate = (at_zero["score"] + w_l * mu)[:, None] + w_l * x / jnp.sqrt(precision)
    poisson = score[:, None] * log_rate - jnp.exp(log_rate)
    return gaussian + logsumexp(poisson + np.log(weights / weights.sum()), axis=1)


def model(students: Rows) -> None:
    """The numpyro model: priors of the coefficients and the marginal density of the students' rows."""
    import numpyro
    from numpyro import distributions as dist

    dummies = students[3].shape[1]
    parameters = {name: numpyro.sample(name, dist.Normal()) for name in NUMBERS if name != "variance"}
    for name in EQUATIONS:
        prior = dist.Normal().expand([dummies]).to_event(1)
        parameters[f"{name}_coef"] = numpyro.sample(f"{name}_coef", prior)
    parameters["variance"] = numpyro.sample("variance", dist.InverseGamma(1.0, 1.0))
    numpyro.factor("students", log_marginal(parameters, students).sum())


def minus_log_density(flat: Any, students: Rows) -> Any:
    """Minus the log posterior density of (coefficients, log sigma^2), a vector in the order of :func:`named`."""
    from numpyro.infer.util import potential_energy

    return potential_energy(model, (students,), {}, named(flat))


def named(flat: Any) -> dict[str, Any]:
    """The parts of vectors (..., 7 + 3 k): the numbers, then the coefficients of each equation."""
    numbers = {name: flat[..., i] for i, name in enumerate(NUMBERS)}
    coef = flat[..., len(NUMBERS) :]
    k = coef.shape[-1] // len(EQUATIONS)
    return {**numbers, **{f"{name}_coef": coef[..., i * k : (i + 1) * k] for i, name in enumerate(EQUATIONS)}}


def start(students: Students) -> Array:
    """Where a search begins, as a vector: means without attributes, positive loadings that explain a part of all."""
    half = students.grade.var() / 2
    values = {
        "grade_loading": np.sqrt(half),
        "score_loading": 1 / np.sqrt(students.score.mean()),
        "outcome_loading": 0.5,
        "grade_intercept": students.grade.mean(),
        "score_intercept": np.log(students.score.mean()),
        "outcome_intercept": students.outcome.mean(),
        "variance": np.log(half),
    }
    coef = np.zeros(len(EQUATIONS) * students.attributes.shape[1])
    return np.concatenate([[values[name] for name in NUMBERS], coef])
