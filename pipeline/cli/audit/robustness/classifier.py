"""The user's network as a map from pixels to class scores, and each way in which it is none.

Normalisation is a part of the map, so that gradients and distances are those of pixels in [0, 1].
"""

from __future__ import annotations

import hashlib
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipeline.cli.audit.robustness.images import Shape
from pipeline.cli.network import Network, device_named, load_network
from pipeline.cli.output_kind import Kind, check_kind, detected_kind
from pipeline.cli.table import sha256
from pipeline.messages import SHOWN, listed, reason

if TYPE_CHECKING:
    import torch
    from torch import Tensor

ALONE = 3
"""How many images are also tried without the others, to see that images do not influence each other."""
CHANGE = 1e-3
"""A relative change of an output beyond this is no rounding of float32."""
EDGE = 1e-7
"""Probabilities are kept so far from 0 and 1 before their logarithm is taken: their rounding in float32."""


@dataclass(frozen=True)
class Raw:
    """``output`` maps pixels (m, c, h, w) to what the network returns; ``digest`` identifies the network."""

    output: Callable[[Tensor], Tensor]
    network: Network
    device: torch.device
    digest: str


def load_classifier(arguments: Namespace, shape: Shape) -> Raw:
    """The network of ``--model`` behind its normalisation. Raises ValueError where it cannot be loaded."""
    import torch

    device = device_named(arguments.device, torch.float32)
    network = load_network(arguments.model, arguments.trust_pickle, device, torch.float32)
    if isinstance(network.evaluate, torch.nn.Module):
        for values in network.evaluate.parameters():
            values.requires_grad_(False)
    mean, std = (_each(getattr(arguments, name), shape[0], name) for name in ("mean", "std"))
    if min(std) <= 0:
        raise ValueError(f"expected --std above 0, found {min(std):g}")
    centre, scale = (torch.tensor(values, device=device)[:, None, None] for values in (mean, std))
    evaluate, hint = network.evaluate, _hint(shape)

    def output(x: Tensor) -> Tensor:
        return _evaluated(evaluate, (x - centre) / scale, hint)

    return Raw(output, network, device, _digest(network))


def _each(values: Sequence[float], channels: int, name: str) -> tuple[float, ...]:
    """One number a channel."""
    if len(values) not in (1, channels):
        raise ValueError(
            f"--{name} gives {len(values)} numbers, but the images have {channels} channel{'s' * (channels > 1)}: give "
            "one for all, or one for each"
        )
    return tuple(values) * (channels if len(values) == 1 else 1)


def _digest(network: Network) -> str:
    """Of the parameters where the network has any, else of its file; empty for a function of a module."""
    import torch

    if isinstance(network.evaluate, torch.nn.Module):
        found = hashlib.sha256()
        for name, values in sorted(network.evaluate.state_dict().items()):
            found.update(f"{name} {tuple(values.shape)} ".encode())
            found.update(values.detach().cpu().contiguous().numpy().tobytes())
        if network.file is None:
            return found.hexdigest()
        return hashlib.sha256((found.hexdigest() + sha256(network.file)).encode()).hexdigest()
    return "" if network.file is None else sha256(network.file)


def _evaluated(evaluate: Callable[[Tensor], Any], x: Tensor, hint: str) -> Tensor:
    """One evaluation, with its failures and wrong shapes explained."""
    import torch

    n = len(x)
    try:
        output = evaluate(x)
    except Exception as error:
        raise ValueError(
            f"the model failed on {n} images of shape {tuple(x.shape[1:])}: {_told(error, hint)}"
        ) from error
    if not isinstance(output, torch.Tensor):
        raise ValueError(
            f"expected the model to return a torch tensor, found an object of type {type(output).__name__}: return the "
            "tensor of class scores itself"
        )
    if output.ndim not in (1, 2) or len(output) != n or output.shape[1:] == (0,):
        raise ValueError(
            f"expected the model to return ({n}, K) scores of K classes, or ({n},) or ({n}, 1) of class 1, for {n} "
            f"images, found shape {tuple(output.shape)}: return one row of scores an image"
        )
    if not output.is_floating_point():
        raise ValueError(
            f"expected the model to return floating-point scores, found {output.dtype}: return scores, not classes"
        )
    return output


def _told(error: Exception, hint: str) -> str:
    message = str(error)
    if "Guard failed" in message:
        return (
            f"{reason(error)}. The program was exported for another number or size of images: export it with "
            'dynamic_shapes, for example ({0: torch.export.Dim("images")},), and give images of its size (--resize)'
        )
    if "Expected all tensors to be on the same device" in message:
        return f"{reason(error)}. The model keeps tensors on another device: try --device cpu"
    if "Double" in message:
        return f"{reason(error)}. Images are float32: let the model compute in it"
    return f"{reason(error)}. {hint}"


