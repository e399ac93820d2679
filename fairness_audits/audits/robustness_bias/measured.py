"""Findings of each attack: the measures of all images and of every group, under the keys of the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pandas as pd

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.core import COUNTS, MEASURES, RobustnessBias, robustness_bias
from fairness_audits.audits.robustness_bias.distances import EXACT, SMOOTHING
from fairness_audits.audits.robustness_bias.points import Subjects
from fairness_audits.options import Options
from fairness_audits.results.formats import plain
from fairness_audits.seeds import generators
from fairness_audits.values import Array

if TYPE_CHECKING:
    from fairness_audits.audits.robustness_bias.checking import Check

KINDS = {EXACT: "exact", SMOOTHING: "lower"}
"""Type of the distances: exact, lower bounds, or upper bounds for all other attacks."""
BOUNDS = {"upper": "upper bounds", "lower": "lower bounds of the smoothed model"}
FAIR = "fair distance"
"""The metric of a unit that is not L2."""
Entry = Mapping[str, Any]


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
class Unit:
    """What a point is (``name``), and how distances are measured: by which ``metric``, and ``of`` which unit."""

    name: str
    metric: str
    of: str

    @property
    def many(self) -> str:
        """Return what several points are."""
        return f"{self.name}s"


@dataclass(frozen=True)
class Measured:
    """The measurements of one attack: the ``bias`` of the groups by its distances.

    ``groups`` has a row for each denominator, partition and level. ``entry`` has the same rows and the quantities of
    all points together, for the JSON.
    """

    chosen: Chosen
    unit: Unit
    bias: RobustnessBias
    groups: pd.DataFrame
    entry: Entry


@dataclass(frozen=True)
class Examined:
    """All that an audit finds out before it compares the groups.

    ``distances`` (n,) of each attack are NaN if it failed. ``place`` names the images or rows and ``shape`` describes
    one of them. ``data`` and ``model`` are their facts, ``classes`` the names of the classes.
    ``conditions`` are those of the caveats that apply to one kind of input.
    """

    subjects: Subjects
    distances: Sequence[tuple[Chosen, Array]]
    unit: Unit
    place: str
    shape: str
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    conditions: Mapping[str, Any]
    libraries: tuple[str, ...]
    classes: Sequence[str] | None
    settings: Options
    check: Check | None = None


def measured(
    chosen: Chosen,
    distance: Array,
    check: Check | None,
    subjects: Subjects,
    unit: Unit,
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
    columns = (*COUNTS, *MEASURES)
    groups = pd.concat(
        [
            pd.DataFrame(
                {
                    "attack": chosen.name,
                    "bound": chosen.bound,
                    "denominator": one.denominator,
                    "partition": one.partition.name,
                    "level": one.partition.levels,
                    **{name: getattr(one, name) for name in columns},
                    "budget": bias.budget,
                }
            )
            for one in bias.levels
        ],
        ignore_index=True,
    )
    found = {
        "attack": chosen.name,
        "bound": chosen.bound,
        "settings": dict(chosen.settings),
        "unit": unit.name,
        "points": len(bias.distance),
        "n_correct": bias.correct.sum(),
        "failed": bias.failed.sum(),
        "budget": bias.budget,
        "mean_distance": bias.mean_distance,
        "median_distance": bias.median_distance,
        "groups": groups.to_dict("records"),
        "check": None if check is None else check.entry(distance, subjects),
    }
    return Measured(chosen, unit, bias, groups, plain(found))


def settings_text(found: Entry) -> str:
    """Return the attack with its settings, as in every output: ``deepfool: steps 100, candidates 10, ...``."""
    settings = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {settings}" if settings else name_text(found)


def name_text(found: Entry) -> str:
    """Return the name of the attack in sentences and titles."""
    return "exact distance" if found["attack"] == EXACT else str(found["attack"])


def bound_text(found: Entry, form: str) -> str:
    """Return the type of the distances in the ``form``, such as ``" ({})"``; empty if they are exact."""
    return "" if found["bound"] == "exact" else form.format(BOUNDS[found["bound"]])
