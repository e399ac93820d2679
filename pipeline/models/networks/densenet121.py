"""DenseNet121 (Huang et al. 2017), torchvision's."""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.models.networks import imagenet

SMALLEST = 29
WIDENS = True


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """With random weights; ``width`` as in :mod:`pipeline.models.networks.narrow`."""
    return imagenet.from_scratch("densenet121", classes, channels, size, width)


def pretrained(classes: int, channels: int) -> nn.Module:
    """With ImageNet weights and a new last layer."""
    return imagenet.tuned("densenet121", "DenseNet121_Weights", classes, channels, _replace_head)


def _replace_head(network: Any, classes: int) -> None:
    network.classifier = nn.Linear(network.classifier.in_features, classes)
