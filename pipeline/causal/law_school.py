r"""The causal model of the law school data by Kusner et al. (2017), in numpyro.

.. math::
    u \sim N(0, 1), \qquad
    &G \sim N(b_G + w_G u + a^\top \beta_G, \sigma^2), \\
    &L \sim \text{Poisson}(e^{b_L + w_L u + a^\top \beta_L}), \qquad
    Z \sim N(b_Z + w_Z u + a^\top \beta_Z, 1)

with grade G (UGPA), score L (LSAT), outcome Z (first-year average), a student's knowledge u, and dummies a for race and
sex. Every coefficient has the prior N(0, 1); sigma^2 has the prior InvGamma(1, 1). One level of each attribute has no
dummy, since otherwise the dummies and the intercepts are collinear. Z then needs an intercept, which the published
model with all dummies leaves out.

We integrate u out. Given u, the three variables are independent and two are Gaussian. Let r be the residuals of G and Z
at u = 0, Sigma their covariance, and :math:`P = 1 + w_G^2 / \sigma^2 + w_Z^2`. Then

.. math::
    p(G, L, Z) = N(r; 0, \Sigma)\; E_{u \sim N(\mu, 1/P)}\big[\text{Poisson}(L; e^{b_L + w_L u + a^\top \beta_L})\big],
    \qquad \mu = (w_G r_G / \sigma^2 + w_Z r_Z) / P,

and the expectation is a Gauss-Hermite sum. Only a few coefficients remain. The density is unchanged if u and its three
loadings w change sign together.

Estimates are the posterior mode, by L-BFGS, or posterior means, by NUTS. NUTS starts near the mode and uses the
curvature there as its metric. The posterior of a few coefficients given thousands of students is close to Gaussian, so
the warm-up only needs to find a step size.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

NODES = 8
"""Number of nodes of the Gauss-Hermite sum."""
EQUATIONS = ("grade", "score", "outcome")
LOADINGS = tuple(f"{name}_loading" for name in EQUATIONS)
NUMBERS = (*LOADINGS, *(f"{name}_intercept" for name in EQUATIONS), "variance")

STEEPEST = 1e-5
"""The search for the mode stops when no slope of the log density, per student, exceeds this value."""
MAXIMUM_ITERATIONS = 5000
DIFFERENCE = 1e-5
"""Step of the difference quotients for the curvature."""
SPREAD = 2.0
"""Posterior standard deviations between the mode and the start of a chain."""
TARGET_ACCEPTANCE = 0.8


class Students(NamedTuple):
    """n students: ``grade``, ``score`` (whole numbers), ``outcome`` (n,) and dummies ``attributes`` (n, k)."""

    grade: Array
    score: Array
    outcome: Array
    attributes: Array


def log_marginal(parameters: Mapping[str, Any], students: Students, nodes: int = NODES) -> Any:
    """Compute the log density of each student's grade, score and outcome with u integrated out, without log L!: (n,).

    ``parameters``: ``grade_``, ``score_`` and ``outcome_`` with ``intercept``, ``loading`` and ``coef`` (k,), and
    ``variance``, sigma^2. ``nodes`` of the Gauss-Hermite sum. The sum is almost exact if the score is much less
    informative about u than grade and outcome: if w_L sqrt(rate / P) is well below 1.
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
    # |Sigma| = sigma^2 P; r' Sigma^-1 r by completing the square in u.
    quadratic = r_grade**2 / variance + r_outcome**2 - precision * mu**2
    gaussian = -(quadratic + jnp.log(variance) + jnp.log(precision)) / 2 - jnp.log(2 * jnp.pi)
    x, weights = np.polynomial.hermite_e.hermegauss(nodes)
    log_rate = (at_zero["score"] + w_l * mu)[:, None] + w_l * x / jnp.sqrt(precision)
    poisson = score[:, None] * log_rate - jnp.exp(log_rate)
    return gaussian + logsumexp(poisson + np.log(weights / weights.sum()), axis=1)


