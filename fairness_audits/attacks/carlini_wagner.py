"""Carlini and Wagner's attack in the Euclidean norm, with a separate schedule for every point.

Source: Carlini and Wagner 2017, "Towards evaluating the robustness of neural networks", section VI.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from typing import Annotated

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
from fairness_audits.validation import Checked, Count, NonNegative, Positive, at_least, interval
from fairness_audits.values import Array

INSIDE = 1 - 1e-6
"""Keeps pixels away from the box's sides, where arctanh is infinite."""
GROWTH = 10.0
"""c grows by this factor until an attack succeeds."""
DECAYS = (0.9, 0.999)
EPSILON = 1e-8


@dataclass(frozen=True)
class Settings(Checked):
    """The parameters of :func:`carlini_wagner`."""

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

    ``rows`` are their positions in the batch. w = ``origin`` + ``change`` is the variable. ``low`` and ``high`` bracket
    c. ``least`` is the smallest objective of the current search, and ``before`` its value at the last check.
    ``steepest`` is the largest slope of the margin in pixels so far.
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
        """Select the points in the mask ``wanted`` (m,)."""
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
    """Bound distances to the decision boundary by Carlini and Wagner's attack in the Euclidean norm.

    min_w ||x'(w) - x||_2^2 + c max(z_y - max_{k != y} z_k + confidence, 0),  x'(w) = (tanh(w) + 1) / 2.

    z are the logits at x'. Adam minimises over w for several values of c. c is multiplied by ten until x' has another
    class by the margin ``confidence``. Then the interval between the largest failed c and the smallest successful c is
    halved. The result is the closest successful iterate.

    Parameters
    ----------
    model : callable
        A classifier that maps pixels (n, c, h, w) in [0, 1] to logits (n, K). A ``torch.nn.Module`` runs in evaluation
        mode; its mode is restored afterwards.
    images : ndarray or Tensor of shape (n, c, h, w)
        Pixels in [0, 1].
    label : ndarray or Tensor of shape (n,)
        Integer classes. A misclassified point has distance 0.
    iterations : int
        Maximum number of Adam's iterations for each c.
    searches : int
        Number of values of c.
    learning_rate : float
        Learning rate of Adam.
    initial_c : float
        The first c.
    confidence : float
        The margin by which x' must have another class, at least 0.
    patience, improvement : int and float
        The search for a point ends if its smallest objective fell by less than the share ``improvement`` over the last
        ``patience`` iterations. The point then moves to its next c, so its result does not depend on its batch. A
        patience of ``iterations`` or more never ends a search early.
    slack : float
        At least 1. For a linear network, every c >= 2 z / s^2 succeeds, where z = z_y - max_{k != y} z_k + confidence
        at x and s is the slope of z. A search with slack c s^2 < 2 z, where s is the largest slope seen at that point,
        counts as failed after its first iteration. With an infinite slack, every search is run.
    execution : Execution
        Execution settings. They do not change the result, up to rounding.

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
    Carlini and Wagner 2017, "Towards evaluating the robustness of neural networks", section VI.

    """
    settings = Settings(iterations, searches, learning_rate, initial_c, confidence, patience, improvement, slack)
    search = partial(minimised, settings=settings)
    return measured(model, images, label, search, execution)


def minimised(network: CountedNetwork, x: Tensor, label: Tensor, settings: Settings) -> Closest:
    """Run all searches of a batch; finished points leave it."""
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
        # A misclassified point needs no search.
        at_once = closest.distance[points.rows] == 0
        if bool((over | at_once).any()):
            next_search(points, over)
            done = at_once | (points.search == settings.searches)
            points = points.only(~done)
    return closest


def started(x: Tensor, label: Tensor, settings: Settings) -> Points:
    """Return the initial state of all points."""

    def each(value: float) -> Tensor:
        return torch.full((len(x),), value, dtype=x.dtype, device=x.device)

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
    """Compute the objective (m,), its gradient in w (m, c, h, w), and masks (m,) of success and of hopeless c.

    Successful images are offered to ``closest``.

    grad_w = (2 (x' - x) + c 1{g > -confidence} grad g) (1 - tanh(w)^2) / 2, with g the margin.
    """
    squashed = torch.tanh(points.origin + points.change)
    # The first iterate is x itself, without the rounding of arctanh.
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
    """Take one step of Adam for every point, each with its own iteration number."""
    t = points.iteration.float()
    points.mean = DECAYS[0] * points.mean + (1 - DECAYS[0]) * slope
    points.square = DECAYS[1] * points.square + (1 - DECAYS[1]) * slope.square()
    mean = points.mean / spread(1 - DECAYS[0] ** t)
    scale = (points.square / spread(1 - DECAYS[1] ** t)).sqrt() + EPSILON
    points.change = points.change - settings.learning_rate * mean / scale


def next_search(points: Points, over: Tensor) -> None:
    """Set the next c of the points whose search is over, and restart them."""
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
