"""A second upper bound of the distance to the boundary, which does not rely on the gradient at the image.

An attack follows gradients. If a network rounds, saturates or has an infinite slope, gradients vanish or mislead, and
the attack's distance is far too long or missing. The search here compares decisions. It bisects line segments from the
image to images of other classes, and then walks along the boundary by the classes of random images near it. This search
is weaker than an attack with sound gradients. An attack that it beats by far has lost its gradients.

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
"""Bisections of a segment. They locate the boundary to a 128th of the segment's length."""
NOISES = (0.05, 0.2)
"""Standard deviations of the noise, in pixels, on the copies of an image whose gradients are averaged."""
COPIES = 8
"""Noisy copies of an image for each standard deviation."""
SHARED = 3
"""Directions that all points of a class try: those of its points that are nearest to the boundary."""
ROUNDS = 3
"""Steps along the boundary."""
DRAWS = 16
"""Random images from which each step estimates the boundary's normal."""
RADIUS = 0.2
"""Distance of these random images from the boundary point, as a share of that point's distance from the image."""
COARSE = 16
"""Largest number of rows and columns of the noise, which is then interpolated to the size of the image."""
STEPS = 4
"""Halvings of the step along the boundary's normal."""
TINY = 1e-12
NUMBERS_AT_ONCE = 1 << 24
"""Largest number of values of the random images that are in memory together."""

Targets = Callable[[Array], Array]
"""Indices of points (m,) -> k candidate images of other classes for each, (m, k, c, h, w)."""


def lost_gradient(
    model: Callable[[Tensor], Tensor],
    images: Array | Tensor,
    label: Array | Tensor,
    *,
    execution: Execution = DEFAULT,
) -> Array:
    """Return the share of pixels along which each image has no usable gradient of the margin, (n,).

    A pixel is counted if its component is infinite or NaN. All pixels are counted if every other component is 0.
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
    seed: int = 0,
    streams: Array | None = None,
    execution: Execution = DEFAULT,
) -> Distances:
    """Find the nearest image of another class by four searches, each of which starts from the result of the one before.

    1. Bisect the segments to the ``targets``, candidate images of other classes.
    2. Go against the gradient of the margin at the image, and against its mean over noisy copies.
    3. Try the directions of the points of the same class that came nearest to the boundary.
    4. Take ``ROUNDS`` steps along the boundary, with a normal estimated from the classes of ``DRAWS`` random images.

    This costs about 140 forward passes for each image. A point fails if no segment reaches another class. ``images``
    (n, c, h, w), ``label`` (n,) and the errors are those of
    :func:`fairness_audits.attacks.distances.measured`. The noise of a point depends on (``seed``, ``streams`` (n,))
    alone, not on the other points of its batch.
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
            descended(batch)
            batches.append(batch)
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
    """Points that are searched together: their closest images so far, and a generator of ``noise`` for each."""

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
        """The distance (m,) of the closest image found for each point, in float64; NaN if there is none."""
        length = norms(self.closest.adversarial.double() - self.x.double())
        return np.asarray(length.where(self.closest.found, torch.nan).cpu())

    def search(self, way: Tensor) -> None:
        """Bisect x + t ``way``, t from 0 to 1 or to the closest distance so far, if the end is of another class."""
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
        """Return which of the images x + t ``way`` are of another class, and offer them as closest images."""
        image = (self.x[rows] + spread(t[rows]) * way[rows]).clamp(0, 1)
        fooled = fooled_by(self.network.logits(image), self.label[rows])
        self.closest.offer(rows, image, fooled)
        return fooled

    def ray(self, direction: Tensor) -> None:
        """Search along directions (m, c, h, w), as far as the closest distance so far or the diagonal of the box."""
        through = self.x[0].numel() ** 0.5
        self.search(unit(direction) * spread(self.closest.distance.clamp(max=through)))

    def drawn(self, count: int, shape: tuple[int, ...]) -> Tensor:
        """Draw standard normal numbers (m, count, *shape) from the generator of each point."""
        numbers = [one.standard_normal((count, *shape), dtype=np.float32) for one in self.noise]
        return torch.from_numpy(np.stack(numbers)).to(self.x.device)


def unit(x: Tensor) -> Tensor:
    """Return x_i / ||x_i||_2, and 0 for x_i = 0."""
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
    """Return, for each class, the directions of its ``SHARED`` points that are nearest to the boundary."""
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
    """Walk along the boundary: step from the closest image along the normal, then go back towards the image."""
    m, (channels, height, width) = len(batch.x), batch.x.shape[1:]
    grid = (channels, min(height, COARSE), min(width, COARSE))
    normals = torch.zeros_like(batch.x)
    for number in range(1, ROUNDS + 1):
        # A point without an image of another class stays where it is.
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
