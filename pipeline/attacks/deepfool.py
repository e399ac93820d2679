"""DeepFool: steps onto the boundary of the network as if it were linear, all points at once.

Source: Moosavi-Dezfooli et al. 2016, "DeepFool: a simple and accurate method to fool deep neural networks",
algorithm 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipeline.attacks.distances import (
    DEFAULT,
    Closest,
    CountedNetwork,
    Distances,
    Execution,
    fooled_by,
    measured,
    norms,
    spread,
)
from pipeline.types import Array

if TYPE_CHECKING:
    from torch import Tensor

PUSH = 1e-4
"""Added to every step's length, as in the authors' code, so that a step never stalls on the boundary itself."""
TINY = 1e-12


def deepfool(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    *,
    steps: int = 100,
    candidates: int = 10,
    overshoot: float = 0.05,
    slack: float = 3.0,
    bisections: int = 0,
    execution: Execution = DEFAULT,
) -> Distances:
    """x <- clip(x + (1 + overshoot) (d_k + 1e-4) w_k / ||w_k||_2),  k = argmin_k d_k,  d_k = (z_y - z_k) / ||w_k||_2.

    z are the logits at x, w_k = grad (z_k - z_y), and k runs over the ``candidates`` - 1 other classes of largest logit
    at x; a point stops at the first x that is not of class y, at most ``steps`` steps. Without overshoot this is exact
    for a linear network; for others it is an upper bound. ``bisections`` > 0 then draws x' in along the line to x.

    A class k whose gradient is unknown is left out while (z_y - z_k) / (slack m) is no less than the least d_j seen, m
    the largest ||w_j|| of that point so far: it would have to be ``slack`` times as steep as any to be the argmin. No
    such bound holds for every network, so a slack that is too small may miss the nearest class, and overstate the
    distance. An infinite slack computes every gradient.

    Raises ValueError for settings out of range, and for images or labels as :func:`measured` says.
    """
    if steps < 1 or candidates < 2 or overshoot < 0 or slack < 1:
        raise ValueError(
            "expected steps >= 1, candidates >= 2, overshoot >= 0 and slack >= 1, found "
            f"{steps}, {candidates}, {overshoot} and {slack}"
        )

    def search(network: CountedNetwork, x: Tensor, y: Tensor) -> Closest:
        return crossed(network, x, y, steps, candidates, overshoot, slack)

    return measured(model, images, label, search, execution, bisections)


def crossed(
    network: CountedNetwork, x0: Tensor, label: Tensor, steps: int, candidates: int, overshoot: float, slack: float
) -> Closest:
    """The first iterate of every point of a batch that is of another class; only active points are computed."""
    import torch

    closest = Closest(x0)
    x, rows = x0, torch.arange(len(x0), device=x0.device)
    steepest = torch.zeros(len(x0), device=x0.device)
    for step in range(steps + 1):
        if step == steps:
            # The last iterate needs no gradient.
            closest.offer(rows, x, fooled_by(network.logits(x), label), step)
            break
        leaf, logits = network.traced(x)
        active = ~fooled_by(logits.detach(), label)
        closest.offer(rows, x, ~active, step)
        if not bool(active.any()):
            break
        length, direction, steepest = nearest_plane(network, leaf, logits, label, active, steepest, candidates, slack)
        x, rows, label, steepest = x[active], rows[active], label[active], steepest[active]
        x = (x + spread((1 + overshoot) * (length[active] + PUSH)) * direction[active]).clamp(0, 1)
    closest.steps[~closest.found] = steps
    return closest


def nearest_plane(
    network: CountedNetwork,
    leaf: Tensor,
    logits: Tensor,
    label: Tensor,
    active: Tensor,
    steepest: Tensor,
    candidates: int,
    slack: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """min_k d_k (n,), w_k / ||w_k|| of its k (n, c, h, w), and the largest ||w_k|| seen (n,), for active points.

    Every round takes one backward pass for one class a point, each point's own: the one with the smallest gap left.
    Where so few points need more classes that tracing them anew is cheaper than going back through all, that is done.
    """
    import torch

    x = leaf.detach()
    gap = logits.detach().gather(1, label[:, None]) - logits.detach()
    gap.scatter_(1, label[:, None], torch.inf)
    gap, order = gap.sort(dim=1)
    count = min(candidates, gap.shape[1]) - 1
    length, bound = torch.full_like(steepest, torch.inf), torch.full_like(steepest, torch.inf)
    direction, steepest = torch.zeros_like(x), steepest.clone()
    traced = torch.arange(len(x), device=x.device)
    for k in range(count):
        # Gaps ascend, so a point that needs no class of this rank needs none of the next either.
        needed = active[:, None] & (gap[:, k:count] < bound[:, None])
        active = needed[:, 0]
        points = int(active.sum())
        if points == 0:
            break
        rounds = int(needed.sum(1).max()) if k else 1
        if points * (1 + rounds) < len(traced) * rounds:
            traced = active.nonzero()[:, 0]
            leaf, logits = network.traced(x[traced])
        own, classes = active[traced], order[traced, k]
        rise = logits.gather(1, classes[:, None])[:, 0] - logits.gather(1, label[traced][:, None])[:, 0]
        slope = network.gradient(rise[own], leaf, again=k + 1 < count)[own]
        rows = traced[own]
        steep = norms(slope).clamp_min(TINY)
        steepest[rows] = torch.maximum(steepest[rows], steep)
        nearer = gap[rows, k] / steep < length[rows]
        rows, steep = rows[nearer], steep[nearer]
        length[rows] = gap[rows, k] / steep
        direction[rows] = slope[nearer] / spread(steep)
        bound = slack * steepest * length
    return length, direction, steepest
