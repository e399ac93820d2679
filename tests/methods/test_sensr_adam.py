"""Adam as SenSR takes it, its moments, the bound on its steps, and the update of lambda, each against its formula."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numba import njit

from pipeline.methods.sensr_compiled.attacks import _adam_step
from pipeline.methods.sensr_compiled.lanes import (
    DELTA,
    LANES,
    SHARED,
    SLOPE,
    STATE,
    TINIEST,
    Attack,
    Q,
    corrected_rates,
    largest_step,
    second_moment,
)
from pipeline.methods.sensr_compiled.training import _updated_lambda
from pipeline.methods.sensr_settings import BETA_1, BETA_2, EPSILON
from pipeline.methods.sensr_torch import Adam, updated_lambda
from pipeline.types import Array


def test_adam_is_the_recursion_of_tensorflow_1() -> None:
    """Gradients as small as epsilon: where it is added decides the step."""
    gradients = np.random.default_rng(0).normal(size=(12, 2, 3)) * 1e-8
    adam, rate, everyone = (
        Adam(torch.zeros(2, 3, dtype=torch.float64)),
        torch.full((2,), 0.1, dtype=torch.float64),
        torch.ones(2) > 0,
    )
    m = v = np.zeros((2, 3))
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        expected = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (np.sqrt(v) + 1e-8)
        np.testing.assert_allclose(adam.step(torch.tensor(g), rate, everyone).numpy(), expected, rtol=1e-12)


def test_adam_is_that_of_torch_where_epsilon_is_negligible() -> None:
    parameter = torch.zeros(4, 3, dtype=torch.float64, requires_grad=True)
    reference = torch.optim.Adam([parameter], lr=0.05)
    adam, rate, everyone = Adam(parameter.detach()), torch.full((4,), 0.05, dtype=torch.float64), torch.ones(4) > 0
    found = torch.zeros(4, 3, dtype=torch.float64)
    for gradient in torch.randn(10, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0)) * 100:
        parameter.grad = gradient
        reference.step()
        found = found - adam.step(gradient, rate, everyone)
    torch.testing.assert_close(found, parameter.detach(), rtol=1e-7, atol=0)


def test_a_repetition_that_is_left_out_does_not_move_and_does_not_count_the_step() -> None:
    gradients = torch.randn(6, 2, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    adam, rate = Adam(torch.zeros(2, 3).double()), torch.full((2,), 0.1, dtype=torch.float64)
    alone = Adam(torch.zeros(1, 3).double())
    for t, gradient in enumerate(gradients):
        part = torch.tensor([True, t % 2 == 0])
        step = adam.step(gradient, rate, part)
        if t % 2 == 0:
            torch.testing.assert_close(step[1:], alone.step(gradient[1:], rate[1:], part[1:]))
        else:
            assert (step[1] == 0).all()


def test_no_gradients_move_adam_further_than_the_bound_and_some_reach_it() -> None:
    def steps(gradients: np.ndarray) -> np.ndarray:
        m = v = np.zeros(gradients.shape[1:])
        moves = []
        for g in gradients:
            m, v = BETA_1 * m + (1 - BETA_1) * g, BETA_2 * v + (1 - BETA_2) * g**2
            moves.append(m / np.sqrt(v))
        return np.abs(np.array(moves)) * corrected_rates(1.0, len(gradients))[:, None]

    rng = np.random.default_rng(0)
    for count in (1, 8, 50):
        bound = largest_step(count)
        tried = rng.normal(size=(count, 2000)) * rng.lognormal(sigma=3, size=(count, 2000))
        assert steps(tried).max() <= bound * (1 + 1e-12)
        # Equality in the Cauchy-Schwarz inequality: gradients that grow by the factor b_2 / b_1.
        assert steps(((BETA_2 / BETA_1) ** np.arange(count))[:, None]).max() == pytest.approx(bound, rel=1e-12)
    assert largest_step(1) == pytest.approx(1.0)


def second_moments(gradients: Array, tiniest: float) -> Array:
    """Of 50 steps, in float32, before each bias is corrected: (50, gradients)."""
    keep, add = np.float32(BETA_2), np.float32(1 - BETA_2)
    v, found = np.zeros_like(gradients), []
    for _ in range(50):
        v = np.array(
            [second_moment.py_func(*pair, keep, add, np.float32(tiniest)) for pair in zip(v, gradients, strict=True)]
        )
        found.append(v)
    return np.array(found)


def subnormal(values: Array) -> Array:
    return (values != 0) & (np.abs(values) < np.finfo(values.dtype).tiny)


def test_second_moments_are_normal_numbers_and_the_steps_those_of_adam() -> None:
    """From gradients whose squares are too small for float32 to ones that are lost in nothing."""
    gradients = (np.logspace(-30, 3, 200) * np.where(np.arange(200) % 2, 1, -1)).astype(np.float32)
    plain, kept = second_moments(gradients, 0.0), second_moments(gradients, TINIEST)
    assert subnormal(plain).any()
    assert not subnormal(kept).any()
    for samples in (2, 1000):
        epsilon = np.float32(samples * EPSILON)
        assert (np.sqrt(kept) + epsilon).tobytes() == (np.sqrt(plain) + epsilon).tobytes()


def test_the_full_attack_makes_no_subnormal_numbers_of_samples_whose_loss_is_all_but_0() -> None:
    """Slopes from 1 to 10^-26, beyond which they are taken for 0, one in each lane."""
    kind, inputs, rng = np.float32, 4, np.random.default_rng(0)
    basis = np.linalg.qr(rng.normal(size=(inputs, 2)))[0].T.astype(kind)
    nothing = np.zeros(LANES, kind)
    attack = Attack(
        directions=basis,
        basis=basis,
        subspace_rates=nothing,
        full_rates=corrected_rates(1.0, 50).astype(kind),
        epsilon=np.array([1000 * EPSILON], kind),
        series=nothing,
        power=nothing,
        bits=nothing.view(np.int32),
        inputs=inputs,
        largest=largest_step(50),
    )
    state, shared = np.zeros(inputs * STATE, kind), np.zeros(SHARED, kind)
    state.reshape(inputs, -1)[:, Q : Q + LANES] = rng.normal(size=(inputs, LANES))
    shared[SLOPE : SLOPE + LANES] = -np.logspace(-26, 0, LANES)
    step = njit(lambda *arguments: _adam_step(*arguments))
    for rate in attack.full_rates:
        step(state, shared, attack, kind(1e-4) * rate, kind(2.0))
        assert not subnormal(state).any()
        assert not subnormal(shared).any()
    assert (state.reshape(inputs, -1)[:, DELTA:] != 0).all()


@pytest.mark.parametrize(
    ("penalty", "distance", "expected"),
    [
        (2.0, 0.003, 2.0 + 3 * 0.002),
        (2.0, 0.0005, 2.0 - 2 * 0.0005),
        (2.0, 0.001, 2.0),
        (2.0, 0.0, 1e-5),
        (2.0, 1e-9, 2.0 - 1e6 * (0.001 - 1e-9)),
        (9.9, 1.0, 10.0),
    ],
)
def test_lambda_falls_inside_the_radius_and_rises_outside(penalty: float, distance: float, expected: float) -> None:
    expected = min(max(expected, 1e-5), 10.0)
    assert _updated_lambda.py_func(penalty, distance, 0.001) == pytest.approx(expected, rel=1e-9)
    found = updated_lambda(torch.tensor([penalty]).double(), torch.tensor([distance]).double(), 0.001)
    assert found.item() == pytest.approx(expected, rel=1e-9)
