"""The evidence of a search among whole people, for models whose outputs jump."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds
from fairness_audits.attacks.whole_people import (
    ROUNDING,
    Column,
    Move,
    Search,
    candidates,
    cells,
    column_shares,
    policy,
    search,
)
from fairness_audits.audits.loss_ratio.compute import Evidence
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest, flow_tests, loss_ratio_test
from fairness_audits.audits.loss_ratio.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.fair_metric import FairMetric
from fairness_audits.inputs.probe import Answers
from fairness_audits.inputs.table import Units
from fairness_audits.messages import SHOWN, listed
from fairness_audits.seeds import generators
from fairness_audits.values import Array

CLIP = 0.01
"""Probabilities are clipped to [CLIP, 1 - CLIP] in a loss."""


@dataclass(frozen=True)
class Found:
    """The evidence of the search and its details.

    ``columns`` are the names of the columns. ``shares`` (c,) are the shares of their moves along the sensitive
    subspace. ``permitted`` are the columns that may move. ``policy`` is the test of a single move for each label and
    present value.
    """

    evidence: Evidence
    columns: tuple[str, ...]
    shares: Array
    permitted: tuple[int, ...]
    candidates: int
    evaluations: int
    least_share: float
    policy: RatioTest

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return the description of the search for the JSON, without the tests."""
        return {
            "candidates": self.candidates + 1,
            "evaluations": self.evaluations,
            "clip": CLIP,
            "shares": dict(zip(self.columns, self.shares.tolist(), strict=True)),
            "permitted": [self.columns[place] for place in self.permitted],
            "least_share": self.least_share,
        }


