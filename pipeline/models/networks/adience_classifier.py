"""Adience Classifier: three convolutions with batch normalisation, rectifier and a pool, then twice 512 hidden units.

7 x 7 (96 channels), 5 x 5 (256) and 3 x 3 (384), no padding, stride 1; pools of 3 x 3 with stride 2; hidden units with
rectifier and dropout .5. Of 224 x 224 pixels 24 x 24 are left, so that the first hidden units have 221,184 inputs.

Source: the network for Adience in the code that Nanda et al. (2021) released, after Levi and Hassner (2015).
"""

from torch import nn

from pipeline.models.networks.layers import rectified, widened

CHANNELS = (96, 256, 384)
KERNELS = (7, 5, 3)
HIDDEN = (512, 512)
HIDDEN_DROPOUT = 0.5


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """The network for images of ``size`` x ``size`` pixels, at least 37."""
    layers: list[nn.Module] = []
    inputs, left = channels, size
    for published, kernel in zip(CHANNELS, KERNELS, strict=True):
        outputs = widened(published, width)
        layers += [*rectified(inputs, outputs, 0.0, kernel, padding=0), nn.MaxPool2d(3, 2)]
        inputs, left = outputs, (left - kernel + 1 - 3) // 2 + 1
    layers.append(nn.Flatten())
    inputs *= left * left
    for published in HIDDEN:
        outputs = widened(published, width)
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(HIDDEN_DROPOUT)]
        inputs = outputs
    return nn.Sequential(*layers, nn.Linear(inputs, classes))
