"""Random networks, mixtures and points for the attacks."""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

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


@dataclass(frozen=True)
class Pictures:
    """A network and images (n, c, h, w) that it puts into the classes ``label`` (n,)."""

    network: torch.nn.Module
    images: np.ndarray
    label: np.ndarray


@pytest.fixture(scope="session")
def digits() -> Pictures:
    """A small convolutional network trained on handwritten digits, and 48 test images that it gets right."""
    bunch = load_digits()
    images = (bunch.images[:, None] / 16).astype(np.float32)
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(1, 12, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.MaxPool2d(2),
        torch.nn.Conv2d(12, 24, 3, padding=1),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(24 * 16, 10),
    )
    x, y = torch.tensor(images[:1200]), torch.tensor(bunch.target[:1200])
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    for _ in range(6):
        for rows in torch.randperm(len(x)).split(50):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(x[rows]), y[rows]).backward()
            optimizer.step()
    network.eval()
    rows = np.arange(1200, 1300)
    with torch.no_grad():
        rows = rows[network(torch.tensor(images[rows])).argmax(1).numpy() == bunch.target[rows]][:48]
    return Pictures(network, images[rows], bunch.target[rows])


@dataclass(frozen=True)
class Linear:
    """A linear classifier of K classes, and grey images (n, c, h, w) in the middle of the box with their classes."""

    weight: np.ndarray
    bias: np.ndarray
    images: np.ndarray
    label: np.ndarray

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The logits."""
        weight, bias = (torch.tensor(values, dtype=x.dtype) for values in (self.weight, self.bias))
        return x.flatten(1) @ weight.T + bias


@pytest.fixture
def linear() -> Callable[..., Linear]:
    """Random linear classifiers whose boundaries are near the images, all of which they get right by definition."""

    def build(seed: int, classes: int = 5, n: int = 60, shape: tuple[int, int, int] = (3, 4, 4)) -> Linear:
        rng = np.random.default_rng(seed)
        d = int(np.prod(shape))
        weight = rng.normal(size=(classes, d))
        images = (0.5 + 0.05 * rng.normal(size=(n, *shape))).astype(np.float32)
        bias = -weight @ np.full(d, 0.5)
        label = (images.reshape(n, -1) @ weight.T + bias).argmax(axis=1)
        return Linear(weight, bias, images, label)

    return build


@pytest.fixture
def ball() -> Callable[[float], Callable[[torch.Tensor], torch.Tensor]]:
    """A network whose class 0 is the ball of a radius around mid-grey: z = (radius^2 - ||x - 1/2||^2, 0)."""

    def build(radius: float) -> Callable[[torch.Tensor], torch.Tensor]:
        def network(x: torch.Tensor) -> torch.Tensor:
            inside = radius**2 - (x - 0.5).flatten(1).square().sum(1)
            return torch.stack([inside, torch.zeros_like(inside)], dim=1)

        return network

    return build


@pytest.fixture(scope="session")
def foolbox() -> Any:
    """The library, whose import warns of what scipy will drop."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return importlib.import_module("foolbox")
