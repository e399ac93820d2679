"""SqueezeNet 1.0 (Iandola et al. 2016), torchvision's; its last layer is a convolution, so are its logits rectified."""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.models.networks import imagenet

SMALLEST = 21
WIDENS = True


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """With random weights; ``width`` as in :mod:`pipeline.models.networks.narrow`."""
    return imagenet.from_scratch("squeezenet1_0", classes, channels, width)


def pretrained(classes: int, channels: int) -> nn.Module:
    """With ImageNet weights and a new last layer."""
    return imagenet.tuned("squeezenet1_0", "SqueezeNet1_0_Weights", classes, channels, _replace_head)


def _replace_head(network: Any, classes: int) -> None:
    network.classifier[1] = nn.Conv2d(network.classifier[1].in_channels, classes, kernel_size=1)
