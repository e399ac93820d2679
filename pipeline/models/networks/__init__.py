r"""Networks that classify images, from pixels in [0, 1] to the logits of C classes.

.. math:: f(x) = \text{net}\big(\text{resize}((x - \mu) / \sigma)\big)

Everything that is done to a picture is inside: the normalisation by the dataset's mean and standard deviation of each
channel, and, where ``input_size`` asks for it, bilinear resizing. A distance between two inputs of f is therefore one
between two pictures of the dataset, in its own pixels.

Each module of this package is one architecture:

    SMALLEST   side of the smallest images that it takes
    WIDENS     whether ``width`` applies: it multiplies the numbers of channels and of hidden units, 1 as published
    build(classes, channels, size, width=1.0)  -> the network, from normalised images (n, channels, size, size)
    pretrained(classes, channels)              -> the same with ImageNet weights; only where there are published ones

A :class:`pipeline.types.Classifier` of architecture ``networks.<name>`` holds the state of f at its K checkpoints, and
in its facts what it takes to build f again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from pipeline.types import Array, Classifier, ImageDataset

if TYPE_CHECKING:
    import torch

    from pipeline.models.networks.pixels import PixelNetwork

PRETRAINED = ("auto", "never", "required")
"""ImageNet weights: taken where they can be had, never, or not without."""
MADE_FOR = ("classes", "channels", "size")
LOG = logging.getLogger(__name__)


def architectures() -> dict[str, ModuleType]:
    """Every architecture by its name."""
    from pipeline.models.networks import (
        adience_classifier,
        alexnet,
        deep_cnn,
        deep_cnn_cifar100,
        densenet121,
        logistic_regression,
        pyramidnet,
        pyramidnet_bottleneck,
        resnet18,
        resnet50,
        squeezenet1_0,
        utk_classifier,
        vgg19,
    )

    modules = (adience_classifier, alexnet, deep_cnn, deep_cnn_cifar100, densenet121, logistic_regression, pyramidnet)
    others = (pyramidnet_bottleneck, resnet18, resnet50, squeezenet1_0, utk_classifier, vgg19)
    return {module.__name__.rpartition(".")[2]: module for module in (*modules, *others)}


def network(
    architecture: str,
    dataset: ImageDataset,
    width: float = 1.0,
    input_size: int | None = None,
    pretrained: str = "never",
) -> PixelNetwork:
    """An untrained f for the images and classes of ``dataset``, on the CPU, in evaluation mode.

    Its weights are drawn from torch's global generator; those of convolutions have their channels last, which is faster
    on a GPU and, for most networks, on a CPU. ``input_size``: the side that pictures are resized to inside, None for
    their own. Its attribute ``pretrained`` says whether it began from ImageNet weights. Raises ValueError for an
    unknown architecture, labels without a class, images that are not square or too small, and weights that are required
    and cannot be had.
    """
    import torch

    from pipeline.models.networks.pixels import PixelNetwork

    module = _known(architecture)
    classes, channels, size = made_for(dataset)
    seen = size if input_size is None else input_size
    if seen < module.SMALLEST:
        found = (
            f"the images of {dataset.name!r} have {size} x {size}: set method.input_size to {module.SMALLEST} or more"
            if input_size is None
            else f"method.input_size is {input_size}"
        )
        raise ValueError(f"{architecture} takes images of at least {module.SMALLEST} x {module.SMALLEST}, but {found}")
    net = _pretrained(architecture, module, classes, channels, width, pretrained)
    begun = net is not None
    if net is None:
        net = module.build(classes, channels, seen, width if module.WIDENS else 1.0)
    f = PixelNetwork(net, dataset.mean, dataset.std, size, input_size, begun).eval()
    return f.to(memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]


def made_for(dataset: ImageDataset) -> tuple[int, int, int]:
    """The numbers that a network is built for: classes, channels, side. ValueError where they are at odds."""
    channels, height, width = dataset.images.shape[1:]
    if height != width:
        raise ValueError(f"{dataset.name!r} has images of {height} x {width} pixels, expected square ones: resize them")
    classes = len(dataset.classes)
    labels = dataset.label.min(), dataset.label.max()
    if labels[0] < 0 or labels[1] >= classes:
        raise ValueError(
            f"{dataset.name!r} has {classes} classes, but labels from {labels[0]} to {labels[1]}: "
            f"expected labels from 0 to {classes - 1}"
        )
    if len(dataset.mean) != channels or len(dataset.std) != channels:
        raise ValueError(
            f"{dataset.name!r} has {channels} channels, but {len(dataset.mean)} means and {len(dataset.std)} standard "
            "deviations: give one number a channel"
        )
    return classes, int(channels), int(height)


def facts(architecture: str, dataset: ImageDataset, width: float, input_size: int | None) -> dict[str, float]:
    """What :func:`of_checkpoint` needs to build f again; ``input_size`` 0 where pictures are not resized."""
    return {
        **dict(zip(MADE_FOR, map(float, made_for(dataset)), strict=True)),
        "width": width if _known(architecture).WIDENS else 1.0,
        "input_size": float(input_size or 0),
    }


def of_checkpoint(
    classifier: Classifier, dataset: ImageDataset, k: int, device: torch.device | None = None
) -> PixelNetwork:
    """The k-th checkpoint as f: pixels (n, c, h, w) in [0, 1] -> logits (n, C), in evaluation mode.

    Its parameters take no gradient; its input may. Placed on ``device``, None for the visible one. Raises ValueError
    for a classifier that is no network, for k out of range and for images or classes of ``dataset`` that it was not
    made for.
    """
    import torch

    from pipeline.models.device import visible_device

    package, _, architecture = classifier.architecture.partition(".")
    if package != "networks" or architecture not in architectures():
        raise ValueError(
            f"the classifier of {classifier.method!r} is a {classifier.architecture!r}, expected one of networks."
            f"{', networks.'.join(architectures())}"
        )
    if not 0 <= k < classifier.repetitions:
        raise ValueError(f"there is no checkpoint {k}: the classifier has {classifier.repetitions}, counted from 0")
    for name, here in zip(MADE_FOR, made_for(dataset), strict=True):
        there = int(classifier.facts[name][k])
        if there != here:
            raise ValueError(
                f"{architecture} was trained on {classifier.dataset!r} with {name} {there}, but {dataset.name!r} has "
                f"{name} {here}: audit it on the dataset it was trained on"
            )
    input_size = int(classifier.facts["input_size"][k]) or None
    # Built without memory or random weights: all of them are the checkpoint's.
    with torch.device("meta"):
        f = network(architecture, dataset, float(classifier.facts["width"][k]), input_size)
    f.load_state_dict(tensors({name: values[k] for name, values in classifier.parameters.items()}), assign=True)
    f = f.requires_grad_(False).to(visible_device() if device is None else device)
    return f.to(memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]


def arrays(state: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """Copies of a state as arrays: float32, and int64 for what is counted."""
    return {
        name: values.detach().cpu().numpy().astype(np.float32 if values.is_floating_point() else np.int64, order="C")
        for name, values in state.items()
    }


def tensors(state: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    """The opposite of :func:`arrays`."""
    import torch

    return {name: torch.tensor(values) for name, values in state.items()}


def _known(architecture: str) -> ModuleType:
    known = architectures()
    if architecture not in known:
        raise ValueError(f"expected method.model among {', '.join(known)}; found {architecture!r}")
    return known[architecture]


def _pretrained(
    architecture: str, module: ModuleType, classes: int, channels: int, width: float, wanted: str
) -> torch.nn.Module | None:
    """The network with ImageNet weights; None where they are not wanted, or wanted only if they can be had."""
    from pipeline.models.networks.imagenet import WeightsMissing

    if wanted not in PRETRAINED:
        raise ValueError(f"expected method.pretrained among {', '.join(PRETRAINED)}; found {wanted!r}")
    if wanted == "never":
        return None
    try:
        if not hasattr(module, "pretrained"):
            raise WeightsMissing(f"no ImageNet weights of {architecture} are published")
        if width != 1:
            raise WeightsMissing(f"the ImageNet weights of {architecture} are of width 1, not {width:g}")
        network: torch.nn.Module = module.pretrained(classes, channels)
        return network
    except WeightsMissing as missing:
        if wanted == "required":
            raise ValueError(f"{missing}; or set method.pretrained to auto, which trains from scratch then") from None
        LOG.info("from scratch: %s", missing)
        return None
