"""The gradient flow attack on a mixture of logistic regressions, computed in the space of its members' margins.

The loss of P(y=1|x) = sum_k w_k sigma(z_k), z = C x + b, depends on x through the K margins z alone, so its gradient in
x is C' kappa with kappa (K,) its gradient in z. Let Sigma = sum_i mu_i P_i with distinct eigenvalues mu_i and
orthogonal eigenprojectors P_i (two of them for the projector of a sensitive subspace). The forward Euler steps

    x <- x + eta (C' kappa - 2 lambda Sigma (x - x0))    are    B_i <- (1 - 2 lambda eta mu_i) B_i + eta kappa

with x = x0 + sum_i P_i C' B_i, so z = z0 + sum_i (C P_i C') B_i: K numbers for each eigenvalue instead of d features.
For a single logistic regression (K = 1) a step is a handful of scalar operations.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from pipeline.attacks.gradient_flow import Flow, check_plan, closed_form_flow, points_of_each
from pipeline.fair_metric import FairMetric
from pipeline.models import logistic_mixture
from pipeline.types import Array

BLOCK_ELEMENTS = 1 << 14
"""Margins worked on at a time: the arrays of one step stay in a core's second-level cache."""
LARGEST_MARGIN = 700.0
"""Beyond it exp overflows, and probabilities are left for their logarithms."""


def mixture_flow(
    parameters: Mapping[str, Array],
    x0: Array,
    label: Array,
    metric: FairMetric,
    regularization: float,
    step_sizes: Sequence[float] | Array,
    record: Sequence[int],
) -> Flow:
    """The flow of :func:`pipeline.attacks.gradient_flow.gradient_flow` for R mixtures of ``models.logistic_mixture``.

    A metric that has neither a sensitive basis nor fewer than d / K distinct eigenvalues (or a stack of such) gains
    nothing from margins: the same flow is then computed by the plain loop with the closed-form gradient.

    Parameters: ``parameters`` weight (R, K), coef (R, K, d), intercept (R, K); ``x0`` (R or 1, n, d) and ``label``
    (R or 1, n) in {0, 1}; ``metric`` one for all or one for each repetition; the others, and what is raised, as there.
    Returns a Flow with x (R, n, d), losses (R, len(record), n).
    """
    weight, coef = (np.asarray(parameters[name], dtype=float) for name in ("weight", "coef"))
    repetitions, members, dimension = coef.shape
    x0, label = points_of_each(repetitions, x0, label)
    spectrum = eigenprojectors(metric)
    if metric.basis is None and (metric.matrix.ndim > 2 or len(spectrum) * members > dimension):
        plan = metric, regularization, step_sizes, record
        return closed_form_flow(logistic_mixture.loss_and_gradient, parameters, x0, label, *plan)
    kept, unstable = check_plan(metric, regularization, step_sizes, record)
    n = x0.shape[1]
    losses, original = np.empty((repetitions, len(kept), n)), np.empty((repetitions, n))
    x = x0.copy()
    start = x0 @ coef.swapaxes(-1, -2) + np.asarray(parameters["intercept"], dtype=float)[:, None, :]
    moved = [coef @ projector for _, projector in spectrum]
    responses = [move @ coef.swapaxes(-1, -2) for move in moved]
    rates = 1.0 - 2.0 * regularization * np.outer(np.asarray(step_sizes), [eigenvalue for eigenvalue, _ in spectrum])
    for r, rows in _blocks(repetitions, n, members):
        coefficients = _march(
            weight[r],
            start[r, rows],
            label[r, rows],
            [response[r] for response in responses],
            np.asarray(step_sizes, dtype=float),
            rates,
            kept,
            losses[r, :, rows],
            original[r, rows],
        )
        for coefficient, move in zip(coefficients, moved, strict=True):
            x[r, rows] += coefficient @ move[r]
    non_finite = (~np.isfinite(x).all(axis=-1)).sum(axis=-1)
    return Flow(x, losses, original, kept, non_finite, unstable)


