"""What several networks are made of, and the network that is a single layer."""

from collections import OrderedDict

from torch import nn


def widened(count: int, width: float) -> int:
    """A number of channels or of hidden units times ``width``: rounded, and at least 1."""
    return max(1, round(count * width))


def rectified(inputs: int, outputs: int, dropout: float, kernel: int = 3, padding: int = 1) -> list[nn.Module]:
    """Convolution, batch normalisation, rectifier and, where ``dropout`` is positive, dropout."""
    layers = [nn.Conv2d(inputs, outputs, kernel, padding=padding), nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU()]
    return [*layers, nn.Dropout(dropout)] if dropout > 0 else layers


def logistic_regression(classes: int, channels: int, size: int, width: float = 1.0) -> nn.Module:
    """C linear functions of channels x size x size numbers. Its distances are known exactly."""
    return nn.Sequential(OrderedDict(pixels=nn.Flatten(), linear=nn.Linear(channels * size * size, classes)))
