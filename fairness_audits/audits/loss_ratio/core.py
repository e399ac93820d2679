"""The loss-ratio audit of arrays: a search for comparable points with a larger loss, and the tests of both ratios.

The audit of a user's model and the studies of the paper call :func:`along_gradient`. The audit calls
:func:`among_people` for models without a gradient. All points and bounds are in the units of the fair metric.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from fairness_audits.attacks.gradient_flow import Flow, Plan, concatenated
from fairness_audits.attacks.whole_people import Candidates, Move, Search, cells, moved, policy, search
from fairness_audits.audits.loss_ratio.ratio_tests import (
    ErrorRateRatioTest,
    RatioTest,
    flow_tests,
    loss_ratio_test,
    loss_ratios,
)
from fairness_audits.fair_metric import FairMetric, from_directions
from fairness_audits.values import Array

CLIP = 0.01
"""Probabilities are clipped to [CLIP, 1 - CLIP] in the losses of a search among people."""
RECORDED = 30
"""Largest number of steps at which the course of T_n is recorded."""

Decide = Callable[[Array], Array]
"""Function from points (..., n, d) to classes (..., n)."""
Probability = Callable[[Array, Array], Array]
"""Function from points (m, d) and the numbers (m,) of their rows to the probabilities (m,) of the rows' own labels."""


@dataclass(frozen=True)
class LossRatio:
    """The tests of n ``points`` (..., n, d) against their ``comparable`` points (..., n, d) after a search.

    ``original_loss`` and ``comparable_loss`` (..., n) are their losses. ``course`` and ``error_course`` are the tests
    after each of L ``steps``, (..., L). The last entry is the verdict. If decisions do not follow from the losses, the
    error rate is known at the last step only.
    """

    points: Array
    comparable: Array
    original_loss: Array
    comparable_loss: Array
    steps: tuple[int, ...]
    course: RatioTest
    error_course: ErrorRateRatioTest

    @property
    def ratio(self) -> Array:
        """Return the ratio of the losses of each point (..., n), NaN if it does not exist."""
        return loss_ratios(self.original_loss, self.comparable_loss).values


@dataclass(frozen=True)
class PeopleRatio(LossRatio):
    """The same for a search among whole people.

    ``policy`` is the test of the policy, which has one move for each label and present value. ``evaluations`` counts
    the evaluated points.
    """

    policy: RatioTest
    evaluations: int


def along_gradient(
    attack: Callable[[Plan], Flow],
    points: Array,
    label: Array,
    plan: Plan,
    *,
    delta: float,
    alpha: float,
    decide: Decide | None = None,
) -> LossRatio:
    r"""Attack points along the gradient of the loss, and test both ratios at the recorded steps.

    .. math:: H_0 : E[\ell(f(\Phi(x)), y) / \ell(f(x), y)] \le \delta,

    with the end :math:`\Phi(x)` of the gradient flow that starts at x.

    Parameters
    ----------
    attack : callable
        Follows a plan from the points: returns the flow of :func:`fairness_audits.attacks.gradient_flow.gradient_flow`
        or of one of its faster forms.
    points : ndarray of shape (..., n, d)
        The audited points. Leading axes are repetitions.
    label : ndarray of shape (..., n)
        Their classes.
    plan : Plan
        The fair metric, the penalty, the steps, and the steps at which the tests are computed.
    delta, alpha : float
        The tolerated ratio and the level of the test.
    decide : callable, optional
        Decides about points. By default, an error is a loss above log 2, which is right for two classes.

    Returns
    -------
    LossRatio

    Raises
    ------
    InvalidInput
        If the plan ends unstable, there are fewer than two points, or delta or alpha is out of range.

    References
    ----------
    Maity et al. 2021, Algorithm 1.

    Examples
    --------
    >>> from fairness_audits.attacks.gradient_flow import gradient_flow
    >>> x, label = np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([1, 1])
    >>> loss = lambda x: (np.exp(-x[:, 0]), -np.exp(-x[:, :1]) * [1.0, 0.0])
    >>> plan = Plan(from_directions(np.array([[1.0, 0.0]])), 50.0, [0.01] * 100, [50, 100])
    >>> attack = lambda plan: gradient_flow(loss, x, plan)
    >>> found = along_gradient(attack, x, label, plan, delta=1.25, alpha=0.05)
    >>> found.course.mean.round(2).tolist()
    [1.15, 1.37]
    """
    flow = attack(plan)
    last = flow.losses[..., -1, :]
    errors = None
    if decide is not None:
        finite = np.isfinite(loss_ratios(flow.original_loss, last).values)
        after = (decide(np.where(finite[..., None], flow.x, points)) != label).astype(float)
        errors = (decide(points) != label).astype(float), np.full(flow.losses.shape, np.nan)
        errors[1][..., -1, :] = np.where(finite, after, np.nan)
    tests = flow_tests(flow.original_loss, flow.losses, label, delta, alpha, errors)
    return LossRatio(points, flow.x, flow.original_loss, last, tuple(plan.record), *tests)


