"""Logistic regression: its penalty, and a grid of coefficients."""

import numpy as np
import pytest
from scipy.special import expit

from pipeline.methods import logistic, logistic_grid, none
from pipeline.methods.logistic_grid import Config, best_intercepts
from pipeline.seeds import generators
from pipeline.types import Dataset
from tests.builders import dataset


def noisy(n: int = 400, d: int = 30) -> Dataset:
    """One feature that matters and d - 1 that do not: a large C overfits."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, d))
    y = (rng.random(n) < expit(1.5 * x[:, 0] - 0.5)).astype(np.int64)
    order = np.stack([rng.permutation(n) for _ in range(2)])
    return dataset(x, y, {"g": (x[:, 1] > 0).astype(np.int64)}, order[:, :200], order[:, 200:])


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


# The grid's order, and the intercepts' first-order condition.


RNGS = generators("grid", repetitions=1)


def plane(label: list[int] | None = None, n: int = 60, columns: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, columns)) * 3
    y = (features[:, 0] + rng.normal(size=n) > 1).astype(np.int64) if label is None else np.array(label)
    return dataset(features, y, {"group": y}, name="plane")


def test_the_published_grid_has_441_classifiers_the_first_coefficient_slowest() -> None:
    classifier = logistic_grid.fit(plane(), Config(-4.0, 4.0, 21, "fitted"), RNGS)
    assert classifier.repetitions == 441
    axis = np.arange(-4, 4.01, 0.4)
    np.testing.assert_allclose(classifier.index["theta_1"].reshape(21, 21), axis[:, None].repeat(21, 1), atol=1e-12)
    np.testing.assert_allclose(classifier.index["theta_2"].reshape(21, 21), axis[None].repeat(21, 0), atol=1e-12)
    coefficients = np.column_stack([classifier.index["theta_1"], classifier.index["theta_2"]])
    np.testing.assert_array_equal(classifier.parameters["coef"][:, 0], coefficients)


def test_fitted_intercepts_satisfy_the_first_order_condition() -> None:
    """The derivative of the summed loss in the intercept, sum_i (P(1 | x_i) - y_i), is 0."""
    dataset = plane()
    classifier = logistic_grid.fit(dataset, Config(-4.0, 4.0, 9, "fitted"), RNGS)
    margins = np.einsum("md,nd->mn", classifier.parameters["coef"][:, 0], dataset.features)
    probability = 1 / (1 + np.exp(-margins - classifier.parameters["intercept"]))
    np.testing.assert_allclose(probability.sum(axis=1), dataset.label.sum(), rtol=1e-12)


def test_no_coefficients_give_the_log_odds_of_the_labels_and_margins_shift_the_intercept() -> None:
    label = np.array([1, 1, 1, 0])
    np.testing.assert_allclose(best_intercepts(np.zeros((1, 4)), label), np.log(3), rtol=1e-12)
    margins = np.random.default_rng(1).normal(size=(2, 4)) * 100
    np.testing.assert_allclose(best_intercepts(margins + 7, label), best_intercepts(margins, label) - 7, rtol=1e-9)


def test_intercepts_may_be_zero_and_a_grid_may_be_one_point() -> None:
    classifier = logistic_grid.fit(plane(), Config(1.2, 1.2, 1, "zero"), RNGS)
    assert classifier.parameters["coef"].tolist() == [[[1.2, 1.2]]]
    assert classifier.parameters["intercept"].tolist() == [[0.0]]
    assert classifier.parameters["weight"].tolist() == [[1.0]]


def test_labels_of_one_class_have_no_best_intercept() -> None:
    with pytest.raises(ValueError, match=r"all 60 labels are 1, so no finite intercept.*use .*intercept=zero"):
        logistic_grid.fit(plane([1] * 60), Config(-1.0, 1.0, 3, "fitted"), RNGS)


def test_what_the_grid_cannot_do_is_said() -> None:
    with pytest.raises(ValueError, match=r"a dataset of two features, found .*x2"):
        logistic_grid.fit(plane(columns=3), Config(-1.0, 1.0, 3, "zero"), RNGS)
    with pytest.raises(ValueError, match="expected 1 repetition of the grid, found 2"):
        logistic_grid.fit(plane(), Config(-1.0, 1.0, 3, "zero"), generators("grid", repetitions=2))