def model(students: Students) -> None:
    """The numpyro model: priors of the coefficients and the marginal density of the students' rows."""
    import numpyro
    from numpyro import distributions as dist

    dummies = students.attributes.shape[1]
    parameters = {name: numpyro.sample(name, dist.Normal()) for name in NUMBERS if name != "variance"}
    for name in EQUATIONS:
        prior = dist.Normal().expand([dummies]).to_event(1)
        parameters[f"{name}_coef"] = numpyro.sample(f"{name}_coef", prior)
    parameters["variance"] = numpyro.sample("variance", dist.InverseGamma(1.0, 1.0))
    numpyro.factor("students", log_marginal(parameters, students).sum())


def minus_log_density(flat: Any, students: Students) -> Any:
    """Compute minus the log posterior of (coefficients, log sigma^2), a vector in the order of :func:`named`."""
    from numpyro.infer.util import potential_energy

    return potential_energy(model, (students,), {}, named(flat))


def named(flat: Any) -> dict[str, Any]:
    """Split vectors (..., 7 + 3 k) into the scalars and the coefficients of each equation."""
    numbers = {name: flat[..., i] for i, name in enumerate(NUMBERS)}
    coef = flat[..., len(NUMBERS) :]
    k = coef.shape[-1] // len(EQUATIONS)
    return {**numbers, **{f"{name}_coef": coef[..., i * k : (i + 1) * k] for i, name in enumerate(EQUATIONS)}}


def start(students: Students) -> Array:
    """Return the starting vector of a search: means without attributes, and positive loadings."""
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


@dataclass(frozen=True)
class Sampling:
    """Settings of NUTS: ``chains``, each with ``warmup`` steps to choose the step size, and ``draws``."""

    chains: int
    warmup: int
    draws: int


@dataclass(frozen=True)
class FittedStudents:
    """Coefficients by name, as in :func:`log_marginal` but with ``sigma`` for the variance, and facts by name."""

    coefficients: Mapping[str, Array]
    facts: Mapping[str, float]


def estimates(trials: Sequence[Students], sampling: Sampling | None, seeds: Sequence[int]) -> list[FittedStudents]:
    """Estimate the coefficients of every trial: posterior means with ``sampling``, or the mode if it is None.

    Facts: ``log_density`` and ``iterations`` of the mode; of the draws also ``divergences``, and over all coefficients
    the largest ``r_hat`` (1 where the chains agree) and the smallest ``effective_size``.
    """
    import jax

    # Use the CPU: looking for accelerators takes longer than the work, and warns about missing ones.
    jax.config.update("jax_platforms", "cpu")
    with jax.enable_x64(True):
        return [_estimate(students, sampling, seed) for students, seed in zip(trials, seeds, strict=True)]


def _estimate(students: Students, sampling: Sampling | None, seed: int) -> FittedStudents:
    import jax

    rows = jax.device_put(students)
    mode, facts = most_probable(rows, start(students))
    if sampling is None:
        return FittedStudents(_summary(mode[None]), facts)
    drawn, diverging = draws(rows, mode, sampling, seed)
    flat = drawn.reshape(-1, drawn.shape[-1])
    return FittedStudents(_summary(flat), {**facts, "divergences": float(diverging.sum()), **diagnostics(drawn)})


def most_probable(rows: Students, first: Array) -> tuple[Array, dict[str, float]]:
    """Find the mode, a vector, with the facts ``log_density`` and ``iterations``. Raises ValueError on failure."""
    from scipy.optimize import minimize

    slope_of, n = compiled_slope(), len(rows.grade)

    def per_student(flat: Array) -> tuple[float, Array]:
        value, slope = slope_of(flat, rows)
        return float(value) / n, np.asarray(slope) / n

    options = {"maxiter": MAXIMUM_ITERATIONS, "maxfun": 2 * MAXIMUM_ITERATIONS, "ftol": 0.0, "gtol": STEEPEST}
    found = minimize(per_student, first, jac=True, method="L-BFGS-B", options=options)
    if not np.abs(found.jac).max() <= STEEPEST:
        raise InvalidInput(
            f"L-BFGS finds no mode of the causal model in {found.nit} iterations ({found.message})",
            option="rows",
            remedy="Give finite grades, whole-number scores and outcomes that vary",
        )
    return found.x, {"log_density": -float(found.fun) * n, "iterations": float(found.nit)}


