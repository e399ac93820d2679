"""The gradient flow attack: theorems 2.2 and A.1, closed forms, limits, stability, and what it reports."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from scipy.integrate import solve_ivp

from pipeline.attacks.engines import unfair_map
from pipeline.attacks.gradient_flow import Plan, gradient_flow, gradient_flow_in_blocks, step_schedule
from pipeline.audits.loss_ratio.ratio_tests import loss_ratio_test
from pipeline.fair_metric import FairMetric, diagonal, from_directions, rotated
from pipeline.models import logistic_mixture, mlp
from pipeline.types import Classifier
from tests.attacks.builders import mixture, network, points

LAMBDA, TIME = 1.5, 2.0
SIGMA = np.array([[1.0, 0.3, 0], [0.3, 0.5, 0.1], [0, 0.1, 0.2]])


@pytest.fixture
def smooth() -> tuple[Callable, np.ndarray, np.ndarray, np.ndarray]:
    """A logistic regression in three dimensions: hook, points, its coefficients, labels."""
    parameters = mixture(0, d=3)
    x, y = points(1, n=6, d=3)
    return lambda z: logistic_mixture.loss_and_gradient(parameters, z, y), x, parameters["coef"][0, 0], y


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
    hook, x0, w, _ = smooth
    errors = []
    for steps in (50, 100, 200):
        h = TIME / steps
        times = np.linspace(0, TIME, steps + 1)
        path = exact_flow(hook, x0, SIGMA, LAMBDA, times)
        error = np.zeros(x0.shape[:-1])
        for k in range(1, steps + 1, 7):
            flow = gradient_flow(hook, x0, Plan(FairMetric(SIGMA), LAMBDA, np.full(k, h), [k]))
            error = np.maximum(error, np.linalg.norm(flow.x - path[k], axis=-1))
        errors.append(error)
        # The Hessian of the loss is p (1 - p) w w', at most w w' / 4 and not negative.
        lipschitz = max(w @ w / 4, 2 * LAMBDA * np.linalg.eigvalsh(SIGMA)[-1])
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
    #   |e_k+1| <= (1 + eta (|w|^2 / 4 - 2 lambda mu')) |e_k| + 2 lambda eta |Sigma - Sigma'| |x_k - x_0|,
    # mu' the smallest eigenvalue of Sigma', and the ratio changes by at most |w| |e_N| / l(x_0).
    hook, x0, w, _ = smooth
    steps, eta = 50, 0.04

    def attacked(sigma: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
        flow = gradient_flow(hook, x0, Plan(FairMetric(sigma), LAMBDA, np.full(count, eta), [count]))
        return flow.losses[..., -1, :] / flow.original_loss, np.linalg.norm(flow.x - x0, axis=-1)

    ratio, _ = attacked(SIGMA, steps)
    lengths = [np.zeros_like(ratio)] + [attacked(SIGMA, count)[1] for count in range(1, steps)]
    changes = []
    for tilt in (0.2, 0.02, 0.002):
        other = SIGMA + tilt * np.diag([0, 1.0, -0.5])
        growth = 1 + eta * (w @ w / 4 - 2 * LAMBDA * np.linalg.eigvalsh(other)[0])
        apart = np.zeros_like(ratio)
        for length in lengths:
            apart = growth * apart + 2 * LAMBDA * eta * np.linalg.norm(SIGMA - other, 2) * length
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
    hook = lambda x: (x @ w, np.broadcast_to(w, x.shape))  # noqa: E731
    plan = Plan(from_directions(rng.normal(size=(1, 5))), 0.0, np.full(30, 0.1), [30])
    expected = np.clip(x0 + 3 * w, *box)
    flow = gradient_flow(hook, x0, plan, box)
    np.testing.assert_allclose(flow.x, expected, atol=1e-12)
    np.testing.assert_allclose(flow.losses[0], expected @ w, atol=1e-12)
    tensors = gradient_flow(lambda x: (x @ x.new_tensor(w), x.new_tensor(w).expand_as(x)), torch.tensor(x0), plan, box)
    np.testing.assert_allclose(tensors.x.numpy(), expected, atol=1e-12)
    no_bounds = gradient_flow(hook, x0, plan, (np.full(5, -np.inf), np.full(5, np.inf)))
    np.testing.assert_array_equal(no_bounds.x, gradient_flow(hook, x0, plan).x)
    with pytest.raises(ValueError, match="points within the bounds, found 6 of 6 outside"):
        gradient_flow(hook, x0 - 9, plan, box)


def test_the_regularized_loss_increases_along_the_flow() -> None:
    # Eq. 3.1, with the penalty's factor: l(x_0) <= l(x_t) - lambda d^2(x_t, x_0).
    parameters, (x0, y) = network(3), points(4)
    metric = from_directions(np.random.default_rng(5).normal(size=(1, 5)))
    hook = lambda x: mlp.loss_and_gradient(parameters, x, y)  # noqa: E731
    objective = [hook(x0)[0]]
    for steps in (1, 5, 20, 50, 100):
        flow = gradient_flow(hook, x0, Plan(metric, 5.0, np.full(steps, 1e-3), [steps]))
        objective.append(flow.losses[..., -1, :] - 5.0 * metric.squared_distance(flow.x, x0))
    assert (np.diff(objective, axis=0) > -1e-10).all()
    assert (objective[-1] > objective[0]).mean() > 0.9


def test_a_constant_gradient_has_a_closed_form() -> None:
    # l = w.x: along U the flow is free; across it x - x0 = (1 - rho^N) / (2 lambda) Sigma w, rho = 1 - 2 lambda eta.
    rng = np.random.default_rng(0)
    metric, w, x0 = from_directions(rng.normal(size=(2, 5))), rng.normal(size=5), rng.normal(size=(3, 5))
    hook = lambda x: (x @ w, np.broadcast_to(w, x.shape))  # noqa: E731
    flow = gradient_flow(hook, x0, Plan(metric, 4.0, step_schedule("constant", 0.03, 0, 17), [0, 10, 17]))
    across = metric.matrix @ w
    expected = 17 * 0.03 * (w - across) + (1 - (1 - 2 * 4 * 0.03) ** 17) / (2 * 4) * across
    np.testing.assert_allclose(flow.x - x0, np.broadcast_to(expected, x0.shape), atol=1e-13)
    np.testing.assert_allclose(flow.losses[-1] - flow.original_loss, expected @ w, atol=1e-12)
    np.testing.assert_array_equal(flow.losses[0], flow.original_loss)


def test_a_large_penalty_keeps_the_flow_in_the_sensitive_subspace() -> None:
    parameters, (x0, y) = network(6), points(7)
    metric = from_directions(np.random.default_rng(8).normal(size=(1, 5)))
    hook = lambda x: mlp.loss_and_gradient(parameters, x, y)  # noqa: E731
    off, along = [], []
    for regularization in (1e2, 1e4, 1e6):
        flow = gradient_flow(hook, x0, Plan(metric, regularization, np.full(200, 0.5 / regularization), [200]))
        off.append(np.sqrt(metric.squared_distance(flow.x, x0)).max())
        along.append(np.linalg.norm(flow.x - x0, axis=-1).max())
    # Off the subspace the displacement settles at |gradient| / (2 lambda).
    np.testing.assert_allclose(np.array(off[:-1]) / off[1:], 100, rtol=0.2)
    free = gradient_flow(hook, x0, Plan(metric, 1e6, np.full(1, 1e-6), [1]))
    assert np.abs(free.x - x0).max() > 0


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
    flow = gradient_flow(still, x0, Plan(diagonal(20), 10.0, step_schedule("constant", 0.05, 0, 5), [5]))
    np.testing.assert_array_equal(flow.x, x0)
    assert flow.non_finite == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("power", 0.1, 0.0, 3), "expected power > 0, found 0.0"),
        (("constant", 0.0, 1.0, 3), "expected step_size > 0 and steps >= 1, found 0.0 and 3"),
        (("linear", 0.1, 1.0, 3), "expected schedule 'constant' or 'power', found 'linear'"),
    ],
)
def test_step_schedules_and_what_is_none(arguments: tuple, message: str) -> None:
    np.testing.assert_array_equal(step_schedule("constant", 0.01, 0.0, 3), [0.01, 0.01, 0.01])
    np.testing.assert_allclose(step_schedule("power", 0.02, 2 / 3, 8)[[0, 7]], [0.02, 0.005])
    with pytest.raises(ValueError, match=message):
        step_schedule(*arguments)


@pytest.mark.parametrize(("share", "grows"), [(0.99, False), (1.01, True)])
def test_the_stability_limit_is_where_the_penalty_amplifies(share: float, grows: bool) -> None:
    metric = FairMetric(np.diag([4.0, 1.0]))
    eta = share / (10.0 * 4.0)
    displacement = np.array([1e-3, 0.0])
    for _ in range(2000):
        displacement = displacement - 2 * 10.0 * eta * metric.operator(displacement)(displacement)
    assert (np.linalg.norm(displacement) > 1) == grows
    assert (Plan(metric, 10.0, [eta], [1]).unstable_steps == 1) == grows


def published(steps: int) -> Plan:
    return Plan(rotated(5), 100.0, step_schedule("power", 0.02, 2 / 3, steps), [steps])


def test_on_the_limit_the_end_depends_on_the_parity_of_the_steps() -> None:
    metric, w, x0 = rotated_in_3d(), np.array([0.5, -1.0, 2.0]), np.zeros((1, 3))
    hook = lambda x: (x @ w, np.broadcast_to(w, x.shape))  # noqa: E731
    for steps in (100, 101):
        plan = Plan(metric, 50.0, np.full(steps, 0.02), [steps])
        across = gradient_flow(hook, x0, plan).x @ metric.matrix
        np.testing.assert_allclose(across, [0.02 * (steps % 2) * metric.matrix @ w], atol=1e-12)
        assert plan.marginal_steps == steps
    for off in (0.0199, 0.0201):
        assert Plan(metric, 50.0, [off], [1]).marginal_steps == 0
    # Of the published schedule, 100 * .02 / t^(2/3), none is: it passes the limit between two steps.
    assert published(400).marginal_steps == 0


def test_an_unstable_step_size_is_refused_with_the_limit_unless_the_schedule_comes_back_under_it() -> None:
    # The published simulation: lambda eps / t^(2/3) = 2 / t^(2/3) exceeds 1 for t = 1, 2.
    assert (published(400).unstable_steps, published(400).ends_stable) == (2, True)
    with pytest.raises(ValueError, match="is unstable"):
        published(2).check()
    with pytest.raises(ValueError, match=r"step size 0\.03 is unstable for regularization 50: .* = 0\.02;"):
        gradient_flow(lambda x: (x[..., 0], x), np.zeros((2, 3)), Plan(rotated_in_3d(), 50.0, np.full(4, 0.03), [4]))
    # On the limit the penalty only reflects, which is allowed: 2 lambda eta = 2.
    Plan(rotated_in_3d(), 50.0, np.full(4, 0.02), [4]).check()


def rotated_in_3d() -> FairMetric:
    return from_directions(np.array([[1.0, 1, 0]]))


def test_recorded_losses_are_those_of_shorter_runs() -> None:
    parameters, (x0, y) = network(0), points(1)
    hook = lambda x: mlp.loss_and_gradient(parameters, x, y)  # noqa: E731
    schedule = step_schedule("power", 0.05, 0.5, 20)
    metric = from_directions(np.ones((1, 5)))
    record = [0, 1, 7, 20]
    flow = gradient_flow(hook, x0, Plan(metric, 5.0, schedule, record))
    assert flow.losses.shape == (1, 4, 40)
    for slot, steps in enumerate(record[1:], start=1):
        short = gradient_flow(hook, x0, Plan(metric, 5.0, schedule[:steps], [steps]))
        np.testing.assert_array_equal(flow.losses[:, slot], hook(short.x)[0])


@pytest.mark.parametrize("record", [[], [3, 2], [2, 2], [-1], [6]])
def test_a_record_outside_the_run_is_refused(record: list[int]) -> None:
    with pytest.raises(ValueError, match="increasing step numbers between 0 and 5"):
        gradient_flow(lambda x: (x[..., 0], x), np.zeros((2, 3)), Plan(rotated_in_3d(), 1.0, np.full(5, 0.1), record))


def test_points_and_repetitions_do_not_interact() -> None:
    parameters, (x0, y) = network(2, repetitions=3), points(3, repetitions=3, n=11)
    plan = Plan(from_directions(np.ones((1, 5))), 20.0, step_schedule("constant", 0.02, 0, 30), [10, 30])
    whole = gradient_flow(lambda x: mlp.loss_and_gradient(parameters, x, y), x0, plan)
    blocks = gradient_flow_in_blocks(
        lambda rows: lambda x: mlp.loss_and_gradient(parameters, x, y[:, rows]), x0, plan, 4
    )
    np.testing.assert_allclose(blocks.x, whole.x, atol=1e-12)
    np.testing.assert_allclose(blocks.losses, whole.losses, atol=1e-12)
    for r in range(3):
        own = {name: values[r : r + 1] for name, values in parameters.items()}
        hook = lambda x, own=own, r=r: mlp.loss_and_gradient(own, x, y[r : r + 1])  # noqa: E731
        alone = gradient_flow(hook, x0[r : r + 1], plan)
        np.testing.assert_allclose(alone.x[0], whole.x[r], atol=1e-12)
    with pytest.raises(ValueError, match="block_rows >= 1, found 0"):
        gradient_flow_in_blocks(lambda rows: lambda x: (x, x), x0, plan, 0)


def test_one_set_of_points_serves_many_classifiers() -> None:
    parameters, (x0, y) = mixture(2, repetitions=3), points(3)
    plan = Plan(from_directions(np.ones((1, 5))), 20.0, step_schedule("constant", 0.02, 0, 9), [0, 9])
    hook = lambda x: logistic_mixture.loss_and_gradient(parameters, x, y)  # noqa: E731
    shared = gradient_flow(hook, x0, plan)
    copied = gradient_flow(hook, x0.repeat(3, axis=0), plan)
    assert shared.x.shape == (3, 40, 5)
    np.testing.assert_array_equal(shared.x, copied.x)
    np.testing.assert_array_equal(shared.losses, copied.losses)


def test_arrays_and_tensors_go_through_the_same_loop() -> None:
    parameters, (x0, y) = network(4), points(5)

    def hook(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        loss, gradient = mlp.loss_and_gradient(parameters, x.numpy(), y)
        return torch.tensor(loss), torch.tensor(gradient)

    metric, schedule = from_directions(np.ones((1, 5))), step_schedule("constant", 0.02, 0, 30)
    tensors = gradient_flow(hook, torch.tensor(x0), Plan(metric, 20.0, schedule, [30]))
    arrays = gradient_flow(lambda x: mlp.loss_and_gradient(parameters, x, y), x0, Plan(metric, 20.0, schedule, [30]))
    assert isinstance(tensors.x, torch.Tensor)
    np.testing.assert_allclose(tensors.x.numpy(), arrays.x, atol=1e-12)
    np.testing.assert_allclose(tensors.losses, arrays.losses, atol=1e-12)
    assert tensors.losses.dtype == np.float64


def test_iterates_that_are_not_finite_are_counted() -> None:
    x0 = np.array([[0.0, 1], [1, 1], [2, 1]])
    exploding = lambda x: (x[..., 0], x * np.array([[0.0], [1], [1e200]]) ** 2)  # noqa: E731
    flow = gradient_flow(exploding, x0, Plan(rotated(0), 1.0, np.full(3, 0.5), [3]))
    assert flow.non_finite == 1
    with pytest.raises(ValueError, match=r"regularization >= 0, found -1"):
        gradient_flow(exploding, x0, Plan(rotated(0), -1.0, np.full(3, 0.5), [3]))
