"""Wasserstein GANs in training, as ``pipeline.transport.wgan`` states it, by automatic differentiation.

All trials are one batch of tensors. This is what a GPU runs, and what the compiled training is tested against.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch

from pipeline.models.device import arrays, tensors, visible_device
from pipeline.transport.wgan import Config
from pipeline.types import Array


class TorchTraining:
    """T generators and critics on the visible device; see ``pipeline.transport.wgan.Training``."""

    def __init__(
        self,
        source: Sequence[Array],
        target: Sequence[Array],
        generators: Mapping[str, Array],
        critics: Mapping[str, Array],
        plan: Config,
        precision: str = "float32",
    ) -> None:
        self._plan, device, kind = plan, visible_device(), getattr(torch, precision)
        self._rows = {
            name: torch.as_tensor(np.concatenate(side), dtype=kind, device=device)
            for name, side in (("source", source), ("target", target))
        }
        # Where each trial's rows begin.
        self._first = {
            name: torch.as_tensor(np.cumsum([0, *map(len, side[:-1])]), device=device)[:, None]
            for name, side in (("source", source), ("target", target))
        }
        self._generators, self._critics = (
            {name: values.requires_grad_() for name, values in tensors(start, device, kind).items()}
            for start in (generators, critics)
        )
        self._generator_optimizer, self._critic_optimizer = (
            torch.optim.RMSprop(networks.values(), lr=plan.learning_rate, alpha=plan.decay, eps=plan.epsilon)
            for networks in (self._generators, self._critics)
        )

    def advance(self, rows: Array, running: Array) -> None:
        """Train on the minibatches ``rows`` (T, steps, 2 rounds + 1, n). All trials advance, ``running`` or not."""
        for step in torch.as_tensor(rows, device=self._rows["source"].device).unbind(1):
            *critics, last = step.unbind(1)
            for real, fake in zip(critics[::2], critics[1::2], strict=True):
                self._critic_step(self._batch("target", real), -1)
                with torch.no_grad():
                    images = outputs(self._generators, self._batch("source", fake))
                self._critic_step(images, 1)
                with torch.no_grad():
                    for values in self._critics.values():
                        values.clamp_(-self._plan.clip, self._plan.clip)
            self._generator_step(self._batch("source", last))

    def generators(self) -> dict[str, Array]:
        return arrays(self._generators)

    def critics(self) -> dict[str, Array]:
        return arrays(self._critics)

    def state(self) -> dict[str, Array]:
        """The networks and their moments."""
        return arrays(self._changing())

    def resume(self, state: Mapping[str, Array]) -> None:
        """Go on from a ``state``."""
        with torch.no_grad():
            for name, values in self._changing().items():
                values.copy_(torch.from_numpy(state[name]))

    def _changing(self) -> dict[str, torch.Tensor]:
        found: dict[str, torch.Tensor] = {}
        sides = {"generator": (self._generators, self._generator_optimizer)}
        sides["critic"] = (self._critics, self._critic_optimizer)
        for side, (networks, optimizer) in sides.items():
            for name, values in networks.items():
                # As the optimizer itself begins.
                own = optimizer.state[values] or {"step": torch.zeros(()), "square_avg": torch.zeros_like(values)}
                optimizer.state[values] = own
                found |= {f"{side} {name}": values, f"{side} {name} moments": own["square_avg"]}
        return found

    def _batch(self, side: str, numbers: torch.Tensor) -> torch.Tensor:
        return self._rows[side][numbers + self._first[side]]

    def _critic_step(self, x: torch.Tensor, sign: int) -> None:
        # A sum over trials: each network's gradient is that of its own mean.
        loss = sign * outputs(self._critics, x).mean(dim=1).sum()
        _descend(loss, self._critics, self._critic_optimizer)

    def _generator_step(self, x: torch.Tensor) -> None:
        images = outputs(self._generators, x)
        cost = (x - images).abs().sum(dim=-1).square().mean(dim=1)
        loss = (self._plan.cost_weight * cost).sum() - outputs(self._critics, images).mean(dim=1).sum()
        _descend(loss, self._generators, self._generator_optimizer)


def outputs(networks: Mapping[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """The values (T, n, k) of T networks on x (T, n, d)."""
    hidden = torch.baddbmm(networks["b1"].unsqueeze(1), x, networks["w1"]).relu()
    hidden = torch.baddbmm(networks["b2"].unsqueeze(1), hidden, networks["w2"]).relu()
    return torch.baddbmm(networks["b3"].unsqueeze(1), hidden, networks["w3"])


def _descend(loss: torch.Tensor, networks: Mapping[str, torch.Tensor], optimizer: torch.optim.RMSprop) -> None:
    gradients = torch.autograd.grad(loss, list(networks.values()))
    for values, gradient in zip(networks.values(), gradients, strict=True):
        values.grad = gradient
    optimizer.step()
