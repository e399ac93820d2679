"""L2 logistic regression whose penalty a validation part chooses."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit

from pipeline.methods import logistic, none
from pipeline.seeds import generators
from pipeline.types import Dataset


def noisy(n: int = 400, d: int = 30) -> Dataset:
    """One feature that matters and d - 1 that do not: a large C overfits."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = (rng.random(n) < expit(1.5 * x[:, 0] - 0.5)).astype(np.int64)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    names = tuple(f"x{j}" for j in range(d))
    group = {"g": (x[:, 1] > 0).astype(np.int64)}
    return Dataset("toy", "simulated", x, names, (), y, "y", group, {"g": ("a", "b")}, order[:, :200], order[:, 200:])


def test_the_fit_is_the_minimum_on_the_first_rows() -> None:
    data, c = noisy(), 0.3
    found = logistic.fit(data, logistic.Config(0.25, [c]), generators("t", repetitions=2))
    for r in range(2):
        train = data.train[r][:150]
        x, y = data.features[train], data.label[train]
        w, b = found.parameters["coef"][r, 0], found.parameters["intercept"][r, 0]
        residual = expit(x @ w + b) - y
        np.testing.assert_allclose(w + c * x.T @ residual, 0, atol=1e-3)
        assert residual.sum() == pytest.approx(0, abs=1e-3)


def test_the_penalty_is_the_one_with_the_best_validation_auc() -> None:
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    data, grid = noisy(), [0.001, 0.01, 0.1, 1.0, 100.0]
    found = logistic.fit(data, logistic.Config(0.25, grid), generators("t", repetitions=2))
    for r in range(2):
        fitted, held_out = data.train[r][:150], data.train[r][150:]
        auc = [
            roc_auc_score(
                data.label[held_out],
                LogisticRegression(C=c, max_iter=1000, tol=1e-8)
                .fit(data.features[fitted], data.label[fitted])
                .decision_function(data.features[held_out]),
            )
            for c in grid
        ]
        assert found.facts["inverse_penalty"][r] == grid[int(np.argmax(auc))]
        assert found.facts["validation_auc"][r] == pytest.approx(max(auc), abs=1e-3)
        assert found.facts["at_edge"][r] == (int(np.argmax(auc)) in (0, len(grid) - 1))


def test_a_repetition_does_not_depend_on_how_many_there_are() -> None:
    data, config = noisy(), logistic.Config(0.25, [0.1, 1.0])
    one, two = (logistic.fit(data, config, generators("t", repetitions=r)) for r in (1, 2))
    np.testing.assert_array_equal(one.parameters["coef"][0], two.parameters["coef"][0])


def test_no_model_says_one_half() -> None:
    from pipeline.models import architecture

    data = noisy()
    found = none.fit(data, none.Config(), generators("t", repetitions=2))
    loss, _ = architecture(found.architecture).loss_and_gradient(
        found.parameters, data.batch("test").features, data.batch("test").label
    )
    np.testing.assert_allclose(np.exp(-loss), 0.5)
