"""The audited images, and the network's predictions for them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from fairness_audits.audits.robustness_bias.points import Points, Subjects
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.answers import check_alone, check_finite
from fairness_audits.inputs.images import Images, Raw, Unreadable
from fairness_audits.inputs.probe import Scores, check_gradient, read
from fairness_audits.messages import SHOWN, listed
from fairness_audits.progress import track
from fairness_audits.values import Array

TOGETHER = 128
"""Number of images classified together."""


@dataclass(frozen=True)
class Pictures(Subjects):
    """Subjects that are images, all of them readable, and the network that classifies them.

    ``digests`` (n,) identify the pixels. ``unreadable`` names the excluded images, with reasons.
    """

    classifier: Scores
    device: torch.device
    digests: tuple[bytes, ...]
    unreadable: dict[str, str]

    @property
    def source(self) -> Images:
        """Return the images of all rows."""
        assert self.points.images is not None
        return self.points.images

    def pixels(self, points: Array) -> Array:
        """Return the images of these points, (m, c, h, w) float32 in [0, 1]."""
        images, rows = self.source, self.points.rows[points]
        return images.pixels(rows) if len(rows) else np.zeros((0, *images.shape), dtype=np.float32)


def classified(points: Points, raw: Raw, kind: Any, with_gradient: bool) -> Pictures:
    """Read, classify and identify all points; attacks need a gradient if ``with_gradient``.

    Raises InvalidInput if the network fails or no image can be read.
    """
    n, images = len(points.rows), points.images
    assert images is not None
    outputs: list[Tensor] = []
    readable = np.ones(n, dtype=bool)
    digests: list[bytes] = []
    reasons = {images.names[row]: why for row, why in images.unreadable.items()}
    first: Tensor | None = None
    parts = [np.arange(start, min(start + TOGETHER, n)) for start in range(0, n, TOGETHER)]
    for part in track("reading and classifying", parts):
        pixels = []
        for point in part:
            try:
                pixels.append(images.one(int(points.rows[point])))
            except Unreadable as error:
                readable[point] = False
                reasons[images.names[points.rows[point]]] = str(error)
        if not pixels:
            continue
        digests.extend(hashlib.sha256(one.tobytes()).digest() for one in pixels)
        x = torch.from_numpy(np.stack(pixels)).to(raw.device)
        with torch.no_grad():
            outputs.append(raw.output(x).cpu())
            if first is None:
                first = x
                check_alone(lambda some: raw.output(some).cpu().numpy(), x, outputs[0].numpy(), raw.form)
    if first is None:
        raise InvalidInput(
            f"none of the {n:,} audited images could be read: "
            f"{listed([f'{name} ({why})' for name, why in reasons.items()], SHOWN)}",
            option="images",
            remedy="Save them again",
        )
    some = points.only(readable)
    output = torch.cat(outputs)
    check_finite(output.numpy(), some.names, raw.form)
    classifier = read(output, raw.output, kind, finite=True)
    if with_gradient:
        check_gradient(classifier.evaluate, [first], raw.form)
    return Pictures(some, classifier, raw.device, tuple(digests), reasons)
