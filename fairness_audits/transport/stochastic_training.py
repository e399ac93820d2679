"""Training of the networks of ``fairness_audits.transport.stochastic``, for all trials in one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from fairness_audits.errors import InvalidInput
from fairness_audits.models import stacked
from fairness_audits.transport.cost import COSTS
from fairness_audits.transport.stochastic_config import Config
from fairness_audits.values import Array

Networks = dict[str, torch.Tensor]
"""Weights ``w1`` (T, fan in, fan out) and biases ``b1`` (T, fan out) of the first layer, then of the other layers."""
MEASURED_POINTS = 1000
"""Number of rows of each group from which the unit of the cost and the plan's marginals are computed."""


def first_layers(rng: np.random.Generator, widths: Sequence[int], last: float = 1.0) -> dict[str, Array]:
    """Draw one trial's layers uniformly within +- 1 / sqrt(fan in); the last layer is scaled by ``last``."""
    layers = {}
    for k, (fan_in, fan_out) in enumerate(pairwise(widths), 1):
        bound = fan_in**-0.5 * (last if k == len(widths) - 1 else 1.0)
        layers[f"w{k}"] = rng.uniform(-bound, bound, size=(fan_in, fan_out))
        layers[f"b{k}"] = rng.uniform(-bound, bound, size=fan_out)
    return layers


def tensors(layers: Sequence[Mapping[str, Array]]) -> Networks:
    """Stack the trials' layers as trainable tensors."""
    stacked = {name: np.stack([one[name] for one in layers]) for name in layers[0]}
    return {name: torch.from_numpy(values).float().requires_grad_() for name, values in stacked.items()}


def output(layers: Networks, rows: torch.Tensor) -> torch.Tensor:
    """Apply rectified layers and a linear last layer: (T, B, fan in) to (T, B, fan out)."""
    count = len(layers) // 2
    for k in range(1, count + 1):
        rows = rows @ layers[f"w{k}"] + layers[f"b{k}"][:, None]
        rows = rows.relu() if k < count else rows
    return rows


