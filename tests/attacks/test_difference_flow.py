"""The flow by finite differences: that of the gradient, of the exact equation, and the evaluations that it takes."""

import numpy as np
import pytest

from fairness_audits.attacks.difference_flow import difference_flow
from fairness_audits.attacks.gradient_flow import Plan, gradient_flow, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import from_directions
from fairness_audits.models import mlp
from fairness_audits.values import Array
from tests.attacks.builders import network

FINE = step_schedule("constant", 0.01, 0, 500)


def rows(seed: int, n: int, d: int) -> tuple[Array, Array]:
    """Points, two thirds of their columns indicators, and labels."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    x[:, d // 3 :] = rng.random((n, d - d // 3)) < 0.3
    return x, rng.integers(0, 2, n)


@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_fifty_gradients_by_differences_give_the_statistic_of_the_gradient_flow(seed: int, bounded: bool) -> None:
    d, k = 12, 2
    parameters = {name: values[0] for name, values in network(seed, d=d, hidden=20).items()}
    parameters["w1"], parameters["w2"] = parameters["w1"] / np.sqrt(d), parameters["w2"] / 2
    x, y = rows(seed, 500, d)
    metric = from_directions(np.random.default_rng(seed + 9).normal(size=(k, d)))
    bounds = (x.min(axis=0), x.max(axis=0)) if bounded else None
    evaluations = 0

    def hook(z: Array) -> tuple[Array, Array]:
        return mlp.loss_and_gradient(parameters, z, y)

    def loss(z: Array) -> Array:
        nonlocal evaluations
        evaluations += 1
        return hook(z)[0]

    plan = Plan(metric, 50.0, FINE, [500])
    exact, found = gradient_flow(hook, x, plan, bounds), difference_flow(loss, x, plan, 10, bounds)
    assert evaluations == 50 * (2 * k + 1) + 10 * d + 1
    tests = [loss_ratio_test(flow.original_loss, flow.losses[-1], 1.25, 0.05) for flow in (found, exact)]
    assert 0.97 < tests[0].statistic / tests[1].statistic < 1.03
    assert tests[1].mean > 1.02
    assert tests[0].mean - 1 == pytest.approx(tests[1].mean - 1, rel=0.1)


def test_the_flow_of_a_constant_gradient_is_that_of_the_gradient_step_by_step() -> None:
    w = np.array([0.3, -0.2, 0.1, 0.4])
    x0 = np.random.default_rng(0).normal(size=(6, 4))
    for directions in ([[1.0, 2, 0, 0]], np.zeros((0, 4))):
        plan = Plan(from_directions(np.array(directions)), 10.0, np.full(60, 0.02), [0, 20, 60])
        # Beyond a loss of 40 its derivative in the log-odds is 1.
        exact = gradient_flow(lambda x: (40 + x @ w, np.broadcast_to(w, x.shape)), x0, plan)
        found = difference_flow(lambda x: 40 + x @ w, x0, plan, 10)
        np.testing.assert_allclose(found.x, exact.x, atol=1e-9)
        np.testing.assert_allclose(found.losses, exact.losses, atol=1e-9)


def test_a_step_at_which_there_is_no_loss_is_not_recorded() -> None:
    plan = Plan(from_directions(np.ones((1, 2))), 10.0, np.full(20, 0.02), [3, 20])
    with pytest.raises(ValueError, match=r"found \[3\]"):
        difference_flow(lambda x: x.sum(axis=1), np.ones((3, 2)), plan, 10)
