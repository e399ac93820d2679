"""The gradient flow attack: the unfair map Phi by forward Euler, for NumPy arrays and torch tensors.

Source: Maity et al. 2021, "Statistical inference for individual fairness", eq. 2.6 to 2.8.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import FairMetric
from fairness_audits.values import Array

Schedule = Literal["constant", "power"]
LossAndGradient = Callable[[Any], tuple[Any, Any]]
"""x (..., n, d) -> loss (..., n) of each point's own label, gradient (..., n, d) of each point's loss in x."""
Bounds = tuple[Array, Array]
"""Smallest and largest allowed values of each feature, (d,) each; -inf and inf for no bound."""

BLOCK_ROWS = 500


@dataclass(frozen=True)
class Plan:
    """N steps of sizes ``step_sizes`` eta (N,) up the loss, less ``regularization`` lambda times a penalty.

    The penalty is the squared distance of the fair ``metric`` with matrix Sigma. ``record`` lists the increasing step
    numbers, 0 to N, at which the loss is recorded.
    """

    metric: FairMetric
    regularization: float
    step_sizes: Sequence[float] | Array
    record: Sequence[int]

    @property
    def ends_stable(self) -> bool:
        """Whether the last step of the penalty's dynamics, x <- x - 2 lambda eta Sigma (x - x0), is stable.

        The condition is |1 - 2 lambda eta mu| <= 1, where mu is the largest eigenvalue of Sigma. A decaying schedule
        may start beyond the limit: the early growth is finite and vanishes once the steps are small. A schedule at the
        limit, lambda eta mu = 1, passes. There the penalty reflects x - x0, so losses and T_n depend on whether the
        number of steps is odd or even.
        """
        return bool(self.regularization * self.step_sizes[-1] * self.metric.largest_eigenvalue <= 1.0)

    def check(self) -> None:
        """Raise InvalidInput for a bad record, a negative regularization and a schedule that ends unstable."""
        record, steps = list(self.record), len(self.step_sizes)
        if not record or record != sorted(set(record)) or record[0] < 0 or record[-1] > steps:
            problem = f"expected increasing step numbers between 0 and {steps} to record, found {record}"
            raise InvalidInput(problem, option="record")
        if self.regularization < 0:
            raise InvalidInput(f"expected regularization >= 0, found {self.regularization}", option="regularization")
        if not self.ends_stable:
            limit = 1.0 / (self.regularization * self.metric.largest_eigenvalue)
            raise InvalidInput(
                f"step size {self.step_sizes[-1]:g} is unstable for regularization {self.regularization:g}: with a "
                "step size above 1 / (regularization * largest eigenvalue of the metric) = "
                f"{limit:g}, the penalty alone makes the iterates grow",
                option="step_size",
                remedy="Use a smaller step size or regularization",
            )


@dataclass(frozen=True)
class Flow:
    """The attacked points and the recorded losses.

    ``x`` (..., n, d) are the last iterates, arrays or tensors like the starting points, and not finite if an iterate
    was not. ``losses`` (..., len(record), n) and ``original_loss`` (..., n) are NumPy float64.
    """

    x: Any
    losses: Array
    original_loss: Array


def step_schedule(kind: Schedule, step_size: float, power: float, steps: int) -> Array:
    """Return eta_t = step_size ("constant") or step_size / t^power ("power") for t = 1, ..., steps: shape (steps,).

    Raises InvalidInput for an unknown kind, a step size <= 0, a power <= 0 (for "power") or fewer than one step.
    """
    if step_size <= 0 or steps < 1:
        problem = f"expected step_size > 0 and steps >= 1, found {step_size} and {steps}"
        raise InvalidInput(problem, option="steps" if step_size > 0 else "step_size")
    if kind == "constant":
        return np.full(steps, float(step_size))
    if kind == "power":
        if power <= 0:
            remedy = "Use the constant schedule for steps of equal size"
            raise InvalidInput(f"expected power > 0, found {power}", option="power", remedy=remedy)
        return float(step_size) / np.arange(1, steps + 1) ** power
    raise InvalidInput(f"expected schedule 'constant' or 'power', found {kind!r}", option="kind")


def gradient_flow(loss_and_gradient: LossAndGradient, x0: Any, plan: Plan, bounds: Bounds | None = None) -> Flow:
    """Iterate x^(k) = P(x^(k-1) + eta_k (grad l(x^(k-1)) - 2 lambda Sigma (x^(k-1) - x0))), x^(0) = x0, k = 1, ..., N.

    l is the loss of a point with its own label, and Sigma the matrix of the fair metric
    d(x, x')^2 = (x - x')' Sigma (x - x'). The penalty is the squared distance, so its gradient at x = x0 is 0. P is the
    Euclidean projection onto the box of the ``bounds``; without bounds it is the identity, as published.

    Parameters: ``loss_and_gradient`` maps x to (loss, gradient). ``x0`` (..., n, d), array or tensor, may broadcast
    against leading axes added by the loss. Raises InvalidInput as :meth:`Plan.check` does, and for a starting point
    outside the bounds. Source: Maity et al. 2021, eq. 2.8.
    """
    plan.check()
    project = projection(bounds, x0)
    penalised = plan.metric.operator(x0)
    losses = []
    x = x0
    with np.errstate(over="ignore", invalid="ignore"):
        for step, eta in enumerate(plan.step_sizes):
            loss, gradient = loss_and_gradient(x)
            if step == 0:
                original_loss = as_float64(loss)
            if step in plan.record:
                losses.append(as_float64(loss))
            if step == 0:
                # The penalty has gradient 0 at x0. This sum has all leading axes added by the loss.
                x = project(x0 + float(eta) * gradient)
                continue
            change = penalised(x - x0, -2.0 * plan.regularization * float(eta))
            add_multiple(change, float(eta), gradient)
            change += x
            x = project(change)
        if len(plan.step_sizes) in plan.record:
            losses.append(as_float64(loss_and_gradient(x)[0]))
    return Flow(x, np.stack(losses, axis=-2), original_loss)


def gradient_flow_in_blocks(
    loss_and_gradient_of: Callable[[slice], LossAndGradient],
    x0: Any,
    plan: Plan,
    block_rows: int,
    bounds: Bounds | None = None,
) -> Flow:
    """Run :func:`gradient_flow` on blocks of ``block_rows`` points, all steps of a block before the next block.

    Points do not interact, so the result equals that of one call. A block whose activations fit into the processor's
    cache takes about half the time. ``loss_and_gradient_of(rows)`` returns the function for ``x0[..., rows, :]``.
    """
    if block_rows < 1:
        raise InvalidInput(f"expected block_rows >= 1, found {block_rows}", option="block_rows")
    blocks = [slice(start, start + block_rows) for start in range(0, x0.shape[-2], block_rows)]
    return concatenated([gradient_flow(loss_and_gradient_of(rows), x0[..., rows, :], plan, bounds) for rows in blocks])


def points_of_each(repetitions: int, x0: Array, label: Array) -> tuple[Array, Array]:
    """Broadcast points (R or 1, n, d) or (n, d) and labels to (R, n, d) float64 and (R, n)."""
    x0 = np.broadcast_to(np.asarray(x0, dtype=float), (repetitions, *np.shape(x0)[-2:]))
    return x0, np.broadcast_to(label, x0.shape[:-1])


def concatenated(flows: Sequence[Flow]) -> Flow:
    """Join the flows of consecutive blocks of points."""
    first = flows[0]
    if len(flows) == 1:
        return first
    if isinstance(first.x, np.ndarray):
        x: Any = np.concatenate([flow.x for flow in flows], axis=-2)
    else:
        import torch

        x = torch.cat([flow.x for flow in flows], dim=-2)
    return Flow(
        x,
        np.concatenate([flow.losses for flow in flows], axis=-1),
        np.concatenate([flow.original_loss for flow in flows], axis=-1),
    )


def projection(bounds: Bounds | None, x0: Any) -> Callable[[Any], Any]:
    """Return x -> min(max(x, low), high) for arrays or tensors like ``x0`` (..., n, d), which must be in the bounds."""
    if bounds is None:
        return lambda x: x
    low, high = (np.asarray(end, dtype=np.float64) for end in bounds)
    # For points in single precision, round the bounds in the same way.
    low, high = (end.astype(as_numpy(x0).dtype) for end in (low, high))
    beyond = ((as_numpy(x0) < low) | (as_numpy(x0) > high)).any(axis=-1)
    if beyond.any():
        raise InvalidInput(
            f"expected points within the bounds, found {int(beyond.sum())} of {beyond.size} outside",
            option="bounds",
            remedy="Widen the bounds, or leave these points out",
        )
    if isinstance(x0, np.ndarray):
        return lambda x: np.clip(x, low, high)
    ends = x0.new_tensor(low), x0.new_tensor(high)
    return lambda x: x.clamp(*ends)


def add_multiple(total: Any, factor: float, values: Any) -> None:
    """Compute total += factor * values in place, without a temporary array if possible."""
    if isinstance(total, np.ndarray):
        total += factor * values
    else:
        total.add_(values, alpha=factor)


def as_numpy(values: Any) -> Array:
    """Convert an array or a tensor (with or without a graph, on any device) to a NumPy array."""
    return values if isinstance(values, np.ndarray) else np.asarray(values.detach().cpu().numpy())


def as_float64(values: Any) -> Array:
    """Return a float64 NumPy copy."""
    return as_numpy(values).astype(np.float64)
