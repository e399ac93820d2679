"""Sequential convolutional networks from the released code of Nanda et al. (2021).

Deep CNN, for CIFAR-10. The published images of 32 x 32 pixels are reduced to one pixel; larger images leave more
pixels, all connected to the hidden units. The dropout rates belong to the published width and tens of thousands of
steps. A ``width`` below 1 also multiplies the dropout rates; otherwise an eighth of the channels hardly learns in
hundreds of steps.

Deep CNN CIFAR100. The published images of 32 x 32 pixels are reduced to one pixel.

Adience Classifier, after Levi and Hassner (2015). 224 x 224 pixels are reduced to 24 x 24, so the first hidden units
have 221,184 inputs.

UTK Classifier. 200 x 200 pixels are reduced to 49 x 49, so the hidden units have 153,664 inputs.

Arguments are the numbers of classes and channels, the side of the images, and the factor on channels and hidden units.
"""

from collections import OrderedDict

from torch import nn


def logistic_regression(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Return C linear functions of channels x size x size numbers, whose distances are known exactly."""
    return nn.Sequential(OrderedDict(pixels=nn.Flatten(), linear=nn.Linear(channels * size * size, classes)))


def deep_cnn(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Deep CNN, for images of at least 32 x 32 pixels."""
    groups = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
    layers: list[nn.Module] = []
    inputs, share = channels, min(width, 1.0)
    for group in groups:
        for place, published in enumerate(group):
            outputs = widened(published, width)
            layers += rectified(inputs, outputs)
            if place < len(group) - 1:
                layers.append(nn.Dropout(share * (0.4 if len(layers) > 3 else 0.3)))
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
    hidden, left = widened(512, width), size // 2 ** len(groups)
    layers += [nn.Flatten(), nn.Dropout(share * 0.5)]
    layers += [nn.Linear(inputs * left * left, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(share * 0.5)]
    return nn.Sequential(*layers, nn.Linear(hidden, classes))


def deep_cnn_cifar100(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Deep CNN CIFAR100, for images of at least 32 x 32 pixels."""
    layers: list[nn.Module] = []
    inputs, left = channels, size
    for group, padding in (((128, 128), 1), ((256, 256), 1), ((512, 512), 1), ((1024,), 0)):
        for published in group:
            outputs = widened(published, width)
            convolution = nn.Conv2d(inputs, outputs, 3, padding=padding)
            layers += [convolution, nn.BatchNorm2d(outputs, affine=False), nn.ReLU()]
            inputs = outputs
        layers.append(nn.MaxPool2d(2))
        left = (left - 2 * (1 - padding)) // 2
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(inputs * left * left, classes))


def adience_classifier(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """Adience Classifier, for images of at least 37 x 37 pixels."""
    layers: list[nn.Module] = []
    inputs, left = channels, size
    for published, kernel in ((96, 7), (256, 5), (384, 3)):
        outputs = widened(published, width)
        layers += [*rectified(inputs, outputs, kernel, padding=0), nn.MaxPool2d(3, 2)]
        inputs, left = outputs, (left - kernel + 1 - 3) // 2 + 1
    layers.append(nn.Flatten())
    inputs, hidden = inputs * left * left, widened(512, width)
    for count in (inputs, hidden):
        layers += [nn.Linear(count, hidden), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(hidden, classes))


def utk_classifier(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """UTK Classifier, for images of at least 6 x 6 pixels."""
    layers: list[nn.Module] = []
    inputs, left = channels, size
    for published, kernel in ((32, 7), (64, 5)):
        outputs = widened(published, width)
        layers += [nn.Conv2d(inputs, outputs, kernel, padding=2), nn.ReLU(), nn.Dropout(0.3), nn.MaxPool2d(2)]
        inputs, left = outputs, (left + 2 * 2 - kernel + 1) // 2
    hidden = widened(256, width)
    layers += [nn.Flatten(), nn.Linear(inputs * left * left, hidden), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*layers, nn.Linear(hidden, classes))


def widened(count: int, width: float) -> int:
    """Multiply a number of channels or hidden units by ``width``, rounded and at least 1."""
    return max(1, round(count * width))


def rectified(inputs: int, outputs: int, kernel: int = 3, padding: int = 1) -> list[nn.Module]:
    """Convolution, batch normalisation and rectifier."""
    return [nn.Conv2d(inputs, outputs, kernel, padding=padding), nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU()]
