"""A second upper bound of the distance, by ways that do not lean on the gradient at the image.

An attack follows gradients. Where a network rounds, saturates or has an infinite slope, they vanish or mislead, and the
attack's distance is far too long or missing. The search here compares decisions: it halves ways from the image into
other classes, and walks along the boundary by the classes of random images near it. It is weaker than an attack whose
gradients are sound, and so tells one whose gradients are not.

Sources: Athalye, Carlini and Wagner 2018, "Obfuscated gradients give a false sense of security" (why, and gradients
averaged over noise); Chen, Jordan and Wainwright 2020, "HopSkipJumpAttack: a query-efficient decision-based attack"
(the walk); Li et al. 2020, "QEBA: query-efficient boundary-based blackbox attack" (noise on a coarse grid).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.distances import (
    DEFAULT,
    Closest,
    CountedNetwork,
    batch_of,
    checked,
    classes_of,
    device_of,
    evaluation,
    fooled_by,
    margin,
    norms,
    spread,
)
from fairness_audits.values import Array

HALVINGS = 7
"""Of a way: it is known to a 128th of its length."""
NOISES = (0.05, 0.2)
"""Of the images whose gradients are averaged, in pixels."""
COPIES = 8
SHARED = 3
"""Ways that points of a class take over from those of them that are nearest to the boundary."""
ROUNDS = 3
DRAWS = 16
RADIUS = 0.2
"""Random images around a point of the boundary are so far from it, as a share of its distance."""
COARSE = 16
"""The noise has at most so many rows and columns, and is stretched to the image."""
STEPS = 4
"""How often the step along the boundary's normal is halved."""
TINY = 1e-12
NUMBERS_AT_ONCE = 1 << 24
"""Of random images held in memory."""

Targets = Callable[[Array], Array]
"""Numbers of points (m,) -> images (m, k, c, h, w) that may be of other classes."""


def lost_gradient(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    *,
    execution: Execution = DEFAULT,
) -> Array:
    """The share of its pixels along which an image has no gradient of the margin to follow, (n,).

    These are the pixels whose component is infinite or NaN; and all of them, 1, where every other component is 0.
    """
    x, y = checked(images, label)
    device = device_of(model, x, execution.device)
    size = batch_of(device, execution.batch_size)
    lost = np.zeros(len(x))
    with evaluation(model), torch.enable_grad():
        for start in range(0, len(x), size):
            rows = slice(start, start + size)
            leaf = x[rows].to(device).requires_grad_(True)
            (slope,) = torch.autograd.grad(margin(model(leaf), y[rows].to(device)).sum(), leaf)
            slope = slope.flatten(1)
            flat = (slope.nan_to_num(0.0, 0.0, 0.0) == 0).all(1)
            share = 1 - slope.isfinite().double().mean(1)
            lost[rows] = share.masked_fill(flat, 1.0).cpu().numpy()
    return lost


