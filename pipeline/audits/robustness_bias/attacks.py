"""The ways to a distance that the audit knows, by name, each ready to be made on a network's points."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.attacks.carlini_wagner import carlini_wagner
from pipeline.attacks.deepfool import deepfool
from pipeline.attacks.distances import Distances, Execution
from pipeline.attacks.fmn import fmn
from pipeline.attacks.linear_distance import linear_distance, linear_distance_in_box
from pipeline.attacks.smoothing import certify
from pipeline.types import Array

if TYPE_CHECKING:
    from pipeline.models.networks.pixels import PixelNetwork

    Attack = Callable[[PixelNetwork, Array, Array, Array], Distances]
    """Network, images (m, c, h, w) in [0, 1], their classes (m,) and the numbers of the points (m,) -> distances."""

EXACT, EXACT_IN_BOX, SMOOTHING = "exact", "exact_in_box", "smoothing"
WITH_IMAGES: Mapping[str, Callable[..., Distances]] = {
    "deepfool": deepfool,
    "carlini_wagner": carlini_wagner,
    "fmn": fmn,
}
"""Attacks that change images; each gives an upper bound."""
CLOSED_FORMS: Mapping[str, Callable[..., Distances]] = {
    EXACT: linear_distance,
    EXACT_IN_BOX: linear_distance_in_box,
}
"""Of linear networks alone: in all of space, as published, and among the images, where the attacks stay."""
NAMES = (*CLOSED_FORMS, *WITH_IMAGES, SMOOTHING)
LINEAR = ("networks.logistic_regression",)
"""Architectures whose distances are known exactly."""
SCALES = ("pixels", "normalised")
NUMBERS_AT_ONCE = 2**24
"""Of differences of weights, in memory."""


def applies(name: str, architecture: str) -> bool:
    """Whether this distance can be had for networks of this architecture."""
    return name not in CLOSED_FORMS or architecture in LINEAR


def named(
    name: str,
    settings: Mapping[str, Any],
    std: tuple[float, ...],
    rng: np.random.Generator,
    batch_size: int | None,
    keep_images: bool = False,
) -> Attack:
    """The attack of this name with its own settings, made on ``batch_size`` points at a time (None: what suits).

    ``std``, of every channel, is the unit of normalised pixels. ``rng`` gives the seed of smoothing's noise; the others
    draw nothing. Where ``keep_images``, the changed images come with the distances. Raises ValueError for another name.
    """
    if name not in NAMES:
        raise ValueError(f"expected an attack among {', '.join(NAMES)}; found {name!r}")
    how = Execution(batch_size=batch_size, keep_adversarial=keep_images)
    if name in CLOSED_FORMS:
        return partial(_exact, CLOSED_FORMS[name])
    if name == SMOOTHING:
        return partial(_certified, settings=settings, std=std, seed=int(rng.integers(2**63)), how=how)
    return lambda f, images, label, points: WITH_IMAGES[name](f, images, label, **settings, execution=how)


def _exact(
    closed_form: Callable[..., Distances], f: PixelNetwork, images: Array, label: Array, points: Array
) -> Distances:
    """The distances to the boundary of a linear network, a few points at a time: they need all weights' differences."""
    weight, bias = affine(f, images.shape[1:])
    size = max(1, NUMBERS_AT_ONCE // weight.size)
    found = [
        closed_form(weight, bias, images[first : first + size], label[first : first + size])
        for first in range(0, len(images), size)
    ]
    distance = np.concatenate([np.zeros(0), *(one.distance for one in found)])
    return Distances(distance, np.isnan(distance), None, np.zeros(len(distance), dtype=np.int64), len(distance), 0)


def affine(f: PixelNetwork, shape: tuple[int, ...]) -> tuple[Array, Array]:
    """W (K, d) and b (K,) of a network that is f(x) = W x + b in the d pixels of an image of this shape, in float64.

    Normalisation and resizing are in them. b is f(0), and row k of W is the gradient of its k-th logit there.
    """
    import torch

    precise = copy.deepcopy(f).double()
    nothing = torch.zeros((1, *shape), dtype=torch.float64, device=f.mean.device, requires_grad=True)
    (logits,) = precise(nothing)
    rows = [torch.autograd.grad(logit, nothing, retain_graph=True)[0].flatten() for logit in logits]
    return torch.stack(rows).cpu().numpy(), logits.detach().cpu().numpy()


def _certified(
    f: PixelNetwork,
    images: Array,
    label: Array,
    points: Array,
    *,
    settings: Mapping[str, Any],
    std: tuple[float, ...],
    seed: int,
    how: Execution,
) -> Distances:
    """Certified radii; a point has noise of its own, whatever points it is certified with."""
    own = dict(settings)
    scale = std if own.pop("scale") == "normalised" else None
    return certify(f, images, label, **own, channel_scale=scale, seed=seed, rows=points, execution=how)
