"""The evidence of a flow up the loss, by gradients of a torch network or by finite differences of any smooth model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairness_audits.attacks.difference_flow import WIDTH, difference_flow
from fairness_audits.attacks.gradient_flow import Bounds, Flow, Plan, concatenated, step_schedule
from fairness_audits.audits.loss_ratio.compute import Audited, Evidence
from fairness_audits.audits.loss_ratio.ratio_tests import flow_tests, loss_ratio_test, loss_ratios
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import from_directions
from fairness_audits.inputs.probe import Answers
from fairness_audits.progress import progress_bar
from fairness_audits.seeds import generators
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

RECORDED = 30
"""Largest number of steps at which the course of T_n is recorded."""
GRADIENTS = 50
"""Number of gradients in a flow by differences."""
SINGLE_WIDTH = 1e-2
"""Difference step for probabilities in single precision, in the units of the audit."""


@dataclass(frozen=True)
class Engine:
    """The functions that move points and evaluate them.

    ``flow`` takes a plan, bounds in the units of the audit or None, and row numbers (m,), and moves these rows.
    ``loss`` maps points (n, d) of all rows, in the columns' own units, to losses (n,). ``wrong`` maps them to 0-1
    losses (n,); it is None if these follow from the loss. ``hold`` is the number of steps for which a gradient is held.
    """

    flow: Callable[[Plan, Bounds | None, Array], Flow]
    loss: Callable[[Array], Array]
    wrong: Callable[[Array], Array] | None = None
    hold: int = 1


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

    def wrong(x: Array) -> Array:
        return (scored(x).argmax(1).cpu().numpy() != label).astype(float)

    # With more than two classes, an error means that another score is larger. A loss above log 2 does not imply it.
    return Engine(flow, loss, wrong if classes > 2 else None)


def by_differences(answers: Answers, audited: Audited) -> Engine:
    """Return the engine of a smooth model without a gradient, which uses finite differences of its loss."""
    label, units, steps = audited.label, audited.units, audited.settings.steps
    points = units.inward(audited.features)
    hold = -(-steps // GRADIENTS)

    def flow(plan: Plan, bounds: Bounds | None, rows: Array) -> Flow:
        d, k = plan.metric.basis.shape
        gradients = -(-steps // hold)
        with progress_bar("following differences", gradients * (2 * k + 1) + -(-gradients // 5) * d + 1) as step:

            def loss(z: Array) -> Array:
                step()
                # A row whose loss was infinite has no finite point any more, and models refuse such input.
                finite = np.isfinite(z).all(axis=1)
                at = units.outward(np.where(finite[:, None], z, points[rows]))
                return np.where(finite, answers.loss(at, label[rows]), np.nan)

            width = SINGLE_WIDTH if answers.single else WIDTH
            return difference_flow(loss, points[rows], plan, hold, bounds, width)

    def wrong(x: Array) -> Array:
        return (answers.decisions(x) != label).astype(float)

    return Engine(flow, lambda x: answers.loss(x, label), wrong, hold)


def gather(engine: Engine, audited: Audited) -> Evidence:
    """Attack rows in the units of the audit, and test both ratios at the recorded steps.

    Without bounds, the attack is repeated within the range of the data, for comparison. Raises InvalidInput if the step
    size is unstable, or fewer than two rows have a finite ratio.
    """
    features, units, metric, settings = audited.features, audited.units, audited.metric, audited.settings
    limits = settings.delta, settings.alpha
    schedule = step_schedule("constant", settings.step_size, 0.0, settings.steps)
    plan = Plan(metric, settings.regularization, schedule, recorded_steps(settings.steps, engine.hold))
    points, everyone = units.inward(features), np.arange(len(features))

    def flow_within(bounds: Bounds | None) -> Flow:
        return engine.flow(plan, audited.inward(bounds), everyone)

    flow = flow_within(audited.bounds)
    ratio = loss_ratios(flow.original_loss, flow.losses[-1]).values
    finite = np.isfinite(ratio)
    if finite.sum() < 2:
        raise InvalidInput(
            f"only {finite.sum()} of {len(points)} rows have a finite loss before and after the attack: expected at "
            "least 2",
            option="step_size",
            remedy="Use a smaller --step-size, or a model that returns logits instead of probabilities",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # diverged points are counted; their distance is NaN
        fair_distance = np.sqrt(metric.squared_distance(flow.x, points))
    comparable, within = units.outward(np.asarray(flow.x, dtype=np.float64)), None
    if audited.bounds is None:
        inside = flow_within(audited.people.bounds)
        within = loss_ratio_test(inside.original_loss, inside.losses[-1], *limits)
    possible = audited.people.nearest(np.where(np.isfinite(comparable), comparable, features))
    errors = None
    if engine.wrong is not None:
        errors = engine.wrong(features), np.full(flow.losses.shape, np.nan)
        errors[1][-1] = np.where(finite, engine.wrong(np.where(finite[:, None], comparable, features)), np.nan)
    course, error_course = flow_tests(flow.original_loss, flow.losses, audited.label, *limits, errors)
    found = Evidence(
        steps=tuple(plan.record),
        course=course,
        error_course=error_course,
        original=features,
        comparable=comparable,
        original_loss=flow.original_loss,
        comparable_loss=flow.losses[-1],
        ratio=ratio,
        fair_distance=fair_distance,
        possible=possible,
        possible_loss=engine.loss(possible),
        outside=finite & ~audited.people.within(comparable),
        within=within,
    )
    return with_placebo(found, engine, plan, audited)


def with_placebo(found: Evidence, engine: Engine, plan: Plan, audited: Audited) -> Evidence:
    """Add the same attack along equally many random directions; each draw of rows has its own directions."""
    (d, k), settings, draw_of_row = plan.metric.basis.shape, audited.settings, audited.draw_of_row
    rows = [np.flatnonzero(draw_of_row == draw) for draw in range(draw_of_row.max(initial=-1) + 1)]
    if k == d or sum(map(len, rows)) < 2:
        return found
    (rng,) = generators("audit", "loss-ratio", "directions", str(settings.seed), repetitions=1)
    metrics = [from_directions(rng.normal(size=(k, d))) for _ in rows]
    last = replace(plan, record=[len(plan.step_sizes)])
    flows = [
        engine.flow(replace(last, metric=metric), audited.inward(audited.bounds), some)
        for metric, some in zip(metrics, rows, strict=True)
        if len(some)
    ]
    flow = concatenated(flows)
    test = loss_ratio_test(flow.original_loss, flow.losses[-1], settings.delta, settings.alpha)
    return replace(found, placebo=test, placebo_directions=k)


def recorded_steps(steps: int, hold: int = 1) -> Sequence[int]:
    """Return at most RECORDED multiples of ``hold``, evenly spread on a logarithmic scale, and the last step.

    Examples
    --------
    >>> recorded_steps(3), recorded_steps(25, 10)
    ((1, 2, 3), (10, 20, 25))
    """
    spread = {min(steps, max(hold, hold * round(step / hold))) for step in np.geomspace(1, steps, RECORDED)}
    return tuple(sorted(spread | {steps}))
