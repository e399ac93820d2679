"""SqueezeNet 1.0 (Iandola et al. 2016), torchvision's: the rectifier after its last convolution rectifies its logits.

With biases 0 half of the logits begin at 0, where they have no gradient, and a few large steps put all of them there
for good: every class is then as probable as any other. Narrowed networks, which are trained from random weights, begin
with all logits near ``LAST_BIAS``, for equal probabilities too, but where a rectifier lets gradients through.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from pipeline.models.networks import imagenet

SMALLEST = 21
WIDENS = True
LAST_BIAS = 1.0


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """With random weights; ``width`` as in :mod:`pipeline.models.networks.narrow`."""
    return imagenet.from_scratch("squeezenet1_0", classes, channels, size, width, LAST_BIAS)


def pretrained(classes: int, channels: int) -> nn.Module:
    """With ImageNet weights and a new last layer."""
    return imagenet.tuned("squeezenet1_0", "SqueezeNet1_0_Weights", classes, channels, _replace_head)


def _replace_head(network: Any, classes: int) -> None:
    network.classifier[1] = nn.Conv2d(network.classifier[1].in_channels, classes, kernel_size=1)
