"""The first look at every image: whether it can be read, what the network says of it, and what identifies it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.cli.audit.robustness.classifier import EDGE, Raw
from pipeline.cli.audit.robustness.images import Unreadable
from pipeline.cli.audit.robustness.points import Points
from pipeline.cli.output_kind import Kind
from pipeline.cli.probe import Scores, check_alone, check_finite, check_gradient, read
from pipeline.cli.progress import followed
from pipeline.messages import SHOWN, listed
from pipeline.types import Array

if TYPE_CHECKING:
    import torch
    from torch import Tensor

TOGETHER = 128
"""Images classified together."""


@dataclass(frozen=True)
class Subjects:
    """The n ``points`` that can be read, the ``classifier`` that was tried on them, and digests.

    ``digests`` (n,) identify the pixels. ``unreadable`` names the images that were left out, with reasons.
    """

    points: Points
    classifier: Scores
    device: torch.device
    digests: tuple[bytes, ...]
    unreadable: dict[str, str]

    @property
    def prediction(self) -> Array:
        """The class that the network puts each point into, (n,)."""
        return self.classifier.prediction

    @property
    def classes(self) -> int:
        """How many classes the network tells apart."""
        return self.classifier.trial.shape[1]

    @property
    def label(self) -> Array:
        """The true classes (n,), or the network's own where none were given."""
        return self.prediction if self.points.label is None else self.points.label

    @property
    def correct(self) -> Array:
        """Who is classified correctly, (n,)."""
        return self.prediction == self.label


def looked(points: Points, raw: Raw, kind: Kind | None, with_gradient: bool) -> Subjects:
    """Read, classify and identify all points; ``with_gradient``: attacks will need one.

    Raises ValueError where the network fails, or no image can be read.
    """
    import torch

    n = len(points.rows)
    outputs: list[Tensor] = []
    kept = np.ones(n, dtype=bool)
    digests: list[bytes] = []
    told = {points.images.names[row]: why for row, why in points.images.unreadable.items()}
    first: Tensor | None = None

    def classified(part: Array) -> None:
        nonlocal first
        pixels = []
        for point in part:
            try:
                pixels.append(points.images.one(int(points.rows[point])))
            except Unreadable as error:
                kept[point] = False
                told[points.images.names[points.rows[point]]] = str(error)
        if not pixels:
            return
        digests.extend(hashlib.sha256(one.tobytes()).digest() for one in pixels)
        x = torch.from_numpy(np.stack(pixels)).to(raw.device)
        with torch.no_grad():
            outputs.append(raw.output(x).cpu())
        if first is None:
            first = x
            with torch.no_grad():
                check_alone(lambda some: raw.output(some).cpu().numpy(), x, outputs[0].numpy(), raw.form)

    parts = [np.arange(start, min(start + TOGETHER, n)) for start in range(0, n, TOGETHER)]
    with followed(classified, len(parts), "reading and classifying") as classify:
        for part in parts:
            classify(part)
    if first is None:
        raise ValueError(
            f"none of the {n:,} audited images can be read: "
            f"{listed([f'{name} ({why})' for name, why in told.items()], SHOWN)}: write them again"
        )
    some = points.only(kept)
    output = torch.cat(outputs)
    check_finite(output.numpy(), some.names, raw.form)
    classifier = read(output, raw.output, kind, EDGE)
    if with_gradient:
        check_gradient(classifier.evaluate, [first], raw.form)
    return Subjects(some, classifier, raw.device, tuple(digests), told)


def facts(subjects: Subjects) -> dict[str, Any]:
    """For the document: how the images divide."""
    return {
        "audited": len(subjects.points.rows),
        "shape": list(subjects.points.images.shape),
        "unreadable": dict(sorted(subjects.unreadable.items())),
    }