def _hint(shape: Shape) -> str:
    channels, height, width = shape
    other = "3 --channels 3" if channels == 1 else "1 --channels 1"
    count, option = other.split(" ", 1)
    return (
        f"It was given {channels} channel{'s' * (channels > 1)} of {height} x {width} pixels: if it takes images of "
        f"another size, say --resize HxW; if it takes {count} channel{'s' * (count != '1')}, say {option}"
    )


@dataclass(frozen=True)
class Classifier:
    """``logits`` maps pixels (m, c, h, w) on the ``device`` to scores (m, ``classes``), the largest being predicted.

    ``kind`` says how the network's ``columns`` were read, ``detected`` whether that was read off the values;
    ``saturated`` counts images whose probability is exactly 0 or 1, where there may be no gradient.
    """

    logits: Callable[[Tensor], Tensor]
    device: torch.device
    classes: int
    columns: int
    kind: Kind
    detected: bool
    saturated: int


def read(raw: Raw, output: Tensor, names: Sequence[str], kind: Kind | None) -> Classifier:
    """What the network's ``output`` (n, K), (n, 1) or (n,) for the images ``names`` (n,) means.

    Raises ValueError for values that are not finite, and for values against ``kind``.
    """
    bad = (~output.isfinite().reshape(len(output), -1).all(1)).nonzero()[:, 0].tolist()
    if bad:
        raise ValueError(
            f"the model returns NaN or infinite values for {len(bad)} of {len(output)} images, the first being "
            f"{listed([names[point] for point in bad], SHOWN)}: mend the model (or --mean and --std), or remove them"
        )
    found = detected_kind(output) if kind is None else kind
    check_kind(output, found)
    columns = output.shape[1] if output.ndim == 2 else 1
    extreme = ((output <= 0) | (output >= 1)).reshape(len(output), -1).any(1)
    return Classifier(
        logits=lambda x: scores(raw.output(x), found),
        device=raw.device,
        classes=max(columns, 2),
        columns=columns,
        kind=found,
        detected=kind is None,
        saturated=int(extreme.sum()) if found == "probability" else 0,
    )


def scores(output: Tensor, kind: Kind) -> Tensor:
    """(m, K) scores whose largest is the predicted class, K >= 2, logits or log-probabilities.

    One column holds class 1 alone: class 0 then has the score 0 against a logit, and log(1 - p) against a probability.
    """
    import torch

    if output.ndim == 2 and output.shape[1] > 1:
        return output.clamp(EDGE, 1).log() if kind == "probability" else output
    one = output.reshape(-1)
    if kind == "logits":
        return torch.stack((torch.zeros_like(one), one), dim=1)
    p = (one if kind == "probability" else one.exp()).clamp(EDGE, 1 - EDGE)
    return torch.stack((torch.log1p(-p), p.log()), dim=1)


def check_alone(raw: Raw, x: Tensor, together: Tensor) -> None:
    """ValueError unless the outputs of the first images (m, c, h, w) are theirs in any company, and each time."""
    import torch

    with torch.no_grad():
        alone = raw.output(x[:ALONE]).cpu()
    together = together[: len(alone)]
    if bool(((alone - together).abs() > CHANGE * (1 + together.abs())).any()):
        raise ValueError(
            "the model's output for an image changes with the other images of its batch, or from call to call: "
            "expected a network in evaluation mode (.eval(): no dropout, fixed batch normalisation)"
        )


def check_gradient(classifier: Classifier, x: Tensor) -> None:
    """ValueError where no gradient leads from the scores of images (m, c, h, w) to their pixels."""
    import torch

    leaf = x.detach().requires_grad_(True)
    with torch.enable_grad():
        margins = classifier.logits(leaf).topk(2, dim=1).values
        gap = (margins[:, 0] - margins[:, 1]).sum()
    gradient = None
    if gap.requires_grad:
        try:
            (gradient,) = torch.autograd.grad(gap, leaf, allow_unused=True)
        except RuntimeError as error:
            raise ValueError(f"the model's gradient cannot be computed: {reason(error)}") from error
    if gradient is None:
        raise ValueError(
            "the model gives no gradient with respect to its input: attacks need a differentiable torch network (no "
            ".detach(), no NumPy, no torch.no_grad() inside); --attack smoothing needs none"
        )
    if not bool((gradient != 0).any()):
        raise ValueError(
            f"the model's gradient is zero at the first {len(x)} images: it is constant, saturated, or rounds inside "
            "(argmax, a threshold): return logits, the scores before the rounding; --attack smoothing needs no gradient"
        )
