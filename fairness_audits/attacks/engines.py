"""The gradient flow attack on a trained classifier, in the space of hidden units for networks with one hidden layer.

Its iterates equal those of :func:`fairness_audits.attacks.gradient_flow.gradient_flow` up to rounding.

Let the network have one hidden ReLU layer. The margin of a point x with sign s = +-1 is m = s (w . relu(h) + b) with h
= x W + b_1, and Sigma = I - U U'. The gradient of the loss log(1 + exp(-m)) in x is kappa W v with kappa = -s / (1 +
exp(m)), and v = w on the active units (h > 0), 0 elsewhere. So x - x0 stays in the span of the columns of W, and the
forward Euler step

    x <- x + eta (kappa W v - 2 lambda Sigma (x - x0))

acts on the hidden pre-activations h = h0 + c + e, c = W' Sigma (x - x0), e = W' U U' (x - x0), as

    c <- (1 - 2 lambda eta) c + eta kappa q,   q = (W' Sigma W) v,
    e <- e + eta kappa u,                      u = (W' U U' W) v.

While no hidden unit changes sign, v, q and u are constant and the network is linear. A part of the flow that starts at
(c, e) is then described by three numbers,

    h(t) = h0 + e + alpha(t) c + beta(t) q + gamma(t) u,
    alpha <- rho alpha,   beta <- rho beta + eta kappa,   gamma <- gamma + eta kappa,   rho = 1 - 2 lambda eta,

and so is the margin. A step costs one exponential and a dozen operations instead of two products with W. No unit j has
changed sign since its last check, at h_j, while

    |d alpha| max_j |c_j / h_j| + |d beta| max_j |q_j / h_j| + |d gamma| max_j |u_j / h_j| < 1.

The units are checked again only when this certificate expires. q and u are updated, by one row of a matrix each, only
when a unit has changed sign.
"""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np

from fairness_audits.attacks.gradient_flow import BLOCK_ROWS, Flow, Plan, gradient_flow_in_blocks, points_of_each
from fairness_audits.models import architecture
from fairness_audits.values import Array, Classifier

SAFE = 0.999
"""The certificate expires at this share of its bound, which leaves room for rounding."""
SMALLEST = float(np.finfo(np.float64).tiny)


def relu_flow(parameters: Mapping[str, Array], x0: Array, label: Array, plan: Plan) -> Flow:
    """Compute the flow of :func:`~fairness_audits.attacks.gradient_flow.gradient_flow` for R networks ``mlp``.

    Parameters: ``parameters`` w1 (R, d, H), b1 (R, H), w2 (R, H, 2), b2 (R, 2); ``x0`` (R or 1, n, d) and ``label``
    (R or 1, n) in {0, 1}; the ``plan`` has one metric, or one for each repetition. Errors are the same.
    Returns a Flow with x (R, n, d), losses (R, len(record), n).
    """
    w1 = np.asarray(parameters["w1"], dtype=float)
    repetitions, _, hidden = w1.shape
    x0, label = points_of_each(repetitions, x0, label)
    plan.check()
    etas = np.ascontiguousarray(plan.step_sizes, dtype=float)
    rhos = 1.0 - 2.0 * plan.regularization * etas
    n = x0.shape[1]
    losses, original = np.empty((repetitions, n, len(plan.record))), np.empty((repetitions, n))
    x = np.empty(x0.shape)
    bases = np.broadcast_to(plan.metric.basis, (repetitions, *plan.metric.basis.shape[-2:]))
    march = compiled_march()
    for r, (w, basis) in enumerate(zip(w1, bases, strict=True)):
        output, bias = parameters["w2"][r], parameters["b2"][r]
        sensitive = basis.T @ w
        gram_sensitive = np.ascontiguousarray(sensitive.T @ sensitive)
        gram_penalised = np.ascontiguousarray(w.T @ w - gram_sensitive)
        penalised_moves, free_moves = np.zeros((2, n, hidden))
        start = x0[r] @ w + parameters["b1"][r]
        # The kernel treats a NaN unit as inactive.
        lost = ~np.isfinite(start).all(axis=-1)
        march(
            start,
            np.where(label[r] == 1, 1.0, -1.0),
            np.ascontiguousarray(output[:, 1] - output[:, 0], dtype=float),
            float(bias[1] - bias[0]),
            gram_penalised,
            gram_sensitive,
            etas,
            rhos,
            np.array(plan.record, dtype=np.int64),
            losses[r],
            original[r],
            penalised_moves,
            free_moves,
        )
        losses[r, lost], original[r, lost] = np.nan, np.nan
        across, along = penalised_moves @ w.T, (free_moves - penalised_moves) @ sensitive.T
        x[r] = x0[r] + across + along @ basis.T
    return Flow(x, np.ascontiguousarray(losses.swapaxes(-1, -2)), original)


@cache
def compiled_march() -> Callable[..., None]:
    """The compiled kernel; machine code is cached on disk, so only the first process on a machine compiles it."""
    from fairness_audits.compiled import njit

    # Reassociation lets sums over units use vector registers; NaN and infinity keep their meaning.
    compiled: Any = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})(_march_relu)
    return compiled


