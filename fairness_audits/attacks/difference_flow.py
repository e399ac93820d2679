"""The gradient flow attack by finite differences, for smooth models without gradients.

Source: Maity et al. 2021, "Statistical inference for individual fairness", eq. 2.6 to 2.8.
"""

from collections.abc import Callable

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds, Flow, Plan, projection
from fairness_audits.values import Array

Loss = Callable[[Array], Array]
"""x (n, d) -> loss (n,) of each point's own label."""
WIDTH = 1e-4
"""Step of the finite differences, in the units of the points, for a loss in double precision."""
REFRESH = 5
"""The gradient outside the sensitive subspace is updated once in this many gradients."""


def difference_flow(
    loss: Loss, x0: Array, plan: Plan, hold: int, bounds: Bounds | None = None, width: float = WIDTH
) -> Flow:
    r"""Approximate :func:`fairness_audits.attacks.gradient_flow.gradient_flow` with few evaluations of the loss.

    .. math:: x \leftarrow P\big(x + \eta\, (g - 2 \lambda \Sigma (x - x_0))\big),

    where the estimate g of the loss gradient is reused for ``hold`` steps. Within the sensitive subspace, g comes from
    central differences along the k columns of its basis. In the other directions, where the penalty keeps x close to
    x0, it comes from forward differences in all d coordinates at every fifth update. In between, the gradient of the
    log-odds is reused and multiplied by the derivative of the loss. M gradients take M (2 k + 1 + d / 5) + 1
    evaluations per point.

    Parameters
    ----------
    loss : callable
        From points (n, d) to the cross-entropy (n,) of each point's own label.
    x0 : array (n, d)
        Starting points.
    plan : Plan
        As for the gradient flow. Recorded steps must be multiples of ``hold``, or the last step.
    hold : int
        Number of steps for which a gradient is reused.
    bounds : pair of arrays (d,), optional
        P is the Euclidean projection onto this box. Without bounds, P is the identity.
    width : float
        Step of the finite differences.

    Returns
    -------
    Flow
        The final points and the losses at the recorded steps.

    Raises
    ------
    ValueError
        As for the gradient flow, and for a recorded step without a loss.
    """
    plan.check()
    steps = len(plan.step_sizes)
    if odd := [step for step in plan.record if step % hold and step != steps]:
        raise ValueError(f"expected multiples of {hold}, or {steps}, as steps to record, found {odd}")
    project = projection(bounds, x0)
    basis, penalised = plan.metric.basis, plan.metric.operator(x0)
    x, losses, original = x0, [], loss(x0)
    own, across, gradient = original, np.zeros_like(x0), np.zeros_like(x0)
    with np.errstate(over="ignore", invalid="ignore"):
        for step, eta in enumerate(plan.step_sizes):
            if step % hold == 0:
                own = loss(x) if step else original
                # Derivative of the loss in the log-odds against the label: 1 - p = 1 - exp(-l).
                slope = -np.expm1(-own)[:, None]
                if step % (REFRESH * hold) == 0:
                    ahead = np.stack([loss(x + width * axis) - own for axis in np.eye(x.shape[1])], axis=1)
                    across = penalised(ahead / (width * np.where(slope > 0, slope, 1.0)))
                along = [(loss(x + width * u) - loss(x - width * u)) / (2 * width) for u in basis.T]
                gradient = slope * across + np.reshape(along, (-1, len(x0))).T @ basis.T
            if step in plan.record:
                losses.append(own)
            x = project(x + eta * gradient + penalised(x - x0, -2.0 * plan.regularization * eta))
        if steps in plan.record:
            losses.append(loss(x))
    return Flow(x, np.stack(losses, axis=-2), original)
