"""Networks of torchvision with ImageNet weights and a new last layer.

All layers are fine-tuned. Grey images are repeated to three channels, since the first convolution takes three.

The published torchvision links CUDA. With a torch without CUDA its compiled part does not load, and the import fails at
two undeclared operators. We declare them without a kernel, so they raise when called; models, datasets and transforms
do not call them.
"""

import functools
import hashlib
import importlib
import os
import socket
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

import numpy as np
import torch
from torch import nn

from fairness_audits.errors import InvalidInput
from pipeline.networks.narrow import narrowed

RGB = 3
LAST_BIAS = {"squeezenet1_0": 1.0}
"""Initial bias of the last layer in narrowed networks, if not 0. SqueezeNet applies a rectifier to its logits. With
biases 0, half of them start at 0 without a gradient, and a few large steps can leave all of them there. Equal positive
biases also give equal probabilities."""
OPERATORS = ("torchvision::nms", "torchvision::qnms")
SCHEMA = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
CONNECT_SECONDS = 10.0
"""Timeout in seconds for the server of the weights."""
MIRROR = "DATA_MIRROR"
"""The environment variable with a folder of raw files; weights are in its subfolder ``imagenet``."""
PRUNED = {"squeezenet1_0": "9d086ed9eed10a3d5f1a93e1180c745ffe8bfe6d4798bef977f95427732c8184"}
"""The sha256 of ``imagenet/NAME.npz``: pruned ImageNet weights, most of which are 0. SqueezeNet keeps a third of its
weights, as published by Han, Mao and Dally (Deep Compression, 2016)."""
WEIGHTS_ONLY = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
"""The environment variable that makes torch load weights only."""


class WeightsMissing(Exception):
    """Published weights are not available locally and cannot be downloaded."""


class Coloured(nn.Module):
    """Repeat grey images (n, 1, h, w) to three channels."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the channel three times."""
        return x.expand(-1, RGB, -1, -1)


@functools.cache
def torchvision() -> ModuleType:
    """Import torchvision. Always use this function instead of a direct import."""
    try:
        return importlib.import_module("torchvision")
    except RuntimeError:
        for operator in OPERATORS:
            torch.library.define(operator, SCHEMA)
        return importlib.import_module("torchvision")


def from_scratch(name: str, classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Return torchvision's network with its random initial weights.

    For ``width`` other than 1, return the network of :mod:`pipeline.networks.narrow` for ``size`` x ``size`` images.
    """
    build = functools.partial(getattr(torchvision().models, name), weights=None, num_classes=classes)
    return _coloured(build() if width == 1 else narrowed(build, width, size, LAST_BIAS.get(name, 0.0)), channels)


def tuned(name: str, classes: int, channels: int) -> nn.Module:
    """Return torchvision's network with ImageNet weights and a new last layer.

    The weights are the first that torchvision published: from torch's folder of checkpoints, from the folder
    ``imagenet`` of the mirror that ``DATA_MIRROR`` names, or from their official address. If none of the three has
    them, pruned weights from the mirror are used, if there are any.

    Raises
    ------
    WeightsMissing
        No file is at hand and none can be downloaded.
    ValueError
        A file at hand does not hold the weights.
    """
    models = torchvision().models
    published = models.get_model_weights(name).IMAGENET1K_V1
    filename = published.url.rpartition("/")[2]
    path = f"{torch.hub.get_dir()}/checkpoints/{filename}"
    mirrored = _in_mirror(filename)
    file = path if os.access(path, os.R_OK) else mirrored
    with _downloading(CONNECT_SECONDS):
        try:
            if file and file == mirrored:
                # Into torch's folder of checkpoints, if the digits in its name are those of its sha256.
                torch.hub.load_state_dict_from_url(f"file://{file}", progress=False, check_hash=True)
            network = getattr(models, name)(weights=published, progress=False)
        except Exception as error:  # An incomplete file can raise any exception in torch's loader.
            # torch's message has a line for each layer.
            reason = str(error).partition("\n")[0]
            if file:
                raise InvalidInput(
                    f"{file} does not hold the ImageNet weights of {name} ({reason})",
                    source=file,
                    remedy=f"Delete it, or put the file {published.url} there",
                ) from error
            pruned = _in_mirror(f"{name}.npz") if name in PRUNED else ""
            if not pruned:
                raise WeightsMissing(
                    f"the ImageNet weights of {name} are not here and cannot be downloaded ({reason}): put the file "
                    f"{published.url} at {path}"
                ) from error
            network = getattr(models, name)(weights=None)
            network.load_state_dict(_verified(pruned, PRUNED[name]))
    layers = [(key, layer) for key, layer in network.named_modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    last, layer = layers[-1]
    head: nn.Module
    if isinstance(layer, nn.Linear):
        head = nn.Linear(layer.in_features, classes)
    else:
        head = nn.Conv2d(layer.in_channels, classes, kernel_size=1)
    network.set_submodule(last, head)
    return _coloured(network, channels)


def pruned(network: nn.Module) -> float:
    """Return the share of a network's parameters that are exactly 0."""
    parameters = list(network.parameters())
    return sum(int((values == 0).sum()) for values in parameters) / sum(values.numel() for values in parameters)


def _in_mirror(filename: str) -> str:
    """Return the path of a readable file in the folder ``imagenet`` of the mirror, "" without one."""
    path = os.path.join(os.getcwd(), os.environ.get(MIRROR, ""), "imagenet", filename)  # noqa: PTH109, PTH118
    return path if os.environ.get(MIRROR) and os.access(path, os.R_OK) else ""


def _verified(path: str, sha256: str) -> dict[str, torch.Tensor]:
    """Return the arrays of a file as tensors; raise InvalidInput unless it has this sha256."""
    with open(path, "rb") as file:  # noqa: PTH123
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != sha256:
        problem = f"{path} is not the published file of weights: expected sha256 {sha256}, found {found}"
        raise InvalidInput(problem, source=path)
    with np.load(path) as arrays:
        return {name: torch.from_numpy(values) for name, values in arrays.items()}


def _coloured(network: nn.Module, channels: int) -> nn.Module:
    if channels not in (1, RGB):
        problem = f"networks of torchvision take images of 1 or {RGB} channels, found {channels}"
        raise InvalidInput(problem, option="channels")
    return network if channels == RGB else nn.Sequential(OrderedDict(coloured=Coloured(), network=network))


@contextmanager
def _downloading(seconds: float) -> Iterator[None]:
    """Set a timeout, which torch's downloads lack, and load weights only: other content of a file can run code."""
    timeout, weights_only = socket.getdefaulttimeout(), os.environ.get(WEIGHTS_ONLY)
    socket.setdefaulttimeout(seconds)
    os.environ[WEIGHTS_ONLY] = "1"
    try:
        yield
    finally:
        socket.setdefaulttimeout(timeout)
        os.environ.pop(WEIGHTS_ONLY)
        os.environ.update({WEIGHTS_ONLY: weights_only} if weights_only is not None else {})
