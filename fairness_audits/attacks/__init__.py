"""Maps from points to points that a classifier treats worse: what an attack finds, and how it runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Distances:
    """What an attack found for n points.

    ``distance`` (n,) float64 is ||x' - x||_2 of the closest adversarial image x', 0 for a point that the network gets
    wrong as it is, and NaN where ``failed`` (n,): the attack found none. ``adversarial`` (n, c, h, w) float32 holds
    x', and the image itself where none was found; None where it was not kept or does not exist. ``forward_passes``
    count single images.
    """

    distance: Array
    failed: Array
    adversarial: Array | None
    forward_passes: int


@dataclass(frozen=True)
class Execution:
    """How an attack runs; none of it changes the result, but for rounding.

    ``batch_size`` points go together (None: what suits the device). ``device`` is where the network is; None: where its
    first parameter is, or where the images are for a network that is a plain function. ``keep_adversarial`` False saves
    the memory of the images found.
    """

    batch_size: int | None = None
    device: str | torch.device | None = None
    keep_adversarial: bool = True

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            problem = f"expected batch_size >= 1, found {self.batch_size}"
            raise InvalidInput(problem, option="batch_size", remedy="None takes what suits the device")
