"""The gradient flow attack: theorems 2.2 and A.1, closed forms, limits, stability, and what it reports."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from fairness_audits.attacks.engines import unfair_map
from fairness_audits.attacks.gradient_flow import Flow, Plan, gradient_flow, gradient_flow_in_blocks, step_schedule
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import FairMetric, from_directions, rotated
from fairness_audits.models import logistic_mixture, mlp
from fairness_audits.values import Classifier
from tests.attacks.builders import mixture, network, points
from tests.errors import invalid

LAMBDA, TIME = 1.5, 2.0
IN_3D = from_directions(np.array([[1.0, 1, 0]]))
ONES = from_directions(np.ones((1, 5)))
SENSITIVE = np.ones((1, 3))
OBLIQUE = from_directions(SENSITIVE)
PUBLISHED = Plan(rotated(5), 100.0, step_schedule("power", 0.02, 2 / 3, 400), [400])


def constant(w: np.ndarray) -> Callable:
    """The loss w.x, of the same gradient everywhere."""
    return lambda x: (x @ w, np.broadcast_to(w, x.shape))


def of_a_network(seed: int, metric: FairMetric) -> tuple[Callable[[float, Any], Flow], Callable, np.ndarray]:
    """The flow of a random network's points by regularization and step sizes, its hook and the points."""
    parameters, (x0, y) = network(seed), points(seed + 1)

    def hook(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return mlp.loss_and_gradient(parameters, x, y)

    return lambda penalty, sizes: gradient_flow(hook, x0, Plan(metric, penalty, sizes, [len(sizes)])), hook, x0


@pytest.fixture
def smooth() -> tuple[Callable, np.ndarray, np.ndarray]:
    """A logistic regression in three dimensions: hook, points, its coefficients."""
    parameters, (x, y) = mixture(0, d=3), points(1, n=6, d=3)
    return lambda z: logistic_mixture.loss_and_gradient(parameters, z, y), x, parameters["coef"][0, 0]


def exact_flow(
    hook: Callable, x0: np.ndarray, sigma: np.ndarray, regularization: float, times: np.ndarray
) -> np.ndarray:
    """The solution of the differential equation (2.6) at ``times``: (len(times), ...)."""

    def slope(_: float, flat: np.ndarray) -> np.ndarray:
        x = flat.reshape(x0.shape)
        return (hook(x)[1] - 2 * regularization * (x - x0) @ sigma).ravel()

    solution = solve_ivp(slope, (0, times[-1]), x0.ravel(), t_eval=times, rtol=1e-12, atol=1e-13, method="DOP853")
    return solution.y.T.reshape(len(times), *x0.shape)


def test_theorem_2_2_the_error_is_linear_in_the_step_and_within_its_bound(smooth) -> None:  # type: ignore[no-untyped-def]
    hook, x0, w = smooth
    errors = []
    for steps in (50, 100, 200):
        h = TIME / steps
        times = np.linspace(0, TIME, steps + 1)
        path = exact_flow(hook, x0, OBLIQUE.matrix, LAMBDA, times)
        error = np.zeros(x0.shape[:-1])
        for k in range(1, steps + 1, 7):
            flow = gradient_flow(hook, x0, Plan(OBLIQUE, LAMBDA, np.full(k, h), [k]))
            error = np.maximum(error, np.linalg.norm(flow.x - path[k], axis=-1))
        errors.append(error)
        # The Hessian of the loss is p (1 - p) w w', at most w w' / 4 and not negative.
        lipschitz = max(w @ w / 4, 2 * LAMBDA)
        slopes = np.gradient(path, times, axis=0)
        m = np.abs(np.gradient(slopes, times, axis=0)).max(axis=(0, -1)) * 1.01
        bound = h * m * np.sqrt(3) / (2 * lipschitz) * (np.exp(lipschitz * TIME) - 1)
        assert (error <= bound).all()
    np.testing.assert_allclose(errors[0] / errors[1], 2, rtol=0.1)
    np.testing.assert_allclose(errors[1] / errors[2], 2, rtol=0.1)


def test_theorem_a_1_the_ratio_moves_little_when_the_metric_does(smooth) -> None:  # type: ignore[no-untyped-def]
    # The theorem's bound (e^{LT}, a diameter, a root of the misspecification) is thousands of times what happens, so it
    # would hold for a wrong flow. This is its argument with the constants of the case. Let e_k be how far apart the
    # iterates x_k, x'_k of two metrics are. The Hessian of the loss is between 0 and w w' / 4, so
    #   |e_k+1| <= (1 + eta |w|^2 / 4) |e_k| + 2 lambda eta |Sigma - Sigma'| |x_k - x_0|,
    # and the ratio changes by at most |w| |e_N| / l(x_0).
    hook, x0, w = smooth
    steps, eta = 50, 0.04

    def attacked(metric: FairMetric, count: int) -> tuple[np.ndarray, np.ndarray]:
        flow = gradient_flow(hook, x0, Plan(metric, LAMBDA, np.full(count, eta), [count]))
        return flow.losses[..., -1, :] / flow.original_loss, np.linalg.norm(flow.x - x0, axis=-1)

    ratio, _ = attacked(OBLIQUE, steps)
    lengths = [np.zeros_like(ratio)] + [attacked(OBLIQUE, count)[1] for count in range(1, steps)]
    changes = []
    for tilt in (0.2, 0.02, 0.002):
        other = from_directions(SENSITIVE + tilt * w)
        growth = 1 + eta * w @ w / 4
        apart = np.zeros_like(ratio)
        for length in lengths:
            apart = growth * apart + 2 * LAMBDA * eta * np.linalg.norm(OBLIQUE.matrix - other.matrix, 2) * length
        bound = np.linalg.norm(w) * apart / hook(x0)[0]
        change = np.abs(attacked(other, steps)[0] - ratio)
        assert (change <= bound).all()
        assert (change > bound / 10).all()
        changes.append(change.max())
    # The dependence is in fact smooth: a tenth of the misspecification is a tenth of the change.
    np.testing.assert_allclose(np.array(changes[:-1]) / changes[1:], 10, rtol=0.3)


def test_bounds_hold_at_every_step() -> None:
    # With l = w.x and no penalty, x_N = P(x_0 + N eta w): each coordinate goes on until it is at its bound.
    rng = np.random.default_rng(0)
    w, x0 = rng.normal(size=5), rng.uniform(-1, 1, size=(6, 5))
    box = np.array([-1.0, -np.inf, -1, -2, -1]), np.array([1.0, 1, np.inf, 1, 1.5])
    plan = Plan(from_directions(rng.normal(size=(1, 5))), 0.0, np.full(30, 0.1), [30])
    expected = np.clip(x0 + 3 * w, *box)
    flow = gradient_flow(constant(w), x0, plan, box)
    np.testing.assert_allclose(flow.x, expected, atol=1e-12)
    np.testing.assert_allclose(flow.losses[0], expected @ w, atol=1e-12)
    tensors = gradient_flow(lambda x: (x @ x.new_tensor(w), x.new_tensor(w).expand_as(x)), torch.tensor(x0), plan, box)
    np.testing.assert_allclose(tensors.x.numpy(), expected, atol=1e-12)
    no_bounds = gradient_flow(constant(w), x0, plan, (np.full(5, -np.inf), np.full(5, np.inf)))
    np.testing.assert_array_equal(no_bounds.x, gradient_flow(constant(w), x0, plan).x)


def test_the_regularized_loss_increases_along_the_flow() -> None:
    # Eq. 3.1, with the penalty's factor: l(x_0) <= l(x_t) - lambda d^2(x_t, x_0).
    metric = from_directions(np.random.default_rng(5).normal(size=(1, 5)))
    flow_of, hook, x0 = of_a_network(3, metric)
    flows = [flow_of(5.0, np.full(steps, 1e-3)) for steps in (1, 5, 20, 50, 100)]
    objective = [flow.losses[..., -1, :] - 5.0 * metric.squared_distance(flow.x, x0) for flow in flows]
    assert (np.diff([hook(x0)[0], *objective], axis=0) > -1e-10).all()
    assert (objective[-1] > hook(x0)[0]).mean() > 0.9


def test_a_constant_gradient_has_a_closed_form() -> None:
    # l = w.x: along U the flow is free; across it x - x0 = (1 - rho^N) / (2 lambda) Sigma w, rho = 1 - 2 lambda eta.
    rng = np.random.default_rng(0)
    metric, w, x0 = from_directions(rng.normal(size=(2, 5))), rng.normal(size=5), rng.normal(size=(3, 5))
    flow = gradient_flow(constant(w), x0, Plan(metric, 4.0, step_schedule("constant", 0.03, 0, 17), [0, 10, 17]))
    across = metric.matrix @ w
    expected = 17 * 0.03 * (w - across) + (1 - (1 - 2 * 4 * 0.03) ** 17) / (2 * 4) * across
    np.testing.assert_allclose(flow.x - x0, np.broadcast_to(expected, x0.shape), atol=1e-13)
    np.testing.assert_allclose(flow.losses[-1] - flow.original_loss, expected @ w, atol=1e-12)
    np.testing.assert_array_equal(flow.losses[0], flow.original_loss)


def test_a_large_penalty_keeps_the_flow_in_the_sensitive_subspace() -> None:
    metric = from_directions(np.random.default_rng(8).normal(size=(1, 5)))
    flow_of, _, x0 = of_a_network(6, metric)
    flows = [flow_of(penalty, np.full(200, 0.5 / penalty)) for penalty in (1e2, 1e4, 1e6)]
    off = np.array([np.sqrt(metric.squared_distance(flow.x, x0)).max() for flow in flows])
    # Off the subspace the displacement settles at |gradient| / (2 lambda).
    np.testing.assert_allclose(off[:-1] / off[1:], 100, rtol=0.2)
    assert np.abs(flow_of(1e6, np.full(1, 1e-6)).x - x0).max() > 0


def test_a_model_constant_along_the_subspace_passes_with_statistic_near_one() -> None:
    parameters, (x0, y) = network(9), points(10, n=300)
    metric = from_directions(np.random.default_rng(11).normal(size=(2, 5)))
    unfair = Classifier("m", "d", "simulated", "mlp", parameters)
    fair = Classifier("m", "d", "simulated", "mlp", {**parameters, "w1": metric.matrix @ parameters["w1"]})
    schedule = step_schedule("constant", 0.005, 0, 400)
    results = [unfair_map(c, x0, y, Plan(metric, 100.0, schedule, [400])) for c in (fair, unfair)]
    tests = [loss_ratio_test(f.original_loss, f.losses[:, -1], 1.25, 0.05) for f in results]
    assert tests[0].statistic[0] == pytest.approx(1.0, abs=0.1)
    assert tests[0].statistic[0] > 1.0
    assert tests[1].rejected[0]
    # Without the sensitive subspace nothing is free, and the ratio tends to 1 with the penalty.
    stiff = unfair_map(fair, x0, y, Plan(metric, 1e5, step_schedule("constant", 5e-6, 0, 400), [400]))
    ratio = loss_ratio_test(stiff.original_loss, stiff.losses[:, -1], 1.25, 0.05)
    assert ratio.statistic[0] == pytest.approx(1.0, abs=2e-4)


def test_a_point_without_gradient_stays_where_it_is() -> None:
    # A penalty written as a norm would have gradient 0 / 0 at x0.
    x0 = np.random.default_rng(0).normal(size=(4, 2))
    still = lambda x: (np.ones(x.shape[:-1]), np.zeros_like(x))  # noqa: E731
    flow = gradient_flow(still, x0, Plan(rotated(30), 10.0, step_schedule("constant", 0.05, 0, 5), [5]))
    np.testing.assert_array_equal(flow.x, x0)


def test_step_schedules() -> None:
    np.testing.assert_array_equal(step_schedule("constant", 0.01, 0.0, 3), [0.01, 0.01, 0.01])
    np.testing.assert_allclose(step_schedule("power", 0.02, 2 / 3, 8)[[0, 7]], [0.02, 0.005])


@pytest.mark.parametrize(("share", "grows"), [(0.99, False), (1.01, True)])
def test_the_stability_limit_is_where_the_penalty_amplifies(share: float, grows: bool) -> None:
    metric = rotated(0)
    eta = share / 10.0
    displacement = np.array([0.0, 1e-3])
    for _ in range(2000):
        displacement = displacement - 2 * 10.0 * eta * metric.operator(displacement)(displacement)
    assert (np.linalg.norm(displacement) > 1) == grows
    assert Plan(metric, 10.0, [eta], [1]).ends_stable != grows


def test_on_the_limit_the_end_depends_on_the_parity_of_the_steps() -> None:
    w, x0 = np.array([0.5, -1.0, 2.0]), np.zeros((1, 3))
    for steps in (100, 101):
        # There the penalty only reflects, which is allowed: 2 lambda eta = 2.
        plan = Plan(IN_3D, 50.0, np.full(steps, 0.02), [steps])
        across = gradient_flow(constant(w), x0, plan).x @ IN_3D.matrix
        np.testing.assert_allclose(across, [0.02 * (steps % 2) * IN_3D.matrix @ w], atol=1e-12)
        assert plan.ends_stable


def test_a_schedule_may_begin_beyond_the_limit_and_not_end_there() -> None:
    # The published simulation: lambda eps / t^(2/3) = 2 / t^(2/3) exceeds 1 for t = 1, 2.
    assert [replace(PUBLISHED, step_sizes=PUBLISHED.step_sizes[:t]).ends_stable for t in (2, 3)] == [False, True]
    assert PUBLISHED.ends_stable
    with invalid(option="step_size"):
        replace(PUBLISHED, step_sizes=PUBLISHED.step_sizes[:2], record=[2]).check()


def test_recorded_losses_are_those_of_shorter_runs() -> None:
    flow_of, hook, x0 = of_a_network(0, ONES)
    schedule, record = step_schedule("power", 0.05, 0.5, 20), [0, 1, 7, 20]
    flow = gradient_flow(hook, x0, Plan(ONES, 5.0, schedule, record))
    assert flow.losses.shape == (1, 4, 40)
    for slot, steps in enumerate(record[1:], start=1):
        np.testing.assert_array_equal(flow.losses[:, slot], hook(flow_of(5.0, schedule[:steps]).x)[0])


def test_points_and_repetitions_do_not_interact() -> None:
    parameters, (x0, y) = network(2, repetitions=3), points(3, repetitions=3, n=11)
    plan = Plan(ONES, 20.0, step_schedule("constant", 0.02, 0, 30), [10, 30])
    whole = gradient_flow(lambda x: mlp.loss_and_gradient(parameters, x, y), x0, plan)
    blocks = gradient_flow_in_blocks(
        lambda rows: lambda x: mlp.loss_and_gradient(parameters, x, y[:, rows]), x0, plan, 4
    )
    np.testing.assert_allclose(blocks.x, whole.x, atol=1e-12)
    np.testing.assert_allclose(blocks.losses, whole.losses, atol=1e-12)
    for r in range(3):
        own = {name: values[r : r + 1] for name, values in parameters.items()}
        alone = gradient_flow(partial(mlp.loss_and_gradient, own, y=y[r : r + 1]), x0[r : r + 1], plan)
        np.testing.assert_allclose(alone.x[0], whole.x[r], atol=1e-12)


def test_one_set_of_points_serves_many_classifiers() -> None:
    parameters, (x0, y) = mixture(2, repetitions=3), points(3)
    plan = Plan(ONES, 20.0, step_schedule("constant", 0.02, 0, 9), [0, 9])
    hook = partial(logistic_mixture.loss_and_gradient, parameters, y=y)
    shared, copied = (gradient_flow(hook, x, plan) for x in (x0, x0.repeat(3, axis=0)))
    assert shared.x.shape == (3, 40, 5)
    np.testing.assert_array_equal(shared.x, copied.x)
    np.testing.assert_array_equal(shared.losses, copied.losses)


def test_iterates_that_are_not_finite_stay_so() -> None:
    x0 = np.array([[0.0, 1], [1, 1], [2, 1]])
    exploding = lambda x: (x[..., 0], x * np.array([[0.0], [1], [1e200]]) ** 2)  # noqa: E731
    flow = gradient_flow(exploding, x0, Plan(rotated(0), 1.0, np.full(3, 0.5), [3]))
    assert np.isfinite(flow.x).all(axis=-1).tolist() == [True, True, False]
