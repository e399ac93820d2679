"""Distances of the test points of a study's network, at one checkpoint: which there are, and how they are computed."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairness_audits.audits.robustness_bias.distances import (
    EXACT,
    SMOOTHING,
    Attack,
    Known,
    exact_attack,
    find_distances,
)
from fairness_audits.values import Array, Checkpoint, ImageDataset

if TYPE_CHECKING:
    import torch

    from fairness_audits.models.pixels import PixelNetwork

LOG = logging.getLogger(__name__)
WITH_IMAGES = ("deepfool", "carlini_wagner", "fmn")
"""Attacks that perturb images. Each gives an upper bound."""
STREAMS = {EXACT: 0, "deepfool": 2, "carlini_wagner": 3, "fmn": 4, SMOOTHING: 5}
"""Random stream of each distance within a checkpoint. Never renumber them, because this would change the results."""
NAMES = tuple(STREAMS)
LINEAR = ("networks.logistic_regression",)
"""Architectures with exact distances."""
PIXELS_AT_ONCE = 2**25
"""Number of pixels held in memory at once, for images and for their perturbed versions."""
CLASSIFIED_AT_ONCE = 250
"""Number of images classified at once. With this number, matrix products on a GPU are deterministic."""
SAVED_EVERY = 30.0
"""Seconds between two saves."""


def applies(name: str, architecture: str) -> bool:
    """Return whether this distance exists for networks of this architecture."""
    return name != EXACT or architecture in LINEAR


def together(name: str, device: torch.device, batch_size: int | None) -> int | None:
    """Return how many points are attacked at once (None for all): a batch, or a single point whose noise fills batches.

    ``batch_size`` is the attack's batch size, None for one that suits the device.
    """
    from fairness_audits.attacks.distances import batch_of

    if name == EXACT:
        return None
    return 1 if name == SMOOTHING and device.type == "cpu" else batch_of(device, batch_size)


class Progress:
    """Measurements of an audit: arrays by name, saved every half minute so that an interrupted audit can resume.

    ``whose`` is the fingerprint of the audit.
    """

    def __init__(self, resume: Checkpoint | None, whose: Array) -> None:
        self.resume, self.whose, self.saved_at = resume, whose, time.monotonic()
        self.arrays = dict((resume and resume.load(whose)) or {})

    def of(self, name: str, n: int) -> Known:
        """Return the distances of n points with this name, to be filled in place."""
        first = {
            "distance": np.full(n, np.nan),
            "done": np.zeros(n, dtype=bool),
            "passes": np.zeros((), dtype=np.int64),
        }
        own = {key: self.arrays.setdefault(f"{name} {key}", values) for key, values in first.items()}
        return Known(**own, save=self.save)

    def save(self) -> None:
        """Save the arrays unless they were saved recently."""
        if self.resume is not None and time.monotonic() - self.saved_at > SAVED_EVERY:
            self.resume.save(self.whose, self.arrays)
            self.saved_at = time.monotonic()


@dataclass(frozen=True)
class AuditedNetwork:
    """A network ``f`` on its device, and the dataset ``rows`` (n,) that it classifies."""

    f: PixelNetwork
    dataset: ImageDataset
    rows: Array
    device: torch.device

    def pixels(self, points: Array) -> Array:
        """Return the images of these points, (m, c, h, w) float32 in [0, 1]."""
        return self.dataset.pixels(self.rows[points])

    def classes(self, images: Array) -> Array:
        """Return the predicted class of each image, (m,) int64."""
        import torch

        with torch.no_grad():
            parts = torch.from_numpy(images).split(CLASSIFIED_AT_ONCE)
            return np.concatenate([self.f(part.to(self.device)).argmax(dim=1).cpu().numpy() for part in parts])

    def predictions(self) -> Array:
        """Return the predicted class of every point, (n,)."""
        everyone = np.arange(len(self.rows))
        return np.concatenate([self.classes(self.pixels(points)) for points in self._parts(everyone)])

    def attacked(
        self, attack: Attack, points: Array, prediction: Array, together: int | None, progress: Progress, name: str
    ) -> tuple[Array, int]:
        """Compute the distances of these points; ``prediction`` (n,) are the predicted classes.

        Return distances (n,) float64, NaN for failed attacks and other points, and the number of images that passed
        through the network. Points are attacked in parts of size ``together``. After each part, ``progress`` is saved
        under ``name``.
        """
        known = progress.of(name, len(self.rows))
        start, parts = time.process_time(), list(self._parts(points, together))
        find_distances(name, attack, self.pixels, prediction, np.arange(len(self.rows)), parts, known)
        LOG.info("%s points in %.1f CPU-seconds", f"{len(points):,}", time.process_time() - start)
        return known.distance, int(known.passes)

    def exact_attack(self) -> Attack:
        """Return the closed form of a linear network's distances, from its weights in double precision."""
        import torch

        from fairness_audits.attacks.distances import affine

        origin = torch.zeros((1, *self.dataset.images.shape[1:]), dtype=torch.float64, device=self.device)
        return exact_attack(*affine(copy.deepcopy(self.f).double(), origin))

    def adversarial(self, attack: Attack, points: Array, prediction: Array) -> Array:
        """Return the attack's perturbed images of a few points, NaN if it fails."""
        found = attack(self.pixels(points), prediction[points], points)
        assert found.adversarial is not None
        return np.where(found.failed[:, None, None, None], np.nan, found.adversarial)

    def _parts(self, points: Array, most: int | None = None) -> Iterator[Array]:
        held = max(1, PIXELS_AT_ONCE // self.dataset.images[0].size)
        size = min(most or held, held)
        for first in range(0, len(points), size):
            yield points[first : first + size]
