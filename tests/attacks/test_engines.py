"""Automatic differentiation, closed forms and hidden-unit space all compute the same flow."""

from typing import Any

import numpy as np
import pytest
import torch

from fairness_audits.attacks import autograd
from fairness_audits.attacks.engines import relu_flow, unfair_map
from fairness_audits.attacks.gradient_flow import Flow, Plan, gradient_flow, step_schedule
from fairness_audits.fair_metric import FairMetric, from_directions
from fairness_audits.models import architecture, mlp
from fairness_audits.values import Classifier
from tests.attacks.builders import Parameters, mixture, network, points

SCHEDULES = {
    # 2 lambda eta = 1: what is off the subspace is forgotten at each step.
    "forgetting": (50.0, step_schedule("constant", 0.01, 0, 120)),
    "remembering": (5.0, step_schedule("constant", 0.01, 0, 120)),
    "reflecting": (50.0, step_schedule("constant", 0.018, 0, 120)),
    "unpenalised": (0.0, step_schedule("constant", 0.02, 0, 120)),
    "decaying": (100.0, step_schedule("power", 0.02, 2 / 3, 120)),
    "large": (0.3, step_schedule("constant", 0.2, 0, 120)),
}
RECORD = [0, 1, 40, 120]


def metric_of(number: int, d: int = 5, seed: int = 0) -> FairMetric:
    return from_directions(np.random.default_rng(seed).normal(size=(number, d)))


def planned(schedule: str, metric: FairMetric) -> Plan:
    return Plan(metric, *SCHEDULES[schedule], RECORD)


REMEMBERING = planned("remembering", metric_of(1))


def plain(parameters: Parameters, x: np.ndarray, y: np.ndarray, plan: Plan) -> Flow:
    return gradient_flow(lambda z: mlp.loss_and_gradient(parameters, z, y), x, plan)


def assert_same(one: Flow, other: Flow, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(one.x, other.x, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(one.losses, other.losses, rtol=tolerance)
    np.testing.assert_allclose(one.original_loss, other.original_loss, rtol=tolerance)


def assert_computed(parameters: Parameters, data: tuple[np.ndarray, np.ndarray], plan: Plan) -> None:
    """Hidden-unit space has the flow of the plain loop."""
    assert_same(relu_flow(parameters, *data, plan), plain(parameters, *data, plan))


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_hidden_units_compute_the_flow(schedule: str, number: int) -> None:
    assert_computed(network(1, repetitions=2), points(2, repetitions=2), planned(schedule, metric_of(number)))


def test_units_do_change_sign_along_these_flows() -> None:
    # Otherwise the comparison above would not exercise the updates.
    parameters, (x, y) = network(1, repetitions=2), points(2, repetitions=2)
    flow = relu_flow(parameters, x, y, REMEMBERING)

    def active(z: np.ndarray) -> np.ndarray:
        return z @ parameters["w1"] + parameters["b1"][:, None] > 0

    assert (active(x) != active(flow.x)).any(axis=-1).mean() > 0.3


def test_long_flows_of_a_wide_network_stay_accurate() -> None:
    parameters = network(5, d=39, hidden=100)
    parameters |= {"w1": parameters["w1"] / 6, "w2": parameters["w2"] / 10}
    plan = Plan(metric_of(2, d=39), 50.0, step_schedule("constant", 0.01, 0, 1000), [500, 1000])
    assert_computed(parameters, points(6, n=60, d=39), plan)


def test_units_that_never_move_do_no_harm() -> None:
    parameters = network(3)
    parameters["w1"][..., 0], parameters["b1"][..., 0] = 0.0, 0.0  # always exactly at the kink
    parameters["w1"][..., 1], parameters["b1"][..., 1] = 0.0, 1.0  # always on
    parameters["w2"][:, 2] = 0.0  # without influence
    assert_computed(parameters, points(4), REMEMBERING)


def test_repetitions_have_their_own_networks_points_and_metrics() -> None:
    metrics: list[Any] = [metric_of(2, seed=seed) for seed in (1, 2)]
    stack = FairMetric(*(np.stack([getattr(m, name) for m in metrics]) for name in ("matrix", "basis", "directions")))
    assert_computed(network(3, repetitions=2), points(4, repetitions=2), planned("remembering", stack))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("block_rows", [None, 7])
def test_automatic_differentiation_computes_the_flow(dtype: str, block_rows: int | None) -> None:
    parameters, (x, y) = network(1, repetitions=2), points(2, repetitions=2)
    tensors = {name: torch.tensor(values, dtype=getattr(torch, dtype)) for name, values in parameters.items()}
    flow = autograd.attack(
        lambda z: mlp.log_probabilities(tensors, z), x, y, REMEMBERING, dtype=dtype, block_rows=block_rows
    )
    expected = plain(parameters, x, y, REMEMBERING)
    if dtype == "float64":
        assert_same(flow, expected)
    else:
        # In single precision a unit may change sign a step earlier or later.
        assert np.median(np.abs(flow.losses / expected.losses - 1)) < 1e-5
        assert np.abs(flow.x - expected.x).max() < 0.05
    assert isinstance(flow.x, np.ndarray)
    assert flow.losses.dtype == np.float64


@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-13), ("float32", 1e-5)])
def test_a_tiny_loss_keeps_its_precision_whatever_scores_the_network_gives(dtype: str, rtol: float) -> None:
    margin = torch.tensor([-30.0, 0.0, 30, 60, 80], dtype=getattr(torch, dtype))
    logits = torch.stack([torch.zeros_like(margin), margin], dim=-1)
    exact = np.logaddexp(0, -margin.numpy().astype(float))
    label = torch.ones(5, dtype=torch.int64)
    loss, slope = autograd.cross_entropy(logits + 7, label)
    np.testing.assert_allclose(loss.numpy(), exact, rtol=rtol)
    np.testing.assert_allclose(slope[:, 1].numpy(), -1 / (1 + np.exp(margin.numpy().astype(float))), rtol=rtol)
    np.testing.assert_allclose(slope.sum(-1).numpy(), 0, atol=1e-12)


