"""Distances of table rows to the decision boundary of a network, by the attacks on images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairness_audits.attacks import Execution
from fairness_audits.attacks.minimum_norm import fmn
from fairness_audits.values import Array

MARGIN = 4.0
"""Size of the attack's box, in multiples of the rows' range."""
BATCH = 4096
"""Number of rows attacked together."""


@dataclass(frozen=True)
class Attacked:
    """Upper bounds ``distance`` (n,), NaN if the attack failed, and the attack's ``points`` (n, d) if they are kept."""

    distance: Array
    points: Array | None


def fmn_of_rows(
    network: Callable[[Tensor], Tensor],
    x: Array,
    label: Array,
    *,
    steps: int,
    start_steps: int,
    numbers: Array | None = None,
    keep: bool = False,
) -> Attacked:
    """Bound the distance of rows x (n, d) to another class than ``label`` (n,) by the fast minimum-norm attack.

    The attack works in a box, so all rows are shifted and scaled together until the box is far away: the middle of the
    rows to 1/2, their largest range to 1 / ``MARGIN``. This multiplies all distances by one factor. The ``network``
    maps rows (m, d) in float64 to scores (m, K). ``numbers`` (k,) are the positions of the features that change, all by
    default; ``keep`` says whether to return the points.
    """
    low, high = x.min(axis=0), x.max(axis=0)
    scale = MARGIN * float((high - low).max()) or 1.0
    middle = torch.from_numpy((low + high) / 2)
    moving = torch.zeros(x.shape[1], dtype=torch.bool)
    moving[slice(None) if numbers is None else torch.from_numpy(numbers)] = True

    def logits(images: Tensor) -> Tensor:
        moved = (images[:, 0, 0].double() - 0.5) * scale + middle
        # An attack does not change features without a gradient.
        return network(moved if numbers is None else moved.where(moving, moved.detach())).float()

    images = ((x - (low + high) / 2) / scale + 0.5)[:, None, None]
    how = Execution(BATCH, device="cpu", keep_adversarial=keep)
    found = fmn(logits, images, label, steps=steps, start_steps=start_steps, execution=how)
    points = None
    if found.adversarial is not None:
        points = np.where(moving.numpy(), (found.adversarial[:, 0, 0] - 0.5) * scale + middle.numpy(), x)
        points[found.failed] = np.nan
    return Attacked(scale * found.distance, points)
