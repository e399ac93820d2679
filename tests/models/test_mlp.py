"""The network's closed form agrees with differentiation, and its losses keep their precision in both tails."""

import numpy as np
import torch

from pipeline.models import mlp
from tests.models.test_probabilities import parameters as parameters_of
from tests.models.test_probabilities import points, with_margin


def test_probabilities_are_the_softmax_of_the_output_layer() -> None:
    parameters, (x, _) = parameters_of(mlp, seed=2), points(3)
    logits = (
        np.maximum(x @ parameters["w1"] + parameters["b1"][:, None], 0) @ parameters["w2"] + parameters["b2"][:, None]
    )
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    found = mlp.log_probabilities({name: torch.tensor(w) for name, w in parameters.items()}, torch.tensor(x)).exp()
    np.testing.assert_allclose(found.numpy(), softmax, rtol=1e-12)
    np.testing.assert_array_equal(mlp.predict(parameters, x), softmax.argmax(axis=-1))
    np.testing.assert_allclose(mlp.margin(parameters, x), np.log(softmax[..., 1] / softmax[..., 0]), atol=1e-12)


def test_no_margin_is_too_large() -> None:
    for label, expected in ((1, 0.0), (0, 1e6)):
        loss, gradient = mlp.loss_and_gradient(with_margin(mlp, 1e6), np.ones((1, 1, 1)), np.array([[label]]))
        assert loss[0, 0] == expected
        assert np.isfinite(gradient).all()


def test_the_precision_of_the_points_is_kept() -> None:
    parameters, (x, y) = parameters_of(mlp, seed=4), points(5)
    single = {name: w.astype(np.float32) for name, w in parameters.items()}
    loss, gradient = mlp.loss_and_gradient(single, x.astype(np.float32), y)
    assert loss.dtype == gradient.dtype == np.float32
    np.testing.assert_allclose(loss, mlp.loss_and_gradient(parameters, x, y)[0], rtol=1e-4, atol=1e-6)
