"""Networks that torchvision publishes with weights learned on ImageNet, their last layer replaced.

All layers are tuned. Images of one channel are repeated three times, since the first convolution takes three.

Torchvision as published links CUDA. Beside a torch without CUDA its compiled part does not load, and importing it then
stops at two operators that nobody declared. Declared, they have no kernel and raise when called; models, datasets and
transforms call none of them.
"""

import functools
import importlib
import os
import socket
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import torch
from torch import nn

from pipeline.networks.narrow import narrowed

RGB = 3
LAST_BIAS = {"squeezenet1_0": 1.0}
"""Of narrowed networks, where it is not 0. SqueezeNet's last rectifier rectifies its logits: with biases 0 half of them
begin at 0, where they have no gradient, and a few large steps put all there for good. Equal biases above 0 are equal
probabilities too."""
OPERATORS = ("torchvision::nms", "torchvision::qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
CONNECT_SECONDS = 10.0
"""Longest wait for an answer from the server of the weights."""
WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""The variable by which torch is told to build tensors and nothing else."""


class WeightsMissing(Exception):
    """Published weights that are neither here nor can be downloaded."""


class Coloured(nn.Module):
    """Grey images (n, 1, h, w) as coloured ones."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The one channel three times."""
        return x.expand(-1, RGB, -1, -1)


@functools.cache
def torchvision() -> ModuleType:
    """The package torchvision; the one way in which this project gets it."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        for operator in OPERATORS:
            torch.library.define(operator, SCHEMA)
        return importlib.import_module("torchvision")


def from_scratch(name: str, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """torchvision's network with random weights, as torchvision draws them.

    Of another ``width`` than 1 it is that of :mod:`pipeline.networks.narrow` for pictures of ``size`` x
    ``size``.
    """
    build = functools.partial(getattr(torchvision().models, name), weights=None, num_classes=classes)
    return _coloured(build() if width == 1 else narrowed(build, width, size, LAST_BIAS.get(name, 0.0)), channels)


def tuned(name: str, classes: int, channels: int) -> nn.Module:
    """torchvision's network with its first published ImageNet weights and a new last layer.

    Raises WeightsMissing where there is neither a file nor a network, and ValueError for a file that cannot be read.
    """
    models = torchvision().models
    published = models.get_model_weights(name).IMAGENET1K_V1
    path = f"{torch.hub.get_dir()}/checkpoints/{published.url.rpartition('/')[2]}"
    here = os.access(path, os.R_OK)
    with _patience(CONNECT_SECONDS), _weights_only():
        try:
            network = getattr(models, name)(weights=published, progress=False)
        except Exception as error:  # A file that is not whole makes torch's reader of weights stumble in any way.
            # torch goes on for a line a layer.
            reason = str(error).partition("\n")[0]
            if here:
                raise ValueError(
                    f"{path} does not hold the ImageNet weights of {name} ({reason}): delete it, or put the file "
                    f"{published.url} there"
                ) from error
            raise WeightsMissing(
                f"the ImageNet weights of {name} are not here and cannot be downloaded ({reason}): put the file "
                f"{published.url} at {path}"
            ) from error
    layers = [(key, layer) for key, layer in network.named_modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    last, layer = layers[-1]
    head: nn.Module
    if isinstance(layer, nn.Linear):
        head = nn.Linear(layer.in_features, classes)
    else:
        head = nn.Conv2d(layer.in_channels, classes, kernel_size=1)
    network.set_submodule(last, head)
    return _coloured(network, channels)


def _coloured(network: nn.Module, channels: int) -> nn.Module:
    if channels not in (1, RGB):
        raise ValueError(f"networks of torchvision take images of 1 or {RGB} channels, found {channels}")
    return network if channels == RGB else nn.Sequential(OrderedDict(coloured=Coloured(), network=network))


@contextmanager
def _weights_only() -> Iterator[None]:
    """Open files of weights as such: torchvision would unpickle whatever they hold, which can run a program."""
    before = os.environ.get(WEIGHTS_ONLY)
    os.environ[WEIGHTS_ONLY] = "1"
    try:
        yield
    finally:
        os.environ.pop(WEIGHTS_ONLY)
        os.environ.update({WEIGHTS_ONLY: before} if before is not None else {})


@contextmanager
def _patience(seconds: float) -> Iterator[None]:
    """Give up on a server that does not answer: torch's downloads know no time limit."""
    before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(seconds)
    try:
        yield
    finally:
        socket.setdefaulttimeout(before)
