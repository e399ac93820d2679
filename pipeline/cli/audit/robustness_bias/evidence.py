"""The measures of every group, for every kind of distance and both denominators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.audits.robustness_bias.intervals import sigma_intervals
from pipeline.audits.robustness_bias.lengths import Lengths, counted
from pipeline.audits.robustness_bias.measures import ByLevel, by_level
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.audits.robustness_bias.significance import Significance, significance
from pipeline.cli.audit.robustness_bias.attacking import Asked
from pipeline.seeds import generators
from pipeline.types import Array

DENOMINATORS = ("paper", "correct")


@dataclass(frozen=True)
class Settings:
    """How groups are compared; the verdict is by the ``denominator``, and without a ``budget`` all changes count."""

    denominator: str
    budget: float | None
    alpha: float
    bootstraps: int
    permutations: int
    seed: int


@dataclass(frozen=True)
class Compared:
    """One partition under one denominator: measures (L,), the ends of sigma's ``interval`` (2, L), and its test."""

    measures: ByLevel
    interval: Array
    test: Significance


@dataclass(frozen=True)
class Evidence:
    """What one attack says of the n points: ``distance`` (n,), NaN where there is none.

    ``budget`` is T, NaN without any distance. ``lengths`` by denominator, ``compared`` by denominator and place of
    the partition.
    """

    asked: Asked
    distance: Array
    failed: Array
    budget: float
    lengths: Mapping[str, Lengths]
    compared: Mapping[str, Sequence[Compared]]


def gather(
    asked: Asked, distance: Array, correct: Array, partitions: Sequence[Partition], settings: Settings
) -> Evidence:
    """The measures of all groups by these distances (n,) of points that are classified correctly or not, (n,).

    Intervals and p-values of all attacks and denominators are of the same resamples and permutations of the seed.
    """
    lengths = {name: counted(distance, correct, name) for name in DENOMINATORS}
    budget = settings.budget if settings.budget is not None else lengths["correct"].longest
    return Evidence(
        asked=asked,
        distance=distance,
        failed=correct & np.isnan(distance),
        budget=budget,
        lengths=lengths,
        compared={name: _compared(lengths[name], partitions, budget, settings) for name in DENOMINATORS},
    )


def _compared(lengths: Lengths, partitions: Sequence[Partition], budget: float, settings: Settings) -> list[Compared]:
    resampling, permuting = (
        generators("audit", "robustness", what, str(settings.seed), repetitions=1)[0] for what in ("sigma", "p")
    )
    intervals = sigma_intervals(lengths, partitions, budget, settings.bootstraps, settings.alpha, resampling)
    tests = significance(lengths, partitions, budget, settings.permutations, permuting)
    return [
        Compared(by_level(lengths, partition, budget), interval, test)
        for partition, interval, test in zip(partitions, intervals, tests, strict=True)
    ]
