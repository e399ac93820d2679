"""The evidence of the search that a model allows: up its loss along the gradient, or among whole people.

Gradients come from a torch network or, for linear models and networks of scikit-learn, in closed form.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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
from fairness_audits.attacks.whole_people import (
    LEAST_COUNT,
    Column,
    candidates,
    column_shares,
    permitted_moves,
    within,
)
from fairness_audits.audits.admissible import Admissible
from fairness_audits.audits.loss_ratio.core import (
    CLIP,
    Decide,
    LossRatio,
    along_gradient,
    along_random_directions,
    among_people,
    among_random_columns,
    over_metrics,
    recorded_steps,
)
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest
from fairness_audits.audits.scaling import Units
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import FairMetric
from fairness_audits.inputs.probe import Answers
from fairness_audits.messages import SHOWN, listed
from fairness_audits.models.layers import Layers
from fairness_audits.progress import progress_bar
from fairness_audits.seeds import generators
from fairness_audits.values import Array

if TYPE_CHECKING:
    import torch

METRIC_ROWS = 200
"""Least number of rows, if there are as many, that are attacked with each of the other metrics."""


@dataclass(frozen=True)
class Audited:
    """The audited rows: ``features`` (n, d) in the columns' own units, and the ``label`` (n,) of each.

    The fair ``metric`` is in the ``units`` of the audit. ``people`` are the constraints on people who could exist, with
    the range of the data. ``bounds`` are the bounds of the search, None for no bounds. The placebo draws rows several
    times, each time with new directions; ``draw_of_row`` (n,) is the draw of each row, -1 for none.
    """

    features: Array
    label: Array
    metric: FairMetric
    units: Units
    people: Admissible
    bounds: Bounds | None
    draw_of_row: Array

    @property
    def points(self) -> Array:
        """Return the rows in the units of the audit."""
        return self.units.inward(self.features)

    def inward(self, bounds: Bounds | None) -> Bounds | None:
        """Convert bounds to the units of the audit."""
        return None if bounds is None else (self.units.inward(bounds[0]), self.units.inward(bounds[1]))


@dataclass(frozen=True)
class Evidence:
    """The tests ``found`` on n rows, and what describes their comparables in the columns' own units.

    ``comparable`` (n, d) are the points after the search, and ``possible`` the people who could exist nearest to them,
    with their ``possible_loss`` (n,). ``fair_distance`` (n,) is the distance between a row and its comparable.
    ``outside`` (n,) marks comparables beyond the range of the data. ``within`` is the test with comparables kept in
    this range, None if the search keeps them there. ``placebo`` is the test of some of the rows with the same search
    along ``placebo_directions`` other directions, None if there was none. ``policy`` and ``candidates`` are the test of
    the policy and the description of the candidates in a search among people. ``metric_factors`` (k,) are the factors
    of the mean ratio with other metrics, measured on ``metric_rows`` rows.
    """

    found: LossRatio
    comparable: Array
    possible: Array
    possible_loss: Array
    fair_distance: Array
    outside: Array
    within: RatioTest | None = None
    placebo: RatioTest | None = None
    placebo_directions: int = 0
    policy: RatioTest | None = None
    candidates: Mapping[str, Any] | None = None
    metric_factors: Array = field(default_factory=lambda: np.zeros(0))
    metric_rows: int = 0


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


def of_network(
    scores: Callable[[torch.Tensor], torch.Tensor], audited: Audited, *, device: str, dtype: str, classes: int
) -> Engine:
    """Return the engine of a torch network, which uses automatic differentiation.

    ``scores`` maps inputs (n, d) in the columns' own units to logits (n, ``classes``).
    """
    import torch

    from fairness_audits.attacks.autograd import CPU_BLOCK_ROWS, attack, cross_entropy

    label, units, points = audited.label, audited.units, audited.points

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


def of_layers(layers: Layers, answers: Answers, audited: Audited) -> Engine:
    """Return the engine of a linear model or network of scikit-learn, whose gradient has a closed form."""
    label, units, points = audited.label, audited.units, audited.points
    inside = layers.after(np.diag(units.scale), units.shift)

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


def by_gradient(
    engine: Engine,
    audited: Audited,
    *,
    regularization: float,
    step_size: float,
    steps: int,
    seed: int,
    metrics: Sequence[FairMetric] = (),
    **limits: float,
) -> Evidence:
    """Attack rows along the gradient, and test both ratios against the ``limits`` delta and alpha at recorded steps.

    The attack is repeated with each of the other ``metrics``, k in all, on one part in k of the rows, but at least on
    METRIC_ROWS. Without bounds, the attack is repeated within the range of the data, for comparison. Raises
    InvalidInput if the step size is unstable, or fewer than two rows have a finite ratio.
    """
    units, points, label = audited.units, audited.points, audited.label
    schedule = step_schedule("constant", step_size, 0.0, steps)
    plan = Plan(audited.metric, regularization, schedule, recorded_steps(steps))
    everyone, box = np.arange(len(points)), audited.inward(audited.bounds)

    def tested(bounds: Bounds | None, decide: Decide | None = None) -> LossRatio:
        return along_gradient(
            lambda plan: engine.flow(plan, bounds, everyone), points, label, plan, decide=decide, **limits
        )

    decide = engine.decide
    found = tested(box, None if decide is None else lambda z: decide(units.outward(z)))
    finite = np.isfinite(found.ratio)
    if finite.sum() < 2:
        raise InvalidInput(
            f"only {finite.sum()} of {len(points)} rows have a finite loss before and after the attack: expected at "
            "least 2",
            option="step_size",
            remedy="Use a smaller step_size, or a model that returns logits instead of probabilities",
        )
    with np.errstate(over="ignore", invalid="ignore"):  # diverged points are counted; their distance is NaN
        fair_distance = np.sqrt(audited.metric.squared_distance(found.comparable, points))
    comparable = units.outward(np.asarray(found.comparable, dtype=np.float64))
    inside = tested(audited.inward(audited.people.bounds)).course if box is None else None
    possible = audited.people.nearest(np.where(np.isfinite(comparable), comparable, audited.features))
    draws = [np.flatnonzero(audited.draw_of_row == draw) for draw in range(audited.draw_of_row.max(initial=-1) + 1)]
    (rng,) = generators("audit", "loss-ratio", "directions", str(seed), repetitions=1)
    placebo = along_random_directions(lambda plan, rows: engine.flow(plan, box, rows), plan, draws, rng=rng, **limits)
    (rng,) = generators("audit", "loss-ratio", "metric rows", str(seed), repetitions=1)
    some = np.sort(rng.permutation(everyone)[: max(METRIC_ROWS, len(everyone) // max(1, len(metrics)))])
    factors = over_metrics(lambda plan, rows: engine.flow(plan, box, rows), plan, metrics, some, found)
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
        metric_factors=factors,
        metric_rows=len(some),
    )


def by_people(
    answers: Answers,
    audited: Audited,
    reference: Array,
    columns: Mapping[str, Column],
    *,
    unfounded: str,
    least_share: float,
    seed: int,
    **limits: float,
) -> Evidence:
    """Search among whole people, and test both ratios against the ``limits`` delta and alpha.

    Candidates have values of the ``reference`` (m, d), which are other rows. ``columns`` are the features of each
    column by its name. ``unfounded`` says why the sensitive directions may be noise; it is empty if the rows show that
    they are not. Raises InvalidInput if the metric or the bounds permit no column to change.
    """
    metric, label, features = audited.metric, audited.label, audited.features
    names, groups = tuple(columns), tuple(columns.values())
    units, box = audited.units.knowing(reference), audited.inward(audited.bounds)
    points, known = units.inward(features), units.inward(reference)
    permitted = permitted_moves(known, groups, metric, least_share, box)
    shares = permitted.shares
    if not permitted.every:
        possible = column_shares(known, groups, metric, least=1)
        if rare := [name for name, share in zip(names, possible, strict=True) if share >= least_share]:
            raise _too_rare(rare, len(known))
        raise _nothing_permitted([(names[place], shares[place]) for place in permitted.order], least_share, unfounded)
    if not permitted.moves:
        problem = "bounds leaves no value to which a permitted column may change"
        raise InvalidInput(problem, option="bounds", remedy="Use bounds='data', or wider bounds")

    def probability(z: Array, rows: Array) -> Array:
        return answers.probabilities(units.outward(z))[np.arange(len(z)), label[rows]]

    def own(z: Array) -> Array:
        """Return points in the columns' own units; columns that do not move keep their exact values."""
        return np.where(z == points, features, units.outward(z))

    def decide(z: Array) -> Array:
        return answers.decisions(own(z))

    (rng,) = generators("audit", "loss-ratio", "policy", str(seed), repetitions=1)
    test = {"least_share": least_share, **limits}
    found = among_people(probability, decide, points, label, permitted, metric, rng=rng, **test)
    away, placebo, drawn = own(found.comparable), None, []
    others = [place for place in range(len(groups)) if place not in permitted.permitted]
    among = np.flatnonzero(audited.draw_of_row >= 0)
    if len(among) > 1 and others:
        (rng,) = generators("audit", "loss-ratio", "directions", str(seed), repetitions=1)
        drawn = rng.permutation(others)[: len(permitted.permitted)].tolist()
        if instead := within(candidates(known, groups, drawn, len(permitted.moves) + 1), box):
            placebo = among_random_columns(
                lambda z, rows: probability(z, among[rows]), points[among], instead, metric, **limits
            )
    return Evidence(
        found,
        comparable=away,
        possible=away,
        possible_loss=found.comparable_loss,
        fair_distance=np.sqrt(metric.squared_distance(found.comparable, points)),
        outside=np.zeros(len(features), dtype=bool),
        placebo=placebo,
        placebo_directions=0 if placebo is None else len(drawn),
        policy=found.policy,
        candidates={
            "candidates": len(permitted.moves) + 1,
            "evaluations": found.evaluations,
            "clip": CLIP,
            "shares": dict(zip(names, shares.tolist(), strict=True)),
            "permitted": [names[place] for place in permitted.permitted],
            "least_share": least_share,
        },
    )


