"""The PyramidNet of depth 164 with alpha 48 and bottlenecks, which Nanda et al. (2021) use for CIFAR-100."""

from __future__ import annotations

from torch import nn

from pipeline.models.networks.pyramidnet import pyramid

SMALLEST = 1
WIDENS = True
DEPTH, ALPHA = 164, 48


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Depth 164, alpha 48. Takes images of any size, since it averages over what is left of it."""
    return pyramid(classes, channels, DEPTH, ALPHA, bottleneck=True, width=width)
