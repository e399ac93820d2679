"""The audit of the rows of a table under any model: what may change, and the distances that the model allows.

Distances are upper bounds by a search that asks for decisions. The search of a torch network also starts from an attack
along gradients. With ``attack="exact"``, :mod:`fairness_audits.audits.robustness_bias.exact` reads the model.
"""

from __future__ import annotations

import logging
from functools import partial

import numpy as np

from fairness_audits.attacks.changes import Boxes, box_distance, plane_distance
from fairness_audits.attacks.decision_search import nearest_decisions, nearest_rows
from fairness_audits.attacks.relu_distance import relu_distance
from fairness_audits.audits.robustness_bias.distances import EXACT
from fairness_audits.audits.robustness_bias.exact import Plane, formula_of, refused
from fairness_audits.audits.robustness_bias.measured import Chosen, Examined
from fairness_audits.audits.robustness_bias.points import Points, Subjects
from fairness_audits.audits.robustness_bias.table_trial import Trial
from fairness_audits.inputs.model_files import Computing
from fairness_audits.inputs.probe import model_facts, probed
from fairness_audits.inputs.table import drawn
from fairness_audits.seeds import generators
from fairness_audits.values import Array

SEARCH = "search"
REFERENCE = 5000
"""Largest number of rows among which those of other decisions are looked for."""
LONG = 30.0
"""Seconds from which on the expected time of a search is said before it goes on."""
FMN = {"steps": 20, "start_steps": 100}
"""Settings of the attack on torch networks."""


def examined(trial: Trial, some: Points, *, exact: bool, computing: Computing, seed: int) -> Examined:
    """Find the distances of ``some`` rows of a table to another decision of the model."""
    rows, answers, source, levels = some.rows, trial.answers, trial.source, trial.levels
    of_some = answers.only(rows)
    subjects = Subjects(some, of_some)
    chosen, distance, evaluations = distances(trial, rows[subjects.correct], exact, computing, seed)
    every = np.full(len(rows), np.nan)
    every[subjects.correct] = np.where(np.isfinite(distance), distance, np.nan)
    return Examined(
        subjects=subjects,
        distances=[(chosen, every)],
        place=source.name,
        classes=levels if levels and len(levels) == subjects.classes else None,
        data={
            **{"path": source.name, "sha256": source.sha256, "label": trial.label},
            **{"label_levels": levels, **trial.facts},
        },
        model={**model_facts(trial.model, of_some), "classes": subjects.classes, "evaluations": evaluations},
        said={"notes": source.notes},
        libraries=("numpy", *trial.model.libraries),
    )


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
    found = nearest_decisions(decide, z, own, starts, trial.z[some], changes, rng, partial(_announce, len(z)))
    if formula is None:
        return Chosen(SEARCH, {}), found.length, found.evaluations
    length = relu_distance(formula, z, own, found.length, changes) if np.isfinite(found.length).all() else None
    if length is None:
        raise refused(trial, "the exact search does not end for every row")
    return Chosen(EXACT, {}), length, found.evaluations


def _announce(rows: int, seconds: float, evaluations: int) -> None:
    """Say how long the search may take, and how to make it shorter, if this is long."""
    if seconds > LONG:
        logging.getLogger(__name__).warning(
            "The search asks the model for up to %s decisions about each of %s rows. At the speed of the first, it "
            "takes up to %s. Fewer rows take less: points=%d takes about half. A linear model, a tree or a small "
            "network needs no search: attack='exact'.",
            f"{evaluations // rows:,}", f"{rows:,}", duration(seconds), max(2, rows // 2),
        )  # fmt: skip


def duration(seconds: float) -> str:
    """Return a time for readers: ``40 s``, ``3 min`` or ``2.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


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
