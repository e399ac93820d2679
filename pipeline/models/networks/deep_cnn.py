"""Deep CNN: thirteen 3 x 3 convolutions in five groups, each halved in size by a pool, and two linear layers.

64, 64 | 128, 128 | 256 x 3 | 512 x 3 | 512 x 3, each convolution with batch normalisation and rectifier; then dropout,
512 hidden units with batch normalisation and rectifier, dropout, and the classes. Dropout .3 after the first
convolution, .4 after every other but the last of its group, .5 around the hidden units. The published inputs have
32 x 32 pixels, of which one is left; larger ones leave more, and the hidden units take them all.

The rates of dropout are those of the published width, for tens of thousands of steps. A narrower network has less to
leave out: a ``width`` below 1 multiplies them too, without which an eighth of the channels hardly learns in hundreds.

Source: the network for CIFAR-10 in the code that Nanda et al. (2021) released.
"""

from torch import nn

from pipeline.models.networks.layers import rectified, widened

GROUPS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
HIDDEN = 512
FIRST_DROPOUT, DROPOUT, HIDDEN_DROPOUT = 0.3, 0.4, 0.5


def build(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """The network for images of ``size`` x ``size`` pixels, at least 32."""
    layers: list[nn.Module] = []
    inputs, kept = channels, min(width, 1.0)
    for group in GROUPS:
        for place, published in enumerate(group):
            dropout = 0.0 if place == len(group) - 1 else kept * (DROPOUT if layers else FIRST_DROPOUT)
            outputs = widened(published, width)
            layers += rectified(inputs, outputs, dropout)
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    hidden, left = widened(HIDDEN, width), size // 2 ** len(GROUPS)
    return nn.Sequential(
        *layers,
        nn.Flatten(),
        nn.Dropout(kept * HIDDEN_DROPOUT),
        nn.Linear(inputs * left * left, hidden),
        nn.BatchNorm1d(hidden),
        nn.ReLU(),
        nn.Dropout(kept * HIDDEN_DROPOUT),
        nn.Linear(hidden, classes),
    )
