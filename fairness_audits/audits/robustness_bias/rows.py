"""Distances of points, as rows: every measure of every level of every partition, with its error and its test."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.inference import sigma_intervals, significance
from fairness_audits.audits.robustness_bias.measures import DENOMINATORS, Partition, by_level, counted
from fairness_audits.values import Array

LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Measured:
    """The m points that one kind of distance was asked of.

    ``distance`` (m,) is NaN where there is none: the point is misclassified, ``correct`` (m,) False, or the attack
    failed; then it counts in no share. ``partitions`` part the same m points.
    """

    distance: Array
    correct: Array
    partitions: Sequence[Partition]

    @property
    def failed(self) -> Array:
        """Correctly classified points without a distance, (m,)."""
        return self.correct & np.isnan(self.distance)

    @property
    def known(self) -> Array:
        """Points with a distance, (m,)."""
        return self.correct & ~np.isnan(self.distance)

    def budget(self, asked: float | None) -> float:
        """T: what was asked for, or the largest distance measured; NaN where none was."""
        if asked is not None:
            return asked
        return counted(self.distance, self.correct, "correct").longest


def measured_rows(
    measured: Measured, budget: float | None, precision: Precision, rng: np.random.Generator, where: str
) -> Iterator[dict[str, Any]]:
    """The rows of all points together and of every level; ``where`` names them in a warning.

    Columns ``partition`` and ``level`` (empty for all points), ``denominator`` (empty where there is none),
    ``statistic``, ``value``. A level whose sigma does not exist is named in a warning.
    """
    limit = measured.budget(budget)
    yield from _whole(measured, limit)
    for partition in measured.partitions:
        for name, of_points in (("n_correct", measured.correct), ("failed", measured.failed)):
            for level, title in enumerate(partition.levels):
                yield row(name, of_points[partition.codes == level].sum(), partition.name, title)
    # Each denominator sees the same resamples and permutations.
    seeds = rng.integers(2**63, size=2)
    for denominator in DENOMINATORS:
        yield from _by_level(measured, denominator, limit, precision, seeds, where)


def _whole(measured: Measured, limit: float) -> Iterator[dict[str, Any]]:
    known = measured.distance[measured.known]
    yield row("points", len(measured.correct))
    yield row("accuracy", measured.correct.mean() if len(measured.correct) else np.nan)
    yield row("failed", measured.failed.sum())
    yield row("budget", limit)
    yield row("mean_distance", known.mean() if len(known) else np.nan)
    yield row("median_distance", np.median(known) if len(known) else np.nan)


def _by_level(
    measured: Measured, denominator: str, limit: float, precision: Precision, seeds: Array, where: str
) -> Iterator[dict[str, Any]]:
    """The measures of every level; one that has none because no point of its counts is named in a warning."""
    every = level_measures(measured, denominator, limit, precision, seeds)
    for partition, statistics in zip(measured.partitions, every, strict=True):
        for statistic, values in statistics.items():
            for title, value in zip(partition.levels, values, strict=True):
                yield row(statistic, value, partition.name, title, denominator)
        if empty := [title for title, points in zip(partition.levels, statistics["n"], strict=True) if not points]:
            message = "%s, denominator %s: no point of %s %s counts, so sigma does not exist there"
            LOG.warning(message, where, denominator, partition.name, ", ".join(empty))


def level_measures(
    measured: Measured, denominator: str, limit: float, precision: Precision, seeds: Array
) -> Iterator[dict[str, Any]]:
    """Of each partition the measures of its L levels, (L,) each; NaN where one does not exist."""
    lengths, partitions = counted(measured.distance, measured.correct, denominator), measured.partitions
    resampling, permuting = (np.random.default_rng(seed) for seed in seeds)
    intervals = sigma_intervals(lengths, partitions, limit, precision.bootstraps, precision.alpha, resampling)
    tests = significance(lengths, partitions, limit, precision.permutations, permuting)
    for partition, (low, high), test in zip(partitions, intervals, tests, strict=True):
        found = by_level(lengths, partition, limit)
        own = [lengths.length[lengths.counts & (partition.codes == level)] for level in range(len(partition))]
        yield {
            "sigma": found.sigma,
            "sigma_ci_low": low,
            "sigma_ci_high": high,
            "sigma_p": test.p,
            "sigma_p_adjusted": test.adjusted,
            "auc": found.area,
            "mean_distance": [length.mean() if len(length) else np.nan for length in own],
            "median_distance": [np.median(length) if len(length) else np.nan for length in own],
            "n": found.n,
        }


def row(statistic: str, value: Any, partition: str = "", level: str = "", denominator: str = "") -> dict[str, Any]:
    """A row of a level, or of all points."""
    where = {"partition": partition, "level": level, "statistic": statistic}
    return {**where, "value": float(value), "denominator": denominator}
