"""The user's network as a map from pixels to what it returns.

Normalisation is a part of the map, so that gradients and distances are those of pixels in [0, 1].
"""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.cli.audit.robustness.images import Shape
from pipeline.cli.network import Computing, Network, load_network
from pipeline.cli.numbers import plural
from pipeline.cli.probe import Form, tensor_of
from pipeline.cli.table import sha256

if TYPE_CHECKING:
    import torch
    from torch import Tensor

EDGE = 1e-7
"""Probabilities are kept so far from 0 and 1 before their logarithm is taken: their rounding in float32."""


@dataclass(frozen=True)
class Raw:
    """``output`` maps pixels (m, c, h, w) to what the network returns; ``digest`` identifies the network."""

    output: Callable[[Tensor], Tensor]
    network: Network
    device: torch.device
    digest: str
    form: Form


def load_classifier(arguments: Namespace, shape: Shape) -> Raw:
    """The network of ``--model`` behind its normalisation. Raises ValueError where it cannot be loaded."""
    import torch

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
    """Of the parameters where the network has any, else of its file; empty for a function of a module."""
    if network.is_module:
        found = hashlib.sha256()
        for name, values in sorted(network.evaluate.state_dict().items()):  # type: ignore[attr-defined]
            found.update(f"{name} {tuple(values.shape)} ".encode())
            found.update(values.detach().cpu().contiguous().numpy().tobytes())
        if network.file is None:
            return found.hexdigest()
        return hashlib.sha256((found.hexdigest() + sha256(network.file)).encode()).hexdigest()
    return "" if network.file is None else sha256(network.file)
