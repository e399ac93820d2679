r"""PyramidNet: residual blocks with a linearly growing number of channels.

.. math:: d_k = \text{round}(16 + k\, \alpha / (3 n)), \qquad k = 1, \dots, 3 n

in three stages of n blocks. The second and third stage start by halving the size. A block starts with batch
normalisation and a convolution. One or two further units of batch normalisation, rectifier and convolution follow, then
a last batch normalisation, with no rectifier after the sum. The shortcut has no weights: it averages over 2 x 2 pixels
if the block halves the size, and pads missing channels with zeros. n = (depth - 2) / 6 with basic blocks (two 3 x 3
convolutions), (depth - 2) / 9 with bottlenecks (1 x 1, 3 x 3, and 1 x 1 to four times the channels).

Nanda et al. (2021) use depth 110 with alpha 64 and basic blocks for CIFAR-10, 164 with 48 and bottlenecks for
CIFAR-100. Source: Han, Kim and Kim 2017, "Deep pyramidal residual networks".
"""

import torch
from torch import nn
from torch.nn.functional import avg_pool2d, pad

from pipeline.networks.convolutional import widened

STEM = 16
STAGES = 3
EXPANSION = 4


def pyramid(
    classes: int, channels: int, size: int, width: float = 1.0, *, depth: int, alpha: float, bottleneck: bool
) -> nn.Module:
    """Return a PyramidNet for images of any ``size``; the last layer averages over all pixels.

    ``width`` multiplies the 16 channels that it starts with and ``alpha``.
    """
    blocks = (depth - 2) // (9 if bottleneck else 6)
    stem = widened(STEM, width)
    layers: list[nn.Module] = [nn.Conv2d(channels, stem, 3, padding=1, bias=False), nn.BatchNorm2d(stem)]
    inputs = stem
    for k in range(1, STAGES * blocks + 1):
        planes = max(1, round(width * (STEM + k * alpha / (STAGES * blocks))))
        stride = 2 if k in (blocks + 1, 2 * blocks + 1) else 1
        layers.append(Block(inputs, planes, stride, bottleneck))
        inputs = planes * EXPANSION if bottleneck else planes
    head = [nn.BatchNorm2d(inputs), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, classes)]
    network = nn.Sequential(*layers, *head)
    for module in network.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
    return network


class Block(nn.Module):
    """A residual block from ``inputs`` channels to ``planes`` channels, or four times as many with a bottleneck."""

    def __init__(self, inputs: int, planes: int, stride: int, bottleneck: bool) -> None:
        super().__init__()
        kernels, outputs = ((1, 3, 1), (planes, planes, EXPANSION * planes)) if bottleneck else ((3, 3), (planes,) * 2)
        # The first 3 x 3 convolution halves the size.
        halving = kernels.index(3)
        layers: list[nn.Module] = []
        for place, (kernel, wide) in enumerate(zip(kernels, outputs, strict=True)):
            step = stride if place == halving else 1
            layers += [nn.BatchNorm2d(inputs), *([nn.ReLU()] if place else [])]
            layers.append(nn.Conv2d(inputs, wide, kernel, step, padding=kernel // 2, bias=False))
            inputs = wide
        self.residual = nn.Sequential(*layers, nn.BatchNorm2d(inputs))
        self.stride = stride

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output."""
        residual: torch.Tensor = self.residual(x)
        shortcut = x if self.stride == 1 else avg_pool2d(x, 2, ceil_mode=True)
        missing = residual.shape[1] - shortcut.shape[1]
        return residual + pad(shortcut, (0, 0, 0, 0, 0, missing))
