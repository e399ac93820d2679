"""Architectures with probabilities: closed forms agree with differentiation, scores and losses keep their precision."""

from types import ModuleType

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

from fairness_audits.models import architecture, kernel, linear, logistic_mixture, mlp, stacked
from fairness_audits.models.device import tensors
from fairness_audits.values import Array
from tests.errors import invalid

R, N, D, K = 2, 40, 4, 3
MODELS = {"mlp": mlp, "logistic_mixture": logistic_mixture}


def parameters_of(model: ModuleType, scale: float = 1.0, seed: int = 0) -> dict[str, Array]:
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


def with_margin(model: ModuleType, margin: float) -> dict[str, Array]:
    """One input; at 1 its margin is the given one."""
    if model is mlp:
        w2 = np.array([[[0.0, margin]]])
        return {"w1": np.ones((1, 1, 1)), "b1": np.zeros((1, 1)), "w2": w2, "b2": np.zeros((1, 2))}
    return {"weight": np.ones((1, 1)), "coef": np.full((1, 1, 1), margin), "intercept": np.zeros((1, 1))}


@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_loss_and_gradient_are_those_of_automatic_differentiation(model: ModuleType, scale: float) -> None:
    own, (x, y) = parameters_of(model, scale), points(1)
    tensor = torch.tensor(x, requires_grad=True)
    log_probability = model.log_probabilities(tensors(own), tensor)
    expected = -log_probability.gather(-1, torch.tensor(y)[..., None])[..., 0]
    (gradient,) = torch.autograd.grad(expected.sum(), tensor)
    loss, found = model.loss_and_gradient(own, x, y)
    np.testing.assert_allclose(loss, expected.detach().numpy(), rtol=1e-11)
    np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_the_score_is_the_probability_of_label_1(model: ModuleType) -> None:
    own, (x, _) = parameters_of(model), points(2)
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
    with invalid(option="architecture"):
        architecture("forest")


# The mixture: precise in both tails, and an average, no vote.


def mixture(seed: int) -> dict[str, Array]:
    return parameters_of(logistic_mixture, seed=seed)


def constant(margins: list[float], weights: list[float]) -> dict[str, Array]:
    """Members whose margins do not depend on x."""
    return {"weight": np.array([weights]), "coef": np.zeros((1, len(margins), 1)), "intercept": np.array([margins])}


def test_the_loss_is_that_of_the_averaged_probability() -> None:
    parameters, (x, y) = mixture(0), points(1)
    each = 1 / (1 + np.exp(-np.einsum("rnd,rkd->rnk", x, parameters["coef"]) - parameters["intercept"][:, None]))
    probability = np.einsum("rnk,rk->rn", each, parameters["weight"])
    loss, _ = logistic_mixture.loss_and_gradient(parameters, x, y)
    np.testing.assert_allclose(loss, -np.log(np.where(y == 1, probability, 1 - probability)), rtol=1e-12)
    np.testing.assert_array_equal(logistic_mixture.predict(parameters, x), probability > 0.5)


def test_members_of_weight_0_do_not_matter_however_they_look() -> None:
    parameters, (x, y) = mixture(6), points(7)
    padded = {
        "weight": np.concatenate([parameters["weight"], np.zeros((R, 1))], axis=1),
        "coef": np.concatenate([parameters["coef"], np.full((R, 1, D), 1e3)], axis=1),
        "intercept": np.concatenate([parameters["intercept"], np.zeros((R, 1))], axis=1),
    }
    found, expected = (logistic_mixture.loss_and_gradient(p, x, y) for p in (padded, parameters))
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)
    tensor = torch.tensor(x, requires_grad=True)
    logistic_mixture.log_probabilities(tensors(padded), tensor).sum().backward()
    assert tensor.grad is not None
    assert torch.isfinite(tensor.grad).all()


def test_predictions_threshold_the_average_and_members_without_weight_do_not_count_in_the_score() -> None:
    """Two members are barely for 1 and one is surely for 0: the majority of members is not the averaged probability."""
    parameters = constant([0.1, 0.1, -9.0], [0.3, 0.3, 0.4])
    assert logistic_mixture.predict(parameters, np.zeros((1, 1, 1))).tolist() == [[0]]
    assert logistic_mixture.predict(constant([2.0, -2.0], [0.5, 0.5]), np.zeros((1, 1, 1))).tolist() == [[0]]
    own = {"weight": np.array([[1.0, 0.0]]), "coef": np.array([[[1.0], [9.0]]]), "intercept": np.array([[0.0, 9.0]])}
    np.testing.assert_allclose(logistic_mixture.score(own, np.array([[[0.0], [np.log(3)]]])), [[0.5, 0.75]])


# The network: its losses keep their precision.


