r"""Networks of torchvision with fewer channels, for machines and images that are too small for the whole ones.

.. math:: n_\text{channels} \mapsto w \, n_\text{channels}

for every layer's inputs and outputs but the colours and the classes, so that sums and concatenations of channels fit as
before. A network of width 1/4 has about a sixteenth of the parameters and of the work.

They are trained from random weights, which the published ones are not made for; three things let a few hundred steps
of gradient descent learn. None of them changes which functions a network can compute.

- AlexNet and VGG pool what the convolutions leave to p x p numbers a channel (6 and 7), as many as of ImageNet's
  pictures. Of small ones fewer are left, and the pool repeats them: the p^2 weights of a repeated number have one
  gradient, and their sum moves p^2 times as far as any other weight. Here the pool keeps what is left, s x s.
- Hidden linear layers have torch's own weights, uniform with variance 1 / (3 inputs), not He's. A last layer whose
  inputs are h bears no greater learning rate than about 4 / E|h|^2, and He's weights with dropout, without batch
  normalisation, let |h|^2 grow to thousands.
- The last batch normalisation of a residual block begins with weights 0, the block as the identity (Goyal et al. 2017).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

LAST_STD = 0.01
COLOURS = 3
ONE_BATCH = 2
"""Pictures that show what is left of one: batch normalisation takes no single ones."""


def narrowed(
    build: Callable[[], nn.Module], width: float, size: int | None = None, last_bias: float = 0.0
) -> nn.Module:
    """What ``build`` makes, with ``width`` times the channels and hidden units, for pictures of ``size`` x ``size``.

    Weights of convolutions are He's, normal with variance 2 / inputs, of hidden linear layers torch's own. Those of the
    last layer are so small that training begins with equal probabilities. Biases are 0, the last layer's ``last_bias``.
    ``size`` None: the pool before the linear layers stays as published. Raises ValueError for a width that does not
    leave whole numbers of channels.
    """
    # Neither memory nor random numbers for layers that are replaced.
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
    """Replace a pool to p x p by one to s x s, where pictures of ``size`` x ``size`` leave s < p, and what follows it.

    Does nothing to a network of torchvision without such a pool. Their linear layers take channel by channel.
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
    """Weights 0 for the last batch normalisation of torchvision's residual blocks; nothing in other networks."""
    for block in network.modules():
        if hasattr(block, "downsample"):
            last: Any = block.bn3 if hasattr(block, "bn3") else block.bn2
            nn.init.zeros_(last.weight)


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
