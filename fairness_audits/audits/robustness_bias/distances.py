"""Distances of points to the decision boundary of one network, by the attacks of the audits.

The audit of a user's model and the study's audit both create an attack with :func:`attack_on` and compute its distances
with :func:`distances_by_part`. Images are loaded in parts, and perturbed images are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.models.device import full_precision, own_operations
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

Attack = Callable[[Array, Array, Array], Distances]
"""Attack: maps images (m, c, h, w) in [0, 1], classes (m,) and noise-stream numbers (m,) to distances."""

EXACT, SMOOTHING = "exact", "smoothing"


def attack_function(name: str) -> Callable[..., Distances]:
    """Return the attack of :mod:`fairness_audits.attacks` with this name, any but "exact"."""
    from fairness_audits.attacks.carlini_wagner import carlini_wagner
    from fairness_audits.attacks.minimum_norm import deepfool, fmn
    from fairness_audits.attacks.smoothing import certify

    attacks: dict[str, Callable[..., Distances]] = {"deepfool": deepfool, "carlini_wagner": carlini_wagner, "fmn": fmn}
    return certify if name == SMOOTHING else attacks[name]


def attack_on(
    network: Callable[[torch.Tensor], torch.Tensor], name: str, settings: Mapping[str, Any], execution: Execution
) -> Attack:
    """Return an attack on a ``network``, which maps pixels (m, c, h, w) in [0, 1] to scores (m, K).

    ``name`` is any attack but "exact" (see :func:`exact_attack`), and ``settings`` are keyword arguments of its
    function. Smoothing draws the noise of each point from the point's own stream, whichever points are certified
    together. The other attacks draw no random numbers.
    """
    function = partial(attack_function(name), network, **settings, execution=execution)
    if name == SMOOTHING:
        return lambda images, label, streams: function(images, label, rows=streams)
    return lambda images, label, streams: function(images, label)


def exact_attack(weight: Array, bias: Array) -> Attack:
    """Return the closed-form distances of a linear network with scores ``weight`` (K, d) x + ``bias`` (K,)."""
    return lambda images, label, streams: linear_distance(weight, bias, images, label)


def distances_by_part(
    attack: Attack, pixels: Callable[[Array], Array], label: Array, parts: Iterable[Array], streams: Array
) -> Iterator[tuple[Array, Array, int]]:
    """Attack points part by part, and yield the points of each part (m,), their distances, and the forward passes.

    ``pixels`` returns the images of points, ``label`` (n,) is the class that each point must leave, and ``streams``
    (n,) the number of its noise stream. ``parts`` are numbers of points attacked together, consumed one after the
    other. Distances (m,) are L2 in pixels in [0, 1], NaN if the attack failed. A forward pass is one of a single image.
    """
    for part in parts:
        found = attack(pixels(part), label[part], streams[part])
        yield part, np.where(found.failed, np.nan, found.distance), found.forward_passes


@contextmanager
def exact_arithmetic(threads: int) -> Iterator[None]:
    """Use exact float32 and, if the device supports them, deterministic operations.

    ``threads`` is the number of CPU threads. A warning names each operation without a deterministic form. On exit, all
    settings are restored.
    """
    with full_precision(deterministic=True), own_operations(threads):
        yield
