"""The posterior of the latent knowledge: Gaussian where only the grade speaks, else Bayes' rule."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.transport.counterfactual import Grades, drawn, posterior
from pipeline.types import Array


def moments(grade: Array, score: Array, model: Grades) -> tuple[Array, Array]:
    u, probability = posterior(grade, score, model)
    np.testing.assert_allclose(probability.sum(axis=1), 1)
    mean = (u * probability).sum(axis=1)
    return mean, ((u - mean[:, None]) ** 2 * probability).sum(axis=1)


def test_a_score_that_says_nothing_leaves_the_gaussian_posterior_of_the_grade() -> None:
    grade, score = np.array([2.0, 3.5]), np.array([4.0, 90.0])
    means = np.array([3.0, 2.9])
    mean, variance = moments(grade, score, Grades(means, np.zeros(2), 0.4, 0.0, 0.3))
    shrinkage = 0.4**2 / (0.3**2 + 0.4**2)
    np.testing.assert_allclose(mean, shrinkage * (grade - means) / 0.4, rtol=1e-9)
    np.testing.assert_allclose(variance, 1 - shrinkage, rtol=1e-9)


@pytest.mark.parametrize("score_loading", [0.03, -0.4, 1.5])
def test_moments_are_those_of_bayes_rule_on_a_fine_grid(score_loading: float) -> None:
    rng = np.random.default_rng(0)
    grade, score = rng.normal(3, 1, 20), rng.poisson(30, 20).astype(float)
    model = Grades(np.full(20, 3.0), np.full(20, 3.4), 0.3, score_loading, 0.25)
    u = np.linspace(-12, 12, 40_001)
    log_rate = 3.4 + score_loading * u
    log_density = (
        -(u**2) / 2
        - ((grade[:, None] - 3 - 0.3 * u) / 0.25) ** 2 / 2
        + score[:, None] * log_rate
        - np.exp(np.minimum(log_rate, 300))
    )
    density = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    density /= density.sum(axis=1, keepdims=True)
    expected = density @ u
    mean, variance = moments(grade, score, model)
    np.testing.assert_allclose(mean, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(variance, density @ u**2 - expected**2, rtol=1e-6)


def test_no_grade_and_no_score_is_too_extreme() -> None:
    grade, score = np.array([-1e3, 1e3, 3.0, 3.0]), np.array([30.0, 30.0, 0.0, 1e5])
    u, probability = posterior(grade, score, Grades(np.full(4, 3.0), np.full(4, 3.4), 0.3, 0.5, 0.25))
    assert np.isfinite(u).all()
    assert np.isfinite(probability).all()
    assert (np.diff(u, axis=1) > 0).all()
    assert (probability.argmax(axis=1) == u.shape[1] // 2).all()


def test_draws_have_the_posterior_s_moments() -> None:
    grade, score = np.full(20_000, 3.6), np.full(20_000, 25.0)
    model = Grades(np.full(20_000, 3.0), np.full(20_000, 3.4), 0.3, 0.2, 0.25)
    u, probability = posterior(grade, score, model)
    found = drawn(u, probability, np.random.default_rng(0))
    mean, variance = moments(
        grade[:1], score[:1], model._replace(grade_mean=np.array([3.0]), score_mean=np.array([3.4]))
    )
    assert found.mean() == pytest.approx(mean[0], abs=4 * np.sqrt(variance[0] / 20_000))
    assert found.var() == pytest.approx(variance[0], rel=0.05)
