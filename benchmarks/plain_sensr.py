"""SenSR's iterations of ``pipeline.methods.sensr`` for one network, in torch with automatic differentiation.

They are the reference for tests and timings of the compiled iterations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import torch

from fairness_audits.fair_metric import FairMetric
from fairness_audits.models import mlp
from fairness_audits.models.device import arrays
from fairness_audits.values import Array, Batch
from pipeline.training.sensr_config import BETA_1, BETA_2, EPSILON, PENALTY_MAX, PENALTY_MIN, RATE_DECAY, Config


class Adam:
    r"""Adam: m <- b_1 m + (1 - b_1) g,  v <- b_2 v + (1 - b_2) g^2,  step = lr_t m / (sqrt(v) + epsilon).

    lr_t = lr sqrt(1 - b_2^t) / (1 - b_1^t). As in TensorFlow 1, epsilon is added before the bias of v is corrected.
    With gradients of a mean over a thousand samples, epsilon is not negligible.
    """

    def __init__(self, like: torch.Tensor) -> None:
        self.first, self.second = torch.zeros_like(like), torch.zeros_like(like)
        self.taken = 0

    def step(self, gradient: torch.Tensor, rate: float) -> torch.Tensor:
        self.taken += 1
        self.first = BETA_1 * self.first + (1 - BETA_1) * gradient
        self.second = BETA_2 * self.second + (1 - BETA_2) * gradient**2
        corrected = rate * math.sqrt(1 - BETA_2**self.taken) / (1 - BETA_1**self.taken)
        return corrected * self.first / (self.second.sqrt() + EPSILON)


def ascend(
    objective: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor, rate: float, steps: int
) -> torch.Tensor:
    """Maximise the objective with Adam."""
    adam, at = Adam(start), start
    for _ in range(steps):
        at = at.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(objective(at), at)
        at = at.detach() + adam.step(gradient, rate)
    return at


def updated_lambda(penalty: float, distance: float, radius: float) -> float:
    """Return lambda + max(d, rho) / min(d, rho) (d - rho), clipped to its bounds; the lower bound if d = 0."""
    if distance == 0:
        return PENALTY_MIN
    factor = max(distance, radius) / min(distance, radius)
    return min(max(penalty + factor * (distance - radius), PENALTY_MIN), PENALTY_MAX)


class PlainIterations:
    """Training of one network, the network of ``repetition``."""

    def __init__(
        self,
        data: Batch,
        metric: FairMetric,
        start: Mapping[str, Array],
        plan: Config,
        repetition: int = 0,
        dtype: torch.dtype = torch.float64,
    ) -> None:
        def tensor(values: Array) -> torch.Tensor:
            return torch.tensor(values[repetition], dtype=dtype)

        self.plan, self.penalty, self.full_rate = plan, plan.initial_lambda, plan.full_rate
        self.features, self.label = tensor(data.features), torch.tensor(data.label[repetition])
        self.directions, self.complement = tensor(metric.directions), tensor(metric.matrix)
        self.network = {name: tensor(values).requires_grad_() for name, values in start.items()}
        self.optimizers = {name: Adam(values) for name, values in self.network.items()}
        self.failures = dict.fromkeys(("failed_subspace_attacks", "failed_full_attacks", "non_finite_attacks"), 0)

    def advance(self, rows: Array) -> Array:
        """Iterate on the batches ``rows`` (iterations, n); return loss, lambda and fair distance (iterations, 3)."""
        return np.array([self.iterate(self.features[batch], self.label[batch]) for batch in torch.as_tensor(rows)])

    def iterate(self, x: torch.Tensor, label: torch.Tensor) -> tuple[float, float, float]:
        """Make one iteration on the batch x (n, d), label (n,)."""

        def mean_loss(points: torch.Tensor) -> torch.Tensor:
            return -mlp.log_probabilities(self.network, points).gather(-1, label[:, None]).mean()

        def mean_distance(points: torch.Tensor) -> torch.Tensor:
            return ((points - x) @ self.complement).square().sum(-1).mean()

        def objective(points: torch.Tensor) -> torch.Tensor:
            return mean_loss(points) - self.penalty * mean_distance(points)

        plan, near = self.plan, x
        weights = x.new_zeros((len(x), len(self.directions)))
        weights = ascend(lambda a: mean_loss(x + a @ self.directions), weights, plan.subspace_rate, plan.subspace_steps)
        if mean_loss(x + weights @ self.directions) < mean_loss(x):
            self.failures["failed_subspace_attacks"] += 1
        else:
            near = x + weights @ self.directions
        delta = ascend(lambda delta: objective(near + delta), torch.zeros_like(x), self.full_rate, plan.full_steps)
        points = near + delta

        loss, distance = mean_loss(points), mean_distance(points).item()
        curve = (loss.item(), self.penalty, distance)
        if not all(map(math.isfinite, curve)):
            self.failures["non_finite_attacks"] += 1
        elif objective(points) < objective(near):
            self.failures["failed_full_attacks"] += 1
            self.full_rate *= RATE_DECAY
        else:
            self.penalty = updated_lambda(self.penalty, distance, plan.radius)
            gradients = torch.autograd.grad(loss, list(self.network.values()))
            for (name, values), gradient in zip(self.network.items(), gradients, strict=True):
                values.data -= self.optimizers[name].step(gradient, plan.learning_rate)
        return curve

    def parameters(self) -> dict[str, Array]:
        """Return the parameters of one network of ``fairness_audits.models.mlp``."""
        return arrays(self.network)

    def facts(self) -> dict[str, float]:
        """Return the numbers of failed attacks, and the final lambda."""
        return {**self.failures, "final_lambda": self.penalty}
