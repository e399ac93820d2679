"""The causal model's density is the model's with u integrated out; both estimates find what was planted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import jax
import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

from pipeline.transport.law_school import (
    EQUATIONS,
    LOADINGS,
    NODES,
    FittedStudents,
    Sampling,
    Students,
    compiled_slope,
    curvature,
    diagnostics,
    draws,
    estimates,
    expect_accurate,
    jax_rows,
    log_marginal,
    named,
)
from pipeline.types import Array

PLANTED: dict[str, Array] = {
    "grade_intercept": np.array(3.0),
    "grade_loading": np.array(0.35),
    "grade_coef": np.array([-0.4, 0.1]),
    "score_intercept": np.array(3.6),
    "score_loading": np.array(0.12),
    "score_coef": np.array([-0.25, 0.0]),
    "outcome_intercept": np.array(0.2),
    "outcome_loading": np.array(0.5),
    "outcome_coef": np.array([-1.0, 0.0]),
    "sigma": np.array(0.25),
}
N = 1500
SAMPLING = Sampling(chains=2, warmup=100, draws=150)


def simulated(seed: int, n: int = N) -> Students:
    """n students of the planted model with two independent dummies."""
    rng = np.random.default_rng(seed)
    u, a = rng.normal(size=n), (rng.random((n, 2)) < [0.3, 0.5]).astype(float)
    mean = {
        name: PLANTED[f"{name}_intercept"] + PLANTED[f"{name}_loading"] * u + a @ PLANTED[f"{name}_coef"]
        for name in EQUATIONS
    }
    return Students(
        grade=mean["grade"] + PLANTED["sigma"] * rng.normal(size=n),
        score=rng.poisson(np.exp(mean["score"])).astype(float),
        outcome=mean["outcome"] + rng.normal(size=n),
        attributes=a,
    )


def vector_of(coefficients: Mapping[str, Array]) -> Array:
    """Coefficients, with sigma, in the order of ``named``."""
    numbers = [coefficients[f"{name}_{kind}"] for kind in ("loading", "intercept") for name in EQUATIONS]
    coef = [coefficients[f"{name}_coef"] for name in EQUATIONS]
    return np.concatenate([numbers, [2 * np.log(coefficients["sigma"])], *coef])


def near(seed: int) -> Array:
    """A vector near the planted coefficients."""
    return vector_of(PLANTED) + 0.05 * np.random.default_rng(seed).normal(size=13)


def log_density(vector: Array, students: Students) -> float:
    with jax.enable_x64(True):
        return -float(compiled_slope()(vector, jax_rows(students))[0])


def integrated(parameters: dict[str, Array], students: Students) -> Array:
    """The log density of each student by the trapezoidal rule over u."""
    u = np.linspace(-10, 10, 2001)
    at_zero = {
        name: parameters[f"{name}_intercept"] + students.attributes @ parameters[f"{name}_coef"] for name in EQUATIONS
    }
    mean = {name: at_zero[name][:, None] + parameters[f"{name}_loading"] * u for name in EQUATIONS}
    log_density = (
        stats.norm.logpdf(u)
        + stats.norm.logpdf(students.grade[:, None], mean["grade"], np.sqrt(parameters["variance"]))
        + stats.norm.logpdf(students.outcome[:, None], mean["outcome"], 1)
        + stats.poisson.logpmf(students.score[:, None], np.exp(mean["score"]))
    )
    return np.log(np.exp(log_density).sum(axis=1) * (u[1] - u[0]))


@pytest.fixture(scope="module")
def students() -> Students:
    return simulated(0)


@pytest.fixture(scope="module")
def modes(students: Students) -> list[FittedStudents]:
    return estimates([students, simulated(1)], None, [0, 0])


def test_the_marginal_is_the_integral_over_u() -> None:
    few = simulated(3, 12)
    with jax.enable_x64(True):
        exact, quick = (jax.jit(partial(log_marginal, nodes=nodes)) for nodes in (40, NODES))
        for seed in range(3):
            parameters = named(near(seed))
            parameters["variance"] = np.exp(parameters["variance"])
            expected = integrated(parameters, few) + gammaln(few.score + 1)
            np.testing.assert_allclose(exact(parameters, jax_rows(few)), expected, rtol=1e-10)
            np.testing.assert_allclose(quick(parameters, jax_rows(few)), expected, atol=1e-5)


def test_the_posterior_is_the_marginal_times_the_priors(students: Students) -> None:
    vector = near(1)
    parameters = {**named(vector), "variance": np.exp(named(vector)["variance"])}
    variance = len(LOADINGS) + len(EQUATIONS)
    prior = stats.norm.logpdf(np.delete(vector, variance)).sum() + stats.invgamma.logpdf(parameters["variance"], 1)
    rows = integrated(parameters, students) + gammaln(students.score + 1)
    # The last term is the Jacobian: the density is one of log sigma^2.
    assert log_density(vector, students) == pytest.approx(rows.sum() + prior + np.log(parameters["variance"]), rel=1e-9)


def test_turning_u_around_changes_nothing(students: Students) -> None:
    turned = near(1)
    turned[: len(LOADINGS)] *= -1
    assert log_density(turned, students) == pytest.approx(log_density(near(1), students), rel=1e-12)


def test_the_mode_is_what_was_planted_up_to_its_standard_error(modes: list[FittedStudents], students: Students) -> None:
    coefficients = modes[0].coefficients
    with jax.enable_x64(True):
        error = named(np.sqrt(np.diag(np.linalg.inv(curvature(jax_rows(students), vector_of(coefficients))))))
    for name, planted in PLANTED.items():
        allowed = coefficients["sigma"] * error["variance"] / 2 if name == "sigma" else error[name]
        assert (np.abs(coefficients[name] - planted) < 4 * allowed).all(), name
        assert (allowed < 0.2).all()


def test_a_trial_does_not_depend_on_the_others(modes: list[FittedStudents]) -> None:
    alone = estimates([simulated(1)], None, [0])[0]
    for name, value in alone.coefficients.items():
        np.testing.assert_array_equal(value, modes[1].coefficients[name])


def test_nuts_agrees_with_the_mode_and_with_itself(modes: list[FittedStudents], students: Students) -> None:
    found, again = estimates([students, students], SAMPLING, [1, 1])
    for name, value in found.coefficients.items():
        # Priors and skewness move a mean from its mode by less than the posterior is wide.
        np.testing.assert_allclose(value, modes[0].coefficients[name], atol=0.05)
        np.testing.assert_array_equal(value, again.coefficients[name])
    assert found.facts["divergences"] == 0
    assert found.facts["r_hat"] < 1.05
    assert 100 < found.facts["effective_size"] < 1500
    assert found.facts["log_density"] == modes[0].facts["log_density"]


def test_draws_are_as_wide_as_the_curvature_says_and_on_the_side_of_the_mode(
    modes: list[FittedStudents], students: Students
) -> None:
    mode = vector_of(modes[0].coefficients)
    mode[: len(LOADINGS)] *= -1
    with jax.enable_x64(True):
        drawn, diverging = draws(jax_rows(students), mode, SAMPLING, 0)
        width = np.sqrt(np.diag(np.linalg.inv(curvature(jax_rows(students), mode))))
    assert drawn.shape == (2, 150, 13)
    assert not diverging.any()
    assert (drawn[..., : len(LOADINGS)] < 0).all()
    np.testing.assert_allclose(drawn.reshape(300, 13).std(axis=0), width, rtol=0.3)


def test_chains_that_disagree_have_a_large_r_hat() -> None:
    rng = np.random.default_rng(0)
    together = rng.normal(size=(2, 200, 3))
    apart = together + np.array([0, 3])[:, None, None] * np.array([0, 0, 1])
    assert diagnostics(together)["r_hat"] < 1.05 < 1.5 < diagnostics(apart)["r_hat"]
    assert diagnostics(together)["effective_size"] > 200 > diagnostics(apart)["effective_size"]


def test_rows_without_a_mode_are_refused(students: Students) -> None:
    broken = Students(students.grade * np.nan, students.score, students.outcome, students.attributes)
    with pytest.raises(ValueError, match="L-BFGS finds no mode of the causal model"):
        estimates([broken], None, [0])


def test_a_sum_over_too_few_nodes_is_not_trusted(students: Students) -> None:
    steep = vector_of({**PLANTED, "score_loading": np.array(0.6), "grade_loading": np.array(0.1)})
    with jax.enable_x64(True):
        expect_accurate(jax_rows(students), vector_of(PLANTED))
        with pytest.raises(ValueError, match=r"of 1500 students changes by .* with the number of nodes"):
            expect_accurate(jax_rows(students), steep)
