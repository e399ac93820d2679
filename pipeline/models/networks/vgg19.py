"""VGG19 with batch normalisation (Simonyan and Zisserman 2015), torchvision's."""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.models.networks import imagenet

SMALLEST = 32
WIDENS = True


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """With random weights; ``width`` as in :mod:`pipeline.models.networks.narrow`."""
    return imagenet.from_scratch("vgg19_bn", classes, channels, size, width)


def pretrained(classes: int, channels: int) -> nn.Module:
    """With ImageNet weights and a new last layer."""
    return imagenet.tuned("vgg19_bn", "VGG19_BN_Weights", classes, channels, _replace_head)


def _replace_head(network: Any, classes: int) -> None:
    network.classifier[-1] = nn.Linear(network.classifier[-1].in_features, classes)