def test_the_gradient_of_several_classes_is_that_of_the_cross_entropy() -> None:
    rng = np.random.default_rng(0)
    weights = torch.tensor(rng.normal(size=(4, 3)))
    x, label = torch.tensor(rng.normal(size=(6, 4))), torch.tensor([0, 1, 2, 2, 1, 0])
    loss, gradient = autograd.loss_and_gradient(lambda z: z @ weights, label)(x)
    leaf = x.clone().requires_grad_(True)
    expected = torch.nn.functional.cross_entropy(leaf @ weights, label, reduction="none")
    (expected_gradient,) = torch.autograd.grad(expected.sum(), leaf)
    np.testing.assert_allclose(loss.numpy(), expected.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(gradient.numpy(), expected_gradient.numpy(), rtol=1e-10)


def test_a_module_is_audited_in_evaluation_mode_and_left_as_it_was() -> None:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
    ).double()
    before = {name: values.clone() for name, values in module.state_dict().items()}
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(20, 3)), rng.integers(0, 2, 20)
    plan = Plan(metric_of(1, d=3), 2.0, step_schedule("constant", 0.05, 0, 10), [10])
    flows = [autograd.attack(module, x, y, plan) for _ in range(2)]
    np.testing.assert_array_equal(flows[0].x, flows[1].x)
    assert module.training
    assert all(torch.equal(before[name], values) for name, values in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_computes_the_flow() -> None:
    parameters, (x, y) = network(1), points(2)
    tensors = {name: torch.tensor(values, device="cuda") for name, values in parameters.items()}
    flow = autograd.attack(lambda z: mlp.log_probabilities(tensors, z), x, y, REMEMBERING, device="cuda")
    assert_same(flow, plain(parameters, x, y, REMEMBERING), 1e-8)


@pytest.mark.parametrize("kind", ["mlp", "logistic_mixture"])
def test_every_kind_of_classifier_is_attacked_along_the_flow(kind: str) -> None:
    parameters = network(1, repetitions=2) if kind == "mlp" else mixture(1, repetitions=2, members=2)
    x, y = points(2)
    found = unfair_map(Classifier("m", "d", "simulated", kind, parameters), x, y, REMEMBERING)
    model = architecture(kind)
    expected = gradient_flow(lambda z: model.loss_and_gradient(parameters, z, y), x.repeat(2, axis=0), REMEMBERING)
    assert_same(found, expected)


def test_points_without_a_finite_start_have_neither_loss_nor_iterate() -> None:
    x, y = points(2)
    x[0, 3] = np.nan
    engine = relu_flow(network(1), x, y, REMEMBERING)
    assert np.flatnonzero(~np.isfinite(engine.x[0]).all(axis=-1)).tolist() == [3]
    assert np.isnan(engine.losses[0, :, 3]).all()
    assert np.isfinite(np.delete(engine.losses, 3, axis=-1)).all()
