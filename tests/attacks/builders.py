"""Random networks, mixtures, linear classifiers and points for the attacks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

Parameters = dict[str, np.ndarray]


def network(seed: int, repetitions: int = 1, d: int = 5, hidden: int = 8) -> Parameters:
    """R random one-hidden-layer networks whose units are often near their kinks."""
    rng = np.random.default_rng(seed)
    return {
        "w1": rng.normal(size=(repetitions, d, hidden)),
        "b1": 0.3 * rng.normal(size=(repetitions, hidden)),
        "w2": rng.normal(size=(repetitions, hidden, 2)),
        "b2": rng.normal(size=(repetitions, 2)),
    }


def mixture(seed: int, repetitions: int = 1, d: int = 5, members: int = 1) -> Parameters:
    """R random mixtures of K logistic regressions."""
    rng = np.random.default_rng(seed)
    return {
        "weight": rng.dirichlet(np.ones(members), size=repetitions),
        "coef": rng.normal(size=(repetitions, members, d)),
        "intercept": rng.normal(size=(repetitions, members)),
    }


def points(seed: int, repetitions: int = 1, n: int = 40, d: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Features (repetitions, n, d) and labels (repetitions, n)."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(repetitions, n, d)), rng.integers(0, 2, (repetitions, n))


@dataclass(frozen=True)
class Linear:
    """A linear classifier of K classes, and grey images (n, c, h, w) in the middle of the box with their classes."""

    weight: np.ndarray
    bias: np.ndarray
    images: np.ndarray
    label: np.ndarray

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """What the closed forms take."""
        return self.weight, self.bias, self.images, self.label

    def first(self, n: int | None = None) -> tuple["Linear", np.ndarray, np.ndarray]:
        """What an attack takes: the network and the first so many images and labels."""
        return self, self.images[:n], self.label[:n]

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """The logits."""
        weight, bias = (torch.tensor(values, dtype=x.dtype) for values in (self.weight, self.bias))
        return x.flatten(1) @ weight.T + bias


def linear(seed: int, classes: int = 5, n: int = 60, shape: tuple[int, int, int] = (3, 4, 4)) -> Linear:
    """A random linear classifier whose boundaries are near the images, all of which it gets right by definition."""
    rng = np.random.default_rng(seed)
    d = int(np.prod(shape))
    weight = rng.normal(size=(classes, d))
    images = (0.5 + 0.05 * rng.normal(size=(n, *shape))).astype(np.float32)
    bias = -weight @ np.full(d, 0.5)
    label = (images.reshape(n, -1) @ weight.T + bias).argmax(axis=1)
    return Linear(weight, bias, images, label)


def in_the_corner(model: Linear) -> Linear:
    """The classifier with images in the dark corner of the box, in the classes that it puts them into."""
    dark = np.clip(model.images - 0.48, 0, 1)
    return Linear(model.weight, model.bias, dark, model(torch.tensor(dark)).argmax(1).numpy())


def ball(radius: float) -> Callable[[torch.Tensor], torch.Tensor]:
    """A network whose class 0 is the ball of a radius around mid-grey: z = (radius^2 - ||x - 1/2||^2, 0)."""

    def network(x: torch.Tensor) -> torch.Tensor:
        inside = radius**2 - (x - 0.5).flatten(1).square().sum(1)
        return torch.stack([inside, torch.zeros_like(inside)], dim=1)

    return network


def around_grey(lengths: np.ndarray) -> np.ndarray:
    """One image for each length, that far from mid-grey in a random direction."""
    away = np.random.default_rng(0).normal(size=(len(lengths), 9))
    away *= (lengths / np.linalg.norm(away, axis=1))[:, None]
    return (0.5 + away).reshape(-1, 1, 3, 3).astype(np.float32)
