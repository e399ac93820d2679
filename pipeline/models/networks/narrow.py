r"""Networks of torchvision with fewer channels, for machines and images that are too small for the whole ones.

.. math:: n_\text{channels} \mapsto w \, n_\text{channels}

for every layer's inputs and outputs but the colours and the classes, so that sums and concatenations of channels fit as
before. A network of width 1/4 has about a sixteenth of the parameters and of the work.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

LAST_STD = 0.01


def narrowed(build: Callable[[], nn.Module], width: float) -> nn.Module:
    """What ``build`` makes, with ``width`` times the channels and hidden units.

    Weights are He's, normal with variance 2 / inputs, but of the last layer, whose are so small that training begins
    with equal probabilities; biases are 0. Raises ValueError for a width that does not
    leave whole numbers of channels.
    """
    # Neither memory nor random numbers for layers that are replaced.
    with torch.device("meta"):
        network = build()
    layers = [name for name, layer in network.named_modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    for name, layer in list(network.named_modules()):
        if isinstance(layer, (nn.Conv2d, nn.Linear, nn.BatchNorm2d)):
            parent, _, own = name.rpartition(".")
            setattr(network.get_submodule(parent), own, _like(layer, width, name == layers[0], name == layers[-1]))
    return network


def _like(layer: nn.Module, width: float, first: bool, last: bool) -> nn.Module:
    """A new layer with ``width`` times the inputs, but of the ``first``, and the outputs, but of the ``last``."""
    if isinstance(layer, nn.BatchNorm2d):
        return nn.BatchNorm2d(_scaled(layer.num_features, width), layer.eps, layer.momentum)
    new: nn.Conv2d | nn.Linear
    if isinstance(layer, nn.Conv2d):
        if layer.groups != 1:
            raise ValueError(f"expected convolutions of one group, found {layer.groups}: use width 1")
        inputs, outputs = _ends(layer.in_channels, layer.out_channels, width, first, last)
        shape = {"kernel_size": layer.kernel_size, "stride": layer.stride, "padding": layer.padding}
        new = nn.Conv2d(inputs, outputs, **shape, bias=layer.bias is not None)  # type: ignore[arg-type]
    else:
        assert isinstance(layer, nn.Linear)
        inputs, outputs = _ends(layer.in_features, layer.out_features, width, first, last)
        new = nn.Linear(inputs, outputs, bias=layer.bias is not None)
    if last:
        nn.init.normal_(new.weight, std=LAST_STD)
    else:
        nn.init.kaiming_normal_(new.weight, nonlinearity="relu")
    if new.bias is not None:
        nn.init.zeros_(new.bias)
    return new


def _ends(inputs: int, outputs: int, width: float, first: bool, last: bool) -> tuple[int, int]:
    return inputs if first else _scaled(inputs, width), outputs if last else _scaled(outputs, width)


def _scaled(count: int, width: float) -> int:
    scaled = count * width
    if scaled < 1 or scaled != int(scaled):
        raise ValueError(
            f"method.width {width:g} would leave {scaled:g} of {count} channels: expected a width that leaves whole "
            "numbers of them, such as 0.5, 0.25 or 0.125"
        )
    return int(scaled)
