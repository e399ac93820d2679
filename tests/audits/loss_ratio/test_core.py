"""The core of the loss-ratio audit, on arrays."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from fairness_audits.attacks.gradient_flow import Flow, Plan, gradient_flow
from fairness_audits.audits.loss_ratio.core import LossRatio, along_gradient, along_random_directions, over_metrics
from fairness_audits.audits.loss_ratio.ratio_tests import loss_ratio_test
from fairness_audits.fair_metric import from_directions
from fairness_audits.models import mlp
from fairness_audits.values import Array
from tests.attacks.builders import network

LIMITS: dict[str, Any] = {"delta": 1.25, "alpha": 0.05}
PLAN = Plan(from_directions(np.array([[1.0, 0, 0, 0]])), 50.0, np.full(60, 0.01), [20, 60])


def rows() -> tuple[Array, Array]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(80, 4)), rng.integers(0, 2, 80)


def flow(x: Array, y: Array, plan: Plan) -> Flow:
    parameters = {name: values[0] for name, values in network(1, d=4, hidden=6).items()}
    return gradient_flow(lambda z: mlp.loss_and_gradient(parameters, z, y), x, plan)


def decide(x: Array) -> Array:
    parameters = {name: values[0] for name, values in network(1, d=4, hidden=6).items()}
    return (mlp.loss_and_gradient(parameters, x, np.ones(len(x), int))[0] < np.log(2)).astype(int)


def test_decisions_of_two_classes_give_the_errors_that_the_losses_give() -> None:
    x, y = rows()
    attack = partial(flow, x, y)
    by_loss, by_decision = (along_gradient(attack, x, y, PLAN, decide=how, **LIMITS) for how in (None, decide))
    assert by_loss.error_course.mean[-1] == by_decision.error_course.mean[-1]
    assert by_loss.error_course.mean[-1] > 1
    assert np.isnan(by_decision.error_course.mean[0])


def test_a_point_without_a_finite_loss_is_left_out_of_both_ratios_and_counted() -> None:
    x, y = rows()

    def attack(plan: Plan) -> Flow:
        found = flow(x, y, plan)
        found.losses[..., 7] = np.inf
        found.x[7] = np.nan
        return found

    found = along_gradient(attack, x, y, PLAN, decide=decide, **LIMITS)
    others = np.arange(len(x)) != 7
    assert np.isnan(found.ratio[7])
    expected = loss_ratio_test(found.original_loss[others], found.comparable_loss[others], **LIMITS)
    assert found.course.mean[-1] == pytest.approx(float(expected.mean), rel=1e-12)
    assert found.course.non_finite[-1] == found.error_course.non_finite[-1] == 1


def test_repetitions_are_the_audits_one_by_one() -> None:
    x, y = rows()
    both = (x, x[::-1].copy()), (y, y[::-1].copy())

    def attack(plan: Plan) -> Flow:
        flows = [flow(own, label, plan) for own, label in zip(*both, strict=True)]
        return Flow(*(np.stack([getattr(one, name) for one in flows]) for name in ("x", "losses", "original_loss")))

    together = along_gradient(attack, np.stack(both[0]), np.stack(both[1]), PLAN, **LIMITS)

    def one(place: int) -> LossRatio:
        own = both[0][place], both[1][place]
        return along_gradient(partial(flow, *own), *own, PLAN, **LIMITS)

    for place in (0, 1):
        np.testing.assert_array_equal(together.course.statistic[place], one(place).course.statistic)


def test_the_placebo_has_as_many_directions_and_none_where_all_are_sensitive() -> None:
    x, y = rows()
    seen = []

    def attack(plan: Plan, some: Array) -> Flow:
        seen.append(plan.metric)
        return flow(x[some], y[some], plan)

    draws = [np.arange(40), np.arange(40, 80)]
    found = along_random_directions(attack, PLAN, draws, rng=np.random.default_rng(0), **LIMITS)
    assert found is not None
    assert int(found.n) == 80
    assert [metric.basis.shape for metric in seen] == [(4, 1), (4, 1)]
    assert abs(float(seen[0].basis[:, 0] @ seen[1].basis[:, 0])) < 1
    every = Plan(from_directions(np.eye(4)), 50.0, np.full(60, 0.01), [60])
    assert along_random_directions(attack, every, draws, rng=np.random.default_rng(0), **LIMITS) is None


def test_other_metrics_change_the_ratio_by_their_factor_on_the_same_rows() -> None:
    x, y = rows()
    other = replace(PLAN, metric=from_directions(np.array([[0.0, 1.0, 0.5, 0.0]])))

    def attack(plan: Plan, some: Array) -> Flow:
        return flow(x[some], y[some], plan)

    found, instead = (along_gradient(partial(flow, x, y), x, y, plan, **LIMITS) for plan in (PLAN, other))
    some = np.arange(10, 50)
    factors = over_metrics(attack, PLAN, [PLAN.metric, other.metric], some, found)
    assert factors == pytest.approx([1.0, instead.ratio[some].mean() / found.ratio[some].mean()])
    assert abs(factors[1] - 1) > 0.01
    assert over_metrics(attack, PLAN, [], some, found).shape == (0,)
