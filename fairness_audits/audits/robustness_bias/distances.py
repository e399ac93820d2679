"""Distances of a dataset's points to the decision boundary of one network, by the attacks that the audit knows.

Points are numbered 0 to n - 1 in the order of the rows that are audited. Their images become numbers part by part, and
changed images are not kept.
"""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from fairness_audits.attacks import Distances, Execution
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.models.device import full_precision, own_operations
from fairness_audits.values import Array, Checkpoint, ImageDataset

if TYPE_CHECKING:
    import torch

    from fairness_audits.models.pixels import PixelNetwork

    Attack = Callable[[PixelNetwork, Array, Array, Array], Distances]
    """Network, images (m, c, h, w) in [0, 1], their classes (m,) and the numbers of the points (m,) -> distances."""

EXACT, SMOOTHING = "exact", "smoothing"
WITH_IMAGES = ("deepfool", "carlini_wagner", "fmn")
"""Attacks that change images; each gives an upper bound."""
STREAMS = {EXACT: 0, "deepfool": 2, "carlini_wagner": 3, "fmn": 4, SMOOTHING: 5}
"""Of a checkpoint's random streams, that of each distance: its own for good, so that its numbers stay as they are."""
NAMES = tuple(STREAMS)
LINEAR = ("networks.logistic_regression",)
"""Architectures whose distances are known exactly."""
SCALES = ("pixels", "normalised")


def applies(name: str, architecture: str) -> bool:
    """Whether this distance can be had for networks of this architecture."""
    return name != EXACT or architecture in LINEAR


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
    from fairness_audits.attacks.carlini_wagner import carlini_wagner
    from fairness_audits.attacks.minimum_norm import deepfool, fmn
    from fairness_audits.attacks.smoothing import certify

    how = Execution(batch_size=batch_size, keep_adversarial=keep_images)
    if name == EXACT:
        return _exact
    if name == SMOOTHING:
        own = {**settings, "seed": int(rng.integers(2**63)), "execution": how}
        own["channel_scale"] = std if own.pop("scale") == "normalised" else None
        # A point has noise of its own, whatever points it is certified with.
        return lambda f, images, label, points: certify(f, images, label, **own, rows=points)
    attacks: dict[str, Callable[..., Distances]] = {"deepfool": deepfool, "carlini_wagner": carlini_wagner, "fmn": fmn}
    attack = attacks[name]
    return lambda f, images, label, points: attack(f, images, label, **settings, execution=how)


def together(name: str, device: torch.device, batch_size: int | None) -> int | None:
    """How many points go into an attack at once, None for all: one batch, or one point whose noise is batches.

    ``batch_size`` is that of the attack, None for what suits.
    """
    from fairness_audits.attacks.distances import CPU_BATCH, GPU_BATCH

    if name == EXACT:
        return None
    if device.type == "cpu":
        return 1 if name == SMOOTHING else batch_size or CPU_BATCH
    return batch_size or GPU_BATCH


def _exact(f: PixelNetwork, images: Array, label: Array, points: Array) -> Distances:
    """The distances to the boundary of a linear network."""
    import torch

    from fairness_audits.attacks.distances import affine

    origin = torch.zeros((1, *images.shape[1:]), dtype=torch.float64, device=f.mean.device)
    weight, bias = affine(copy.deepcopy(f).double(), origin)
    return linear_distance(weight, bias, images, label)


LOG = logging.getLogger(__name__)
PIXELS_AT_ONCE = 2**25
"""Of images held as numbers, and of what an attack makes of them."""
CLASSIFIED_AT_ONCE = 250
"""With it, matrix products on a GPU are deterministic."""
KEPT_EVERY = 30.0
"""Seconds."""


class Progress:
    """What an audit has measured: arrays by name, kept every half a minute for a killed one to go on from.

    ``whose`` is the fingerprint of the audit.
    """

    def __init__(self, resume: Checkpoint | None, whose: Array) -> None:
        self.resume, self.whose, self.kept = resume, whose, time.monotonic()
        self.arrays = dict((resume and resume.load(whose)) or {})

    def array(self, name: str, at_first: Array) -> Array:
        """The array of this name, to be written into."""
        return self.arrays.setdefault(name, at_first)

    def keep(self) -> None:
        """Keep the arrays, if they were not just now."""
        if self.resume is not None and time.monotonic() - self.kept > KEPT_EVERY:
            self.resume.save(self.whose, self.arrays)
            self.kept = time.monotonic()


@dataclass(frozen=True)
class Subject:
    """A network ``f`` on its device, and the ``rows`` (n,) of the dataset that it classifies."""

    f: PixelNetwork
    dataset: ImageDataset
    rows: Array
    device: torch.device

    def pixels(self, points: Array) -> Array:
        """The images of these points, (m, c, h, w) float32 in [0, 1]."""
        return self.dataset.pixels(self.rows[points])

    def classes(self, images: Array) -> Array:
        """The class that the network puts each of these images into, (m,) int64."""
        import torch

        with torch.no_grad():
            parts = torch.from_numpy(images).split(CLASSIFIED_AT_ONCE)
            return np.concatenate([self.f(part.to(self.device)).argmax(dim=1).cpu().numpy() for part in parts])

    def predictions(self) -> Array:
        """The class of every point, (n,)."""
        everyone = np.arange(len(self.rows))
        return np.concatenate([self.classes(self.pixels(points)) for points in self._parts(everyone)])

    def attacked(
        self, attack: Attack, points: Array, prediction: Array, together: int | None, progress: Progress, name: str
    ) -> tuple[Array, int]:
        """The distances of these points, which the network puts into the classes ``prediction`` (n,).

        Distances (n,) float64, NaN where the attack failed and for other points, and how many images went through the
        network. So many points go ``together``; after them ``progress`` is kept under this ``name``.
        """
        distance = progress.array(f"{name} distance", np.full(len(self.rows), np.nan))
        counts = progress.array(f"{name} counts", np.zeros(2, dtype=np.int64))
        start = time.process_time()
        for part in self._parts(points[counts[0] :], together):
            found = attack(self.f, self.pixels(part), prediction[part], part)
            distance[part] = np.where(found.failed, np.nan, found.distance)
            counts += len(part), found.forward_passes
            progress.keep()
        LOG.info("%s points in %.1f CPU-seconds", f"{len(points):,}", time.process_time() - start)
        return distance, int(counts[1])

    def adversarial(self, attack: Attack, points: Array, prediction: Array) -> Array:
        """The images that the attack makes of these points, NaN where it fails: all at once, so for a few points."""
        found = attack(self.f, self.pixels(points), prediction[points], points)
        assert found.adversarial is not None
        return np.where(found.failed[:, None, None, None], np.nan, found.adversarial)

    def _parts(self, points: Array, most: int | None = None) -> Iterator[Array]:
        held = max(1, PIXELS_AT_ONCE // self.dataset.images[0].size)
        size = min(most or held, held)
        for first in range(0, len(points), size):
            yield points[first : first + size]


@contextmanager
def exact_arithmetic(threads: int) -> Iterator[None]:
    """Float32 without shortcuts and, where the device has such forms, with the same result in every run.

    ``threads`` of the CPU. An operation without a deterministic form is named in a warning. On leaving, everything is
    as it was before.
    """
    with full_precision(deterministic=True), own_operations(threads):
        yield
