"""The user's network on every image: its map from pixels to scores, its first answers, and what identifies both.

Normalisation is a part of the map, so that gradients and distances are those of pixels in [0, 1].
"""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pipeline.cli.audit.robustness_bias.images import Shape, Unreadable
from pipeline.cli.audit.robustness_bias.points import Points
from pipeline.cli.network import Computing, Network, load_network
from pipeline.cli.numbers import plural
from pipeline.cli.probe import Form, Scores, Told, check_alone, check_finite, check_gradient, read, tensor_of
from pipeline.cli.progress import followed
from pipeline.cli.table import sha256
from pipeline.messages import SHOWN, listed
from pipeline.types import Array

EDGE = 1e-7
"""Probabilities are kept so far from 0 and 1 before their logarithm is taken: their rounding in float32."""
TOGETHER = 128
"""Images classified together."""


@dataclass(frozen=True)
class Raw:
    """``output`` maps pixels (m, c, h, w) to what the network returns; ``digest`` identifies the network."""

    output: Callable[[Tensor], Tensor]
    network: Network
    device: torch.device
    digest: str
    form: Form


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
    def correct(self) -> Array:
        """Who is classified correctly, (n,): all where no true classes were given."""
        return self.prediction == (self.prediction if self.points.label is None else self.points.label)


def load_classifier(arguments: Namespace, shape: Shape) -> Raw:
    """The network of ``--model`` behind its normalisation. Raises ValueError where it cannot be loaded."""
    computing = Computing(arguments.device, "float32")
    device = computing.device
    network = load_network(arguments.model, arguments.trust_pickle, computing)
    if network.is_module:
        for values in network.evaluate.parameters():  # type: ignore[attr-defined]
            values.requires_grad_(False)
    mean, std = (_each(getattr(arguments, name), shape[0], name) for name in ("mean", "std"))
    if min(std) <= 0:
        raise ValueError(f"expected --std above 0, found {min(std):g}")
    centre, scale = (torch.tensor(values, device=device)[:, None, None] for values in (mean, std))
    form = image_form(shape)

    def output(x: Tensor) -> Tensor:
        return tensor_of(network.evaluate, (x - centre) / scale, form)

    return Raw(output, network, device, _digest(network), form)


def image_form(shape: Shape) -> Form:
    """Images of a shape (c, h, w), scored by a network of K classes."""
    channels, height, width = shape
    others = 3 if channels == 1 else 1
    return Form(
        unit="image",
        given=f"images of shape {shape}",
        returns="({n}, K) scores of K classes, or ({n},) or ({n}, 1) of class 1",
        fits=lambda behind: len(behind) < 2 and behind != (0,),
        remedy=f"It was given {plural(channels, 'channel')} of {height} x {width} pixels: if it takes images of "
        f"another size, say --resize HxW; if it takes {plural(others, 'channel')}, say --channels {others}",
        precision="images are float32: let the model compute in it",
        without_gradient="; --attack smoothing needs no gradient",
    )


def _each(values: Sequence[float], channels: int, name: str) -> tuple[float, ...]:
    """One number a channel."""
    if len(values) not in (1, channels):
        raise ValueError(
            f"--{name} gives {len(values)} numbers, but the images have {plural(channels, 'channel')}: give "
            "one for all, or one for each"
        )
    return tuple(values) * (channels if len(values) == 1 else 1)


def _digest(network: Network) -> str:
    """Of the parameters where the network has any, and of its file; empty for a function of a module."""
    file = "" if network.file is None else sha256(network.file)
    if not network.is_module:
        return file
    found = hashlib.sha256()
    for name, values in sorted(network.evaluate.state_dict().items()):  # type: ignore[attr-defined]
        found.update(f"{name} {tuple(values.shape)} ".encode())
        found.update(values.detach().cpu().contiguous().numpy().tobytes())
    return hashlib.sha256((found.hexdigest() + file).encode()).hexdigest() if file else found.hexdigest()


def looked(points: Points, raw: Raw, kind: Told, with_gradient: bool) -> Subjects:
    """Read, classify and identify all points; ``with_gradient``: attacks will need one.

    Raises ValueError where the network fails, or no image can be read.
    """
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
