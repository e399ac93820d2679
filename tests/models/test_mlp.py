"""The network's closed form agrees with differentiation, and its losses keep their precision in both tails."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pipeline.models import architecture, mlp
from pipeline.types import Array

R, N, D, H = 3, 40, 5, 7


def network(seed: int, scale: float = 1.0) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    shapes = {"w1": (R, D, H), "b1": (R, H), "w2": (R, H, 2), "b2": (R, 2)}
    return {name: scale * rng.normal(size=shape) for name, shape in shapes.items()}


def linear(slope: float) -> dict[str, Array]:
    """One input and one unit: the margin is slope * x for x > 0."""
    return {
        "w1": np.ones((1, 1, 1)),
        "b1": np.zeros((1, 1)),
        "w2": np.array([[[0.0, slope]]]),
        "b2": np.zeros((1, 2)),
    }


def points(seed: int) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=(R, N, D)), rng.integers(0, 2, (R, N))


@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_loss_and_gradient_are_those_of_automatic_differentiation(scale: float) -> None:
    parameters, (x, y) = network(0, scale), points(1)
    tensor = torch.tensor(x, requires_grad=True)
    log_probability = mlp.log_probabilities({name: torch.tensor(w) for name, w in parameters.items()}, tensor)
    expected = -log_probability.gather(-1, torch.tensor(y)[..., None])[..., 0]
    (gradient,) = torch.autograd.grad(expected.sum(), tensor)
    loss, found = mlp.loss_and_gradient(parameters, x, y)
    np.testing.assert_allclose(loss, expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-10, atol=1e-300)


def test_probabilities_are_the_softmax_of_the_output_layer() -> None:
    parameters, (x, _) = network(2), points(3)
    logits = (
        np.maximum(x @ parameters["w1"] + parameters["b1"][:, None], 0) @ parameters["w2"] + parameters["b2"][:, None]
    )
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    found = mlp.log_probabilities({name: torch.tensor(w) for name, w in parameters.items()}, torch.tensor(x)).exp()
    np.testing.assert_allclose(found.numpy(), softmax, rtol=1e-12)
    np.testing.assert_array_equal(mlp.predict(parameters, x), softmax.argmax(axis=-1))
    np.testing.assert_allclose(mlp.margin(parameters, x), np.log(softmax[..., 1] / softmax[..., 0]), atol=1e-12)


@pytest.mark.parametrize("margin", [40.0, 300.0, 700.0])
def test_a_confident_loss_is_the_exponential_of_the_margin_not_zero(margin: float) -> None:
    parameters, x = linear(margin), np.ones((1, 2, 1))
    loss, gradient = mlp.loss_and_gradient(parameters, x, np.array([[1, 0]]))
    np.testing.assert_allclose(loss, [[np.exp(-margin), margin]], rtol=1e-13)
    np.testing.assert_allclose(gradient[..., 0], [[-margin * np.exp(-margin), margin]], rtol=1e-13)
    tensors = {name: torch.tensor(w) for name, w in parameters.items()}
    right = -mlp.log_probabilities(tensors, torch.tensor(x))[0, 0, 1]
    assert right.item() == pytest.approx(np.exp(-margin), rel=1e-13)


def test_no_margin_is_too_large() -> None:
    for label, expected in ((1, 0.0), (0, 1e6)):
        loss, gradient = mlp.loss_and_gradient(linear(1e6), np.ones((1, 1, 1)), np.array([[label]]))
        assert loss[0, 0] == expected
        assert np.isfinite(gradient).all()


def test_a_tie_counts_as_0() -> None:
    assert mlp.predict(linear(0.0), np.ones((1, 1, 1))).tolist() == [[0]]


def test_the_precision_of_the_points_is_kept() -> None:
    parameters, (x, y) = network(4), points(5)
    single = {name: w.astype(np.float32) for name, w in parameters.items()}
    loss, gradient = mlp.loss_and_gradient(single, x.astype(np.float32), y)
    assert loss.dtype == gradient.dtype == np.float32
    np.testing.assert_allclose(loss, mlp.loss_and_gradient(parameters, x, y)[0], rtol=1e-4, atol=1e-6)


def test_architectures_are_found_by_name_and_an_unknown_one_is_named() -> None:
    assert architecture("mlp") is mlp
    with pytest.raises(ValueError, match="among mlp, logistic_mixture, linear, kernel, found 'forest'"):
        architecture("forest")
