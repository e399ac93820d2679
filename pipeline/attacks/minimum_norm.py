"""DeepFool, the fast minimum-norm attack from its image on, and Carlini and Wagner's, every point on its own schedule.

Sources: Moosavi-Dezfooli et al. 2016, "DeepFool: a simple and accurate method to fool deep neural networks",
algorithm 2; Pintor et al. 2021, "Fast minimum-norm adversarial attacks through adaptive norm constraints", algorithm 1,
with an adversarial starting point; Carlini and Wagner 2017, "Towards evaluating the robustness of neural networks",
section VI.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated

import torch
from torch import Tensor

from pipeline.attacks import Distances, Execution
from pipeline.attacks.distances import DEFAULT, Closest, CountedNetwork, fooled_by, margin, measured, norms, spread
from pipeline.fields import Checked, Count, NonNegative, Positive, at_least, interval
from pipeline.types import Array

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
    execution: Execution = DEFAULT,
) -> Distances:
    """x <- clip(x + (1 + overshoot) (d_k + 1e-4) w_k / ||w_k||_2),  k = argmin_k d_k,  d_k = (z_y - z_k) / ||w_k||_2.

    z are the logits at x, w_k = grad (z_k - z_y), and k runs over the ``candidates`` - 1 other classes of largest logit
    at x; a point stops at the first x that is not of class y, at most ``steps`` steps. Without overshoot this is exact
    for a linear network; for others it is an upper bound.

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

    return measured(model, images, label, search, execution)


def crossed(
    network: CountedNetwork, x0: Tensor, label: Tensor, steps: int, candidates: int, overshoot: float, slack: float
) -> Closest:
    """The first iterate of every point of a batch that is of another class; only active points are computed."""
    closest = Closest(x0)
    x, rows = x0, torch.arange(len(x0), device=x0.device)
    steepest = torch.zeros(len(x0), device=x0.device)
    for step in range(steps + 1):
        if step == steps:
            # The last iterate needs no gradient.
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
    """min_k d_k (n,), w_k / ||w_k|| of its k (n, c, h, w), and the largest ||w_k|| seen (n,), for active points.

    Every round takes one backward pass for one class a point, each point's own: the one with the smallest gap left.
    Where so few points need more classes that tracing them anew is cheaper than going back through all, that is done.
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
    """delta <- clip(P_eps(delta - a_t D grad g / ||grad g||_2)),  eps <- eps (1 - c_t) where x + delta fools, else
    eps (1 + c_t).

    g = z_y - max_{k != y} z_k is the margin at x + delta, P_eps the projection onto the L2 ball of radius eps, clip
    that onto the box x + delta in [0, 1]. D is the norm of the start, DeepFool's after ``start_steps`` steps, eps
    begins at D and never exceeds the least norm that fooled; a_t falls from ``step_size`` to a hundredth of it, c_t
    from ``radius_change`` to ``last_radius_change``, both along a half cosine over ``steps``. Steps in units of D, not
    of the pixel scale, are what lets twenty of them do the work of a hundred. The closest image that fooled is kept, so
    no distance is above DeepFool's with the same start.

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

    return measured(model, images, label, search, execution)


def shrunk(
    network: CountedNetwork, closest: Closest, label: Tensor, steps: int, step_size: float, change: tuple[float, float]
) -> Closest:
    """``steps`` steps around the boundary from the images in ``closest``, which takes up every closer one."""
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


INSIDE = 1 - 1e-6
"""Draws pixels off the box's sides, where arctanh is infinite."""
GROWTH = 10.0
"""c grows by this factor until an attack succeeds."""
DECAYS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass(frozen=True)
class Settings(Checked):
    """What :func:`carlini_wagner` is run with."""

    iterations: Count
    searches: Count
    learning_rate: Positive
    initial_c: Positive
    confidence: NonNegative
    patience: Count
    improvement: Annotated[float, interval("[0, 1)")]
    slack: Annotated[float, at_least(1)]


@dataclass
class Points:
    """The state of m active points: everything is (m,) or (m, c, h, w).

    ``rows`` numbers them in their batch; w = ``origin`` + ``change`` is the variable; ``low`` and ``high`` bracket c;
    ``least`` is the least objective of the present search, ``before`` that of its last check; ``steepest`` the largest
    slope of the margin in pixels seen so far.
    """

    rows: Tensor
    x: Tensor
    label: Tensor
    origin: Tensor
    change: Tensor
    mean: Tensor
    square: Tensor
    c: Tensor
    low: Tensor
    high: Tensor
    iteration: Tensor
    search: Tensor
    fooled: Tensor
    least: Tensor
    before: Tensor
    steepest: Tensor

    def only(self, wanted: Tensor) -> Points:
        """The points where ``wanted`` (m,)."""
        return Points(**{field.name: getattr(self, field.name)[wanted] for field in fields(self)})


