r"""Neural networks for regularised dual potentials, and for the barycentric map of their plan.

.. math:: \max_{u, v}\; E[u(x)] + E[v(y)] - E[F(u(x) + v(y) - c(x, y))], \qquad
          F(s) = \epsilon e^{s / \epsilon} \;\text{(entropic)} \quad\text{or}\quad
          F(s) = \max(s, 0)^2 / (4 \epsilon) \;\text{(quadratic)}

over networks u of the source points and v of the target points, on minibatches of both groups. The optimal plan has the
density :math:`H(x, y) = F'(u(x) + v(y) - c(x, y))` relative to independent points. The map f is a third network:

.. math:: \min_f\; E[H(x, y)\, c(y, f(x))].

With the squared L2 cost, f(x) is the mean counterpart of x. Costs are in units of their mean. The networks' inputs and
outputs are standardised with the pooled rows of both groups. Objectives and densities come from POT's
``ot.stochastic``. All trials train in one batch. Each has its own random numbers, so its map does not depend on the
number of trials. Source: Seguy et al. 2018, "Large-scale optimal transport and mapping estimation", algorithms 1 and 2.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from fairness_audits.transport.stochastic_config import Config
from fairness_audits.values import Array, TransportMap

__all__ = ["Config", "fit", "images"]

CURVE_POINTS = 50
MAP_WIDTHS = (128, 256, 128)
"""Hidden units of the map's network, as in the code of the method's authors."""


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """Fit T maps in one batch, from (n_t, d) to (m_t, d).

    The parameters are ``shift``, ``scale`` (T, d) and the map's layers ``w1`` (T, d, 128), ``b1`` (T, 128) to ``w4``,
    ``b4``. The history has ``dual_value`` and ``map_cost`` (T, L), in units of the mean cost. The facts are
    ``marginal_error``, the mean over source rows of |n sum_j P_ij - 1|, which is 0 for a valid plan, and ``diverged``,
    1 if a parameter of the map is not finite.
    """
    from fairness_audits.transport import stochastic_training as training

    d = source[0].shape[1]
    pooled = [np.concatenate(rows) for rows in zip(source, target, strict=True)]
    shift = np.stack([rows.mean(axis=0) for rows in pooled])
    spread = np.stack([rows.std(axis=0) for rows in pooled])
    scale = np.where(spread > 0, spread, 1.0)
    problem = training.DualProblem.of(source, target, shift, scale, config)
    widths = [d, config.hidden_units, 1]
    # Potentials start at 0, because the entropic objective overflows if their sum exceeds the cost.
    potentials = [[training.first_layers(rng, widths, last=0.0) for rng in rngs] for _ in range(2)]
    layers = [training.first_layers(rng, [d, *MAP_WIDTHS, d]) for rng in rngs]
    # Draw a trial's minibatches after its weights, so that both depend only on the trial's generator.
    shape = config.steps, config.batch_size
    rows = [training.minibatches(list(map(len, part)), shape, rngs) for part in (source, target) * 2]
    u, v = (training.tensors(networks) for networks in potentials)
    recorded = np.unique(np.linspace(0, config.steps - 1, min(config.steps, CURVE_POINTS)).astype(np.int64))
    dual_loss = problem.dual_loss(u, v, rows[0], rows[1])
    dual_curve = training.trained([*u.values(), *v.values()], dual_loss, config.steps, config.dual_rate, recorded)
    error = problem.marginal_error(u, v)
    f = training.tensors(layers)
    map_loss = problem.map_loss(u, v, f, rows[2], rows[3])
    map_curve = training.trained([*f.values()], map_loss, config.steps, config.map_rate, recorded)
    learned = {name: tensor.detach().double().numpy() for name, tensor in f.items()}
    finite = np.all([np.isfinite(w).all(axis=tuple(range(1, w.ndim))) for w in learned.values()], axis=0)
    return TransportMap(
        kind="stochastic",
        parameters={"shift": shift, "scale": problem.scale.double().numpy()[:, 0], **learned},
        history={"step": recorded, "dual_value": -dual_curve, "map_cost": map_curve},
        facts={"marginal_error": error.numpy().astype(np.float64), "diverged": (~finite).astype(np.float64)},
    )


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """Return the images of any rows, (n_t, d) to (n_t, d)."""
    moved = []
    for t, own in enumerate(rows):
        values = (np.asarray(own) - parameters["shift"][t]) / parameters["scale"][t]
        layers = len(MAP_WIDTHS) + 1
        for k in range(1, layers + 1):
            values = values @ parameters[f"w{k}"][t] + parameters[f"b{k}"][t]
            values = np.maximum(values, 0) if k < layers else values
        moved.append(parameters["shift"][t] + parameters["scale"][t] * values)
    return moved
