"""A trial of a user's network on the audited rows: each way in which it cannot be audited has its message."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from pipeline.cli.network import Network
from pipeline.cli.output_kind import Kind, check_kind, class_scores, detected_kind
from pipeline.messages import SHOWN, listed, reason
from pipeline.types import Array

if TYPE_CHECKING:
    import torch

BLOCK_ROWS = 8192
ALONE = 3
"""How many rows are also tried without the others, to see that rows do not influence each other."""
CHANGE = 1e-3
"""A relative change of an output beyond this is no rounding, not even in float32."""


@dataclass(frozen=True)
class Scores:
    """``evaluate`` maps inputs in the network's own units (n, d) to the logits (n, 2) of both classes.

    ``probability`` (n,) is P(class 1) at the audited rows; ``saturated`` counts rows where it is exactly 0 or 1 because
    the network returns probabilities. ``detected`` tells whether ``kind`` was read off the values.
    """

    evaluate: Callable[[torch.Tensor], torch.Tensor]
    kind: Kind
    detected: bool
    columns: int
    probability: Array
    saturated: int


def probed(network: Network, features: torch.Tensor, names: Sequence[str], kind: Kind | None) -> Scores:
    """The network as a map to class scores, after a trial on all rows ``features`` (n, d).

    Raises ValueError where it fails, returns something of another shape, non-finite values, or values against
    ``kind``, where rows influence each other or chance decides, or where there is no gradient to follow.
    """
    import torch

    outputs = []
    for block in _blocks(features):
        with torch.no_grad():
            outputs.append(_output(network, block, names))
    output = torch.cat(outputs)
    _check_finite(output)
    _check_alone(network, features, output, names)
    found = detected_kind(output) if kind is None else kind
    check_kind(output, found)
    scores = class_scores(found)

    def evaluate(x: torch.Tensor) -> torch.Tensor:
        return scores(network.evaluate(x))

    _check_gradient(evaluate, features)
    logits = scores(output).double()
    return Scores(
        evaluate=evaluate,
        kind=found,
        detected=kind is None,
        columns=2 if output.ndim == 2 and output.shape[1] == 2 else 1,
        probability=logits.softmax(1)[:, 1].cpu().numpy(),
        saturated=int(((output <= 0) | (output >= 1)).reshape(len(output), -1).any(1).sum())
        if found == "probability"
        else 0,
    )


def _blocks(x: torch.Tensor) -> Iterator[torch.Tensor]:
    yield from x.split(BLOCK_ROWS)


def _output(network: Network, x: torch.Tensor, names: Sequence[str]) -> torch.Tensor:
    """One evaluation, with its failures and wrong shapes explained."""
    import torch

    n, d = x.shape
    try:
        output: Any = network.evaluate(x)
    except Exception as error:
        raise ValueError(
            f"the model failed on a batch of {n} rows and {d} features: {reason(error)}. {_remedy(str(error), names)}"
        ) from error
    if not isinstance(output, torch.Tensor):
        raise ValueError(
            f"expected the model to return a torch tensor, found an object of type {type(output).__name__}: return the "
            "tensor of scores itself (not a NumPy array, which has no gradient, nor a tuple or a dictionary)"
        )
    if tuple(output.shape) not in {(n, 2), (n, 1), (n,)}:
        raise ValueError(
            f"expected the model to return ({n}, 2) scores of two classes, or ({n},) or ({n}, 1) of class 1, for {n} "
            f"rows, found shape {tuple(output.shape)}: the audit is for models of two classes that map each row to its "
            "scores"
        )
    if not output.is_floating_point():
        raise ValueError(
            f"expected the model to return floating-point scores, found {output.dtype}: return scores, not classes"
        )
    return output


def _remedy(message: str, names: Sequence[str]) -> str:
    """What to do, by what torch's message is about."""
    if "Guard failed" in message:
        return (
            "The program was exported for one number of rows: export it with dynamic_shapes, "
            'for example ({0: torch.export.Dim("rows")},)'
        )
    if "dtype" in message or ("Float" in message and "Double" in message):
        return "The model computes in another precision: try --dtype float32"
    if "device" in message:
        return "The model keeps tensors on another device: try --device cpu"
    return (
        f"It was given {len(names)} columns: {listed(names)}. If it takes others, or another order, name them in "
        "--features"
    )


def _check_finite(output: torch.Tensor) -> None:
    bad = np.flatnonzero(~output.isfinite().reshape(len(output), -1).all(1).cpu().numpy())
    if bad.size:
        raise ValueError(
            f"the model returns NaN or infinite values for {bad.size} of {len(output)} audited rows, the first being "
            f"{listed(bad.tolist(), SHOWN)} (counted from 0): mend the model, or remove these rows"
        )


def _check_alone(network: Network, x: torch.Tensor, output: torch.Tensor, names: Sequence[str]) -> None:
    """A row's output must be its own: the same in any company, and each time."""
    import torch

    with torch.no_grad():
        alone = _output(network, x[:ALONE], names)
    together = output[: len(alone)]
    if bool(((alone - together).abs() > CHANGE * (1 + together.abs())).any()):
        raise ValueError(
            "the model's output for a row changes with the other rows of its batch, or from call to call: expected a "
            "network in evaluation mode (.eval(): no dropout, fixed batch normalisation)"
        )


def _check_gradient(evaluate: Callable[[torch.Tensor], torch.Tensor], features: torch.Tensor) -> None:
    """There must be a gradient, and it must not vanish everywhere."""
    import torch

    flat = True
    for block in _blocks(features):
        x = block.detach().requires_grad_(True)
        with torch.enable_grad():
            scores = evaluate(x)
            log_odds = scores[:, 1] - scores[:, 0]
        gradient = None
        if log_odds.requires_grad:
            try:
                (gradient,) = torch.autograd.grad(log_odds.sum(), x, allow_unused=True)
            except RuntimeError as error:
                raise ValueError(f"the model's gradient cannot be computed: {reason(error)}") from error
        if gradient is None:
            raise ValueError(
                "the model gives no gradient with respect to its input: the audit needs a differentiable torch network "
                "(no .detach(), no NumPy, no torch.no_grad() inside, no trees)"
            )
        flat = flat and not bool((gradient != 0).any())
    if flat:
        raise ValueError(
            "the model's gradient is zero at every audited row: it is constant or rounds inside (argmax, a threshold). "
            "This audit follows gradients and cannot say anything about it: return the scores before the rounding"
        )
