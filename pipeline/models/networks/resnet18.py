"""ResNet18 (He et al. 2016), torchvision's: what the code that Nanda et al. (2021) released trains as ResNet50."""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.models.networks import imagenet

SMALLEST = 1
WIDENS = True


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """With random weights; ``width`` as in :mod:`pipeline.models.networks.narrow`."""
    return imagenet.from_scratch("resnet18", classes, channels, size, width)


def pretrained(classes: int, channels: int) -> nn.Module:
    """With ImageNet weights and a new last layer."""
    return imagenet.tuned("resnet18", "ResNet18_Weights", classes, channels, _replace_head)


def _replace_head(network: Any, classes: int) -> None:
    network.fc = nn.Linear(network.fc.in_features, classes)
