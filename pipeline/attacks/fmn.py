"""The fast minimum-norm attack, from DeepFool's image on: a tighter bound at little more than DeepFool's cost.

Source: Pintor et al. 2021, "Fast minimum-norm adversarial attacks through adaptive norm constraints", algorithm 1, with
an adversarial starting point.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.attacks.deepfool import TINY, crossed
from pipeline.attacks.distances import (
    DEFAULT,
    Closest,
    CountedNetwork,
    Distances,
    Execution,
    fooled_by,
    margin,
    measured,
    norms,
    spread,
)
from pipeline.types import Array

if TYPE_CHECKING:
    from torch import Tensor

START_CANDIDATES = 10
START_OVERSHOOT = 0.02
START_SLACK = 1.5
STEP_DECAY = 0.01


def fmn(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    *,
    steps: int = 20,
    start_steps: int = 100,
    step_size: float = 1.0,
    radius_change: float = 0.05,
    last_radius_change: float = 0.001,
    bisections: int = 0,
    execution: Execution = DEFAULT,
) -> Distances:
    """delta <- clip(P_eps(delta - a_t D grad g / ||grad g||_2)),  eps <- eps (1 - c_t) where x + delta fools, else
    eps (1 + c_t).

    g = z_y - max_{k != y} z_k is the margin at x + delta, P_eps the projection onto the L2 ball of radius eps, clip
    that onto the box x + delta in [0, 1]. D is the norm of the start, DeepFool's after ``start_steps`` steps, eps
    begins at D and never exceeds the least norm that fooled; a_t falls from ``step_size`` to a hundredth of it, c_t
    from ``radius_change`` to ``last_radius_change``, both along a half cosine over ``steps``. Steps in units of D, not
    of the pixel scale, are what lets twenty of them do the work of a hundred. The closest image that fooled is kept, so
    no distance is above DeepFool's with the same start. ``bisections`` as in
    :func:`pipeline.attacks.deepfool.deepfool`.

    A point that DeepFool fails on has failed. Raises ValueError for settings out of range, and for images or labels as
    :func:`pipeline.attacks.distances.measured` says.
    """
    if steps < 1 or start_steps < 1 or step_size <= 0:
        raise ValueError(
            f"expected steps >= 1, start_steps >= 1 and step_size > 0, found {steps}, {start_steps} and {step_size}"
        )
    if not 0 <= last_radius_change <= radius_change < 1:
        raise ValueError(
            f"expected 0 <= last_radius_change <= radius_change < 1, found {last_radius_change} and {radius_change}"
        )

    def search(network: CountedNetwork, x: Tensor, y: Tensor) -> Closest:
        start = crossed(network, x, y, start_steps, START_CANDIDATES, START_OVERSHOOT, START_SLACK)
        return shrunk(network, start, y, steps, step_size, (radius_change, last_radius_change))

    return measured(model, images, label, search, execution, bisections)


def shrunk(
    network: CountedNetwork, closest: Closest, label: Tensor, steps: int, step_size: float, change: tuple[float, float]
) -> Closest:
    """``steps`` steps around the boundary from the images in ``closest``, which takes up every closer one."""
    import torch

    rows = (closest.found & (closest.distance > 0)).nonzero()[:, 0]
    if len(rows) == 0:
        return closest
    x, label = closest.x[rows], label[rows]
    start, first_step = closest.distance[rows], closest.steps[rows]
    image, radius = closest.adversarial[rows], start
    for step in range(steps):
        cosine = (1 + math.cos(math.pi * step / steps)) / 2
        length = step_size * (STEP_DECAY + (1 - STEP_DECAY) * cosine) * start
        rate = change[1] + (change[0] - change[1]) * cosine
        leaf, logits = network.traced(image)
        fooled = fooled_by(logits.detach(), label)
        closest.offer(rows, leaf.detach(), fooled, first_step + step)
        slope = network.gradient(margin(logits, label), leaf)
        smaller = torch.minimum(radius * (1 - rate), closest.distance[rows])
        radius = torch.where(fooled, smaller, radius * (1 + rate))
        delta = image - x - spread(length / norms(slope).clamp_min(TINY)) * slope
        delta = delta * spread((radius / norms(delta).clamp_min(TINY)).clamp(max=1))
        image = (x + delta).clamp(0, 1)
    closest.offer(rows, image, fooled_by(network.logits(image), label), first_step + steps)
    return closest
