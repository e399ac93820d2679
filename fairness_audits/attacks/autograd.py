"""The gradient flow attack on any torch network, by automatic differentiation."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from fairness_audits.attacks.distances import evaluation
from fairness_audits.attacks.gradient_flow import Bounds, Flow, LossAndGradient, Plan, gradient_flow_in_blocks
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

CPU_BLOCK_ROWS = 1024
GPU_BLOCK_ROWS = 1 << 20


def loss_and_gradient(log_probabilities: Callable[[Tensor], Tensor], labels: Tensor) -> LossAndGradient:
    """Return l(x) = log(1 + exp(logsumexp_{c != y} s_c(x) - s_y(x))), the cross-entropy of scores s, and its gradient.

    The loss is computed from the log-odds against the label, so it keeps its relative accuracy when it is small: -s_y
    would round to 0 beyond log-odds of 17 in float32 and 37 in float64. It is invariant to a shift of all scores of a
    point, so scores can be unnormalised logits or log-probabilities. The loss is float64; the gradient has x's dtype.

    Parameters: ``log_probabilities`` maps x (..., n, d) to scores (..., n, C), C >= 2; ``labels`` (..., n) integer.
    Gradients are taken in x only; parameters neither receive nor need gradients.
    """

    def hook(x: Tensor) -> tuple[Tensor, Tensor]:
        leaf = x.detach().requires_grad_(True)
        with torch.enable_grad():
            scores = log_probabilities(leaf)
        loss, slope = cross_entropy(scores.detach(), labels)
        (gradient,) = torch.autograd.grad(scores, leaf, slope)
        return loss, gradient

    return hook


def cross_entropy(scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Compute l = softplus(o), o = logsumexp_{c != y} s_c - s_y, and dl/ds_y = -sigma(o), dl/ds_c = softmax(s)_c.

    ``scores`` (..., n, C), ``labels`` (..., n) -> loss (..., n) float64, slope (..., n, C) in the scores' dtype.
    """
    if scores.shape[-1] < 2:
        problem = f"expected scores for at least 2 classes on the last axis, found shape {tuple(scores.shape)}"
        raise InvalidInput(problem, option="scores")
    labels = labels.expand(scores.shape[:-1])
    if scores.shape[-1] == 2:
        sign = 2 * labels - 1
        log_odds = (scores[..., 0] - scores[..., 1]) * sign
        toward_0 = torch.sigmoid(log_odds) * sign
        slope = torch.stack([toward_0, -toward_0], dim=-1)
    else:
        own = labels[..., None]
        log_odds = scores.scatter(-1, own, -torch.inf).logsumexp(-1) - scores.gather(-1, own)[..., 0]
        slope = scores.softmax(-1).scatter(-1, own, -torch.sigmoid(log_odds)[..., None])
    # Above the threshold, softplus equals the identity in double precision.
    return torch.nn.functional.softplus(log_odds.double(), threshold=40.0), slope


def attack(
    log_probabilities: Callable[[Tensor], Tensor],
    features: Array,
    labels: Array,
    plan: Plan,
    *,
    device: str = "cpu",
    dtype: str = "float64",
    block_rows: int | None = None,
    bounds: Bounds | None = None,
) -> Flow:
    """Run the gradient flow attack on a torch network with NumPy points; ``Flow.x`` is a NumPy array too.

    A ``torch.nn.Module`` runs in evaluation mode (no dropout, frozen batch statistics) and is returned to its mode.
    Points are processed in blocks of ``block_rows`` (by default sized for the processor's cache, or all points on a
    GPU). ``features`` (..., n, d), ``labels`` (..., n); the network's parameters must be on ``device`` with ``dtype``.
    Other arguments and errors are those of :func:`fairness_audits.attacks.gradient_flow.gradient_flow`.
    """
    rows = block_rows or (CPU_BLOCK_ROWS if torch.device(device).type == "cpu" else GPU_BLOCK_ROWS)
    x0 = torch.as_tensor(np.asarray(features), dtype=getattr(torch, dtype), device=device)
    y = torch.as_tensor(np.asarray(labels), dtype=torch.int64, device=device)
    with evaluation(log_probabilities):
        flow = gradient_flow_in_blocks(
            lambda block: loss_and_gradient(log_probabilities, y[..., block]), x0, plan, rows, bounds
        )
    return replace(flow, x=flow.x.cpu().numpy())