def second_bound(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    targets: Targets,
    *,
    refined: bool = True,
    seed: int = 0,
    streams: Array | None = None,
    execution: Execution = DEFAULT,
) -> Distances:
    """The nearest image of another class that these searches find, each going on from the one before:

    1. on the ways to the ``targets``, images that may be of other classes: all that is done unless ``refined``;
    2. against the gradient of the margin at the image, and against its mean over noisy copies;
    3. along the directions that served those points of the same class that came nearest to the boundary;
    4. ``ROUNDS`` steps along the boundary, whose normal is estimated from the classes of ``DRAWS`` random images.

    About 140 passes forward an image, 30 unless ``refined``. A point fails where no way leads into another class.
    ``images`` (n, c, h, w), ``label`` (n,) and what is raised are as in
    :func:`fairness_audits.attacks.distances.measured`. A point's noise is the stream of (``seed``, ``streams`` (n,)),
    whatever the point is computed with.
    """
    x, y = checked(images, label)
    device = device_of(model, x, execution.device)
    network = CountedNetwork(model, classes_of(y))
    own = np.arange(len(x)) if streams is None else np.asarray(streams)
    size = max(1, min(batch_of(device, execution.batch_size), NUMBERS_AT_ONCE // (DRAWS * max(1, x[:1].numel()))))
    batches = []
    with evaluation(model):
        for start in range(0, len(x), size):
            rows = np.arange(start, min(start + size, len(x)))
            noise = [np.random.default_rng([seed, int(stream)]) for stream in own[rows]]
            batch = Batch(network, Closest(x[rows].to(device)), y[rows].to(device), noise)
            batch.closest.offer(
                torch.arange(len(rows), device=device), batch.x, fooled_by(network.logits(batch.x), batch.label)
            )
            for target in torch.as_tensor(targets(rows), dtype=torch.float32, device=device).unbind(1):
                batch.search(target - batch.x)
            if refined:
                descended(batch)
            batches.append(batch)
        if refined:
            shared = shared_directions(batches)
            for batch in batches:
                for ways in zip(*(shared[own] for own in batch.label.tolist()), strict=True):
                    batch.ray(torch.stack(ways))
                walked(batch)
    distance = np.concatenate([np.zeros(0), *(one.distance for one in batches)])
    found = [one.closest.adversarial.cpu().numpy() for one in batches] if execution.keep_adversarial else None
    adversarial = None if found is None else np.concatenate([np.zeros((0, *x.shape[1:]), dtype=np.float32), *found])
    return Distances(distance, np.isnan(distance), adversarial, network.forward_passes)


@dataclass(frozen=True)
class Batch:
    """Points that are searched together, with the closest images found so far and their streams of ``noise``."""

    network: CountedNetwork
    closest: Closest
    label: Tensor
    noise: list[np.random.Generator]

    @property
    def x(self) -> Tensor:
        """The images, (m, c, h, w)."""
        return self.closest.x

    @property
    def distance(self) -> Array:
        """Of the closest images found, in float64, NaN where there is none, (m,)."""
        length = norms(self.closest.adversarial.double() - self.x.double())
        return np.asarray(length.where(self.closest.found, torch.nan).cpu())

    def search(self, way: Tensor) -> None:
        """Halve the ways x + t ``way``, t in [0, 1], whose point at the closest distance so far is of another class."""
        length = norms(way)
        high = (self.closest.distance / length.clamp_min(TINY)).clamp(max=1)
        low = torch.zeros_like(high)
        rows = (length > 0).nonzero()[:, 0]
        rows = rows[self._offered(way, high, rows)]
        for _ in range(HALVINGS):
            if len(rows) == 0:
                break
            middle = (low + high) / 2
            fooled = torch.zeros_like(high, dtype=torch.bool)
            fooled[rows] = self._offered(way, middle, rows)
            low, high = low.where(fooled, middle), middle.where(fooled, high)

    def _offered(self, way: Tensor, t: Tensor, rows: Tensor) -> Tensor:
        """Which of x + t ``way`` of these points are of another class; the closest images take them up."""
        image = (self.x[rows] + spread(t[rows]) * way[rows]).clamp(0, 1)
        fooled = fooled_by(self.network.logits(image), self.label[rows])
        self.closest.offer(rows, image, fooled)
        return fooled

    def ray(self, direction: Tensor) -> None:
        """Search along directions (m, c, h, w) of any length, to the closest distance so far or through the box."""
        through = self.x[0].numel() ** 0.5
        self.search(unit(direction) * spread(self.closest.distance.clamp(max=through)))

    def drawn(self, count: int, shape: tuple[int, ...]) -> Tensor:
        """Standard normal numbers (m, count, *shape), of each point's own stream."""
        numbers = [one.standard_normal((count, *shape), dtype=np.float32) for one in self.noise]
        return torch.from_numpy(np.stack(numbers)).to(self.x.device)


def unit(x: Tensor) -> Tensor:
    """x_i / ||x_i||_2, 0 for 0."""
    return x / spread(norms(x).clamp_min(TINY))


def descended(batch: Batch) -> None:
    """Search against the margin's gradient at the images, and against its mean over noisy copies of them."""
    m, shape = len(batch.x), tuple(batch.x.shape[1:])
    leaf, logits = batch.network.traced(batch.x)
    batch.ray(-batch.network.gradient(margin(logits, batch.label), leaf))
    for sigma in NOISES:
        copies = (batch.x[:, None] + sigma * batch.drawn(COPIES, shape)).clamp(0, 1)
        leaf, logits = batch.network.traced(copies.flatten(0, 1))
        slope = batch.network.gradient(margin(logits, batch.label.repeat_interleave(COPIES)), leaf)
        batch.ray(-slope.reshape(m, COPIES, *shape).mean(1))


def shared_directions(batches: list[Batch]) -> dict[int, list[Tensor]]:
    """By class the directions of the ``SHARED`` points that have the nearest images of another class."""
    known = [
        (float(distance), label, way)
        for batch in batches
        for distance, label, way in zip(
            batch.closest.distance, batch.label.tolist(), batch.closest.adversarial - batch.x, strict=True
        )
        if 0 < distance < torch.inf
    ]
    known.sort(key=lambda one: one[0])
    every = {label: torch.zeros_like(batch.x[0]) for batch in batches for label in batch.label.tolist()}
    nearest = {label: [way for _, own, way in known if own == label][:SHARED] for label in every}
    return {label: ways + [every[label]] * (SHARED - len(ways)) for label, ways in nearest.items()}


def walked(batch: Batch) -> None:
    """Steps along the boundary: from the closest image on along the normal, and back towards the image."""
    m, (channels, height, width) = len(batch.x), batch.x.shape[1:]
    grid = (channels, min(height, COARSE), min(width, COARSE))
    normals = torch.zeros_like(batch.x)
    for number in range(1, ROUNDS + 1):
        # A point that no way led out of stays where it is.
        start, reach = batch.closest.adversarial.clone(), batch.closest.distance.nan_to_num(0.0, 0.0, 0.0)
        random = batch.drawn(DRAWS, grid).flatten(0, 1)
        if grid[1:] != (height, width):
            random = torch.nn.functional.interpolate(random, (height, width), mode="bilinear", align_corners=False)
        random = unit(random).reshape(m, DRAWS, channels, height, width)
        near = (start[:, None] + (RADIUS * reach)[:, None, None, None, None] * random).clamp(0, 1)
        fooled = fooled_by(batch.network.logits(near.flatten(0, 1)), batch.label.repeat_interleave(DRAWS))
        sign = 2 * fooled.reshape(m, DRAWS).float() - 1
        mean = sign.mean(1, keepdim=True)
        weight = torch.where(mean.abs() < 1, sign - mean, sign)
        normal = unit(torch.einsum("mk,mkchw->mchw", weight, random))
        normals = normals + normal
        batch.ray(normals)
        step = reach / number**0.5
        for _ in range(STEPS):
            outside = fooled_by(batch.network.logits((start + spread(step) * normal).clamp(0, 1)), batch.label)
            step = step.where(outside, step / 2)
        batch.search((start + spread(step) * normal).clamp(0, 1) - batch.x)
