"""Predictions of one network for the points of a dataset, and their distances to its decision boundary.

Points are numbered 0 to n - 1 in the order of the rows that are audited. Their images become numbers part by part, and
changed images are not kept.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.models.device import own_operations
from pipeline.types import Array, ImageDataset

if TYPE_CHECKING:
    import torch

    from pipeline.audits.robustness_bias.attacks import Attack
    from pipeline.models.networks.pixels import PixelNetwork

LOG = logging.getLogger(__name__)
PIXELS_AT_ONCE = 2**25
"""Of images held as numbers, and of what an attack makes of them."""
CLASSIFIED_AT_ONCE = 250
"""With it, matrix products on a GPU are deterministic."""


@dataclass(frozen=True)
class Found:
    """What an attack found of n points: ``distance`` (n,) float64, NaN where it failed or the point was not attacked.

    ``forward_passes`` counts the images that went through the network.
    """

    distance: Array
    forward_passes: int


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

    def attacked(self, attack: Attack, points: Array, prediction: Array) -> Found:
        """The distances of these points, which the network puts into the classes ``prediction`` (n,)."""
        distance, forward_passes = np.full(len(self.rows), np.nan), 0
        start = time.process_time()
        for part in self._parts(points):
            found = attack(self.f, self.pixels(part), prediction[part], part)
            distance[part] = np.where(found.failed, np.nan, found.distance)
            forward_passes += int(found.forward_passes)
        LOG.info("%s points in %.1f CPU-seconds", f"{len(points):,}", time.process_time() - start)
        return Found(distance, forward_passes)

    def adversarial(self, attack: Attack, points: Array, prediction: Array) -> Array:
        """The images that the attack makes of these points, NaN where it fails: all at once, so for a few points."""
        found = attack(self.f, self.pixels(points), prediction[points], points)
        assert found.adversarial is not None
        return np.where(found.failed[:, None, None, None], np.nan, found.adversarial)

    def _parts(self, points: Array) -> Iterator[Array]:
        size = max(1, PIXELS_AT_ONCE // self.dataset.images[0].size)
        for first in range(0, len(points), size):
            yield points[first : first + size]


@contextmanager
def exact_arithmetic(threads: int) -> Iterator[None]:
    """Float32 without shortcuts and, where the device has such forms, with the same result in every run.

    ``threads`` of the CPU. An operation without a deterministic form is named in a warning. On leaving, everything is
    as it was before.
    """
    import torch

    flags = torch.backends.cudnn.flags(enabled=True, benchmark=False, deterministic=True, allow_tf32=False)
    with flags, own_operations(threads):
        yield