def carlini_wagner(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    *,
    iterations: int = 100,
    searches: int = 5,
    learning_rate: float = 5e-3,
    initial_c: float = 1e-2,
    confidence: float = 0.0,
    patience: int = 25,
    improvement: float = 1e-3,
    slack: float = 4.0,
    execution: Execution = DEFAULT,
) -> Distances:
    """min_w ||x'(w) - x||_2^2 + c max(z_y - max_{k != y} z_k + confidence, 0),  x'(w) = (tanh(w) + 1) / 2.

    z are the logits at x'. Adam minimises over w for each of ``searches`` values of c: c is multiplied by ten until x'
    is of another class by ``confidence``, then the interval between the largest c that failed and the least that did
    not is halved. Of all iterates the closest that fooled is kept.

    A search ends after ``iterations``, or when, for that point alone, the least objective fell by less than the
    share ``improvement`` over the last ``patience`` iterations; the point then goes on to its next c at once. So a
    point's result does not depend on what it is batched with. A ``patience`` of ``iterations`` or more never ends
    a search early.

    For a linear network c succeeds from 2 z / s^2 on, with z = z_y - max_{k != y} z_k + confidence at x and s the slope
    of z. A search with ``slack`` c s^2 < 2 z, s the largest slope seen of that point, counts as one that failed, after
    its first iteration: its c is hopeless by the factor ``slack``. An infinite slack makes every search.

    Raises ValueError for settings out of range, and for images or labels as
    :func:`pipeline.attacks.distances.measured` says.
    """
    settings = Settings(iterations, searches, learning_rate, initial_c, confidence, patience, improvement, slack)
    search = partial(minimised, settings=settings)
    return measured(model, images, label, search, execution)


def minimised(network: CountedNetwork, x: Tensor, label: Tensor, settings: Settings) -> Closest:
    """All searches of all points of a batch; a point that is done leaves."""
    closest = Closest(x)
    points = started(x, label, settings)
    while len(points.rows):
        value, slope, fooled, hopeless = objective(network, points, closest, settings)
        points.fooled = points.fooled | fooled
        points.least = points.least.minimum(value)
        points.iteration = points.iteration + 1
        descend(points, slope, settings)
        check = points.iteration % settings.patience == 0
        stalled = check & (points.least > (1 - settings.improvement) * points.before)
        points.before = points.least.where(check, points.before)
        over = stalled | hopeless | (points.iteration == settings.iterations)
        # A point that is misclassified as it is has nothing to search for.
        at_once = closest.distance[points.rows] == 0
        if bool((over | at_once).any()):
            next_search(points, over)
            done = at_once | (points.search == settings.searches)
            points = points.only(~done)
    return closest


def started(x: Tensor, label: Tensor, settings: Settings) -> Points:
    """All points at their first iteration of their first search."""

    def each(value: float) -> Tensor:
        return torch.full((len(x),), value, device=x.device)

    def counter() -> Tensor:
        return torch.zeros(len(x), dtype=torch.int64, device=x.device)

    return Points(
        rows=torch.arange(len(x), device=x.device),
        x=x,
        label=label,
        origin=torch.atanh((2 * x - 1) * INSIDE),
        change=torch.zeros_like(x),
        mean=torch.zeros_like(x),
        square=torch.zeros_like(x),
        c=each(settings.initial_c),
        low=each(0.0),
        high=each(torch.inf),
        iteration=counter(),
        search=counter(),
        fooled=torch.zeros(len(x), dtype=torch.bool, device=x.device),
        least=each(torch.inf),
        before=each(torch.inf),
        steepest=each(0.0),
    )


def objective(
    network: CountedNetwork, points: Points, closest: Closest, settings: Settings
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The objective (m,), its gradient in w (m, c, h, w), who is fooled (m,), and whose c is hopeless (m,).

    Who is fooled is offered to ``closest``.

    grad_w = (2 (x' - x) + c 1{g > -confidence} grad g) (1 - tanh(w)^2) / 2, with g the margin.
    """
    squashed = torch.tanh(points.origin + points.change)
    # The very first iterate is x itself, not its image after a round trip through arctanh.
    first = spread((points.search == 0) & (points.iteration == 0))
    leaf, logits = network.traced(torch.where(first, points.x, (squashed + 1) / 2))
    away = leaf.detach() - points.x
    excess = margin(logits, points.label) + settings.confidence
    hinge = excess.detach().clamp_min(0)
    fooled = fooled_by(logits.detach(), points.label) & (hinge == 0)
    closest.offer(points.rows, leaf.detach(), fooled)
    slope = network.gradient(points.c * excess * (hinge > 0), leaf)
    points.steepest = points.steepest.maximum(norms(slope) / points.c)
    hopeless = (points.iteration == 0) & (settings.slack * points.c * points.steepest.square() < 2 * hinge)
    slope = (slope + 2 * away) * (1 - squashed.square()) / 2
    return norms(away).square() + points.c * hinge, slope, fooled, hopeless


def descend(points: Points, slope: Tensor, settings: Settings) -> None:
    """One step of Adam for every point, each with its own iteration number."""
    t = points.iteration.float()
    points.mean = DECAYS[0] * points.mean + (1 - DECAYS[0]) * slope
    points.square = DECAYS[1] * points.square + (1 - DECAYS[1]) * slope.square()
    mean = points.mean / spread(1 - DECAYS[0] ** t)
    scale = (points.square / spread(1 - DECAYS[1] ** t)).sqrt() + EPSILON
    points.change = points.change - settings.learning_rate * mean / scale


def next_search(points: Points, over: Tensor) -> None:
    """The next c for the points whose search is over, and a fresh start there."""
    points.high = torch.where(over & points.fooled, points.high.minimum(points.c), points.high)
    points.low = torch.where(over & ~points.fooled, points.low.maximum(points.c), points.low)
    following = torch.where(points.high.isinf(), GROWTH * points.c, (points.low + points.high) / 2)
    points.c = following.where(over, points.c)
    again = spread(over)
    for name in ("change", "mean", "square"):
        setattr(points, name, getattr(points, name).masked_fill(again, 0.0))
    for name in ("least", "before"):
        setattr(points, name, getattr(points, name).masked_fill(over, torch.inf))
    points.iteration = points.iteration.masked_fill(over, 0)
    points.search = points.search + over
    points.fooled = points.fooled & ~over