def by_people(
    answers: Answers,
    features: Array,
    label: Array,
    metric: FairMetric,
    units: Units,
    settings: Settings,
    reference: Array,
    columns: Mapping[str, Column],
    bounds: Bounds | None,
    draw_of_row: Array,
    unfounded: str,
) -> Found:
    """Search for the worst person for each row among the people whom the metric treats as alike.

    Parameters
    ----------
    answers : Answers
        The answers of the model.
    features, label : array (n, d) and (n,)
        The audited rows.
    metric : FairMetric
        In the units of the audit.
    reference : array (m, d)
        Other rows. Their values are the candidates for the audited rows.
    columns : mapping
        The features of each column, by the column's name.
    bounds : pair of arrays (d,), optional
        The smallest and the largest value of each feature, in its own units.
    draw_of_row : array (n,)
        The placebo uses the rows where this is not -1.
    unfounded : str
        Why the sensitive directions may be noise; empty if the rows show that they are not.

    Raises
    ------
    InvalidInput
        If the metric permits no column to change.
    """
    names, groups = tuple(columns), tuple(columns.values())
    units = units.knowing(reference)
    points, known = units.inward(features), units.inward(reference)
    shares = column_shares(known, groups, metric)
    order = np.argsort(-shares, kind="stable").tolist()
    permitted = tuple(place for place in order if shares[place] >= settings.least_share)
    moves = within(candidates(known, groups, permitted), units, bounds)
    if not moves and candidates(known, groups, permitted):
        problem = "--bounds leaves no value to which a permitted column may change"
        raise InvalidInput(problem, option="bounds", remedy="Use --bounds=data, or wider bounds")
    if not moves:
        most = listed([f"{names[place]} {shares[place]:.2f}" for place in order], SHOWN)
        raise InvalidInput(
            "the search among people changes whole columns, but the fair metric permits no column to change: at least "
            f" {settings.least_share:g} of a change must be along the sensitive directions, and the "
            f"largest share is {shares.max():.2f} ({most})",
            option="least_share",
            remedy=(
                f"{unfounded or 'Lower --least-share. '}If columns are indicators of categories, name these "
                "with --one-hot. If sensitive columns are inputs of the model, include them. The audits fliptest and "
                "permutation need no fair metric"
            ),
        )

    def own_probability(z: Array, rows: Array) -> Array:
        return answers.probabilities(units.outward(z))[np.arange(len(z)), label[rows]]

    def searched(moves: Sequence[Move], least_share: float, rows: Array) -> Search:
        return search(lambda z, some: own_probability(z, rows[some]), points[rows], moves, metric, least_share)

    everyone = np.arange(len(features))
    found = searched(moves, settings.least_share, everyone)
    steps = tuple(sorted({round(step) for step in np.geomspace(1, len(moves), 30)}))
    losses = np.stack([loss_of(found.at(found.worst_of(count))) for count in steps])
    original_loss, worst = loss_of(found.own), found.worst
    comparable = moved(points, moves, worst)
    away = units.outward(comparable)
    # Columns that do not move keep their exact values.
    away = np.where(comparable == points, features, away)
    wrong = [(decided != label).astype(float) for decided in (answers.prediction, answers.decisions(away))]
    errors = wrong[0], np.full(losses.shape, np.nan)
    errors[1][-1] = wrong[1]
    limits = (settings.delta, settings.alpha)
    course, error_course = flow_tests(original_loss, losses, label, *limits, errors)
    (rng,) = generators("audit", "loss-ratio", "policy", str(settings.seed), repetitions=1)
    half = rng.permutation(len(features)) % 2 == 0
    every = loss_of(found.probability) / original_loss[:, None]
    choice = policy(every, cells(points, label, moves, groups), half)
    evidence = Evidence(
        steps=steps,
        course=course,
        error_course=error_course,
        original=features,
        comparable=away,
        original_loss=original_loss,
        comparable_loss=losses[-1],
        ratio=losses[-1] / original_loss,
        fair_distance=np.sqrt(metric.squared_distance(comparable, points)),
        possible=away,
        possible_loss=losses[-1],
        outside=np.zeros(len(features), dtype=bool),
        within=None,
    )
    others = [place for place in range(len(groups)) if place not in permitted]
    among = np.flatnonzero(draw_of_row >= 0)
    if len(among) > 1 and others:
        (rng,) = generators("audit", "loss-ratio", "directions", str(settings.seed), repetitions=1)
        drawn = rng.permutation(others)[: len(permitted)].tolist()
        if instead := within(candidates(known, groups, drawn, len(moves) + 1), units, bounds):
            other = searched(instead, 0.0, among)
            test = loss_ratio_test(loss_of(other.own), loss_of(other.at(other.worst)), *limits)
            evidence = replace(evidence, placebo=test, placebo_rows=len(among), placebo_directions=len(drawn))
    return Found(
        evidence=evidence,
        columns=names,
        shares=shares,
        permitted=permitted,
        candidates=len(moves),
        evaluations=found.evaluations,
        least_share=settings.least_share,
        policy=loss_ratio_test(original_loss, loss_of(found.at(choice)), *limits),
    )


def within(moves: Sequence[Move], units: Units, bounds: Bounds | None) -> tuple[Move, ...]:
    """Return the moves, in the units of the audit, to values within the bounds."""
    if bounds is None:
        return tuple(moves)
    low, high = (units.inward(end) for end in bounds)
    places = [list(move.positions) for move in moves]
    return tuple(
        move
        for move, at in zip(moves, places, strict=True)
        if (np.asarray(move.values) >= low[at] - ROUNDING).all()
        and (np.asarray(move.values) <= high[at] + ROUNDING).all()
    )


def loss_of(probability: Array) -> Array:
    """Compute the loss of probabilities clipped to [.01, .99], because a tree model may return 0 or 1."""
    return -np.log(np.clip(probability, CLIP, 1 - CLIP))


def moved(points: Array, moves: Sequence[Move], choice: Array) -> Array:
    """Return the points (n, d) after the move ``choice`` (n,), -1 for no move."""
    found = points.copy()
    for place, move in enumerate(moves):
        found[choice == place] = move.of(points[choice == place])
    return found
