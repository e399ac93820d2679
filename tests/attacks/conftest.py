"""Random networks, mixtures and points for the attacks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

Parameters = dict[str, np.ndarray]


@pytest.fixture
def network() -> Callable[..., Parameters]:
    """R random one-hidden-layer networks whose units are often near their kinks."""

    def build(seed: int, repetitions: int = 1, d: int = 5, hidden: int = 8) -> Parameters:
        rng = np.random.default_rng(seed)
        return {
            "w1": rng.normal(size=(repetitions, d, hidden)),
            "b1": 0.3 * rng.normal(size=(repetitions, hidden)),
            "w2": rng.normal(size=(repetitions, hidden, 2)),
            "b2": rng.normal(size=(repetitions, 2)),
        }

    return build


@pytest.fixture
def mixture() -> Callable[..., Parameters]:
    """R random mixtures of K logistic regressions."""

    def build(seed: int, repetitions: int = 1, d: int = 5, members: int = 1) -> Parameters:
        rng = np.random.default_rng(seed)
        return {
            "weight": rng.dirichlet(np.ones(members), size=repetitions),
            "coef": rng.normal(size=(repetitions, members, d)),
            "intercept": rng.normal(size=(repetitions, members)),
        }

    return build


@pytest.fixture
def points() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """Features (repetitions, n, d) and labels (repetitions, n)."""

    def build(seed: int, repetitions: int = 1, n: int = 40, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
        rng = np.random.default_rng(seed)
        return rng.normal(size=(repetitions, n, d)), rng.integers(0, 2, (repetitions, n))

    return build