def curvature(rows: Students, flat: Array) -> Array:
    """Compute the Hessian (p, p) of minus the log density at a vector (p,), by central differences of its gradient."""
    steps = DIFFERENCE * np.eye(len(flat))
    slopes = [[np.asarray(compiled_slope()(flat + sign * step, rows)[1]) for sign in (1, -1)] for step in steps]
    hessian = np.array([(ahead - behind) / (2 * DIFFERENCE) for ahead, behind in slopes])
    return (hessian + hessian.T) / 2


def draws(rows: Students, mode: Array, sampling: Sampling, seed: int) -> tuple[Array, Array]:
    """Draw vectors by NUTS (chains, draws, p), with the sign of the mode, and flag divergences (chains, draws).

    Starting points are overdispersed relative to the posterior, so chains can disagree.
    """
    import jax

    metric = np.linalg.inv(curvature(rows, mode))
    width = SPREAD * np.linalg.cholesky(metric)
    rng = np.random.default_rng(seed)
    chain = _compiled_chain(sampling.warmup, sampling.draws)
    found = []
    for _ in range(sampling.chains):
        first = mode + width @ rng.standard_normal(len(mode))
        found.append(chain(jax.random.key(int(rng.integers(2**31))), first, rows, metric))
    drawn, diverging = (np.stack([np.asarray(each) for each in kept]) for kept in zip(*found, strict=True))
    loadings = slice(len(LOADINGS))
    drawn[..., loadings] *= np.sign(drawn[..., loadings] @ mode[loadings])[..., None]
    return drawn, diverging


def diagnostics(drawn: Array) -> dict[str, float]:
    """Return the worst ``r_hat`` and ``effective_size`` of the coefficients in draws (chains, draws, p)."""
    from numpyro.diagnostics import effective_sample_size, split_gelman_rubin

    return {
        "r_hat": float(np.max(split_gelman_rubin(drawn))),
        "effective_size": float(np.min(effective_sample_size(drawn))),
    }


def _summary(flat: Array) -> dict[str, Array]:
    """Return means by name over vectors (m, p), for sigma and not for its logarithm."""
    parts = named(flat)
    means = {name: values.mean(axis=0) for name, values in parts.items() if name != "variance"}
    return {**means, "sigma": np.exp(parts["variance"] / 2).mean()}


@functools.cache
def compiled_slope() -> Callable[[Array, Students], tuple[Any, Any]]:
    """Return minus the log density and its gradient, compiled once for each number of rows and dummies."""
    import jax

    return jax.jit(jax.value_and_grad(minus_log_density))


@functools.cache
def _compiled_chain(warmup: int, kept: int) -> Callable[[Any, Array, Students, Array], tuple[Any, Any]]:
    """Return the compiled function (key, start, rows, metric) -> draws (kept, p) of a chain and divergences (kept,)."""
    import jax
    from numpyro.infer.hmc import hmc

    def run(key: Any, first: Any, rows: Students, metric: Any) -> tuple[Any, Any]:
        initial, advance = hmc(potential_fn_gen=lambda rows: lambda flat: minus_log_density(flat, rows), algo="NUTS")
        state = initial(
            first,
            warmup,
            inverse_mass_matrix=metric,
            dense_mass=True,
            adapt_mass_matrix=False,
            target_accept_prob=TARGET_ACCEPTANCE,
            model_args=(rows,),
            rng_key=key,
        )

        def step(state: Any, _: None) -> tuple[Any, tuple[Any, Any]]:
            state = advance(state, model_args=(rows,))
            return state, (state.z, state.diverging)

        _, (drawn, diverging) = jax.lax.scan(step, state, None, length=warmup + kept)
        return drawn[warmup:], diverging[warmup:]

    return jax.jit(run)
