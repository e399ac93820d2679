"""UTK Classifier: two convolutions, each with rectifier, dropout and a pool, then 256 hidden units.

7 x 7 (32 channels) and 5 x 5 (64), padding 2, dropout .3; hidden units with rectifier and dropout .5. Of 200 x 200
pixels 49 x 49 are left, so that the hidden units have 153,664 inputs.

Source: the network for UTKFace in the code that Nanda et al. (2021) released.
"""

from torch import nn

from pipeline.models.networks.layers import widened

CHANNELS = (32, 64)
KERNELS = (7, 5)
HIDDEN = 256
PADDING = 2
DROPOUT, HIDDEN_DROPOUT = 0.3, 0.5


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """The network for images of ``size`` x ``size`` pixels, at least 6."""
    layers: list[nn.Module] = []
    inputs, left = channels, size
    for published, kernel in zip(CHANNELS, KERNELS, strict=True):
        outputs = widened(published, width)
        convolution = nn.Conv2d(inputs, outputs, kernel, padding=PADDING)
        layers += [convolution, nn.ReLU(), nn.Dropout(DROPOUT), nn.MaxPool2d(2)]
        inputs, left = outputs, (left + 2 * PADDING - kernel + 1) // 2
    hidden = widened(HIDDEN, width)
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Linear(inputs * left * left, hidden),
        nn.ReLU(),
        nn.Dropout(HIDDEN_DROPOUT),
        nn.Linear(hidden, classes),
    )
