"""The evidence of a search among whole people, for models without a gradient."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from fairness_audits.attacks.whole_people import (
    LEAST_COUNT,
    Column,
    candidates,
    column_shares,
    permitted_moves,
    within,
)
from fairness_audits.audits.loss_ratio.compute import Audited, Evidence
from fairness_audits.audits.loss_ratio.core import CLIP, among_people, among_random_columns
from fairness_audits.audits.loss_ratio.ratio_tests import RatioTest
from fairness_audits.audits.loss_ratio.settings import Settings
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.probe import Answers
from fairness_audits.messages import SHOWN, listed
from fairness_audits.seeds import generators
from fairness_audits.values import Array


def by_people(
    answers: Answers, audited: Audited, reference: Array, columns: Mapping[str, Column], unfounded: str
) -> tuple[Evidence, RatioTest, dict[str, Any]]:
    """Return the evidence of a search among people, the test of its policy, and its description for the JSON.

    Candidates have values of the ``reference`` (m, d), which are other rows. ``columns`` are the features of each
    column by its name. ``unfounded`` says why the sensitive directions may be noise; it is empty if the rows show that
    they are not. Raises InvalidInput if the metric or the bounds permit no column to change.
    """
    settings, metric, label, features = audited.settings, audited.metric, audited.label, audited.features
    names, groups = tuple(columns), tuple(columns.values())
    units, box = audited.units.knowing(reference), audited.inward(audited.bounds)
    points, known = units.inward(features), units.inward(reference)
    permitted = permitted_moves(known, groups, metric, settings.least_share, box)
    shares = permitted.shares
    if not permitted.every:
        possible = column_shares(known, groups, metric, least=1)
        if rare := [name for name, share in zip(names, possible, strict=True) if share >= settings.least_share]:
            raise _too_rare(rare, len(known), settings)
        most = [f"{names[place]} {shares[place]:.2f}" for place in permitted.order]
        raise _nothing_permitted(most, shares, settings, unfounded)
    if not permitted.moves:
        problem = "--bounds leaves no value to which a permitted column may change"
        raise InvalidInput(problem, option="bounds", remedy="Use --bounds=data, or wider bounds")

    def probability(z: Array, rows: Array) -> Array:
        return answers.probabilities(units.outward(z))[np.arange(len(z)), label[rows]]

    def own(z: Array) -> Array:
        """Return points in the columns' own units; columns that do not move keep their exact values."""
        return np.where(z == points, features, units.outward(z))

    (rng,) = generators("audit", "loss-ratio", "policy", str(settings.seed), repetitions=1)
    found = among_people(
        probability,
        lambda z: answers.decisions(own(z)),
        points,
        label,
        permitted,
        metric,
        least_share=settings.least_share,
        rng=rng,
        **audited.limits,
    )
    away, placebo, drawn = own(found.comparable), None, []
    others = [place for place in range(len(groups)) if place not in permitted.permitted]
    among = np.flatnonzero(audited.draw_of_row >= 0)
    if len(among) > 1 and others:
        (rng,) = generators("audit", "loss-ratio", "directions", str(settings.seed), repetitions=1)
        drawn = rng.permutation(others)[: len(permitted.permitted)].tolist()
        if instead := within(candidates(known, groups, drawn, len(permitted.moves) + 1), box):
            placebo = among_random_columns(
                lambda z, rows: probability(z, among[rows]), points[among], instead, metric, **audited.limits
            )
    evidence = Evidence(
        found,
        comparable=away,
        possible=away,
        possible_loss=found.comparable_loss,
        fair_distance=np.sqrt(metric.squared_distance(found.comparable, points)),
        outside=np.zeros(len(features), dtype=bool),
        placebo=placebo,
        placebo_directions=0 if placebo is None else len(drawn),
    )
    facts = {
        "candidates": len(permitted.moves) + 1,
        "evaluations": found.evaluations,
        "clip": CLIP,
        "shares": dict(zip(names, shares.tolist(), strict=True)),
        "permitted": [names[place] for place in permitted.permitted],
        "least_share": settings.least_share,
    }
    return evidence, found.policy, facts


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
