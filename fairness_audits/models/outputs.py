"""Interpretation of a network's outputs as class scores."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy.special import logsumexp

if TYPE_CHECKING:
    import torch

Kind: TypeAlias = Literal["logits", "log-probabilities", "probability"]
ROUNDING = 1e-4
"""Tolerance for the sum of probabilities in float32 arithmetic."""
DECIMALS = 4
"""Largest number of decimal places that counts as rounding."""


def detected_kind(output: np.ndarray) -> Kind:
    """Infer the kind of finite outputs (n, K), (n, 1) or (n,).

    All within [0, 1] (and, for several columns, with sum 1): ``probability``. Several columns whose exponentials sum to
    1: ``log-probabilities``. Otherwise: ``logits``.
    """
    output = np.asarray(output, dtype=np.float64)
    places = next((count for count in range(1, DECIMALS + 1) if np.array_equal(np.round(output, count), output)), None)
    rounding = max(ROUNDING, resolution(output), 0.0 if places is None else 10.0**-places)
    unit = bool(((output >= 0) & (output <= 1)).all())
    if output.ndim == 1 or output.shape[1] == 1:
        return "probability" if unit else "logits"
    # Each column may be off by half a rounding unit.
    if unit and bool((np.abs(output.sum(axis=1) - 1) < max(rounding, rounding * output.shape[1] / 2)).all()):
        return "probability"
    return "log-probabilities" if bool((np.abs(logsumexp(output, axis=1)) < ROUNDING).all()) else "logits"


def resolution(output: np.ndarray) -> float:
    """Return the rounding unit at 1 of a half-precision type that represents all values exactly; 0 if none does."""
    with np.errstate(over="ignore"):
        single = np.asarray(output, dtype=np.float32)
        half = single.astype(np.float16)
    if not np.array_equal(single, output):
        return 0.0
    if not (np.ascontiguousarray(single).view(np.uint32) & 0xFFFF).any():
        return 2.0**-7  # bfloat16
    return 2.0**-10 if np.array_equal(half, single) else 0.0


def class_scores(kind: Kind, finite: bool = False) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return a map from raw outputs to logits (n, K), K >= 2: log P(y = c | x) up to a constant of the row.

    A single column holds class 1. Then the score of class 0 is 0 for a logit (sigmoid is the softmax of (0, logit)),
    log(1 - p) for a probability p, and log(1 - exp(l)) for a log-probability l. A probability below the smallest normal
    number of its precision has score -inf (or the logarithm of that number, if scores must be ``finite``) and no
    gradient. Other probabilities have their logarithm; for softmax in float32 it is at most 87 below the largest.
    """
    import torch

    def log(p: torch.Tensor) -> torch.Tensor:
        least = torch.finfo(p.dtype).tiny
        score = p.clamp_min(least).log()
        return score if finite else score.masked_fill(p < least, -torch.inf)

    def log_of_rest(p: torch.Tensor) -> torch.Tensor:
        # The largest number below 1: for p = 1, the remaining probability is unknown and at most this.
        most = 1 - torch.finfo(p.dtype).eps / 2
        score = torch.log1p(-p.clamp_max(most))
        return score if finite else score.masked_fill(p > most, -torch.inf)

    def scores(output: torch.Tensor) -> torch.Tensor:
        if output.ndim == 2 and output.shape[1] > 1:
            return log(output) if kind == "probability" else output
        one = output.reshape(-1)
        if kind == "logits":
            return torch.stack((torch.zeros_like(one), one), dim=1)
        if kind == "probability":
            return torch.stack((log_of_rest(one), log(one)), dim=1)
        return torch.stack((log(-torch.expm1(one)), one), dim=1)

    return scores
