"""Attacks: maps from points to nearby points with a worse outcome. This module holds their results and settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Distances:
    """The result of an attack on n points.

    ``distance`` (n,) float64 is ||x' - x||_2 for the closest adversarial image x'. It is 0 for a misclassified point,
    and NaN if the attack ``failed`` (n,). ``adversarial`` (n, c, h, w) float32 holds x', or the original image after a
    failure; None if the images were not stored. ``forward_passes`` counts single images.
    """

    distance: Array
    failed: Array
    adversarial: Array | None
    forward_passes: int


@dataclass(frozen=True)
class Execution:
    """Execution settings of an attack. They do not change the result, up to rounding.

    ``batch_size``: points attacked together, None to choose by device. ``device``: device of the network; None means
    the device of its first parameter, or of the images if the network is a plain function. ``keep_adversarial=False``
    saves the memory of the adversarial images.
    """

    batch_size: int | None = None
    device: str | torch.device | None = None
    keep_adversarial: bool = True

    def __post_init__(self) -> None:
        if self.batch_size is not None and self.batch_size < 1:
            problem = f"expected batch_size >= 1, found {self.batch_size}"
            raise InvalidInput(problem, option="batch_size", remedy="None chooses a batch size for the device")