def eigenprojectors(metric: FairMetric) -> list[tuple[float, Array]]:
    """Sigma = sum_i mu_i P_i: the distinct eigenvalues and the orthogonal projectors on their eigenspaces.

    For a projector metric: 1 and Sigma itself, 0 and U U' (stacked where the metric is). Eigenvalues of a general
    matrix within 1e-12 of each other (relative to the largest) count as one.
    """
    if metric.basis is not None:
        return [(1.0, metric.matrix), (0.0, metric.basis @ metric.basis.swapaxes(-1, -2))]
    if metric.matrix.ndim > 2:
        return []
    values, vectors = np.linalg.eigh(metric.matrix)
    firsts = np.flatnonzero(np.diff(values, prepend=-np.inf) > 1e-12 * np.abs(values).max())
    groups = np.split(np.arange(len(values)), firsts[1:])
    return [(float(values[group].mean()), vectors[:, group] @ vectors[:, group].T) for group in groups]


def _march(
    weight: Array,
    start: Array,
    label: Array,
    responses: Sequence[Array],
    step_sizes: Array,
    rates: Array,
    record: tuple[int, ...],
    losses: Array,
    original: Array,
) -> list[Array]:
    """All steps of one block: fills ``losses`` (r, len(record), n), ``original`` (r, n); returns the B_i (r, n, K)."""
    members = weight.shape[-1]
    respond = np.multiply if members == 1 else np.matmul
    sign = np.where(label == 1, 1.0, -1.0)[..., None]
    coefficients = [np.zeros(start.shape) for _ in responses]
    margins, term = start.copy(), np.empty(start.shape)
    # In the space of margins the mixture is itself a mixture, of the coordinates.
    coordinates = {"weight": weight, "coef": np.eye(members), "intercept": np.zeros(weight.shape)}
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(len(step_sizes) + 1):
            if step == 0:
                original[...] = logistic_mixture.loss_and_gradient(coordinates, margins, label)[0]
            if step in record:
                losses[:, record.index(step)] = logistic_mixture.loss_and_gradient(coordinates, margins, label)[0]
            if step == len(step_sizes):
                break
            move = _slopes(weight, margins, sign)
            if move is None:
                move = logistic_mixture.loss_and_gradient(coordinates, margins, label)[1]
            move *= step_sizes[step]
            np.copyto(margins, start)
            for coefficient, rate, response in zip(coefficients, rates[step], responses, strict=True):
                coefficient *= rate
                coefficient += move
                respond(coefficient, response, out=term)
                margins += term
    return coefficients


def _slopes(weight: Array, margins: Array, sign: Array) -> Array | None:
    """kappa_k = -s w_k sigma(a_k) sigma(-a_k) / sum_j w_j sigma(a_j), a = s z; None where exp would overflow."""
    slopes = sign * margins
    if weight.shape[-1] == 1:
        # -s sigma(-a); an infinite exponential gives the right limit.
        np.exp(slopes, out=slopes)
        slopes += 1.0
        return np.divide(-sign, slopes, out=slopes)
    if not (slopes.max() < LARGEST_MARGIN and slopes.min() > -LARGEST_MARGIN):
        return None
    odds = np.exp(slopes, out=slopes)
    against = 1.0 / (1.0 + odds)
    right = np.multiply(odds, against, out=odds)
    right *= weight[..., None, :]
    total = right.sum(axis=-1, keepdims=True)
    right *= against
    right *= -sign / total
    return right


def _blocks(repetitions: int, n: int, members: int) -> Iterator[tuple[slice, slice]]:
    """Slices of repetitions and of points whose margins number about BLOCK_ELEMENTS."""
    points = max(1, min(n, BLOCK_ELEMENTS // members))
    together = max(1, BLOCK_ELEMENTS // (points * members)) if points == n else 1
    for r in range(0, repetitions, together):
        for row in range(0, n, points):
            yield slice(r, r + together), slice(row, row + points)
