r"""SenSR's iterations as ``pipeline.methods.sensr`` states them, by automatic differentiation.

All repetitions are one batch of tensors. This is what a GPU runs, and what the compiled iterations of
``pipeline.methods.sensr_compiled`` are tested against.
"""

from collections.abc import Callable, Mapping

import numpy as np
import torch

from pipeline.fair_metric import FairMetric
from pipeline.methods.sensr import BETA_1, BETA_2, EPSILON, PENALTY_MAX, PENALTY_MIN, RATE_DECAY, Config
from pipeline.models import mlp
from pipeline.models.device import arrays, tensors, visible_device
from pipeline.types import Array, Batch


class Adam:
    r"""m <- b_1 m + (1 - b_1) g,  v <- b_2 v + (1 - b_2) g^2,  step = lr_t m / (sqrt(v) + epsilon).

    lr_t = lr sqrt(1 - b_2^t) / (1 - b_1^t): epsilon joins the square root before the bias of v is corrected, as in
    TensorFlow 1. With gradients of a mean over a thousand samples it is not negligible. Each repetition (the first
    axis) counts its own steps t, so that one can be left out of a step.
    """

    CHANGED = ("first", "second", "taken")

    def __init__(self, like: torch.Tensor) -> None:
        self.first, self.second = torch.zeros_like(like), torch.zeros_like(like)
        self.taken = like.new_zeros((len(like),) + (1,) * (like.dim() - 1))

    def step(self, gradient: torch.Tensor, rate: torch.Tensor, takes_part: torch.Tensor) -> torch.Tensor:
        """The step along ``gradient``, 0 in repetitions that do not take part; ``rate`` and ``takes_part`` are (R,)."""
        part = takes_part.view(self.taken.shape)
        self.taken = self.taken + part
        self.first = (BETA_1 * self.first + (1 - BETA_1) * gradient).where(part, self.first)
        self.second = (BETA_2 * self.second + (1 - BETA_2) * gradient**2).where(part, self.second)
        rates = (rate * takes_part).view(self.taken.shape)
        corrected = rates * (1 - BETA_2**self.taken).sqrt() / (1 - BETA_1**self.taken).clamp_min(1 - BETA_1)
        return corrected * self.first / (self.second.sqrt() + EPSILON)


def ascend(
    objective: Callable[[torch.Tensor], torch.Tensor], start: torch.Tensor, rate: torch.Tensor, steps: int
) -> torch.Tensor:
    """Adam's ascent on R independent objectives (R,) of R points (R, ...), at rates (R,)."""
    adam, everyone, at = Adam(start), torch.ones_like(rate, dtype=torch.bool), start
    for _ in range(steps):
        at = at.detach().requires_grad_()
        (gradient,) = torch.autograd.grad(objective(at).sum(), at)
        at = at.detach() + adam.step(gradient, rate, everyone)
    return at


def updated_lambda(penalty: torch.Tensor, distance: torch.Tensor, radius: float) -> torch.Tensor:
    """lambda + max(d, rho) / min(d, rho) (d - rho), kept within its bounds; d = 0 gives the lower one."""
    factor = distance.clamp_min(radius) / distance.clamp_max(radius)
    return (penalty + factor * (distance - radius)).clamp(PENALTY_MIN, PENALTY_MAX)