def pinned_share(original: Array, comparable: Array, metric: FairMetric, bounds: Bounds | None) -> float:
    """Return the share of the sensitive subspace that lies in features held at a bound where they began.

    The share is the mean over the rows (n, d) of these features' summed shares, divided by the dimension of the
    subspace. A row at the corner of its box cannot move along a direction that leaves the box in some feature. Without
    bounds the result is 0.
    """
    if bounds is None or not metric.basis.shape[1]:
        return 0.0
    held = (comparable == original) & ((original == bounds[0]) | (original == bounds[1]))
    shares = (metric.basis**2).sum(axis=1) / metric.basis.shape[1]
    return float((held @ shares).mean())


def _too_rare(columns: Sequence[str], rows: int) -> InvalidInput:
    """Return the error for permitted ``columns`` whose values are too rare among the reference ``rows``."""
    shown = listed([repr(name) for name in columns], SHOWN)
    return InvalidInput(
        f"the fair metric permits {shown} to change, but no two values occur in at least {LEAST_COUNT} of the {rows:,} "
        "reference rows each",
        option="reference",
        column=columns[0],
        remedy="Pass more rows or reference rows (reference), or merge rare values",
    )


def _nothing_permitted(shares: Sequence[tuple[str, float]], least_share: float, unfounded: str) -> InvalidInput:
    """Return the error for a metric that permits no column to change; the largest of the ``shares`` come first."""
    most = listed([f"{name} {share:.2f}" for name, share in shares], SHOWN)
    return InvalidInput(
        "the search among people changes whole columns, but the fair metric permits no column to change: at least "
        f"{least_share:g} of a change must be along the sensitive directions, and the largest share is "
        f"{shares[0][1]:.2f} ({most})",
        option="least_share",
        remedy=(
            f"{unfounded or 'Lower least_share. '}If columns are indicators of categories, name these with one_hot. If "
            "sensitive columns are inputs of the model, include them. The audits fliptest and permutation need no fair "
            "metric"
        ),
    )
