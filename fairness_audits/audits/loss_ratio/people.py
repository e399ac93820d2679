"""The evidence of a search among whole people, for models whose outputs jump."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from fairness_audits.attacks.gradient_flow import Bounds
from fairness_audits.attacks.whole_people import (
    LEAST_COUNT,
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
from fairness_audits.audits.loss_ratio.compute import Audited, Evidence
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest, flow_tests, loss_ratio_test
from fairness_audits.audits.loss_ratio.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.probe import Answers
from fairness_audits.inputs.table import Units
from fairness_audits.messages import SHOWN, listed
from fairness_audits.seeds import generators
from fairness_audits.values import Array

CLIP = 0.01
"""Probabilities are clipped to [CLIP, 1 - CLIP] in a loss."""


@dataclass(frozen=True)
class Found:
    """The evidence of the search, its description for the JSON, and the test of the policy.

    The policy is a single move for each label and present value.
    """

    evidence: Evidence
    facts: Mapping[str, Any]
    policy: RatioTest


def by_people(
    answers: Answers, audited: Audited, reference: Array, columns: Mapping[str, Column], unfounded: str
) -> Found:
    """Search for the worst person for each row among the people whom the metric treats as alike.

    Candidates have values of the ``reference`` (m, d), which are other rows. ``columns`` are the features of each
    column by its name. ``unfounded`` says why the sensitive directions may be noise; it is empty if the rows show that
    they are not. Raises InvalidInput if the metric or the bounds permit no column to change.
    """
    settings, metric, label = audited.settings, audited.metric, audited.label
    names, groups = tuple(columns), tuple(columns.values())
    units, box = audited.units.knowing(reference), audited.inward(audited.bounds)
    points, known = units.inward(audited.features), units.inward(reference)
    shares = column_shares(known, groups, metric)
    order = np.argsort(-shares, kind="stable").tolist()
    permitted = [place for place in order if shares[place] >= settings.least_share]
    unbounded = candidates(known, groups, permitted)
    moves = within(unbounded, box)
    if not unbounded:
        possible = column_shares(known, groups, metric, least=1)
        if rare := [name for name, share in zip(names, possible, strict=True) if share >= settings.least_share]:
            raise _too_rare(rare, len(known), settings)
        raise _nothing_permitted(
            [f"{names[place]} {shares[place]:.2f}" for place in order], shares, settings, unfounded
        )
    if not moves:
        problem = "--bounds leaves no value to which a permitted column may change"
        raise InvalidInput(problem, option="bounds", remedy="Use --bounds=data, or wider bounds")

    def searched(moves: Sequence[Move], least_share: float, rows: Array) -> Search:
        def probability(z: Array, some: Array) -> Array:
            return answers.probabilities(units.outward(z))[np.arange(len(z)), label[rows[some]]]

        return search(probability, points[rows], moves, metric, least_share)

    found = searched(moves, settings.least_share, np.arange(len(points)))
    evidence = _evidence(answers, audited, units, found)
    limits = (settings.delta, settings.alpha)
    (rng,) = generators("audit", "loss-ratio", "policy", str(settings.seed), repetitions=1)
    half = rng.permutation(len(points)) % 2 == 0
    every = loss_of(found.probability) / evidence.original_loss[:, None]
    choice = policy(every, cells(points, label, moves, groups), half)
    others = [place for place in range(len(groups)) if place not in permitted]
    among = np.flatnonzero(audited.draw_of_row >= 0)
    if len(among) > 1 and others:
        (rng,) = generators("audit", "loss-ratio", "directions", str(settings.seed), repetitions=1)
        drawn = rng.permutation(others)[: len(permitted)].tolist()
        if instead := within(candidates(known, groups, drawn, len(moves) + 1), box):
            other = searched(instead, 0.0, among)
            test = loss_ratio_test(loss_of(other.own), loss_of(other.at(other.worst)), *limits)
            evidence = replace(evidence, placebo=test, placebo_directions=len(drawn))
    facts = {
        "candidates": len(moves) + 1,
        "evaluations": found.evaluations,
        "clip": CLIP,
        "shares": dict(zip(names, shares.tolist(), strict=True)),
        "permitted": [names[place] for place in permitted],
        "least_share": settings.least_share,
    }
    return Found(evidence, facts, loss_ratio_test(evidence.original_loss, loss_of(found.at(choice)), *limits))


def _too_rare(columns: Sequence[str], rows: int, settings: Settings) -> InvalidInput:
    """Return the error for permitted ``columns`` whose values are too rare among the reference ``rows``."""
    shown = listed([repr(name) for name in columns], SHOWN)
    return InvalidInput(
        f"the fair metric permits {shown} to change, but no two values occur in at least {LEAST_COUNT} of the {rows:,} "
        "reference rows each",
        option="reference",
        column=columns[0],
        remedy="Pass more rows or reference rows (--reference), or merge rare values",
    )


def _nothing_permitted(most: Sequence[str], shares: Array, settings: Settings, unfounded: str) -> InvalidInput:
    """Return the error for a metric that permits no column to change; ``most`` are the largest shares, in words."""
    return InvalidInput(
        "the search among people changes whole columns, but the fair metric permits no column to change: at least "
        f"{settings.least_share:g} of a change must be along the sensitive directions, and the "
        f"largest share is {shares.max():.2f} ({listed(most, SHOWN)})",
        option="least_share",
        remedy=(
            f"{unfounded or 'Lower --least-share. '}If columns are indicators of categories, name these "
            "with --one-hot. If sensitive columns are inputs of the model, include them. The audits fliptest and "
            "permutation need no fair metric"
        ),
    )


def _evidence(answers: Answers, audited: Audited, units: Units, found: Search) -> Evidence:
    """Return the evidence of a search, whose steps are numbers of candidates."""
    features, label, settings = audited.features, audited.label, audited.settings
    points = units.inward(features)
    steps = tuple(sorted({round(step) for step in np.geomspace(1, len(found.moves), 30)}))
    losses = np.stack([loss_of(found.at(found.worst_of(count))) for count in steps])
    original_loss = loss_of(found.own)
    comparable = moved(points, found.moves, found.worst)
    # Columns that do not move keep their exact values.
    away = np.where(comparable == points, features, units.outward(comparable))
    errors = (answers.prediction != label).astype(float), np.full(losses.shape, np.nan)
    errors[1][-1] = answers.decisions(away) != label
    course, error_course = flow_tests(original_loss, losses, label, settings.delta, settings.alpha, errors)
    return Evidence(
        steps=steps,
        course=course,
        error_course=error_course,
        original=features,
        comparable=away,
        original_loss=original_loss,
        comparable_loss=losses[-1],
        ratio=losses[-1] / original_loss,
        fair_distance=np.sqrt(audited.metric.squared_distance(comparable, points)),
        possible=away,
        possible_loss=losses[-1],
        outside=np.zeros(len(features), dtype=bool),
        within=None,
    )


def within(moves: Sequence[Move], bounds: Bounds | None) -> tuple[Move, ...]:
    """Return the moves to values within the bounds (d,), both in the units of the audit."""
    if bounds is None:
        return tuple(moves)
    low, high = bounds[0] - ROUNDING, bounds[1] + ROUNDING
    return tuple(
        move
        for move in moves
        if all(low[j] <= value <= high[j] for j, value in zip(move.positions, move.values, strict=True))
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
