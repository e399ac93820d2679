r"""One hidden layer of rectified linear units, softmax over two classes.

.. math:: \log p(\cdot \mid x) = \text{log-softmax}\big(\max(x W_1 + b_1, 0)\, W_2 + b_2\big)

Parameters, for R repetitions, d inputs and H hidden units: ``w1`` (R, d, H), ``b1`` (R, H), ``w2`` (R, H, 2),
``b2`` (R, 2). With two classes, everything depends only on the difference of the two logits, the margin
z = max(x W_1 + b_1, 0) v + c of class 1 over class 0, with v = W_2[:, 1] - W_2[:, 0] and c = b_2[1] - b_2[0].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from fairness_audits.values import Array, Generators

if TYPE_CHECKING:
    import torch


def glorot_networks(rngs: Generators, widths: Sequence[int], bias: float = 0.0) -> dict[str, Array]:
    """Draw a network for each generator, weights uniform on +-sqrt(6 / (fan-in + fan-out)), all biases ``bias``.

    ``widths`` are the numbers of inputs, of the units of each hidden layer, and of outputs. Returns ``w1`` (R, inputs,
    units), ``b1`` (R, units), ``w2`` and so on.
    """
    networks: dict[str, Array] = {}
    for number, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        limit = np.sqrt(6 / (inputs + outputs))
        networks[f"w{number}"] = np.stack([rng.uniform(-limit, limit, (inputs, outputs)) for rng in rngs])
        networks[f"b{number}"] = np.full((len(rngs), outputs), bias)
    return networks


def log_probabilities(parameters: Mapping[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Compute log probabilities of both classes: x (R, n, d) -> (R, n, 2).

    These are log sigma(z) and log sigma(-z) of the margin z. In a log-softmax, 1 + e^{-z} would round to 1; here the
    smaller loss keeps its relative precision even if the network is very confident.
    """
    import torch
    from torch.nn.functional import logsigmoid

    hidden = (x @ parameters["w1"] + parameters["b1"].unsqueeze(-2)).relu()
    logits = hidden @ parameters["w2"] + parameters["b2"].unsqueeze(-2)
    margin = logits[..., 1] - logits[..., 0]
    return torch.stack([logsigmoid(-margin), logsigmoid(margin)], dim=-1)


def loss_and_gradient(parameters: Mapping[str, Array], x: Array, y: Array) -> tuple[Array, Array]:
    r"""Compute the cross entropy and its gradient in the input, in closed form.

    .. math:: \ell = \log(1 + e^{-s z}), \qquad \nabla_x \ell = -\frac{s}{1 + e^{s z}}\; W_1 (1[h > 0] \odot v)

    with h = x W_1 + b_1, the margin z and the sign s = 2y - 1. The loss is a softplus, evaluated through e^{-|z|}. It
    never takes the logarithm of a rounded probability, and is positive unless e^{-|z|} underflows.

    Parameters
    ----------
    parameters: ``w1`` (R, d, H), ``b1`` (R, H), ``w2`` (R, H, 2), ``b2`` (R, 2).
    x: inputs (R, n, d). Computed in the precision that x and the parameters share.
    y: labels (R, n) in {0, 1}.

    Returns
    -------
    loss (R, n) and gradient (R, n, d).
    """
    w1, direction = parameters["w1"], _direction(parameters)
    hidden = x @ w1
    hidden += parameters["b1"][..., None, :]
    active = hidden > 0
    np.maximum(hidden, 0, out=hidden)
    sign = np.where(y == 1, 1, -1).astype(hidden.dtype)
    agreement = sign * _margin(parameters, hidden)
    decay = np.exp(-np.abs(agreement))
    loss = np.maximum(-agreement, 0) + np.log1p(decay)
    slope = -sign * np.where(agreement > 0, decay, 1) / (1 + decay)
    np.multiply(active, direction[..., None, :], out=hidden)
    hidden *= slope[..., None]
    return loss, hidden @ np.swapaxes(w1, -1, -2)


def predict(parameters: Mapping[str, Array], x: Array) -> Array:
    """Return the more probable label of each row (a tie counts as 0): x (R, n, d) -> (R, n) int64."""
    return (margin(parameters, x) > 0).astype(np.int64)


def margin(parameters: Mapping[str, Array], x: Array) -> Array:
    """Compute the log odds z of class 1: x (R, n, d) -> (R, n)."""
    hidden = x @ parameters["w1"]
    hidden += parameters["b1"][..., None, :]
    return _margin(parameters, np.maximum(hidden, 0, out=hidden))


def score(parameters: Mapping[str, Array], x: Array) -> Array:
    """Compute P(y = 1 | x), the logistic function of the margin: x (R, n, d) -> (R, n)."""
    from scipy.special import expit

    return np.asarray(expit(margin(parameters, x)))


def _direction(parameters: Mapping[str, Array]) -> Array:
    return parameters["w2"][..., 1] - parameters["w2"][..., 0]


def _margin(parameters: Mapping[str, Array], hidden: Array) -> Array:
    bias = parameters["b2"][..., 1] - parameters["b2"][..., 0]
    return (hidden @ _direction(parameters)[..., None])[..., 0] + bias[..., None]
