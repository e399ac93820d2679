"""A network on pixels that includes normalisation and resizing, so distances are in pixels."""

from collections.abc import Sequence

import torch
from torch import nn
from torch.nn.functional import interpolate

from fairness_audits.errors import InvalidInput


class PixelNetwork(nn.Module):
    """Pixels (n, c, s, s) in [0, 1] -> logits (n, C).

    ``net`` takes images normalised by ``mean`` and ``std`` (one number per channel) and, unless it is None, resized to
    ``input_size`` (bilinear, with averaging if images shrink). ``size`` is s. ``pretrained`` tells whether ``net`` was
    initialised with published weights.
    """

    mean: torch.Tensor
    std: torch.Tensor

    def __init__(
        self,
        net: nn.Module,
        mean: Sequence[float],
        std: Sequence[float],
        size: int,
        input_size: int | None,
        pretrained: bool,
    ) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32).reshape(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32).reshape(1, -1, 1, 1))
        self.size = size
        self.input_size = input_size
        self.pretrained = pretrained

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        """Return the logits. Raises InvalidInput for images of another shape than the network's."""
        expected = (self.mean.shape[1], self.size, self.size)
        if pixels.ndim != 4 or tuple(pixels.shape[1:]) != expected:
            problem = f"expected images (n, {', '.join(map(str, expected))}), found {tuple(pixels.shape)}"
            remedy = "Resize them to the size that the network was trained on"
            raise InvalidInput(problem, option="pixels", remedy=remedy)
        x = (pixels - self.mean) / self.std
        if self.input_size is not None:
            side, shrinks = (self.input_size, self.input_size), self.input_size < self.size
            x = interpolate(x, side, mode="bilinear", align_corners=False, antialias=shrinks)
        logits: torch.Tensor = self.net(x)
        return logits
