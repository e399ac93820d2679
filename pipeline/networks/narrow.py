r"""Networks of torchvision with fewer channels, for small machines and small images.

.. math:: n_\text{channels} \mapsto w \, n_\text{channels}

for the inputs and outputs of every layer except colours and classes, so sums and concatenations of channels still fit.
A network of width 1/4 has about a sixteenth of the parameters and of the work.

These networks are trained from random weights. Three changes let them learn in a few hundred steps of gradient descent.
None of them changes the set of functions that a network can compute.

- AlexNet and VGG pool the output of the convolutions to p x p numbers per channel (p = 6 and 7), the size for
ImageNet's
  images. Small images leave fewer numbers, and the pool repeats them. The p^2 weights of a repeated number have the
  same gradient, so their sum moves p^2 times as far as any other weight. Here the pool keeps the remaining s x s
  numbers.
- Hidden linear layers use torch's initial weights, uniform with variance 1 / (3 inputs), instead of He's. A last layer
  with inputs h allows a learning rate of at most about 4 / E|h|^2. With He's weights and dropout but no batch
  normalisation, |h|^2 grows to thousands.
- The last batch normalisation of a residual block starts with weights 0, so the block is the identity (Goyal et al.
  2017).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

LAST_STD = 0.01
COLOURS = 3
ONE_BATCH = 2
"""Number of probe images: batch normalisation needs more than one."""


def narrowed(
    build: Callable[[], nn.Module], width: float, size: int | None = None, last_bias: float = 0.0
) -> nn.Module:
    """Return the network of ``build`` with ``width`` times the channels and hidden units, for images of side ``size``.

    Convolutions have He's initial weights, normal with variance 2 / inputs; hidden linear layers have torch's. The last
    layer's weights are small, so training starts with equal probabilities. Biases are 0, except the last layer's
    ``last_bias``. With ``size`` None the pool before the linear layers stays as published. Raises ValueError for a
    width that does not give whole numbers of channels.
    """
    # Replaced layers use no memory and no random numbers.
    with torch.device("meta"):
        network = build()
        if size is not None:
            keep_what_is_left(network, size)
    layers = [name for name, layer in network.named_modules() if isinstance(layer, (nn.Conv2d, nn.Linear))]
    for name, layer in list(network.named_modules()):
        if isinstance(layer, (nn.Conv2d, nn.Linear, nn.BatchNorm2d)):
            parent, _, own = name.rpartition(".")
            setattr(network.get_submodule(parent), own, _like(layer, width, name == layers[0], name == layers[-1]))
    last: Any = network.get_submodule(layers[-1])
    if last.bias is not None:
        nn.init.constant_(last.bias, last_bias)
    begin_as_identity(network)
    return network


def keep_what_is_left(network: Any, size: int) -> None:
    """Replace a pool to p x p, and the layers after it, by one to s x s if ``size`` x ``size`` images leave s < p.

    Networks without such a pool are unchanged. The linear layers take their inputs channel by channel.
    """
    pool, head = getattr(network, "avgpool", None), getattr(network, "classifier", None)
    if not (isinstance(pool, nn.AdaptiveAvgPool2d) and isinstance(head, nn.Sequential)):
        return
    side = int(pool.output_size[0])  # type: ignore[index, arg-type]
    channels, left = network.features(torch.empty(ONE_BATCH, COLOURS, size, size)).shape[1:3]
    if left >= side:
        return
    place, first = next((k, layer) for k, layer in enumerate(head) if isinstance(layer, nn.Linear))
    network.avgpool = nn.AdaptiveAvgPool2d(left)
    head[place] = nn.Linear(channels * left * left, first.out_features)


def begin_as_identity(network: nn.Module) -> None:
    """Set the weights of the last batch normalisation of torchvision's residual blocks to 0."""
    for block in network.modules():
        if hasattr(block, "downsample"):
            last: Any = block.bn3 if hasattr(block, "bn3") else block.bn2
            nn.init.zeros_(last.weight)


def _like(layer: nn.Module, width: float, first: bool, last: bool) -> nn.Module:
    """Return a layer with ``width`` times the inputs (unless ``first``) and the outputs (unless ``last``)."""
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
    elif isinstance(new, nn.Conv2d):
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