def test_probabilities_are_the_softmax_of_the_output_layer() -> None:
    parameters, (x, _) = parameters_of(mlp, seed=2), points(3)
    hidden = np.maximum(x @ parameters["w1"] + parameters["b1"][:, None], 0)
    logits = hidden @ parameters["w2"] + parameters["b2"][:, None]
    softmax = np.exp(logits) / np.exp(logits).sum(axis=-1, keepdims=True)
    found = mlp.log_probabilities(tensors(parameters), torch.tensor(x)).exp()
    np.testing.assert_allclose(found.numpy(), softmax, rtol=1e-12)
    np.testing.assert_array_equal(mlp.predict(parameters, x), softmax.argmax(axis=-1))
    np.testing.assert_allclose(mlp.margin(parameters, x), np.log(softmax[..., 1] / softmax[..., 0]), atol=1e-12)


def test_the_precision_of_the_points_is_kept() -> None:
    parameters, (x, y) = parameters_of(mlp, seed=4), points(5)
    single = {name: w.astype(np.float32) for name, w in parameters.items()}
    loss, gradient = mlp.loss_and_gradient(single, x.astype(np.float32), y)
    assert loss.dtype == gradient.dtype == np.float32
    np.testing.assert_allclose(loss, mlp.loss_and_gradient(parameters, x, y)[0], rtol=1e-4, atol=1e-6)


# A support vector machine evaluated in blocks, a linear prediction, and arrays of several lengths.


def machine(far: float = 0.0) -> dict[str, Array]:
    """Two machines of 7 and 4 support vectors on columns 2 and 0, the second padded."""
    rng = np.random.default_rng(0)
    dual = rng.normal(size=(2, 7))
    dual[1, 4:] = 0
    return {
        "support": far + rng.normal(size=(2, 7, 2)),
        "dual": dual,
        "gamma": np.array([0.5, 2.0]),
        "intercept": np.array([0.1, -0.2]),
        "columns": np.array([[2, 0], [2, 0]]),
    }


@pytest.mark.parametrize("far", [0.0, 1e5])
def test_the_score_is_the_kernel_expansion_wherever_the_data_lie(far: float) -> None:
    parameters = machine(far)
    x = far + np.random.default_rng(1).normal(size=(2, 50, 3))
    expected = [
        np.exp(-gamma * cdist(rows[:, [2, 0]], v, "sqeuclidean")) @ a + b
        for rows, v, a, gamma, b in zip(
            x, *(parameters[name] for name in ("support", "dual", "gamma", "intercept")), strict=True
        )
    ]
    found = kernel.score(parameters, x)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(kernel.predict(parameters, x), np.array(expected) > 0)
    assert set(np.unique(kernel.predict(parameters, x))) == {0, 1}


def test_padding_unseen_columns_and_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    parameters, x = machine(), np.random.default_rng(1).normal(size=(2, 50, 3))
    scores = kernel.score(parameters, x)
    padded = {**parameters, "support": parameters["support"].copy()}
    padded["support"][1, 4:] = 1e9
    moved = x.copy()
    moved[..., 1] += 100
    np.testing.assert_array_equal(kernel.score(padded, moved), scores)
    monkeypatch.setattr(kernel, "CELLS", 15)
    np.testing.assert_allclose(kernel.score(parameters, x), scores, rtol=1e-13)


def test_a_machine_without_support_vectors_says_its_intercept() -> None:
    parameters = machine()
    parameters["dual"] = np.zeros((2, 7))
    np.testing.assert_array_equal(kernel.score(parameters, np.ones((2, 3, 3))), np.tile([[0.1], [-0.2]], 3))


def test_the_score_is_the_prediction_and_the_decision_that_it_exceeds_the_threshold() -> None:
    coef, intercept, threshold = np.array([[2.0, -1.0], [0.0, 1.0]]), np.array([0.5, 0.0]), np.array([1.5, -1.0])
    parameters = {"coef": coef, "intercept": intercept, "threshold": threshold}
    x = np.tile([[1.0, 1.0], [1.0, 0.0], [0.0, -1.0]], (2, 1, 1))
    np.testing.assert_allclose(linear.score(parameters, x), [[1.5, 2.5, 1.5], [1.0, 0.0, -1.0]])
    # A tie counts as 0.
    np.testing.assert_array_equal(linear.predict(parameters, x), [[0, 1, 0], [1, 1, 0]])


def test_the_shorter_arrays_are_filled_up_at_their_ends() -> None:
    assert stacked([np.array([1.0]), np.array([1.0, 2, 3])], -np.inf).tolist() == [[1, -np.inf, -np.inf], [1, 2, 3]]
    found = stacked([np.ones((3, 2)), np.ones((1, 2))])
    assert found.shape == (2, 3, 2)
    assert found.sum(axis=2).tolist() == [[2, 2, 2], [2, 0, 0]]
