"""How far two measures of the same groups agree in sign: which are compared, on which groups, and the outcomes.

Two distances are compared on the points that both were asked of and that neither failed on. Each has a sample of its
own, the first so many test points; on different points signs differ for that reason alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.audits.robustness_bias.agreement import Agreement, sign_agreement
from pipeline.audits.robustness_bias.lengths import counted as lengths_of
from pipeline.audits.robustness_bias.measures import by_level
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.report import words as w
from pipeline.report.inputs import Inputs
from pipeline.report.robustness_bias import study
from pipeline.report.robustness_bias.study import Audited, Points
from pipeline.types import Array

Side = tuple[str, str]
"""A distance and a moment of the training."""


@dataclass(frozen=True)
class Comparison:
    """Two sides whose signs are compared, over which block and networks (None: all of the data set)."""

    name: str
    one: Side
    other: Side
    block: str
    networks: tuple[str, ...] | None = None

    @property
    def of_distances(self) -> bool:
        """Whether two distances are compared, and not two moments."""
        return self.one[0] != self.other[0]


def comparisons(found: Sequence[Audited]) -> list[Comparison]:
    """What the paper compares, and the same of a tighter attack and of smoothing where they were measured."""
    attacks = w.distances_in(name for one in study.run(found) for name in one.attacks)
    tighter = w.tighter(attacks)
    bounds = (w.DEEPFOOL, w.CARLINI_WAGNER, *tighter, w.SMOOTHING)
    last = w.LAST
    listed = [_of(study.LINEAR, (w.EXACT, last), (name, last), (w.LOGISTIC,)) for name in (w.EXACT_IN_BOX, *bounds)]
    five = w.CONVOLUTIONAL
    listed.append(_of(study.NETWORKS, (w.DEEPFOOL, last), (w.CARLINI_WAGNER, last), five))
    listed += [_of(study.NETWORKS, (name, last), (w.DEEPFOOL, last), five) for name in tighter]
    for moment in (w.FIRST, w.MIDDLE):
        listed += [_of(study.NETWORKS, (name, moment), (name, last), five) for name in bounds]
    return listed


def smoothing_against(attack: str) -> Comparison:
    """Table 1: smoothing against an attack, over the five networks of torchvision and the data set's own."""
    return _of(study.NETWORKS, (w.SMOOTHING, w.LAST), (attack, w.LAST), None)


def _of(block: str, one: Side, other: Side, networks: tuple[str, ...] | None) -> Comparison:
    names = [w.distance_style(attack).label for attack, _ in (one, other)]
    words = f"{names[0]} and {names[1]}" if one[0] != other[0] else f"{names[0]}: {one[1]} and last epoch"
    return Comparison(words[0].upper() + words[1:], one, other, block, networks)


def counted(
    inputs: Inputs,
    found: Sequence[Audited],
    comparison: Comparison,
    datasets: Sequence[str],
    denominator: str = w.PAPER,
) -> Agreement:
    """The agreement over all groups of these data sets and the comparison's networks."""
    return sign_agreement(*pairs(inputs, found, comparison, datasets, denominator))


def pairs(
    inputs: Inputs,
    found: Sequence[Audited],
    comparison: Comparison,
    datasets: Sequence[str],
    denominator: str = w.PAPER,
) -> tuple[Array, Array]:
    """sigma of both sides, (p,) each: a group of a network in each place, one for a partition into two."""
    sides: tuple[list[Array], list[Array]] = ([], [])
    for audited in having(found, comparison, datasets):
        kept = once(audited.groups)
        if comparison.of_distances:
            both = on_shared_points(inputs, audited, comparison, denominator)
        else:
            ends = (comparison.one, comparison.other)
            both = tuple(audited.sigmas(*side, denominator=denominator).to_numpy(float) for side in ends)
        for side, sigma in zip(sides, both, strict=True):
            side.append(sigma[kept])
    return _joined(sides[0]), _joined(sides[1])


def having(found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str]) -> list[Audited]:
    """The networks of these data sets of which both sides of a comparison were measured."""
    return [
        audited
        for audited in study.run(found)
        if audited.dataset in datasets
        and _takes_part(comparison, audited)
        and not any(audited.sigmas(*side).empty for side in (comparison.one, comparison.other))
    ]


def on_shared_points(inputs: Inputs, audited: Audited, comparison: Comparison, denominator: str) -> tuple[Array, Array]:
    """sigma by each of two distances at the last epoch, (groups,) each, on the points that both have."""
    points = study.at_points(inputs, audited)
    names = comparison.one[0], comparison.other[0]
    rows = shared(points, *names)
    first, second = (
        _sigmas(points, name, rows, denominator, audited.overall(name, "budget"), audited.groups) for name in names
    )
    return first, second


def shared(points: Points, one: str, other: str) -> Array:
    """The points that both distances were asked of, less those that either failed on, as numbers (m,)."""
    found = np.isfinite(points.distance[one]) & np.isfinite(points.distance[other])
    return np.flatnonzero(points.tried[one] & points.tried[other] & (found | ~points.correct))


def sample_note(inputs: Inputs, found: Sequence[Audited], compared: Sequence[tuple[Comparison, Sequence[str]]]) -> str:
    """On which points two distances are compared: from how many to how many of a network; empty for none."""
    sizes = [
        len(shared(study.at_points(inputs, audited), comparison.one[0], comparison.other[0]))
        for comparison, datasets in compared
        if comparison.of_distances
        for audited in having(found, comparison, datasets)
    ]
    if not sizes:
        return ""
    many = f"{min(sizes):,}" if min(sizes) == max(sizes) else f"{min(sizes):,} to {max(sizes):,}"
    return (
        "Two distances are compared on the points that both were asked of and that neither failed on, "
        f"{many} of a network."
    )


def _sigmas(
    points: Points, name: str, rows: Array, denominator: str, budget: float, groups: Sequence[tuple[str, str]]
) -> Array:
    """sigma of ``groups`` on some of the points, (groups,)."""
    lengths = lengths_of(points.distance[name][rows], points.correct[rows], denominator)
    found: dict[tuple[str, str], float] = {}
    for partition, levels in points.levels.items():
        codes = points.codes[partition][rows]
        sigma = by_level(lengths, Partition(partition, levels, codes), budget).sigma
        right = np.bincount(codes[points.correct[rows] & (codes >= 0)], minlength=len(levels))
        sigma = np.where(right < study.TOO_FEW, np.nan, sigma)
        found |= {(partition, level): float(value) for level, value in zip(levels, sigma, strict=True)}
    return np.array([found[group] for group in groups])


def once(groups: Sequence[tuple[str, str]]) -> Array:
    """Which (partition, level) are a comparison each (groups,): of two levels of a partition the second alone."""
    partitions = [partition for partition, _ in groups]
    first = {partition: place for place, partition in reversed(list(enumerate(partitions)))}
    return np.array([partitions.count(p) != 2 or place != first[p] for place, p in enumerate(partitions)], dtype=bool)


def _takes_part(comparison: Comparison, one: Audited) -> bool:
    if one.block != comparison.block:
        return False
    if comparison.networks is not None:
        return one.network in comparison.networks
    return one.network in w.CONVOLUTIONAL or one.network == w.OWN.get(one.dataset)


def _joined(parts: Iterable[Array]) -> Array:
    return np.concatenate([np.zeros(0), *parts])
