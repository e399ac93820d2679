"""Tables of distances: every measure of every level of every partition, with its interval and its test."""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.inference import sigma_intervals, significance
from fairness_audits.audits.robustness_bias.measures import DENOMINATORS, Partition, by_level, counted
from fairness_audits.values import Array

LOG = logging.getLogger(__name__)
COUNTS = ("n_correct", "failed")
MEASURES = (
    *("sigma", "sigma_ci_low", "sigma_ci_high", "sigma_p", "sigma_p_adjusted"),
    *("auc", "mean_distance", "median_distance", "n"),
)


@dataclass(frozen=True)
class Measured:
    """The m points with one kind of distance.

    ``distance`` (m,) is NaN if the point is misclassified (``correct`` (m,) is False) or the attack failed. A failed
    point is in no share. ``partitions`` are partitions of the same m points.
    """

    distance: Array
    correct: Array
    partitions: Sequence[Partition]

    @property
    def failed(self) -> Array:
        """Return the correctly classified points without a distance, (m,)."""
        return self.correct & np.isnan(self.distance)

    def budget(self, largest: float | None) -> float:
        """Return T: ``largest``, or the largest measured distance if this is None, NaN if there is none."""
        if largest is not None:
            return largest
        return counted(self.distance, self.correct, "correct").longest

    def overall(self, budget: float) -> dict[str, float]:
        """Return the quantities of all points together, NaN if there is no distance."""
        known = self.distance[self.correct & ~np.isnan(self.distance)]
        return {
            "budget": budget,
            "mean_distance": known.mean() if len(known) else np.nan,
            "median_distance": np.median(known) if len(known) else np.nan,
        }


def group_measures(
    measured: Measured, budget: float, precision: Precision, rng: np.random.Generator, failed: Array | None = None
) -> pd.DataFrame:
    """Measure every level of every partition, up to perturbations of the size ``budget``.

    ``rng`` generates the seeds of resamples and permutations, which all denominators share. ``failed`` (m,) is where
    the attack failed, by default where a correctly classified point has no distance. The table has one row for each
    denominator, partition and level: its number of ``points``, ``n_correct`` and ``failed`` of them, and MEASURES, NaN
    if one does not exist.
    """
    seeds = rng.integers(2**63, size=2)
    failed = measured.failed if failed is None else failed
    counts = {"points": np.ones(len(failed), dtype=bool), "n_correct": measured.correct, "failed": failed}
    tables = []
    for denominator in DENOMINATORS:
        every = _level_measures(measured, denominator, budget, precision, seeds)
        for partition, measures in zip(measured.partitions, every, strict=True):
            members = [partition.codes == level for level in range(len(partition))]
            sizes = {name: [of[inside].sum() for inside in members] for name, of in counts.items()}
            where = {"denominator": denominator, "partition": partition.name, "level": partition.levels}
            tables.append(pd.DataFrame({**where, **sizes, **measures}))
    return pd.concat(tables, ignore_index=True)


def measured_rows(
    measured: Measured, budget: float | None, precision: Precision, rng: np.random.Generator, where: str
) -> Iterator[dict[str, Any]]:
    """Yield :func:`group_measures` as tidy rows, after the quantities of all points together.

    The columns are ``partition`` and ``level`` (empty for all points), ``denominator`` (empty if there is none),
    ``statistic`` and ``value``. A warning names each level without a sigma; ``where`` describes the rows in it.
    """
    limit = measured.budget(budget)
    correct = measured.correct
    whole = {"points": len(correct), "accuracy": correct.mean() if len(correct) else np.nan}
    for statistic, value in {**whole, "failed": measured.failed.sum(), **measured.overall(limit)}.items():
        yield row(statistic, value)
    groups = group_measures(measured, limit, precision, rng)
    for statistics, denominators in ((COUNTS, DENOMINATORS[:1]), (MEASURES, DENOMINATORS)):
        some = groups[groups["denominator"].isin(denominators)]
        for (denominator, partition), levels in some.groupby(["denominator", "partition"], sort=False):
            own = "" if statistics is COUNTS else denominator
            for statistic in statistics:
                for level, value in zip(levels["level"], levels[statistic], strict=True):
                    yield row(statistic, value, partition, level, own)
            if own and (empty := levels["level"][levels["n"] == 0].tolist()):
                message = "%s, denominator %s: no point of %s %s counts, so sigma is undefined"
                LOG.warning(message, where, denominator, partition, ", ".join(empty))


def _level_measures(
    measured: Measured, denominator: str, limit: float, precision: Precision, seeds: Array
) -> Iterator[dict[str, Any]]:
    """Return, for each partition, the measures of its L levels, (L,) each."""
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
    """Return a row of a level, or of all points."""
    where = {"partition": partition, "level": level, "statistic": statistic}
    return {**where, "value": float(value), "denominator": denominator}
