"""The evidence of a flow up the loss, by gradients of a torch network or in closed form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairness_audits.attacks.gradient_flow import (
    BLOCK_ROWS,
    Bounds,
    Flow,
    LossAndGradient,
    Plan,
    gradient_flow_in_blocks,
    step_schedule,
)
from fairness_audits.audits.loss_ratio.compute import Audited, Evidence
from fairness_audits.audits.loss_ratio.core import (
    Decide,
    LossRatio,
    along_gradient,
    along_random_directions,
    recorded_steps,
)
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.probe import Answers
from fairness_audits.models.layers import Layers
from fairness_audits.progress import progress_bar
from fairness_audits.seeds import generators
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True)
class Engine:
    """The functions that move points and evaluate them.

    ``flow`` takes a plan, bounds in the units of the audit or None, and row numbers (m,), and moves these rows.
    ``loss`` maps points (n, d) of all rows, in the columns' own units, to losses (n,). ``decide`` maps them to classes
    (n,); it is None if errors follow from the loss.
    """

    flow: Callable[[Plan, Bounds | None, Array], Flow]
    loss: Callable[[Array], Array]
    decide: Decide | None = None


def by_gradient(scores: Callable[[torch.Tensor], torch.Tensor], audited: Audited, device: str, classes: int) -> Engine:
    """Return the engine of a torch network, which uses automatic differentiation.

    ``scores`` maps inputs (n, d) in the columns' own units to logits (n, ``classes``).
    """
    import torch

    from fairness_audits.attacks.autograd import CPU_BLOCK_ROWS, attack, cross_entropy

    label, units, dtype = audited.label, audited.units, audited.settings.dtype
    points = units.inward(audited.features)

    def flow(plan: Plan, bounds: Bounds | None, rows: Array) -> Flow:
        blocks = -(-len(rows) // CPU_BLOCK_ROWS) if device == "cpu" else 1
        with progress_bar("following the gradient", blocks * (len(plan.step_sizes) + 1)) as step:

            def evaluate(z: torch.Tensor) -> torch.Tensor:
                step()
                return scores(units.network_input(z))

            return attack(evaluate, points[rows], label[rows], plan, device=device, dtype=dtype, bounds=bounds)

    def scored(x: Array) -> torch.Tensor:
        with torch.no_grad():
            blocks = torch.tensor(x, dtype=getattr(torch, dtype), device=device).split(CPU_BLOCK_ROWS)
            return torch.cat([scores(block) for block in blocks])

    def loss(x: Array) -> Array:
        with torch.no_grad():
            return np.asarray(cross_entropy(scored(x), torch.as_tensor(label).to(device))[0].cpu().numpy())

    def decide(x: Array) -> Array:
        return np.asarray(scored(x).argmax(1).cpu().numpy())

    # With more than two classes, an error means that another score is larger. A loss above log 2 does not imply it.
    return Engine(flow, loss, decide if classes > 2 else None)


def by_layers(layers: Layers, answers: Answers, audited: Audited) -> Engine:
    """Return the engine of a linear model or network of scikit-learn, whose gradient has a closed form."""
    label, units = audited.label, audited.units
    points, inside = units.inward(audited.features), layers.after(np.diag(units.scale), units.shift)

    def flow(plan: Plan, bounds: Bounds | None, rows: Array) -> Flow:
        own = label[rows]
        with progress_bar("following the gradient", -(-len(rows) // BLOCK_ROWS) * (len(plan.step_sizes) + 1)) as step:

            def hook(block: slice) -> LossAndGradient:
                def evaluate(z: Array) -> tuple[Array, Array]:
                    step()
                    return inside.loss_and_gradient(z, own[block])

                return evaluate

            return gradient_flow_in_blocks(hook, points[rows], plan, BLOCK_ROWS, bounds)

    # A tuned threshold decides about errors, so they do not follow from the loss.
    return Engine(flow, lambda x: layers.loss_and_gradient(x, label)[0], answers.decisions)


def gather(engine: Engine, audited: Audited) -> Evidence:
    """Attack rows in the units of the audit, and test both ratios at the recorded steps.

    Without bounds, the attack is repeated within the range of the data, for comparison. Raises InvalidInput if the step
    size is unstable, or fewer than two rows have a finite ratio.
    """
    features, units, settings = audited.features, audited.units, audited.settings
    schedule = step_schedule("constant", settings.step_size, 0.0, settings.steps)
    plan = Plan(audited.metric, settings.regularization, schedule, recorded_steps(settings.steps))
    points, everyone, box = units.inward(features), np.arange(len(features)), audited.inward(audited.bounds)

    def tested(bounds: Bounds | None, decide: Decide | None = None) -> LossRatio:
        return along_gradient(
            lambda plan: engine.flow(plan, bounds, everyone),
            points,
            audited.label,
            plan,
            delta=settings.delta,
            alpha=settings.alpha,
            decide=decide,
        )

    decide = engine.decide
    found = tested(box, None if decide is None else lambda z: decide(units.outward(z)))
    finite = np.isfinite(found.ratio)
    if finite.sum() < 2:
        raise InvalidInput(
            f"only {finite.sum()} of {len(points)} rows have a finite loss before and after the attack: expected at "
            "least 2",
            option="step_size",
            remedy="Use a smaller --step-size, or a model that returns logits instead of probabilities",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # diverged points are counted; their distance is NaN
        fair_distance = np.sqrt(audited.metric.squared_distance(found.comparable, points))
    comparable, inside = units.outward(np.asarray(found.comparable, dtype=np.float64)), None
    if box is None:
        inside = tested(audited.inward(audited.people.bounds)).course
    possible = audited.people.nearest(np.where(np.isfinite(comparable), comparable, features))
    draws = [np.flatnonzero(audited.draw_of_row == draw) for draw in range(audited.draw_of_row.max(initial=-1) + 1)]
    (rng,) = generators("audit", "loss-ratio", "directions", str(settings.seed), repetitions=1)
    placebo = along_random_directions(
        lambda plan, rows: engine.flow(plan, box, rows), plan, draws, rng=rng, **audited.limits
    )
    return Evidence(
        found,
        comparable=comparable,
        possible=possible,
        possible_loss=engine.loss(possible),
        fair_distance=fair_distance,
        outside=finite & ~audited.people.within(comparable),
        within=inside,
        placebo=placebo,
        placebo_directions=0 if placebo is None else audited.metric.basis.shape[1],
    )
