"""Architectures with probabilities: closed forms agree with differentiation, scores and losses keep their precision."""

from types import ModuleType

import numpy as np
import pytest
import torch

from pipeline.models import architecture, logistic_mixture, mlp
from pipeline.types import Array

R, N, D, K = 2, 40, 4, 3
MODELS = {"mlp": mlp, "logistic_mixture": logistic_mixture}


def parameters(model: ModuleType, scale: float = 1.0, seed: int = 0) -> dict[str, Array]:
    """R random classifiers with K hidden units or members."""
    rng = np.random.default_rng(seed)
    if model is mlp:
        shapes = {"w1": (R, D, K), "b1": (R, K), "w2": (R, K, 2), "b2": (R, 2)}
        return {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}
    weight = rng.dirichlet(np.ones(K), R)
    return {"weight": weight, "coef": scale * rng.normal(size=(R, K, D)), "intercept": scale * rng.normal(size=(R, K))}


def points(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(R, N, D)), rng.integers(0, 2, (R, N))


def tensors(arrays: dict[str, Array]) -> dict[str, torch.Tensor]:
    return {name: torch.tensor(values) for name, values in arrays.items()}


def with_margin(model: ModuleType, margin: float) -> dict[str, Array]:
    """One input; at 1 its margin is the given one."""
    if model is mlp:
        w2 = np.array([[[0.0, margin]]])
        return {"w1": np.ones((1, 1, 1)), "b1": np.zeros((1, 1)), "w2": w2, "b2": np.zeros((1, 2))}
    return {"weight": np.ones((1, 1)), "coef": np.full((1, 1, 1), margin), "intercept": np.zeros((1, 1))}


@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_loss_and_gradient_are_those_of_automatic_differentiation(model: ModuleType, scale: float) -> None:
    own, (x, y) = parameters(model, scale), points(1)
    tensor = torch.tensor(x, requires_grad=True)
    log_probability = model.log_probabilities(tensors(own), tensor)
    expected = -log_probability.gather(-1, torch.tensor(y)[..., None])[..., 0]
    (gradient,) = torch.autograd.grad(expected.sum(), tensor)
    loss, found = model.loss_and_gradient(own, x, y)
    np.testing.assert_allclose(loss, expected.detach().numpy(), rtol=1e-11)
    np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_score_is_the_probability_of_label_1(model: ModuleType) -> None:
    own, (x, _) = parameters(model), points(2)
    expected = model.log_probabilities(tensors(own), torch.tensor(x)).exp()[..., 1].numpy()
    found = model.score(own, x)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    np.testing.assert_array_equal(found > 0.5, model.predict(own, x) == 1)


@pytest.mark.parametrize("margin", [40.0, 300.0, 700.0])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_confident_loss_is_the_exponential_of_the_margin_not_zero(model: ModuleType, margin: float) -> None:
    own, x = with_margin(model, margin), np.ones((1, 2, 1))
    loss, gradient = model.loss_and_gradient(own, x, np.array([[1, 0]]))
    np.testing.assert_allclose(loss, [[np.exp(-margin), margin]], rtol=1e-12)
    np.testing.assert_allclose(gradient[..., 0], [[-margin * np.exp(-margin), margin]], rtol=1e-12)
    log_probability = model.log_probabilities(tensors(own), torch.tensor(x))[0, 0]
    np.testing.assert_allclose(log_probability, [-margin, -np.exp(-margin)], rtol=1e-12)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_tie_counts_as_0(model: ModuleType) -> None:
    assert model.predict(with_margin(model, 0.0), np.ones((1, 1, 1))).tolist() == [[0]]


def test_architectures_are_found_by_name_and_an_unknown_one_is_named() -> None:
    assert architecture("mlp") is mlp
    with pytest.raises(ValueError, match="among mlp, logistic_mixture, linear, kernel, found 'forest'"):
        architecture("forest")
