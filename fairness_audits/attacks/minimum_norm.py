"""DeepFool, and the fast minimum-norm attack started from DeepFool's image.

Sources: Moosavi-Dezfooli et al. 2016, "DeepFool: a simple and accurate method to fool deep neural networks",
algorithm 2; Pintor et al. 2021, "Fast minimum-norm adversarial attacks through adaptive norm constraints", algorithm 1,
with an adversarial starting point.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.distances import (
    DEFAULT,
    Closest,
    CountedNetwork,
    fooled_by,
    margin,
    measured,
    norms,
    spread,
)
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

PUSH = 1e-4
"""Added to the length of every step, as in the authors' code, to cross the boundary."""
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
    execution: Execution = DEFAULT,
) -> Distances:
    """Bound distances to the decision boundary by DeepFool.

    x <- clip(x + (1 + overshoot) (d_k + 1e-4) w_k / ||w_k||_2),  k = argmin_k d_k,  d_k = (z_y - z_k) / ||w_k||_2.

    z are the logits at x, w_k = grad (z_k - z_y), and k runs over the ``candidates`` - 1 other classes with the largest
    logits at x. A point stops at the first x of another class. Without overshoot, this is exact for a linear network.

    Parameters
    ----------
    model : callable
        A classifier that maps pixels (n, c, h, w) in [0, 1] to logits (n, K). A ``torch.nn.Module`` runs in evaluation
        mode and comes back as it was.
    images : ndarray or Tensor of shape (n, c, h, w)
        Pixels in [0, 1].
    label : ndarray or Tensor of shape (n,)
        Integer classes. A point of another predicted class has distance 0.
    steps : int
        Maximum number of steps.
    candidates : int
        Number of considered classes, including the label; at least 2.
    overshoot : float
        Additional length of a step beyond the nearest plane, as a share.
    slack : float
        At least 1. Let m be the largest ||w_j|| of a point so far. A class k with unknown gradient is skipped while
        (z_y - z_k) / (slack m) is at least the smallest d_j: it could be the argmin only with a gradient ``slack``
        times as steep. No such bound holds for every network, so a small slack may miss the nearest class and overstate
        the distance. An infinite slack computes every gradient.
    execution : Execution
        How the attack runs. It does not change the result, up to rounding.

    Returns
    -------
    Distances
        L2 distances in pixels in [0, 1]: upper bounds on the distances to the decision boundary.

    Raises
    ------
    InvalidInput
        For settings out of range, for images that are not pixels in [0, 1], and for labels that are not classes.

    References
    ----------
    Moosavi-Dezfooli et al. 2016, "DeepFool: a simple and accurate method to fool deep neural networks", algorithm 2.

    Examples
    --------
    >>> model = lambda x: torch.stack([x.flatten(1).sum(1), torch.ones(len(x))], dim=1)
    >>> found = deepfool(model, torch.full((1, 1, 2, 2), 0.5), torch.tensor([0]), overshoot=0.0)
    >>> round(float(found.distance[0]), 3)
    0.5

    """
    if steps < 1 or candidates < 2 or overshoot < 0 or slack < 1:
        ranges = {"steps": steps >= 1, "candidates": candidates >= 2, "overshoot": overshoot >= 0}
        raise InvalidInput(
            "expected steps >= 1, candidates >= 2, overshoot >= 0 and slack >= 1, found "
            f"{steps}, {candidates}, {overshoot} and {slack}",
            option=next((name for name, fits in ranges.items() if not fits), "slack"),
        )

    def search(network: CountedNetwork, x: Tensor, y: Tensor) -> Closest:
        return crossed(network, x, y, steps, candidates, overshoot, slack)

    return measured(model, images, label, search, execution)