class TorchIterations:
    """R networks in training; see ``pipeline.methods.sensr.Iterations``."""

    def __init__(
        self, data: Batch, metric: FairMetric, start: Mapping[str, Array], plan: Config, precision: str = "float32"
    ) -> None:
        self._plan, device, kind = plan, visible_device(), getattr(torch, precision)
        self._features = torch.tensor(data.features, dtype=kind, device=device)
        self._label = torch.tensor(data.label, device=device)
        self._directions = torch.tensor(metric.directions, dtype=kind, device=device)
        self._complement = torch.tensor(metric.matrix, dtype=kind, device=device)
        self._network = tensors(start, device, kind)
        self._optimizers = {name: Adam(values) for name, values in self._network.items()}
        like = self._features[:, 0, 0]
        self._lambda = torch.full_like(like, plan.initial_lambda)
        self._full_rate = torch.full_like(like, plan.full_rate)
        names = ("failed_subspace_attacks", "failed_full_attacks", "non_finite_attacks")
        self._counts = {name: torch.zeros_like(like, dtype=torch.int64) for name in names}

    def advance(self, rows: Array) -> Array:
        device = self._features.device
        repetition = torch.arange(len(rows), device=device)[:, None]
        batches = torch.as_tensor(rows, device=device).unbind(1)
        curve = [self._iterate(self._features[repetition, batch], self._label[repetition, batch]) for batch in batches]
        return torch.stack(curve, dim=1).cpu().numpy().astype(float)

    def parameters(self) -> dict[str, Array]:
        return arrays(self._network)

    def state(self) -> dict[str, Array]:
        return {name: values.cpu().numpy() for name, values in self._changed().items()}

    def resume(self, state: Mapping[str, Array]) -> None:
        for name, values in self._changed().items():
            values.copy_(torch.from_numpy(np.asarray(state[name])))

    def _changed(self) -> dict[str, torch.Tensor]:
        return {
            **{f"network {name}": values for name, values in self._network.items()},
            **{f"{part} {n}": getattr(adam, part) for n, adam in self._optimizers.items() for part in Adam.CHANGED},
            **self._counts,
            "lambda": self._lambda,
            "full rate": self._full_rate,
        }

    def facts(self) -> dict[str, Array]:
        counts = {name: values.cpu().numpy() for name, values in self._counts.items()}
        return {**counts, **arrays({"final_lambda": self._lambda})}

    def _iterate(self, x: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        """One iteration on the batches x (R, n, d), label (R, n)."""

        def mean_loss(points: torch.Tensor) -> torch.Tensor:
            log_probability = mlp.log_probabilities(self._network, points)
            return -log_probability.gather(-1, label.unsqueeze(-1))[..., 0].mean(-1)

        def mean_distance(points: torch.Tensor) -> torch.Tensor:
            return ((points - x) @ self._complement).square().sum(-1).mean(-1)

        def objective(points: torch.Tensor) -> torch.Tensor:
            return mean_loss(points) - self._lambda * mean_distance(points)

        plan, zero = self._plan, x.new_zeros(())
        weights = x.new_zeros((*x.shape[:2], self._directions.shape[1]))
        subspace_rate = torch.full_like(self._full_rate, plan.subspace_rate)
        weights = ascend(lambda a: mean_loss(x + a @ self._directions), weights, subspace_rate, plan.subspace_steps)
        subspace_failed = mean_loss(x + weights @ self._directions) < mean_loss(x)
        near = x + weights.where(~subspace_failed[:, None, None], zero) @ self._directions
        delta = ascend(lambda delta: objective(near + delta), torch.zeros_like(x), self._full_rate, plan.full_steps)
        points = near + delta

        loss, distance, before = mean_loss(points), mean_distance(points), objective(near)
        curve = torch.stack([loss, self._lambda, distance], dim=-1)
        finite = loss.isfinite() & distance.isfinite()
        full_failed = finite & (loss - self._lambda * distance < before)
        for name, happened in zip(self._counts, (subspace_failed, full_failed, ~finite), strict=True):
            self._counts[name] += happened
        self._full_rate = self._full_rate.where(~full_failed, RATE_DECAY * self._full_rate)
        updates = finite & ~full_failed
        self._lambda = updated_lambda(self._lambda, distance, plan.radius).where(updates, self._lambda)
        self._descend(mean_loss, points, updates)
        return curve

    def _descend(
        self, mean_loss: Callable[[torch.Tensor], torch.Tensor], points: torch.Tensor, updates: torch.Tensor
    ) -> None:
        for values in self._network.values():
            values.requires_grad_()
        gradients = torch.autograd.grad(mean_loss(points).sum(), list(self._network.values()))
        rate = torch.full_like(self._full_rate, self._plan.learning_rate)
        self._network = {
            name: values.detach() - adam.step(gradient.nan_to_num(), rate, updates)
            for (name, values), adam, gradient in zip(
                self._network.items(), self._optimizers.values(), gradients, strict=True
            )
        }