def _march_relu(
    h0: Array,
    signs: Array,
    w: Array,
    bias: float,
    gram_penalised: Array,
    gram_sensitive: Array,
    etas: Array,
    rhos: Array,
    record: Array,
    losses: Array,
    original: Array,
    penalised_moves: Array,
    free_moves: Array,
) -> None:
    """Take all steps, one point after the other. ``h0`` (n, H) is overwritten; the last four arrays are filled.

    ``losses`` (n, len(record)), ``original`` (n,); ``penalised_moves`` and ``free_moves`` (n, H) are the coefficients
    z and z' with Sigma (x - x0) = Sigma W z and U U' (x - x0) = U U' W z'.
    """
    n, hidden = h0.shape
    steps = etas.shape[0]
    c, q, u, v = np.empty(hidden), np.empty(hidden), np.empty(hidden), np.empty(hidden)
    for i in range(n):
        start, z, z_free, s = h0[i], penalised_moves[i], free_moves[i], signs[i]
        c[:] = 0.0
        q[:] = 0.0
        u[:] = 0.0
        v[:] = 0.0
        alpha, beta, gamma = 1.0, 0.0, 0.0
        alpha_seen, beta_seen, gamma_seen = 1.0, 0.0, 0.0
        most_c, most_q, most_u = np.inf, np.inf, np.inf
        margin_0, margin_c, margin_q, margin_u = bias, 0.0, 0.0, 0.0
        spent = np.inf
        slot = 0
        for t in range(steps + 1):
            if not spent < SAFE:
                flips = 0
                for j in range(hidden):
                    h = start[j] + alpha * c[j] + beta * q[j] + gamma * u[j]
                    flips += (h > 0) != (v[j] != 0)
                if flips > 0:
                    for j in range(hidden):
                        z[j] = alpha * z[j] + beta * v[j]
                        z_free[j] += gamma * v[j]
                        start[j] += gamma * u[j]
                        c[j] = alpha * c[j] + beta * q[j]
                    alpha, beta, gamma = 1.0, 0.0, 0.0
                    for k in range(hidden):
                        now = w[k] if start[k] + c[k] > 0 else 0.0
                        change = now - v[k]
                        if change != 0:
                            v[k] = now
                            for j in range(hidden):
                                q[j] += change * gram_penalised[k, j]
                                u[j] += change * gram_sensitive[k, j]
                    margin_0, margin_c, margin_q, margin_u = bias, 0.0, 0.0, 0.0
                    for j in range(hidden):
                        margin_0 += v[j] * start[j]
                        margin_c += v[j] * c[j]
                        margin_q += v[j] * q[j]
                        margin_u += v[j] * u[j]
                most_c, most_q, most_u = 0.0, 0.0, 0.0
                for j in range(hidden):
                    h = start[j] + alpha * c[j] + beta * q[j] + gamma * u[j]
                    inverse = 1.0 / max(abs(h), SMALLEST)
                    most_c = max(most_c, abs(c[j]) * inverse)
                    most_q = max(most_q, abs(q[j]) * inverse)
                    most_u = max(most_u, abs(u[j]) * inverse)
                alpha_seen, beta_seen, gamma_seen = alpha, beta, gamma
            margin = s * (margin_0 + alpha * margin_c + beta * margin_q + gamma * margin_u)
            decay = math.exp(-abs(margin))
            if t == 0:
                original[i] = max(-margin, 0.0) + math.log1p(decay)
            if slot < record.shape[0] and record[slot] == t:
                losses[i, slot] = max(-margin, 0.0) + math.log1p(decay)
                slot += 1
            if t < steps:
                kappa = -s * (decay if margin > 0 else 1.0) / (1.0 + decay) * etas[t]
                alpha *= rhos[t]
                beta = rhos[t] * beta + kappa
                gamma += kappa
                spent = (
                    abs(alpha - alpha_seen) * most_c + abs(beta - beta_seen) * most_q + abs(gamma - gamma_seen) * most_u
                )
        for j in range(hidden):
            z[j] = alpha * z[j] + beta * v[j]
            z_free[j] += gamma * v[j]


def unfair_map(classifier: Classifier, features: Array, label: Array, plan: Plan) -> Flow:
    """Compute the gradient flow of the cross-entropy of R classifiers on their points.

    Architectures other than ``mlp`` use the plain loop with their closed-form gradient.

    Parameters: ``features`` (R or 1, n, d) and ``label`` (R or 1, n); the ``plan`` has one metric, or a stack of R or
    1. Errors are those of the gradient flow. Returns a Flow with x (R, n, d), losses (R, len(record), n).
    """
    if classifier.architecture == "mlp":
        return relu_flow(classifier.parameters, features, label, plan)
    model = architecture(classifier.architecture)
    x0, y = points_of_each(classifier.repetitions, features, label)
    return gradient_flow_in_blocks(
        lambda rows: lambda x: model.loss_and_gradient(classifier.parameters, x, y[..., rows]), x0, plan, BLOCK_ROWS
    )
