"""The audit of the rows of a table under any model: what may change, and the distances that the model allows.

Distances are upper bounds by a search that asks for decisions. The search of a torch network also starts from an attack
along gradients. With ``attack="exact"``, :mod:`fairness_audits.audits.robustness_bias.exact` reads the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from fairness_audits.attacks.changes import Boxes, box_distance, plane_distance
from fairness_audits.attacks.decision_search import nearest_decisions, nearest_rows
from fairness_audits.attacks.relu_distance import relu_distance
from fairness_audits.audits.robustness_bias.distances import EXACT
from fairness_audits.audits.robustness_bias.exact import Plane, formula_of, refused
from fairness_audits.audits.robustness_bias.measured import FAIR, Chosen, Examined, Unit
from fairness_audits.audits.robustness_bias.points import Points, Subjects, check_sizes, compared, partition_of, sampled
from fairness_audits.audits.robustness_bias.settings import Attacks, Images, Input, OfRows, Settings, Shape, refuse
from fairness_audits.audits.robustness_bias.table_trial import Trial, tried
from fairness_audits.errors import InvalidInput
from fairness_audits.inputs.model import Model, as_the_model_says
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import model_facts, probed
from fairness_audits.inputs.table import Source, classes_of, drawn
from fairness_audits.messages import SHOWN, listed
from fairness_audits.options import option_fields
from fairness_audits.seeds import generators
from fairness_audits.tables.levels import level_name
from fairness_audits.values import Array

SEARCH = "search"
REFERENCE = 5000
"""Largest number of rows among which those of other decisions are looked for."""
FMN = {"steps": 20, "start_steps": 100}
"""Settings of the attack on torch networks."""


def examined(settings: Settings, source: Source, model: Model, directions: Array | None) -> Examined:
    """Find the distances of the rows of a table to another decision of the model."""
    refuse(settings, (Images, Shape, Input, Attacks), "images")
    if settings.attack is not None and set(settings.attack) != {EXACT}:
        raise InvalidInput(
            "--attack applies to images only, except --attack=exact", option="attack", remedy="Leave it out"
        )
    if not settings.group:
        problem = "the audit compares groups of rows"
        raise InvalidInput(problem, option="group", remedy="Name their columns with --group")
    own = OfRows(**settings.some(*(one.name for _, one, _ in option_fields(OfRows))))
    settings, model = completed(settings, source, model)
    groups = compared(source, settings.group, settings.label)
    trial = tried(settings, source, model, directions, groups)
    settings, model = completed(settings, source, trial.model)
    answers, changes = trial.answers, trial.changes
    label, levels = None, tuple(map(level_name, model.classes)) or None
    count = answers.trial.shape[1]
    if settings.label is not None:
        names = settings.classes or (levels if levels and len(levels) == count > 2 else None)
        label, levels = classes_of(source, settings.label, count, names, settings.positive)
    partitions = tuple(partition_of(source.table[name]) for name in groups)
    points = sampled(Points(None, np.arange(len(source.table)), label, partitions), settings.points, settings.seed)
    check_sizes(points, settings.min_group)
    some = replace(answers, trial=answers.trial[points.rows], prediction=answers.prediction[points.rows], saturated=0)
    subjects = Subjects(points, some)
    rows, exact = points.rows[subjects.correct], settings.attack is not None
    chosen, distance, evaluations = distances(trial, rows, exact, Computing.of(settings), settings.seed)
    every = np.full(len(points.rows), np.nan)
    every[subjects.correct] = np.where(np.isfinite(distance), distance, np.nan)
    unit = Unit("row", "L2" if changes.plain else FAIR, "standard deviations")
    return Examined(
        subjects=subjects,
        distances=[(chosen, every)],
        unit=unit,
        place=source.name,
        shape=f"{len(trial.everyone.names)} features",
        classes=levels if levels and len(levels) == count else None,
        data={
            **{"path": source.name, "sha256": source.sha256, "label": settings.label},
            **{"label_levels": levels, **trial.facts},
        },
        model={**model_facts(model, some), "classes": count, "evaluations": evaluations},
        conditions={
            **conditions(trial, chosen),
            **trial.source.notes,
            "no_change": subjects.failures(every),
        },
        libraries=("numpy", "torch") if model.kind == "network" else ("numpy",),
        settings=own,
    )


def completed(settings: Settings, source: Source, model: Model) -> tuple[Settings, Model]:
    """Return the settings with what the model says about its inputs and classes, and the model of these labels."""
    named = settings.some("features", "label", "positive", "classes")
    features, positive, model = as_the_model_says(model, source, **named)
    return replace(settings, features=features, positive=positive), model


def conditions(trial: Trial, chosen: Chosen) -> dict[str, Any]:
    """Return the conditions of the caveats that only rows have."""
    facts, alike = trial.facts, trial.metric
    switches, fixed = (listed(facts[key], SHOWN) for key in ("switches", "fixed"))
    return {
        "upper_bounds": chosen.bound == "upper" and {"attacks": f"the {chosen.name}", "more": ""},
        "closer_is_not_worse": {"units": "rows", "why": "the spread of their numbers"},
        "changes": {
            "switched": f" ({switches})" if switches else "",
            "fixed": f" Constant columns do not change: {fixed}." if fixed else "",
        },
        "fair_metric": alike and {"cost": trial.changes.cost, "directions": listed(list(alike["directions"]), SHOWN)},
    }


def distances(trial: Trial, numbers: Array, exact: bool, computing: Computing, seed: int) -> tuple[Chosen, Array, int]:
    """Return the method, the distances of rows with these ``numbers``, and its evaluations of the model.

    Distances are ``exact``, or else upper bounds by a search.
    """
    z, own, changes = trial.z[numbers], trial.answers.prediction[numbers], trial.changes
    formula = formula_of(trial) if exact else None
    if isinstance(formula, Plane):
        return Chosen(EXACT, {}), plane_distance(*formula, z, own, changes), 0
    if isinstance(formula, Boxes):
        return Chosen(EXACT, {}), box_distance(formula, z, own, changes), 0
    features = trial.everyone.features[numbers]

    def decide(points: Array, rows: Array) -> Array:
        # Features that do not change keep their exact values.
        there = np.where(points == z[rows], features[rows], trial.units.outward(points))
        return trial.answers.decisions(there)

    some = drawn(np.arange(len(trial.z)), REFERENCE, "robustness", "reference", str(seed))
    starts = nearest_rows(trial.z[some], trial.answers.prediction[some], z, own, changes)
    if (
        trial.model.kind == "network"
        and not trial.encoding.levels
        and (attacked := along_gradients(trial, z, own, computing)) is not None
    ):
        starts = np.concatenate([attacked[:, None], starts], axis=1)
    (rng,) = generators("audit", "robustness", SEARCH, str(seed), repetitions=1)
    found = nearest_decisions(decide, z, own, starts, trial.z[some], changes, rng)
    if formula is None:
        return Chosen(SEARCH, {}), found.length, found.evaluations
    length = relu_distance(formula, z, own, found.length, changes) if np.isfinite(found.length).all() else None
    if length is None:
        raise refused(trial, "the exact search does not end for every row")
    return Chosen(EXACT, {}), length, found.evaluations


def along_gradients(trial: Trial, z: Array, own: Array, computing: Computing) -> Array | None:
    """Return points (n, d) of other decisions by the fast minimum-norm attack; None if there is no gradient."""
    import torch

    from fairness_audits.attacks.row_networks import fmn_of_rows

    features = torch.tensor(trial.everyone.features, dtype=computing.dtype, device=computing.device)
    try:
        scores = probed(trial.model, features, trial.everyone.names, trial.answers.kind)
    except ValueError:
        return None

    def network(rows: torch.Tensor) -> torch.Tensor:
        return scores.evaluate(trial.units.network_input(rows).to(features)).cpu()

    return fmn_of_rows(network, z, own, **FMN, numbers=trial.changes.numbers, keep=True).points
