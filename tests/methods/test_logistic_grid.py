"""The grid's order, and the intercepts' first-order condition."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.methods import logistic_grid
from pipeline.methods.logistic_grid import Config, best_intercepts
from pipeline.models import logistic_mixture
from pipeline.seeds import generators
from pipeline.types import Dataset

RNGS = generators("grid", repetitions=1)


def plane(label: list[int] | None = None, n: int = 60, columns: int = 2) -> Dataset:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, columns)) * 3
    y = (features[:, 0] + rng.normal(size=n) > 1).astype(np.int64) if label is None else np.array(label)
    return Dataset(
        name="plane",
        origin="simulated",
        features=features,
        feature_names=tuple(f"x{j}" for j in range(columns)),
        continuous=(),
        label=y,
        label_name="y",
        protected={"group": y},
        levels={"group": ("0", "1")},
        train=np.arange(n)[None],
        test=np.arange(n)[None],
    )


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


def test_no_other_intercept_has_a_smaller_loss() -> None:
    dataset = plane()
    classifier = logistic_grid.fit(dataset, Config(-2.0, 2.0, 5, "fitted"), RNGS)
    x, y = (np.broadcast_to(v, (25, *v.shape)) for v in (dataset.features, dataset.label))
    best = logistic_mixture.loss_and_gradient(classifier.parameters, x, y)[0].sum(axis=1)
    for step in (-0.01, 0.01):
        moved = {**classifier.parameters, "intercept": classifier.parameters["intercept"] + step}
        assert (logistic_mixture.loss_and_gradient(moved, x, y)[0].sum(axis=1) > best).all()


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
