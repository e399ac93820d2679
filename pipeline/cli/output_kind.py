"""What a network returns, and how to read it as scores of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import torch

Kind = Literal["logits", "log-probabilities", "probability"]
KINDS: tuple[Kind, ...] = ("logits", "log-probabilities", "probability")
ROUNDING = 1e-4
"""How far probabilities may be from summing to 1, in float32 arithmetic."""


def detected_kind(output: torch.Tensor) -> Kind:
    """Read the kind off finite outputs (n, K), (n, 1) or (n,).

    All within [0, 1] (and, in several columns, summing to 1): ``probability``. Several columns whose exponentials
    sum to 1: ``log-probabilities``. Anything else: ``logits``.
    """
    output = output.double()
    unit = bool(((output >= 0) & (output <= 1)).all())
    if output.ndim == 1 or output.shape[1] == 1:
        return "probability" if unit else "logits"
    if unit and bool(((output.sum(1) - 1).abs() < ROUNDING).all()):
        return "probability"
    return "log-probabilities" if bool((output.logsumexp(1).abs() < ROUNDING).all()) else "logits"


def check_kind(output: torch.Tensor, kind: Kind) -> None:
    """ValueError where the values cannot be of the kind that the user says they are."""
    if kind == "probability" and not bool(((output >= 0) & (output <= 1)).all()):
        raise ValueError(
            f"--output-kind probability: expected values in [0, 1], found {float(output.min()):.4g} to "
            f"{float(output.max()):.4g}: these look like logits"
        )
    if kind == "log-probabilities" and not bool((output <= ROUNDING).all()):
        raise ValueError(
            f"--output-kind log-probabilities: expected values of at most 0, found {float(output.max()):.4g}: "
            "these look like logits"
        )


def class_scores(kind: Kind, edge: float = 0.0) -> Callable[[torch.Tensor], torch.Tensor]:
    """A map from raw outputs to logits (n, K), K >= 2: log P(y = c | x) up to a constant of the row.

    One column holds class 1 alone. Then the score of class 0 is 0 for a logit (sigmoid is softmax of (0, logit)),
    log(1 - p) for a probability p, and log(1 - exp(l)) for a log-probability l. Probabilities are kept ``edge`` away
    from 0 and 1, so that with an edge above 0 all scores are finite.
    """
    import torch

    def scores(output: torch.Tensor) -> torch.Tensor:
        if output.ndim == 2 and output.shape[1] > 1:
            return (output.clamp(edge, 1) if edge else output).log() if kind == "probability" else output
        one = output.reshape(-1)
        if kind == "logits":
            return torch.stack((torch.zeros_like(one), one), dim=1)
        if edge:
            p = (one if kind == "probability" else one.exp()).clamp(edge, 1 - edge)
            return torch.stack((torch.log1p(-p), p.log()), dim=1)
        if kind == "probability":
            return torch.stack((torch.log1p(-one), one.log()), dim=1)
        return torch.stack((torch.log(-torch.expm1(one)), one), dim=1)

    return scores
