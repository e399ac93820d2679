"""How far two measures of the same groups agree in sign: which are compared, on which groups, and the outcomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.report.robustness_bias import study
from pipeline.report.robustness_bias import words as w
from pipeline.report.robustness_bias.study import Audited
from pipeline.robustness.agreement import Agreement, sign_agreement
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


def comparisons(found: Sequence[Audited]) -> list[Comparison]:
    """What the paper compares, and the same of a tighter attack and of smoothing where they were measured."""
    attacks = w.distances_in(name for one in study.run(found) for name in one.attacks)
    tighter = [name for name in attacks if name not in w.DISTANCES]
    bounds = (w.DEEPFOOL, w.CARLINI_WAGNER, *tighter, w.SMOOTHING)
    last = w.LAST
    listed = [_of(study.LINEAR, (w.EXACT, last), (name, last), (w.LOGISTIC,)) for name in bounds]
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
    found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str], denominator: str = w.PAPER
) -> Agreement:
    """The agreement over all groups of these data sets and the comparison's networks."""
    one, other = pairs(found, comparison, datasets, denominator)
    return sign_agreement(one, other)


def pairs(
    found: Sequence[Audited], comparison: Comparison, datasets: Sequence[str], denominator: str = w.PAPER
) -> tuple[Array, Array]:
    """sigma of both sides, (p,) each: a group of a network in each place, one for a partition into two."""
    sides: tuple[list[Array], list[Array]] = ([], [])
    for audited in study.run(found):
        if audited.dataset not in datasets or not _takes_part(comparison, audited):
            continue
        one, other = (audited.sigmas(*side, denominator=denominator) for side in (comparison.one, comparison.other))
        if one.empty or other.empty:
            continue
        kept = once(audited.groups)
        sides[0].append(one.to_numpy(float)[kept])
        sides[1].append(other.to_numpy(float)[kept])
    return _joined(sides[0]), _joined(sides[1])


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
