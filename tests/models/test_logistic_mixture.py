"""The mixture's closed form agrees with differentiation and finite differences, and is precise in both tails."""

import numpy as np
import pytest
import torch

from pipeline.models import logistic_mixture
from pipeline.types import Array
from tests.models.test_probabilities import D, K, R, points
from tests.models.test_probabilities import parameters as parameters_of


def mixture(seed: int) -> dict[str, Array]:
    return parameters_of(logistic_mixture, seed=seed)


def constant(margins: list[float], weights: list[float]) -> dict[str, Array]:
    """Members whose margins do not depend on x."""
    return {
        "weight": np.array([weights]),
        "coef": np.zeros((1, len(margins), 1)),
        "intercept": np.array([margins]),
    }


def test_the_loss_is_that_of_the_averaged_probability() -> None:
    parameters, (x, y) = mixture(0), points(1)
    each = 1 / (1 + np.exp(-np.einsum("rnd,rkd->rnk", x, parameters["coef"]) - parameters["intercept"][:, None]))
    probability = np.einsum("rnk,rk->rn", each, parameters["weight"])
    loss, _ = logistic_mixture.loss_and_gradient(parameters, x, y)
    np.testing.assert_allclose(loss, -np.log(np.where(y == 1, probability, 1 - probability)), rtol=1e-12)
    np.testing.assert_array_equal(logistic_mixture.predict(parameters, x), probability > 0.5)


def test_the_gradient_is_the_limit_of_differences() -> None:
    parameters, (x, y) = mixture(2), points(3)
    _, gradient = logistic_mixture.loss_and_gradient(parameters, x, y)
    for c in range(D):
        step = 1e-5 * np.eye(D)[c]
        ahead, behind = (logistic_mixture.loss_and_gradient(parameters, x + s * step, y)[0] for s in (1, -1))
        np.testing.assert_allclose(gradient[..., c], (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-9)


def test_members_of_weight_0_do_not_matter_however_they_look() -> None:
    parameters, (x, y) = mixture(6), points(7)
    padded = {
        "weight": np.concatenate([parameters["weight"], np.zeros((R, 1))], axis=1),
        "coef": np.concatenate([parameters["coef"], np.full((R, 1, D), 1e3)], axis=1),
        "intercept": np.concatenate([parameters["intercept"], np.zeros((R, 1))], axis=1),
    }
    for found, expected in zip(
        logistic_mixture.loss_and_gradient(padded, x, y),
        logistic_mixture.loss_and_gradient(parameters, x, y),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    tensor = torch.tensor(x, requires_grad=True)
    tensors = {name: torch.tensor(values) for name, values in padded.items()}
    logistic_mixture.log_probabilities(tensors, tensor).sum().backward()
    assert tensor.grad is not None
    assert torch.isfinite(tensor.grad).all()


def test_one_member_is_logistic_regression_and_equal_members_are_one() -> None:
    parameters, (x, y) = mixture(8), points(9)
    single = {"weight": np.ones((R, 1)), "coef": parameters["coef"][:, :1], "intercept": parameters["intercept"][:, :1]}
    loss, gradient = logistic_mixture.loss_and_gradient(single, x, y)
    sign = 2 * y - 1
    margin = (x @ single["coef"].swapaxes(1, 2))[..., 0] + single["intercept"]
    np.testing.assert_allclose(loss, np.log1p(np.exp(-sign * margin)), rtol=1e-12)
    slope = -sign / (1 + np.exp(sign * margin))
    np.testing.assert_allclose(gradient, slope[..., None] * single["coef"], rtol=1e-11)
    same = {"weight": parameters["weight"], **{name: single[name].repeat(K, axis=1) for name in ("coef", "intercept")}}
    np.testing.assert_allclose(logistic_mixture.loss_and_gradient(same, x, y)[0], loss, rtol=1e-12)


@pytest.mark.parametrize("margin", [45.0, 300.0])
def test_both_tails_are_precise(margin: float) -> None:
    parameters, x = constant([margin, margin + 1], [0.3, 0.7]), np.zeros((1, 2, 1))
    rare = 0.3 * np.exp(-margin) + 0.7 * np.exp(-margin - 1)
    loss, _ = logistic_mixture.loss_and_gradient(parameters, x, np.array([[1, 0]]))
    np.testing.assert_allclose(loss, [[rare, -np.log(rare)]], rtol=1e-12)
    tensors = {name: torch.tensor(values) for name, values in parameters.items()}
    log_probability = logistic_mixture.log_probabilities(tensors, torch.tensor(x))[0, 0]
    np.testing.assert_allclose(log_probability, [np.log(rare), -rare], rtol=1e-12)


def test_predictions_threshold_the_average_they_are_no_vote() -> None:
    """Two members are barely for 1 and one is surely for 0: the majority of members is not the averaged probability."""
    parameters = constant([0.1, 0.1, -9.0], [0.3, 0.3, 0.4])
    assert logistic_mixture.predict(parameters, np.zeros((1, 1, 1))).tolist() == [[0]]
    assert logistic_mixture.predict(constant([2.0, -2.0], [0.5, 0.5]), np.zeros((1, 1, 1))).tolist() == [[0]]


def test_members_without_weight_do_not_count_in_the_score() -> None:
    own = {"weight": np.array([[1.0, 0.0]]), "coef": np.array([[[1.0], [9.0]]]), "intercept": np.array([[0.0, 9.0]])}
    np.testing.assert_allclose(logistic_mixture.score(own, np.array([[[0.0], [np.log(3)]]])), [[0.5, 0.75]])