def crossed(
    network: CountedNetwork, x0: Tensor, label: Tensor, steps: int, candidates: int, overshoot: float, slack: float
) -> Closest:
    """Return the first iterate of another class for every point of a batch; only active points are computed."""
    closest = Closest(x0)
    x, rows = x0, torch.arange(len(x0), device=x0.device)
    steepest = torch.zeros(len(x0), dtype=x0.dtype, device=x0.device)
    for step in range(steps + 1):
        if step == steps:
            # No gradient is needed at the last iterate.
            closest.offer(rows, x, fooled_by(network.logits(x), label))
            break
        leaf, logits = network.traced(x)
        active = ~fooled_by(logits.detach(), label)
        closest.offer(rows, x, ~active)
        if not bool(active.any()):
            break
        length, direction, steepest = nearest_plane(network, leaf, logits, label, active, steepest, candidates, slack)
        x, rows, label, steepest = x[active], rows[active], label[active], steepest[active]
        x = (x + spread((1 + overshoot) * (length[active] + PUSH)) * direction[active]).clamp(0, 1)
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
    """Return min_k d_k (n,), w_k / ||w_k|| at its argmin (n, c, h, w), and the largest ||w_k|| (n,) of active points.

    Every round takes one backward pass for one class per point: the class with the smallest remaining gap. If only few
    points need more classes, their forward pass is repeated, which is cheaper than a backward pass for all points. A
    network that does not keep its graphs always repeats it.
    """
    x = leaf.detach()
    gap = logits.detach().gather(1, label[:, None]) - logits.detach()
    gap.scatter_(1, label[:, None], torch.inf)
    gap, order = gap.sort(dim=1)
    count = min(candidates, gap.shape[1]) - 1
    length, bound = torch.full_like(steepest, torch.inf), torch.full_like(steepest, torch.inf)
    direction, steepest = torch.zeros_like(x), steepest.clone()
    traced = torch.arange(len(x), device=x.device)
    for k in range(count):
        # Gaps ascend, so a point that needs no class of this rank needs none of a later rank.
        needed = active[:, None] & (gap[:, k:count] < bound[:, None])
        active = needed[:, 0]
        points = int(active.sum())
        if points == 0:
            break
        rounds = int(needed.sum(1).max()) if k else 1
        if (k and not network.keeps_graphs) or points * (1 + rounds) < len(traced) * rounds:
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
    execution: Execution = DEFAULT,
) -> Distances:
    """Bound distances to the decision boundary by the fast minimum-norm attack, started from DeepFool's image.

    delta <- clip(P_eps(delta - a_t D grad g / ||grad g||_2)); eps <- eps (1 - c_t) if x + delta is adversarial, and
    eps <- eps (1 + c_t) otherwise.

    g = z_y - max_{k != y} z_k is the margin at x + delta, P_eps the projection onto the L2 ball of radius eps, and clip
    the projection onto the box x + delta in [0, 1]. D is the norm of DeepFool's perturbation. eps starts at D and never
    exceeds the smallest adversarial norm. Because steps are in units of D instead of pixels, twenty of them do the work
    of a hundred. The result is the closest adversarial image, so no distance exceeds DeepFool's from the same start. If
    DeepFool fails on a point, so does this attack.

    Parameters
    ----------
    model : callable
        A classifier that maps pixels (n, c, h, w) in [0, 1] to logits (n, K). A ``torch.nn.Module`` runs in evaluation
        mode and comes back as it was.
    images : ndarray or Tensor of shape (n, c, h, w)
        Pixels in [0, 1].
    label : ndarray or Tensor of shape (n,)
        Integer classes. A point of another predicted class has distance 0.
    steps : int
        Number of steps near the boundary.
    start_steps : int
        Maximum number of steps of DeepFool.
    step_size : float
        a_t falls from this value to a hundredth of it, along a half cosine over ``steps``.
    radius_change, last_radius_change : float
        c_t falls from the first to the second value, along the same cosine.
    execution : Execution
        How the attack runs. It does not change the result, up to rounding.

    Returns
    -------
    Distances
        L2 distances in pixels in [0, 1]: upper bounds on the distances to the decision boundary.

    Raises
    ------
    InvalidInput
        For settings out of range, for images that are not pixels in [0, 1], and for labels that are not classes.

    References
    ----------
    Pintor et al. 2021, "Fast minimum-norm adversarial attacks through adaptive norm constraints", algorithm 1, with an
    adversarial starting point.

    """
    if steps < 1 or start_steps < 1 or step_size <= 0:
        ranges = {"steps": steps >= 1, "start_steps": start_steps >= 1}
        raise InvalidInput(
            f"expected steps >= 1, start_steps >= 1 and step_size > 0, found {steps}, {start_steps} and {step_size}",
            option=next((name for name, fits in ranges.items() if not fits), "step_size"),
        )
    if not 0 <= last_radius_change <= radius_change < 1:
        raise InvalidInput(
            f"expected 0 <= last_radius_change <= radius_change < 1, found {last_radius_change} and {radius_change}",
            option="radius_change",
        )

    def search(network: CountedNetwork, x: Tensor, y: Tensor) -> Closest:
        start = crossed(network, x, y, start_steps, START_CANDIDATES, START_OVERSHOOT, START_SLACK)
        return shrunk(network, start, y, steps, step_size, (radius_change, last_radius_change))

    return measured(model, images, label, search, execution)


def shrunk(
    network: CountedNetwork, closest: Closest, label: Tensor, steps: int, step_size: float, change: tuple[float, float]
) -> Closest:
    """Take ``steps`` steps near the boundary, starting from the images in ``closest``, which stores closer images."""
    rows = (closest.found & (closest.distance > 0)).nonzero()[:, 0]
    if len(rows) == 0:
        return closest
    x, label = closest.x[rows], label[rows]
    image, start = closest.adversarial[rows], closest.distance[rows]
    radius = start
    for step in range(steps):
        cosine = (1 + math.cos(math.pi * step / steps)) / 2
        length = step_size * (STEP_DECAY + (1 - STEP_DECAY) * cosine) * start
        rate = change[1] + (change[0] - change[1]) * cosine
        leaf, logits = network.traced(image)
        fooled = fooled_by(logits.detach(), label)
        closest.offer(rows, leaf.detach(), fooled)
        slope = network.gradient(margin(logits, label), leaf)
        smaller = torch.minimum(radius * (1 - rate), closest.distance[rows])
        radius = torch.where(fooled, smaller, radius * (1 + rate))
        delta = image - x - spread(length / norms(slope).clamp_min(TINY)) * slope
        delta = delta * spread((radius / norms(delta).clamp_min(TINY)).clamp(max=1))
        image = (x + delta).clamp(0, 1)
    closest.offer(rows, image, fooled_by(network.logits(image), label))
    return closest
