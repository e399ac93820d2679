"""Distances of points to the decision boundary of one network, by the attacks of the audits.

The audit of a user's model and the study's audit both create an attack with :func:`attack_on` and compute its distances
with :func:`find_distances`. Images are loaded in parts, and perturbed images are not stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.models.device import full_precision, own_operations
from fairness_audits.progress import track
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


@dataclass(frozen=True)
class Known:
    """Distances (n,) of the points that are ``done`` (n,), NaN if the attack failed, and how another run gets them.

    ``passes`` () counts forward passes of single images. :func:`find_distances` fills the arrays and calls ``save``.
    """

    distance: Array
    done: Array
    passes: Array
    save: Callable[[], None]


def find_distances(
    title: str,
    attack: Attack,
    pixels: Callable[[Array], Array],
    label: Array,
    streams: Array,
    parts: Sequence[Array],
    known: Known,
) -> None:
    """Attack the points without a ``known`` distance, part by part, and save their distances.

    ``pixels`` returns the images of points, ``label`` (n,) is the class that each point must leave, and ``streams``
    (n,) the number of its noise stream. ``parts`` are numbers of points attacked together. Distances are L2 in pixels
    in [0, 1].
    """
    for part in track(title, parts):
        if len(points := part[~known.done[part]]):
            found = attack(pixels(points), label[points], streams[points])
            known.distance[points] = np.where(found.failed, np.nan, found.distance)
            known.done[points] = True
            known.passes[...] += found.forward_passes
            known.save()


@contextmanager
def exact_arithmetic(threads: int) -> Iterator[None]:
    """Use exact float32 and, if the device supports them, deterministic operations.

    ``threads`` is the number of CPU threads. A warning names each operation without a deterministic form. On exit, all
    settings are restored.
    """
    with full_precision(deterministic=True), own_operations(threads):
        yield
