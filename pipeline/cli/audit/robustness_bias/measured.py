"""What each attack says: the measures of every group under the keys of the JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipeline.attacks.smoothing import SamplePlan, largest_radius
from pipeline.audits.robustness_bias.inference import sigma_intervals, significance
from pipeline.audits.robustness_bias.measures import DENOMINATORS, Lengths, by_level, counted, curves
from pipeline.cli.audit.robustness_bias import Settings
from pipeline.cli.audit.robustness_bias.attacking import Chosen
from pipeline.cli.audit.robustness_bias.subjects import Subjects
from pipeline.cli.numbers import plain
from pipeline.seeds import generators
from pipeline.types import Array

BOUNDS = {"upper": "upper bounds", "lower": "lower bounds of the smoothed model", "exact": "exact"}
ALIKE = 1e-6
"""Radii that differ by a smaller share are the same."""
GRID = 101
"""Sizes of perturbations at which the JSON has the curves, from 0 to T."""
Entry = Mapping[str, Any]


@dataclass(frozen=True)
class Measured:
    """What one attack says of the n points: ``distance`` (n,), NaN where there is none, as where the attack ``failed``.

    ``lengths`` are by denominator; ``entry`` holds the measures of all groups, as the JSON has them.
    """

    chosen: Chosen
    distance: Array
    failed: Array
    lengths: Mapping[str, Lengths]
    entry: Entry


def measured(chosen: Chosen, distance: Array, subjects: Subjects, asked: Settings) -> Measured:
    """The measures of all groups by these distances (n,).

    Intervals and p-values of all attacks and denominators are of the same resamples and permutations of the seed. What
    does not exist is null.
    """
    correct, partitions = subjects.correct, subjects.points.partitions
    failed = correct & np.isnan(distance)
    lengths = {name: counted(distance, correct, name) for name in DENOMINATORS}
    budget = asked.budget if asked.budget is not None else lengths["correct"].longest
    levels: list[list[dict[str, Any]]] = [
        [
            {"level": name, "images": one.sum(), "n_correct": (correct & one).sum(), "failed": (failed & one).sum()}
            for name, one in ((name, partition.codes == place) for place, name in enumerate(partition.levels))
        ]
        for partition in partitions
    ]
    for denominator, own in lengths.items():
        resampling, permuting = (
            generators("audit", "robustness", what, str(asked.seed), repetitions=1)[0] for what in ("sigma", "p")
        )
        intervals = sigma_intervals(own, partitions, budget, asked.bootstraps, asked.alpha, resampling)
        tests = significance(own, partitions, budget, asked.permutations, permuting)
        for partition, entries, interval, test in zip(partitions, levels, intervals, tests, strict=True):
            measures = by_level(own, partition, budget)
            for place, entry in enumerate(entries):
                inside, outside = (own.length[own.counts & members] for members in partition.element(place))
                entry[denominator] = {
                    "n": measures.n[place],
                    "mean": inside.mean() if len(inside) else None,
                    "mean_of_others": outside.mean() if len(outside) else None,
                    "median": np.median(inside) if len(inside) else None,
                    "auc": measures.area[place],
                    "auc_of_others": np.minimum(outside, budget).mean() if len(outside) else None,
                    "sigma": measures.sigma[place],
                    "interval": interval[:, place],
                    "p": test.p[place],
                    "p_adjusted": test.adjusted[place],
                    **curves(own, partition, place, budget, GRID),
                }
    known = distance[correct & ~failed]
    found = {
        "attack": chosen.name,
        "bound": chosen.bound,
        "settings": dict(chosen.settings),
        "images": len(correct),
        "n_correct": correct.sum(),
        "failed": failed.sum(),
        "budget": budget,
        "mean_distance": known.mean() if len(known) else None,
        "median_distance": np.median(known) if len(known) else None,
        "partitions": [
            {"name": one.name, "unknown": (one.codes < 0).sum(), "levels": entries}
            for one, entries in zip(partitions, levels, strict=True)
        ],
    }
    return Measured(chosen, distance, failed, lengths, plain(found))


def settings_text(found: Entry) -> str:
    """``deepfool: steps 100, candidates 10, ...``: the attack with its settings, as every output is stamped."""
    told = ", ".join(f"{name.replace('_', ' ')} {value:g}" for name, value in found["settings"].items())
    return f"{found['attack']}: {told}" if told else str(found["attack"])


def at_ceiling(one: Chosen, radii: Array) -> float:
    """The share of certified radii (n,) that are the largest which so many samples can certify."""
    return float((radii >= (1 - ALIKE) * largest_radius(SamplePlan(**one.settings, seed=0))).mean())
