"""Findings of each attack: the measures of all images or rows and of every group, under the keys of the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import COUNTS, MEASURES, RobustnessBias, robustness_bias
from fairness_audits.audits.robustness_bias.distances import EXACT, SMOOTHING
from fairness_audits.audits.robustness_bias.points import Subjects
from fairness_audits.results.formats import plain
from fairness_audits.seeds import generators
from fairness_audits.values import Array

if TYPE_CHECKING:
    from fairness_audits.audits.robustness_bias.checking import Check

KINDS = {EXACT: "exact", SMOOTHING: "lower"}
"""Type of the distances: exact, lower bounds, or upper bounds for all other attacks."""


@dataclass(frozen=True)
class Chosen:
    """An attack by its name, with its settings."""

    name: str
    settings: Mapping[str, Any]

    @property
    def bound(self) -> str:
        """Return ``exact``, ``lower`` or ``upper``."""
        return KINDS.get(self.name, "upper")


@dataclass(frozen=True)
class Examined:
    """All that an audit finds out before it compares the groups.

    ``distances`` (n,) of each attack are NaN if it failed. ``place`` names the images or rows. ``data`` and ``model``
    are their facts, ``classes`` the names of the classes, and ``said`` the facts of sentences about one kind of input.
    """

    subjects: Subjects
    distances: Sequence[tuple[Chosen, Array]]
    place: str
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    said: Mapping[str, Any]
    libraries: tuple[str, ...]
    classes: Sequence[str] | None
    check: Check | None = None


@dataclass(frozen=True)
class Measured:
    """The measurements of one attack: the ``bias`` of the groups by its distances.

    ``groups`` has a row for each denominator, partition and level. ``entry`` has the same rows and the quantities of
    all points together, for the JSON.
    """

    bias: RobustnessBias
    groups: pd.DataFrame
    entry: Mapping[str, Any]


def measured(
    chosen: Chosen,
    distance: Array,
    check: Check | None,
    subjects: Subjects,
    precision: Precision,
    budget: float | None,
    seed: int,
) -> Measured:
    """Measure all groups by an attack's distances (n,), NaN if it failed, and add its ``check``.

    All attacks and denominators share the seed's resamples and permutations. A quantity that does not exist is null.
    """
    check = check if chosen.bound == "upper" else None
    (rng,) = generators("audit", "robustness", "sigma", str(seed), repetitions=1)
    bias = robustness_bias(
        distance,
        subjects.correct,
        subjects.points.partitions,
        budget,
        precision,
        rng,
        fallback=None if check is None else check.line,
    )
    parts = [
        pd.DataFrame(
            {
                **{"attack": chosen.name, "bound": chosen.bound, "denominator": one.denominator},
                **{"partition": one.partition.name, "level": one.partition.levels},
                **{name: getattr(one, name) for name in (*COUNTS, *MEASURES)},
                "budget": bias.budget,
            }
        )
        for one in bias.levels
    ]
    groups = pd.concat(parts, ignore_index=True)
    found = {
        "attack": chosen.name,
        "bound": chosen.bound,
        "settings": dict(chosen.settings),
        "unit": subjects.points.unit,
        "points": len(bias.distance),
        "n_correct": bias.correct.sum(),
        "failed": bias.failed.sum(),
        "budget": bias.budget,
        "mean_distance": bias.mean_distance,
        "median_distance": bias.median_distance,
        "groups": groups.to_dict("records"),
        "check": None if check is None else check.entry(distance, subjects),
    }
    return Measured(bias, groups, plain(found))
