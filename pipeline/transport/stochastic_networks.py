"""Rectified networks of T trials side by side in torch: their first weights, and what they make of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.types import Array

if TYPE_CHECKING:
    import torch

Networks = dict[str, Any]
"""Weights ``w1`` (T, fan in, fan out) and biases ``b1`` (T, fan out) of the first layer, and so on: torch tensors."""


def output(layers: Networks, rows: torch.Tensor) -> torch.Tensor:
    """Rectified layers, the last one linear: (T, B, fan in) to (T, B, fan out)."""
    count = len(layers) // 2
    for k in range(1, count + 1):
        rows = rows @ layers[f"w{k}"] + layers[f"b{k}"][:, None]
        rows = rows.relu() if k < count else rows
    return rows


def network(rng: np.random.Generator, widths: Sequence[int], last: float = 1.0) -> dict[str, Array]:
    """Layers of one trial, uniform within +- 1 / sqrt(fan in), the last one times ``last``."""
    layers = {}
    for k, (fan_in, fan_out) in enumerate(pairwise(widths), 1):
        bound = fan_in**-0.5 * (last if k == len(widths) - 1 else 1.0)
        layers[f"w{k}"] = rng.uniform(-bound, bound, size=(fan_in, fan_out))
        layers[f"b{k}"] = rng.uniform(-bound, bound, size=fan_out)
    return layers


def tensors(layers: Sequence[Mapping[str, Array]]) -> Networks:
    """The trials' layers stacked, to be trained."""
    import torch

    return {
        name: torch.from_numpy(np.stack([one[name] for one in layers])).float().requires_grad_() for name in layers[0]
    }
