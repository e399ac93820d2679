"""Deep CNN CIFAR100: seven 3 x 3 convolutions in four groups, each halved in size by a pool, and a linear layer.

128, 128 | 256, 256 | 512, 512 | 1024, the last without padding, each with batch normalisation (without weights) and
rectifier. The published inputs have 32 x 32 pixels, of which one is left.

Source: the network for CIFAR-100 in the code that Nanda et al. (2021) released.
"""

from torch import nn

from pipeline.models.networks.layers import widened

GROUPS = ((128, 128), (256, 256), (512, 512), (1024,))


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """The network for images of ``size`` x ``size`` pixels, at least 32."""
    layers: list[nn.Module] = []
    inputs, left = channels, size
    for group in GROUPS:
        padding = 0 if group is GROUPS[-1] else 1
        for published in group:
            outputs = widened(published, width)
            convolution = nn.Conv2d(inputs, outputs, 3, padding=padding)
            layers += [convolution, nn.BatchNorm2d(outputs, affine=False), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
        left = (left - 2 * (1 - padding)) // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * left * left, classes))
