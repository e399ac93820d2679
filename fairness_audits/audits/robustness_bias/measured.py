"""What each attack says: the measures of all images and of every group under the keys of the JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias import rows
from fairness_audits.audits.robustness_bias.attack_check import Checked
from fairness_audits.audits.robustness_bias.attacking import Chosen
from fairness_audits.audits.robustness_bias.checking import Check
from fairness_audits.audits.robustness_bias.measures import DENOMINATORS
from fairness_audits.audits.robustness_bias.settings import Settings
from fairness_audits.audits.robustness_bias.subjects import Subjects
from fairness_audits.results.formats import plain
from fairness_audits.seeds import generators
from fairness_audits.values import Array

BOUNDS = {"upper": "upper bounds", "lower": "lower bounds of the smoothed model", "exact": "exact"}
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What one attack says of the n ``points``, which have their distances.

    ``groups`` has a row for each denominator, partition and level; ``entry`` has its rows, and what is known of all
    images, as the JSON does. ``failed`` (n,) is where the attack found nothing, and ``checked`` what its check found,
    None where it follows no gradients.
    """

    chosen: Chosen
    points: rows.Measured
    groups: pd.DataFrame
    entry: Entry
    failed: Array
    checked: Sequence[Checked] | None = None


def measured(chosen: Chosen, distance: Array, check: Check | None, subjects: Subjects, asked: Settings) -> Measured:
    """The measures of all groups by these distances (n,) of an attack, NaN where it found none, and its ``check``.

    Intervals and p-values of all attacks and denominators are of the same resamples and permutations of the seed. What
    does not exist is null.
    """
    failed = subjects.correct & np.isnan(distance)
    told = None
    if check is not None and chosen.bound == "upper":
        told = check.of(distance, subjects)
        distance = check.completed(distance)
    points = rows.Measured(distance, subjects.correct, subjects.points.partitions)
    budget, known = points.budget(asked.budget), distance[points.known]
    precision = Precision(asked.alpha, asked.bootstraps, asked.permutations)
    (rng,) = generators("audit", "robustness", "sigma", str(asked.seed), repetitions=1)
    seeds = rng.integers(2**63, size=2)
    counts = {"images": np.ones(len(distance), dtype=bool), "n_correct": points.correct, "failed": failed}
    levels = []
    for denominator in DENOMINATORS:
        every = rows.level_measures(points, denominator, budget, precision, seeds)
        for partition, measures in zip(points.partitions, every, strict=True):
            members = [partition.codes == level for level in range(len(partition))]
            where = {"denominator": denominator, "partition": partition.name, "level": partition.levels}
            counted = {name: [of[inside].sum() for inside in members] for name, of in counts.items()}
            levels.append(pd.DataFrame({"attack": chosen.name, "bound": chosen.bound, **where, **counted, **measures}))
    groups = pd.concat(levels, ignore_index=True).assign(budget=budget)
    found = {
        "attack": chosen.name,
        "bound": chosen.bound,
        "settings": dict(chosen.settings),
        "images": len(distance),
        "n_correct": points.correct.sum(),
        "failed": failed.sum(),
        "budget": budget,
        "mean_distance": known.mean() if len(known) else None,
        "median_distance": np.median(known) if len(known) else None,
        "groups": groups.to_dict("records"),
        "check": None if check is None or told is None else check.entry(told, subjects),
    }
    return Measured(chosen, points, groups, plain(found), failed, told)


def settings_text(found: Entry) -> str:
    """``deepfool: steps 100, candidates 10, ...``: the attack with its settings, as every output is stamped."""
    told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {told}" if told else str(found["attack"])
