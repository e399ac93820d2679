r"""A finite mixture of logistic regressions.

.. math:: P(y = 1 \mid x) = \sum_k w_k\, \sigma(c_k^\top x + b_k), \qquad \sum_k w_k = 1

With one member (K = 1) this is logistic regression. Parameters, for R repetitions and at most K members: ``weight``
(R, K), ``coef`` (R, K, d), ``intercept`` (R, K). Repetitions with fewer members are padded with members of weight 0.

As sigma(-z) = 1 - sigma(z) and the weights sum to 1, P(y | x) = sum_k w_k sigma(s z_k) with z_k = c_k.x + b_k and the
sign s = 2y - 1. The log-probability of the less probable class is a log-sum-exp, and that of the other class is
log(1 - P). Both keep their relative precision even if the mixture is very confident.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch


def regressions(coef: Array, intercept: Array) -> dict[str, Array]:
    """Return the parameters of R logistic regressions from their ``coef`` (R, d) and ``intercept`` (R,)."""
    return {"weight": np.ones((len(coef), 1)), "coef": coef[:, None, :], "intercept": intercept[:, None]}


def log_probabilities(parameters: Mapping[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    """Compute log probabilities of both classes: x (R, n, d) -> (R, n, 2)."""
    import torch
    from torch.nn.functional import logsigmoid

    margin = x @ parameters["coef"].transpose(-1, -2) + parameters["intercept"].unsqueeze(-2)
    log_weight = parameters["weight"].log().unsqueeze(-2)
    log_0, log_1 = (torch.logsumexp(log_weight + logsigmoid(s * margin), dim=-1) for s in (-1, 1))
    smaller = torch.minimum(log_0, log_1)
    larger = torch.log1p(-smaller.exp())
    one_is_likely = log_1 > log_0
    return torch.stack(
        [torch.where(one_is_likely, smaller, larger), torch.where(one_is_likely, larger, smaller)], dim=-1
    )


def loss_and_gradient(parameters: Mapping[str, Array], x: Array, y: Array) -> tuple[Array, Array]:
    r"""Compute the cross entropy of the mean probability and its gradient in the input, in closed form.

    .. math:: \ell = -\log \sum_k w_k \sigma(s z_k), \qquad
              \nabla_x \ell = -s \sum_k r_k\, \sigma(-s z_k)\, c_k, \qquad
              r_k = \frac{w_k \sigma(s z_k)}{\sum_j w_j \sigma(s z_j)}

    with z_k = c_k.x + b_k and s = 2y - 1. r_k is a softmax of log w_k + log sigma(s z_k), so the computation never
    divides 0 by 0.

    Parameters
    ----------
    parameters: ``weight`` (R, K), ``coef`` (R, K, d), ``intercept`` (R, K).
    x: inputs (R, n, d).
    y: labels (R, n) in {0, 1}.

    Returns
    -------
    loss (R, n) and gradient (R, n, d).
    """
    sign = np.where(y == 1, 1, -1).astype(x.dtype)[..., None]
    agreement = sign * _margins(parameters, x)
    log_weight = _log_weight(parameters)
    log_against = -np.logaddexp(0, agreement)
    log_terms = log_weight - np.logaddexp(0, -agreement)
    log_right, log_wrong = map(_log_sum, (log_terms, log_weight + log_against))
    slopes = -sign * np.exp(log_terms - log_right[..., None] + log_against)
    loss = np.where(log_right < log_wrong, -log_right, -np.log1p(-np.exp(np.minimum(log_wrong, log_right))))
    return loss, slopes @ parameters["coef"]


def predict(parameters: Mapping[str, Array], x: Array) -> Array:
    """Return the label with the larger mean probability (a tie counts as 0): x (R, n, d) -> (R, n) int64."""
    margins = _margins(parameters, x)
    # sum_k w_k (sigma(z_k) - 1/2) = sum_k w_k tanh(z_k / 2) / 2, which is exact near a half.
    return ((np.tanh(margins / 2) @ parameters["weight"][..., None])[..., 0] > 0).astype(np.int64)


def score(parameters: Mapping[str, Array], x: Array) -> Array:
    """Compute P(y = 1 | x): x (R, n, d) -> (R, n)."""
    from scipy.special import expit

    return (expit(_margins(parameters, x)) @ parameters["weight"][..., None])[..., 0]


def _margins(parameters: Mapping[str, Array], x: Array) -> Array:
    return x @ np.swapaxes(parameters["coef"], -1, -2) + parameters["intercept"][..., None, :]


def _log_sum(terms: Array) -> Array:
    """Compute log sum_k exp(terms_k) over the last axis. One term, as in logistic regression, is its own sum."""
    return terms[..., 0] if terms.shape[-1] == 1 else np.logaddexp.reduce(terms, axis=-1)


def _log_weight(parameters: Mapping[str, Array]) -> Array:
    weight = parameters["weight"][..., None, :]
    return np.log(weight, out=np.full(weight.shape, -np.inf), where=weight > 0)
