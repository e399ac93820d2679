r"""Regularised dual potentials by neural networks, and a network for the barycentric map of their plan.

.. math:: \max_{u, v}\; E[u(x)] + E[v(y)] - E[F(u(x) + v(y) - c(x, y))], \qquad
          F(s) = \epsilon e^{s / \epsilon} \;\text{(entropic)} \quad\text{or}\quad
          F(s) = \max(s, 0)^2 / (4 \epsilon) \;\text{(quadratic)}

over networks u of the source points and v of the target points, by minibatches of both. The best plan has the density
:math:`H(x, y) = F'(u(x) + v(y) - c(x, y))` with regard to independent points. The map f is a third network:

.. math:: \min_f\; E[H(x, y)\, c(y, f(x))],

which with the squared L2 cost is the mean counterpart of x. Costs are taken in units of their mean, and what enters and
leaves the networks is standardised by both groups together. Objectives and densities: ``ot.stochastic`` of POT.
All trials train in one batch; each has its own random numbers, so that its map does not depend on their number.
Source: Seguy et al. 2018, "Large-scale optimal transport and mapping estimation", algorithms 1 and 2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from pipeline.fields import Checked, Count, Positive, one_of
from pipeline.transport.cost import Cost, CostOrName, cost_function
from pipeline.transport.stochastic_networks import Networks, network, output, tensors
from pipeline.types import Array, TransportMap

if TYPE_CHECKING:
    import torch

REGULARIZERS = ("entropic", "quadratic")
CURVE_POINTS = 50
MEASURED_POINTS = 1000
"""Rows of each group on which the cost's unit and the plan's marginals are measured."""
ADAM = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-8, "weight_decay": 0.0, "amsgrad": False, "maximize": False}
"""Adam as its authors recommend it."""
MAP_WIDTHS = (128, 256, 128)
"""Hidden units of the map's network, as coded by the method's authors."""


@dataclass(frozen=True)
class Config(Checked, of="transport"):
    """``cost``: a name of :mod:`pipeline.transport.cost`, or a function of arrays and tensors alike.

    ``regularizer``: entropic or quadratic; ``regularization``: epsilon, as a share of the mean cost. Adam trains the
    potentials, of ``hidden_units`` each, for ``steps`` at ``dual_rate``, then the map for as many at ``map_rate``.
    """

    cost: CostOrName
    regularizer: Annotated[str, one_of(REGULARIZERS)]
    regularization: Positive
    hidden_units: Count
    batch_size: Count
    steps: Count
    dual_rate: Positive
    map_rate: Positive


def fit(
    source: Sequence[Array], target: Sequence[Array], config: Config, rngs: Sequence[np.random.Generator]
) -> TransportMap:
    """T maps in one batch, (n_t, d) to (m_t, d).

    Parameters: ``shift``, ``scale`` (T, d) and the map's layers ``w1`` (T, d, 128), ``b1`` (T, 128) to ``w4``, ``b4``.
    History, both in units of the mean cost: ``dual_value`` and ``map_cost`` (T, L). Facts: ``marginal_error``, the mean
    over source rows of |n sum_j P_ij - 1|, 0 of a plan; ``diverged``, 1 where a parameter of the map is not finite.
    """
    import torch

    d = source[0].shape[1]
    pooled = [np.concatenate(rows) for rows in zip(source, target, strict=True)]
    shift = np.stack([rows.mean(axis=0) for rows in pooled])
    spread = np.stack([rows.std(axis=0) for rows in pooled])
    problem = _Problem.of(source, target, shift, np.where(spread > 0, spread, 1.0), config)
    widths = [d, config.hidden_units, 1]
    # Potentials start at 0: where their sum is above the cost, the entropic objective is out of bounds at once.
    potentials = [[network(rng, widths, last=0.0) for rng in rngs] for _ in range(2)]
    layers = [network(rng, [d, *MAP_WIDTHS, d]) for rng in rngs]
    # The minibatches of a trial are drawn after its weights, so that both depend on its generator alone.
    rows = [_minibatches([len(part[t]) for t in range(len(rngs))], config, rngs) for part in (source, target) * 2]
    u, v = (tensors(networks) for networks in potentials)
    dual_curve = _trained([*u.values(), *v.values()], problem.dual_loss(u, v, rows[0], rows[1]), config, "dual_rate")
    with torch.no_grad():
        error = problem.marginal_error(u, v)
    f = tensors(layers)
    map_curve = _trained([*f.values()], problem.map_loss(u, v, f, rows[2], rows[3]), config, "map_rate")
    learned = {name: tensor.detach().double().numpy() for name, tensor in f.items()}
    finite = np.all([np.isfinite(w).all(axis=tuple(range(1, w.ndim))) for w in learned.values()], axis=0)
    return TransportMap(
        kind="stochastic",
        parameters={"shift": shift, "scale": problem.scale.double().numpy()[:, 0], **learned},
        history={"step": _recorded(config.steps), "dual_value": -dual_curve, "map_cost": map_curve},
        facts={"marginal_error": error.numpy().astype(np.float64), "diverged": (~finite).astype(np.float64)},
    )


def images(parameters: Mapping[str, Array], rows: Sequence[Array]) -> list[Array]:
    """The images of any rows, (n_t, d) to (n_t, d)."""
    moved = []
    for t, asked in enumerate(rows):
        values = (np.asarray(asked) - parameters["shift"][t]) / parameters["scale"][t]
        layers = len(MAP_WIDTHS) + 1
        for k in range(1, layers + 1):
            values = values @ parameters[f"w{k}"][t] + parameters[f"b{k}"][t]
            values = np.maximum(values, 0) if k < layers else values
        moved.append(parameters["shift"][t] + parameters["scale"][t] * values)
    return moved


@dataclass(frozen=True)
class _Problem:
    """Both groups' rows (T, n, d), padded, their standardisation (T, 1, d), and the unit of the cost (T, 1, 1)."""

    source: torch.Tensor
    target: torch.Tensor
    sizes: list[tuple[int, int]]
    shift: torch.Tensor
    scale: torch.Tensor
    unit: torch.Tensor
    config: Config

    @classmethod
    def of(
        cls, source: Sequence[Array], target: Sequence[Array], shift: Array, scale: Array, config: Config
    ) -> _Problem:
        """Raises ValueError where the mean cost is 0 or not finite."""
        import torch

        unit = np.zeros(len(source))
        for t, (x, y) in enumerate(zip(source, target, strict=True)):
            first, other = (torch.from_numpy(rows[:MEASURED_POINTS]) for rows in (x, y))
            unit[t] = float(_costs(first, other, config.cost).mean())
        if not (np.isfinite(unit) & (unit > 0)).all():
            raise ValueError(f"expected groups with a positive, finite mean cost between them, found {unit.tolist()}")
        return cls(
            source=_padded(source),
            target=_padded(target),
            sizes=[(len(x), len(y)) for x, y in zip(source, target, strict=True)],
            shift=torch.from_numpy(shift).float()[:, None],
            scale=torch.from_numpy(scale).float()[:, None],
            unit=torch.from_numpy(unit).float()[:, None, None],
            config=config,
        )

    def dual_loss(self, u: Networks, v: Networks, source_rows: Any, target_rows: Any) -> Callable[[int], torch.Tensor]:
        """Minus the dual objective (T,) on the minibatches of a step."""
        import torch

        objective = torch.func.vmap(self._of_pot("loss"))

        def loss(step: int) -> torch.Tensor:
            x, y, costs = self._batch(source_rows[:, step], target_rows[:, step])
            return -objective(self._potential(u, x), self._potential(v, y), x, y, costs)

        return loss

    def map_loss(
        self, u: Networks, v: Networks, f: Networks, source_rows: Any, target_rows: Any
    ) -> Callable[[int], torch.Tensor]:
        """The mean cost (T,) between a row's image and its counterparts, on the minibatches of a step."""
        import torch

        plan = torch.func.vmap(self._of_pot("plan"))

        def loss(step: int) -> torch.Tensor:
            x, y, costs = self._batch(source_rows[:, step], target_rows[:, step])
            with torch.no_grad():
                weight = plan(self._potential(u, x), self._potential(v, y), x, y, costs)
            moved = self.shift + self.scale * output(f, (x - self.shift) / self.scale)
            return (weight * _costs(moved, y, self.config.cost) / self.unit).sum(dim=(1, 2))

        return loss

    def marginal_error(self, u: Networks, v: Networks) -> torch.Tensor:
        """How far the plan's row masses are from 1/n, (T,), on the first rows."""
        import torch

        errors = []
        for t, (n, m) in enumerate(self.sizes):
            only = [{name: tensor[t : t + 1] for name, tensor in network.items()} for network in (u, v)]
            x, y = self.source[t, : min(n, MEASURED_POINTS)], self.target[t, : min(m, MEASURED_POINTS)]
            potentials = [self._potential(net, rows[None], t)[0] for net, rows in zip(only, (x, y), strict=True)]
            costs = _costs(x, y, self.config.cost) / self.unit[t]
            mass = self._of_pot("plan")(*potentials, x, y, costs).sum(dim=1) * len(x)
            errors.append((mass - 1).abs().mean())
        return torch.stack(errors)

    def _of_pot(self, what: str) -> Callable[..., Any]:
        """POT's objective or density, of potentials, rows and ready costs."""
        from pipeline.transport.pot import ot

        if "TorchBackend" not in [backend.__name__ for backend in ot.backend.get_available_backend_implementations()]:
            raise ValueError(
                "POT was imported before torch in this process, and knows no tensors: import torch first, or set the "
                "environment variable POT_BACKEND_DISABLE_PYTORCH to nothing"
            )
        function = getattr(ot.stochastic, f"{what}_dual_{self.config.regularizer}")
        return lambda u, v, x, y, costs: function(
            u, v, x, y, reg=self.config.regularization, metric=lambda _x, _y: costs
        )

    def _batch(self, source_rows: torch.Tensor, target_rows: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Rows (T, B, d) of these numbers of both groups, and their costs (T, B, B) in units of the mean."""
        import torch

        trial = torch.arange(len(self.source))[:, None]
        x, y = self.source[trial, source_rows], self.target[trial, target_rows]
        return x, y, _costs(x, y, self.config.cost) / self.unit

    def _potential(self, network: Networks, rows: torch.Tensor, trial: int | None = None) -> torch.Tensor:
        """A potential's values (T, B)."""
        part = slice(None) if trial is None else slice(trial, trial + 1)
        return output(network, (rows - self.shift[part]) / self.scale[part])[..., 0]


def _costs(x: torch.Tensor, y: torch.Tensor, cost: str | Cost) -> torch.Tensor:
    """Costs of all pairs: (..., n, d) and (..., m, d) to (..., n, m)."""
    import torch

    if cost in ("l1", "squared_l1"):
        distance = torch.cdist(x, y, p=1.0)
        return distance**2 if cost == "squared_l1" else distance
    found: torch.Tensor = cost_function(cost)(x[..., :, None, :], y[..., None, :, :])
    return found


def _minibatches(sizes: Sequence[int], config: Config, rngs: Sequence[np.random.Generator]) -> torch.Tensor:
    """Row numbers (T, steps, B), with replacement."""
    import torch

    shape = (config.steps, config.batch_size)
    return torch.from_numpy(np.stack([rng.integers(size, size=shape) for size, rng in zip(sizes, rngs, strict=True)]))


def _padded(groups: Sequence[Array]) -> torch.Tensor:
    import torch

    longest = max(len(rows) for rows in groups)
    return torch.from_numpy(np.stack([np.pad(rows, [(0, longest - len(rows)), (0, 0)]) for rows in groups])).float()


def _trained(parameters: list[torch.Tensor], loss: Callable[[int], torch.Tensor], config: Config, rate: str) -> Array:
    """Adam on the sum of the trials' losses, which share no parameter; the recorded losses (T, L)."""
    import torch

    adam = _adam(parameters, getattr(config, rate))
    recorded, curve = set(_recorded(config.steps).tolist()), []
    for step in range(config.steps):
        losses = loss(step)
        adam(torch.autograd.grad(losses.sum(), parameters))
        if step in recorded:
            curve.append(losses.detach().double().numpy())
    return np.stack(curve, axis=1)


def _adam(parameters: list[torch.Tensor], rate: float) -> Callable[[Sequence[torch.Tensor]], None]:
    """Steps of Adam along gradients of the parameters, which they change in place.

    By torch's own function: its class of the same name imports torch's compiler at once, which takes longer than
    hundreds of steps.
    """
    import torch
    from torch.optim.adam import adam

    first, second = ([torch.zeros_like(tensor) for tensor in parameters] for _ in range(2))
    taken = [torch.zeros(()) for _ in parameters]

    def step(gradients: Sequence[torch.Tensor]) -> None:
        with torch.no_grad():
            adam(parameters, list(gradients), first, second, [], taken, fused=True, lr=rate, **ADAM)  # type: ignore[arg-type]

    return step


def _recorded(steps: int) -> Array:
    """The steps whose losses are kept."""
    return np.unique(np.linspace(0, steps - 1, min(steps, CURVE_POINTS)).astype(np.int64))
