"""The gradient flow attack on a smooth model that gives no gradient, by finite differences of its loss.

Source: Maity et al. 2021, "Statistical inference for individual fairness", eq. 2.6 to 2.8.
"""

from collections.abc import Callable

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds, Flow, Plan, projection
from fairness_audits.values import Array

Loss = Callable[[Array], Array]
"""x (n, d) -> loss (n,) of each point's own label."""
WIDTH = 1e-4
"""Length of a difference, in the units of the points, for a loss in double precision."""
REFRESH = 5
"""At every so many gradients, the one across the sensitive subspace is computed again."""


def difference_flow(
    loss: Loss, x0: Array, plan: Plan, hold: int, bounds: Bounds | None = None, width: float = WIDTH
) -> Flow:
    r"""Take the steps of :func:`fairness_audits.attacks.gradient_flow.gradient_flow` with few values of the loss alone.

    .. math:: x \leftarrow P\big(x + \eta\, (g - 2 \lambda \Sigma (x - x_0))\big),

    where g, an estimate of the gradient of the loss, is held for ``hold`` steps. Within the sensitive subspace it comes
    from central differences along the k columns of its basis. Across it, where the penalty holds x near x0, it comes
    from forward differences in all d coordinates, at every fifth g; in between the gradient of the log-odds is kept,
    and that of the loss follows from the loss itself. M gradients take M (2 k + 1 + d / 5) + 1 evaluations a point.

    Parameters
    ----------
    loss : callable
        From points (n, d) to the cross-entropy (n,) of each point's own label.
    x0 : array (n, d)
        Where the flow starts.
    plan : Plan
        As for the gradient flow; the steps to record are multiples of ``hold``, or the last one.
    hold : int
        Steps for which a gradient is held.
    bounds : pair of arrays (d,), optional
        P is the Euclidean projection onto this box, without it the identity.
    width : float
        Length of a difference.

    Returns
    -------
    Flow
        The last points, and the losses at the recorded steps.

    Raises
    ------
    ValueError
        As the gradient flow does, and for a step to record at which there is no loss.
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
                # The derivative of the loss in the log-odds against the label, 1 - p = 1 - exp(-l).
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