def along_random_directions(
    attack: Callable[[Plan, Array], Flow],
    plan: Plan,
    draws: Sequence[Array],
    *,
    delta: float,
    alpha: float,
    rng: np.random.Generator,
) -> RatioTest | None:
    """Test the same attack along as many random directions: the placebo, which shows the model's general sensitivity.

    ``attack`` follows a plan from the rows with the given numbers (m,). Each of the ``draws`` is the numbers of some
    rows, which have their own directions. None if all directions are sensitive, or there are fewer than two rows.
    """
    d, k = plan.metric.basis.shape
    if k == d or sum(map(len, draws)) < 2:
        return None
    metrics = [from_directions(rng.normal(size=(k, d))) for _ in draws]
    last = replace(plan, record=[len(plan.step_sizes)])
    pairs = zip(metrics, draws, strict=True)
    flow = concatenated([attack(replace(last, metric=metric), rows) for metric, rows in pairs if len(rows)])
    return loss_ratio_test(flow.original_loss, flow.losses[-1], delta, alpha)


def over_metrics(
    attack: Callable[[Plan, Array], Flow], plan: Plan, metrics: Sequence[FairMetric], rows: Array, found: LossRatio
) -> Array:
    """Repeat the same attack with other fair metrics: how much does the mean ratio depend on the metric?

    ``attack`` follows a plan from the rows with the given numbers (m,). Returns the factors (k,) between the mean ratio
    of these ``rows`` with each metric and their mean ratio in the attack that ``found`` describes, over the rows with
    finite ratios in both. A metric without such rows has no factor.
    """
    last, own, factors = replace(plan, record=[len(plan.step_sizes)]), found.ratio[rows], []
    for metric in metrics:
        flow = attack(replace(last, metric=metric), rows)
        other = loss_ratios(flow.original_loss, flow.losses[-1]).values
        both = np.isfinite(own) & np.isfinite(other)
        if both.any():
            factors.append(other[both].sum() / own[both].sum())
    return np.array(factors)


def among_people(
    probability: Probability,
    decide: Decide,
    points: Array,
    label: Array,
    candidates: Candidates,
    metric: FairMetric,
    *,
    least_share: float,
    delta: float,
    alpha: float,
    rng: np.random.Generator,
) -> PeopleRatio:
    """Search for the worst person among candidates for each point, and test both ratios.

    Parameters
    ----------
    probability, decide : callable
        The model.
    points : ndarray of shape (n, d)
        The audited points, in the units of the metric.
    label : ndarray of shape (n,)
        Their classes.
    candidates : Candidates
        The moves of :func:`fairness_audits.attacks.whole_people.permitted_moves`, from rows that are not audited.
    metric : FairMetric
        Defines who is comparable.
    least_share : float
        A move is permitted for a point if at least this share of it is along the sensitive directions.
    delta, alpha : float
        The tolerated ratio and the level of the test.
    rng : numpy.random.Generator
        Draws the half of the points on which each policy is chosen.

    Returns
    -------
    PeopleRatio
        Its steps are numbers of candidates.
    """
    found = search(probability, points, candidates.moves, metric, least_share)
    steps = recorded_steps(len(found.moves))
    losses = np.stack([clipped_loss(found.at(found.worst_of(count))) for count in steps])
    original = clipped_loss(found.own)
    comparable = moved(points, found.moves, found.worst)
    errors = (decide(points) != label).astype(float), np.full(losses.shape, np.nan)
    errors[1][-1] = decide(comparable) != label
    tests = flow_tests(original, losses, label, delta, alpha, errors)
    half = rng.permutation(len(points)) % 2 == 0
    every = clipped_loss(found.probability) / original[:, None]
    choice = policy(every, cells(points, label, found.moves, candidates.columns), half)
    by_policy = loss_ratio_test(original, clipped_loss(found.at(choice)), delta, alpha)
    return PeopleRatio(
        points, comparable, original, losses[-1], steps, *tests, policy=by_policy, evaluations=found.evaluations
    )


def among_random_columns(
    probability: Probability, points: Array, moves: Sequence[Move], metric: FairMetric, *, delta: float, alpha: float
) -> RatioTest:
    """Test the same search with moves of other columns, all of them permitted: the placebo."""
    found: Search = search(probability, points, moves, metric, 0.0)
    return loss_ratio_test(clipped_loss(found.own), clipped_loss(found.at(found.worst)), delta, alpha)


def clipped_loss(probability: Array) -> Array:
    """Compute the loss of probabilities clipped to [.01, .99], because a tree model may return 0 or 1."""
    return -np.log(np.clip(probability, CLIP, 1 - CLIP))


def recorded_steps(steps: int) -> tuple[int, ...]:
    """Return at most RECORDED steps, evenly spread on a logarithmic scale, and the last one.

    Examples
    --------
    >>> recorded_steps(3)
    (1, 2, 3)
    """
    return tuple(sorted({round(step) for step in np.geomspace(1, steps, RECORDED)}))