@dataclass(frozen=True)
class DualProblem:
    """Both groups' rows (T, n, d), padded, their standardisation (T, 1, d), and the unit of the cost (T, 1, 1)."""

    source: torch.Tensor
    target: torch.Tensor
    sizes: list[tuple[int, int]]
    shift: torch.Tensor
    scale: torch.Tensor
    unit: torch.Tensor
    config: Config

    @classmethod
    def of(
        cls, source: Sequence[Array], target: Sequence[Array], shift: Array, scale: Array, config: Config
    ) -> DualProblem:
        """Build the problem. Raises InvalidInput if a mean cost is 0 or not finite."""
        unit = np.zeros(len(source))
        for t, (x, y) in enumerate(zip(source, target, strict=True)):
            first, other = (torch.from_numpy(rows[:MEASURED_POINTS]) for rows in (x, y))
            unit[t] = float(pair_costs(first, other, config.cost).mean())
        if not (np.isfinite(unit) & (unit > 0)).all():
            problem = f"expected groups with a positive, finite mean cost between them, found {unit.tolist()}"
            raise InvalidInput(problem, option="source")
        return cls(
            torch.from_numpy(stacked(source)).float(),
            torch.from_numpy(stacked(target)).float(),
            [(len(x), len(y)) for x, y in zip(source, target, strict=True)],
            torch.from_numpy(shift).float()[:, None],
            torch.from_numpy(scale).float()[:, None],
            torch.from_numpy(unit).float()[:, None, None],
            config,
        )

    def dual_loss(self, u: Networks, v: Networks, source_rows: Any, target_rows: Any) -> Callable[[int], torch.Tensor]:
        """Return a function of the step: minus the dual objective (T,) on the step's minibatches."""
        objective = torch.func.vmap(self._of_pot("loss"))

        def loss(step: int) -> torch.Tensor:
            x, y, costs = self._batch(source_rows[:, step], target_rows[:, step])
            return -objective(self._potential(u, x), self._potential(v, y), x, y, costs)

        return loss

    def map_loss(
        self, u: Networks, v: Networks, f: Networks, source_rows: Any, target_rows: Any
    ) -> Callable[[int], torch.Tensor]:
        """Return a function of the step: the mean cost (T,) between images and counterparts on its minibatches."""
        plan = torch.func.vmap(self._of_pot("plan"))

        def loss(step: int) -> torch.Tensor:
            x, y, costs = self._batch(source_rows[:, step], target_rows[:, step])
            with torch.no_grad():
                weight = plan(self._potential(u, x), self._potential(v, y), x, y, costs)
            moved = self.shift + self.scale * output(f, (x - self.shift) / self.scale)
            return (weight * pair_costs(moved, y, self.config.cost) / self.unit).sum(dim=(1, 2))

        return loss

    @torch.no_grad()
    def marginal_error(self, u: Networks, v: Networks) -> torch.Tensor:
        """Return the mean relative deviation (T,) of the plan's row masses from 1/n, on the first rows."""
        errors = []
        for t, (n, m) in enumerate(self.sizes):
            only = [{name: tensor[t : t + 1] for name, tensor in network.items()} for network in (u, v)]
            x, y = self.source[t, : min(n, MEASURED_POINTS)], self.target[t, : min(m, MEASURED_POINTS)]
            potentials = [self._potential(net, rows[None], t)[0] for net, rows in zip(only, (x, y), strict=True)]
            costs = pair_costs(x, y, self.config.cost) / self.unit[t]
            mass = self._of_pot("plan")(*potentials, x, y, costs).sum(dim=1) * len(x)
            errors.append((mass - 1).abs().mean())
        return torch.stack(errors)

    def _of_pot(self, what: str) -> Callable[..., Any]:
        """Return POT's objective or density as a function of potentials, rows and precomputed costs."""
        from fairness_audits.transport.pot import with_torch

        stochastic = with_torch().stochastic
        reg, function = self.config.regularization, getattr(stochastic, f"{what}_dual_{self.config.regularizer}")
        return lambda u, v, x, y, costs: function(u, v, x, y, reg=reg, metric=lambda _x, _y: costs)

    def _batch(self, source_rows: torch.Tensor, target_rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the rows (T, B, d) of both groups with these indices, and their costs (T, B, B) in mean units."""
        trial = torch.arange(len(self.source))[:, None]
        x, y = self.source[trial, source_rows], self.target[trial, target_rows]
        return x, y, pair_costs(x, y, self.config.cost) / self.unit

    def _potential(self, network: Networks, rows: torch.Tensor, trial: int | None = None) -> torch.Tensor:
        """Return a potential's values (T, B)."""
        part = slice(None) if trial is None else slice(trial, trial + 1)
        return output(network, (rows - self.shift[part]) / self.scale[part])[..., 0]


def pair_costs(x: torch.Tensor, y: torch.Tensor, cost: str) -> torch.Tensor:
    """Return the costs of all pairs: (..., n, d) and (..., m, d) to (..., n, m)."""
    if cost in ("l1", "squared_l1"):
        distance = torch.cdist(x, y, p=1.0)
        return distance**2 if cost == "squared_l1" else distance
    found: torch.Tensor = COSTS[cost](x[..., :, None, :], y[..., None, :, :])
    return found


def minibatches(sizes: Sequence[int], shape: tuple[int, int], rngs: Sequence[np.random.Generator]) -> torch.Tensor:
    """Draw row indices (T, steps, B) with replacement."""
    return torch.from_numpy(np.stack([rng.integers(size, size=shape) for size, rng in zip(sizes, rngs, strict=True)]))


def trained(
    parameters: list[torch.Tensor], loss: Callable[[int], torch.Tensor], steps: int, rate: float, recorded: Array
) -> Array:
    """Train with Adam on the sum of the trials' losses and return the losses (T, L) at the ``recorded`` steps.

    The trials share no parameters.
    """
    adam, points, curve = torch.optim.Adam(parameters, lr=rate, fused=True), set(recorded.tolist()), []
    for step in range(steps):
        losses = loss(step)
        for parameter, gradient in zip(parameters, torch.autograd.grad(losses.sum(), parameters), strict=True):
            parameter.grad = gradient
        adam.step()
        if step in points:
            curve.append(losses.detach().double().numpy())
    return np.stack(curve, axis=1)
