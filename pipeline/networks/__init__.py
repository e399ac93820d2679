r"""Networks that classify images, from pixels in [0, 1] to the logits of C classes.

.. math:: f(x) = \text{net}\big(\text{resize}((x - \mu) / \sigma)\big)

The function f includes all preprocessing: normalisation by the data set's mean and standard deviation of each channel
and, with ``input_size``, bilinear resizing. A distance between two inputs of f is therefore a distance between two
images of the data set, in its original pixels.

A :class:`fairness_audits.values.Classifier` of architecture ``networks.<name>`` holds the state of f at K checkpoints.
Its facts hold the arguments needed to rebuild f.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from fairness_audits.values import Array, Classifier, ImageDataset

if TYPE_CHECKING:
    import torch

    from fairness_audits.models.pixels import PixelNetwork

PRETRAINED = ("auto", "never")
"""ImageNet weights: used if available, or never."""
MADE_FOR = ("classes", "channels", "size")
LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Architecture:
    """``build(classes, channels, size, width=1.0)`` returns the network for normalised images (n, channels, s, s).

    ``smallest``: side of the smallest accepted images. ``widens``: whether ``width`` applies, the factor on the numbers
    of channels and hidden units (1 as published). ``pretrained(classes, channels)``: the network with ImageNet weights,
    if they are published.
    """

    build: Callable[..., torch.nn.Module]
    smallest: int = 1
    widens: bool = True
    pretrained: Callable[[int, int], torch.nn.Module] | None = None


TORCHVISION = {
    "alexnet": ("alexnet", 63),
    "densenet121": ("densenet121", 29),
    "resnet18": ("resnet18", 1),
    "resnet50": ("resnet50", 1),
    "squeezenet1_0": ("squeezenet1_0", 21),
    "vgg19": ("vgg19_bn", 32),
}
"""Networks of torchvision with their names there and their smallest images. The released code of Nanda et al. (2021)
trains ResNet18 under the name ResNet50."""


def architectures() -> dict[str, Architecture]:
    """Return every architecture by name."""
    from pipeline.networks import convolutional, imagenet
    from pipeline.networks.pyramidnet import pyramid

    own = {
        "adience_classifier": Architecture(convolutional.adience_classifier, 37),
        "deep_cnn": Architecture(convolutional.deep_cnn, 32),
        "deep_cnn_cifar100": Architecture(convolutional.deep_cnn_cifar100, 32),
        "logistic_regression": Architecture(convolutional.logistic_regression, widens=False),
        "pyramidnet": Architecture(partial(pyramid, depth=110, alpha=64, bottleneck=False)),
        "pyramidnet_bottleneck": Architecture(partial(pyramid, depth=164, alpha=48, bottleneck=True)),
        "utk_classifier": Architecture(convolutional.utk_classifier, 6),
    }
    published = {
        name: Architecture(partial(imagenet.from_scratch, there), smallest, pretrained=partial(imagenet.tuned, there))
        for name, (there, smallest) in TORCHVISION.items()
    }
    return dict(sorted({**own, **published}.items()))


def network(
    architecture: str,
    dataset: ImageDataset,
    width: float = 1.0,
    input_size: int | None = None,
    pretrained: str = "never",
) -> PixelNetwork:
    """Return an untrained f for the images and classes of ``dataset``, on the CPU, in evaluation mode.

    Weights are drawn from torch's global generator. Weights of convolutions are stored channels last, which is faster
    on a GPU and, for most networks, on a CPU. ``input_size``: side to which images are resized, None to keep their
    size. The attribute ``pretrained`` tells whether f has ImageNet weights. Raises ValueError for an unknown
    architecture, labels without a class, images that are not square or too small, and an unreadable file of weights.
    """
    import torch

    from fairness_audits.models.pixels import PixelNetwork

    known = _known(architecture)
    classes, channels, size = made_for(dataset)
    seen = size if input_size is None else input_size
    if seen < known.smallest:
        found = (
            f"the images of {dataset.name!r} have {size} x {size}: set method.input_size to {known.smallest} or more"
            if input_size is None
            else f"method.input_size is {input_size}"
        )
        raise ValueError(f"{architecture} takes images of at least {known.smallest} x {known.smallest}, but {found}")
    net = _pretrained(architecture, known, classes, channels, width, pretrained)
    begun = net is not None
    if net is None:
        net = known.build(classes, channels, seen, width if known.widens else 1.0)
    f = PixelNetwork(net, dataset.mean, dataset.std, size, input_size, begun).eval()
    return f.to(memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]


def made_for(dataset: ImageDataset) -> tuple[int, int, int]:
    """Return the numbers of classes and channels and the side of the images. Raises ValueError if they disagree."""
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
    """Return the facts from which :func:`of_checkpoint` rebuilds f; ``input_size`` is 0 if images are not resized."""
    return {
        **dict(zip(MADE_FOR, map(float, made_for(dataset)), strict=True)),
        "width": width if _known(architecture).widens else 1.0,
        "input_size": float(input_size or 0),
    }


def of_checkpoint(
    classifier: Classifier, dataset: ImageDataset, k: int, device: torch.device | None = None
) -> PixelNetwork:
    """Return the k-th checkpoint as f: pixels (n, c, h, w) in [0, 1] -> logits (n, C), in evaluation mode.

    Parameters have no gradients; inputs can. f is placed on ``device``, None for the visible one. Raises ValueError for
    a classifier that is not a network, for k out of range, and if f does not fit the images or classes of ``dataset``.
    """
    import torch

    from fairness_audits.models.device import tensors, visible_device

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
    # Build on the meta device: all weights come from the checkpoint.
    with torch.device("meta"):
        f = network(architecture, dataset, float(classifier.facts["width"][k]), input_size)
    f.load_state_dict(tensors({name: values[k] for name, values in classifier.parameters.items()}), assign=True)
    f = f.requires_grad_(False).to(visible_device() if device is None else device)
    return f.to(memory_format=torch.channels_last)  # type: ignore[no-any-return, call-overload]


def arrays(state: Mapping[str, torch.Tensor]) -> dict[str, Array]:
    """Return copies of a state as arrays: float32, and int64 for counts."""
    return {
        name: values.detach().cpu().numpy().astype(np.float32 if values.is_floating_point() else np.int64, order="C")
        for name, values in state.items()
    }


def _known(architecture: str) -> Architecture:
    known = architectures()
    if architecture not in known:
        raise ValueError(f"expected method.model among {', '.join(known)}; found {architecture!r}")
    return known[architecture]


def _pretrained(
    architecture: str, known: Architecture, classes: int, channels: int, width: float, wanted: str
) -> torch.nn.Module | None:
    """Return the network with ImageNet weights, or None if they are not wanted or not available."""
    from pipeline.networks.imagenet import WeightsMissing

    if wanted not in PRETRAINED:
        raise ValueError(f"expected method.pretrained among {', '.join(PRETRAINED)}; found {wanted!r}")
    if wanted == "never":
        return None
    try:
        if known.pretrained is None:
            raise WeightsMissing(f"no ImageNet weights of {architecture} are published")
        if width != 1:
            raise WeightsMissing(f"the ImageNet weights of {architecture} are of width 1, not {width:g}")
        return known.pretrained(classes, channels)
    except WeightsMissing as missing:
        LOG.info("from scratch: %s", missing)
        return None
