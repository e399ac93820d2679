"""The measurement: counterparts, decisions about them, flipsets, reports, the noise floor, and the quality of the map.

The noise floor are the flipsets that the same map finds between groups that are alike: the people of both groups are
dealt anew, at random, into groups of the same sizes, and the map is fitted again. The numbers made of that are those of
``pipeline.audits.fliptest.dealt``. Where the groups have one joint distribution of all the columns that the map moves,
the observed groups are one more such deal, and the p-value is at most alpha with probability at most alpha, whatever
the map. It is not where they differ in columns alone that the model does not look at: a map moves people along these
too, so leave such columns out. Columns that name the group are held at the source group's value: what the model does
with them is no noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from pipeline.audits.fliptest.dealt import Deal, DealtSizes, deals
from pipeline.audits.fliptest.intervals import SizeIntervals, size_intervals
from pipeline.audits.fliptest.sets import Flipsets
from pipeline.audits.fliptest.space import Space
from pipeline.audits.fliptest.transparency import TransparencyReport, transparency_report
from pipeline.audits.precision import Precision
from pipeline.cli.audit.fliptest import Settings
from pipeline.cli.audit.fliptest.maps import Kind
from pipeline.cli.audit.fliptest.model import Decider
from pipeline.cli.audit.fliptest.people import Group, Groups
from pipeline.cli.numbers import plural
from pipeline.cli.progress import followed
from pipeline.seeds import generators
from pipeline.transport.quality import exact_distances, healthy, ks, mean_distance
from pipeline.types import Array

Direction = Literal["forward", "reverse"]
FLIPSETS: tuple[Literal["positive", "negative"], ...] = ("positive", "negative")
"""Decided positively, their counterparts not; and not decided positively, their counterparts so."""
COMPARED = 500
"""The cost of a map is compared with that of exact transport between so many rows of each group."""
BOOTSTRAPS, PERMUTATIONS = 2_000, 4_999
"""Resamples behind the intervals, and random subsets behind the p-values of the transparency report."""


@dataclass(frozen=True)
class Counterparts:
    """The counterparts of n people as ``points`` (n, d) of the space and as rows of the model's inputs, ``frame``.

    ``person`` (n,) is the row number in the file of the person that a counterpart is, -1 where it is none of the file.
    """

    points: Array
    frame: pd.DataFrame
    person: Array


def counterparts(space: Space, images: Array, target: Group, target_points: Array) -> Counterparts:
    """Finite images (n, k) of a map as counterparts in the target group, whose rows are ``target_points`` (m, d).

    Where all images are rows of the target group, counterparts are these people, with their own values. Elsewhere
    whole numbers are the nearest and categories have the target group's shares
    (:mod:`pipeline.transport.categories`); columns that a map does not move are those of the target group.
    """
    place = places(images, space.to_map(target_points))
    if (place >= 0).all():
        return Counterparts(target_points[place], target.features.iloc[place], target.rows[place])
    points = space.snapped(space.from_map(images, target_points[0]), target_points)
    return Counterparts(points, space.frame(points), np.where(place >= 0, target.rows[place], -1))


def places(images: Array, candidates: Array) -> Array:
    """The position of the first candidate (m, k) that each image (n, k) equals, -1 where none does."""
    known: dict[bytes, int] = {}
    for position, row in enumerate(np.ascontiguousarray(candidates)):
        known.setdefault(row.tobytes(), position)
    return np.array([known.get(row.tobytes(), -1) for row in np.ascontiguousarray(images)], dtype=np.int64)


@dataclass(frozen=True)
class Everyone:
    """All people, the source group first: ``points`` (n + m, d) and decisions about them.

    Inputs that no map moves have the source group's value for all.
    """

    points: Array
    decision: Array

    @classmethod
    def of(cls, space: Space, model: Decider, source: pd.DataFrame, target: pd.DataFrame) -> Everyone:
        """The people of both groups, asked about as if they were of the source group."""
        inputs = pd.concat([source, target])
        for name in space.unmoved:
            value = source[name].iloc[:1]
            inputs[name] = value.repeat(len(inputs)).set_axis(inputs.index)
        return cls(space.points(inputs), model.decisions(model.scores(inputs)))


def null_of(
    space: Space, model: Decider, everyone: Everyone, dealt: Sequence[Deal], images: Sequence[Array]
) -> DealtSizes:
    """The flipsets of each deal, whose source people have the ``images`` (n, k); whoever has none is left out."""
    flips = []
    for deal, image in zip(dealt, images, strict=True):
        finite = np.isfinite(image).all(axis=1)
        target_points = everyone.points[deal.target]
        place = places(image[finite], space.to_map(target_points))
        if (place >= 0).all():
            decided = everyone.decision[deal.target[place]]
        else:
            points = space.snapped(space.from_map(image[finite], everyone.points[0]), target_points)
            decided = model.decisions(model.scores(space.frame(points)))
        flips.append(Flipsets(everyone.decision[deal.source[finite]], decided))
    return DealtSizes.of(flips)


@dataclass(frozen=True)
class Quality:
    """How near the counterparts are to the target group, and how far they are from the people.

    ``ks`` (k,): Kolmogorov-Smirnov distance of each moving column. ``distance``: mean L1 distance between people and
    counterparts in the space of the map; for ``compared`` people it is ``compared_distance``, and ``exact_distance``
    under exact transport to as many of the target group (none compared where counterparts are real people).
    """

    ks: Array
    distance: float
    compared: int = 0
    compared_distance: float = np.nan
    exact_distance: float = np.nan


@dataclass(frozen=True)
class Way:
    """A direction: people of ``source``, ``points`` (n, d) and ``score`` (n,), and those of ``target`` (m)."""

    direction: Direction
    source: Group
    target: Group
    points: Array
    target_points: Array
    score: Array
    target_score: Array


@dataclass(frozen=True)
class Side:
    """What was found in one direction.

    ``kept`` are the places of the n people who have a counterpart in ``found``; ``points`` (n, d), ``score_image`` (n,)
    and the decisions in ``flips`` are theirs. ``facts`` are the map's own about its fit.
    """

    way: Way
    kept: Array
    found: Counterparts
    score_image: Array
    flips: Flipsets
    target_decision: Array
    intervals: SizeIntervals
    reports: Mapping[str, TransparencyReport]
    quality: Quality
    facts: Mapping[str, float]
    null: DealtSizes | None

    @property
    def real(self) -> bool:
        """Whether every counterpart is a person of the target group."""
        return bool((self.found.person >= 0).all())


def gather_healthy(
    groups: Groups, space: Space, model: Decider, scores: Array, kinds: Sequence[tuple[Kind, int]], asked: Settings
) -> tuple[list[Side], int]:
    """By the first of the ``kinds`` of map, each with its deals, that is healthy in all directions, or the last."""
    for place, (kind, null_draws) in enumerate(kinds):
        sides = gather(groups, space, model, scores, kind, asked, null_draws)
        if place == len(kinds) - 1 or all(healthy(side.quality.ks) for side in sides):
            return sides, place
    raise AssertionError("expected at least one kind of map")


def gather(
    groups: Groups, space: Space, model: Decider, scores: Array, kind: Kind, asked: Settings, null_draws: int
) -> list[Side]:
    """Fit the maps of all directions and deals in one job, then measure each direction.

    ``scores`` are those of the source group, then of the target group. Raises ValueError where a map cannot be fitted
    and where the model fails on counterparts.
    """
    here, there = ((group, space.points(group.features)) for group in (groups.source, groups.target))
    score, other = np.split(scores, [len(here[1])])
    ways = [Way("forward", here[0], there[0], here[1], there[1], score, other)]
    if asked.reverse:
        ways.append(Way("reverse", there[0], here[0], there[1], here[1], other, score))
    pairs, rngs, dealt = [], [], []
    for way in ways:
        own, others = space.to_map(way.points), space.to_map(way.target_points)
        everyone = np.concatenate([own, others])
        dealt.append(deals(len(own), len(others), null_draws, _rngs(asked, "deals", way.direction)[0]))
        pairs += [(own, others), *((everyone[deal.source], everyone[deal.target]) for deal in dealt[-1])]
        rngs += [*_rngs(asked, "map", way.direction), *_rngs(asked, "null", way.direction, null_draws)]
    with followed(kind.fit, 1, f"fitting {plural(len(pairs), 'map')} ({kind.name})", "pipeline.transport") as fit:
        images, maps = fit(pairs, rngs)
    sides = []
    for place, (way, deal) in enumerate(zip(ways, dealt, strict=True)):
        first = place * (1 + null_draws)
        facts = {name: float(values[first]) for name, values in maps.facts.items()}
        null = None
        if deal:
            alike = Everyone.of(space, model, way.source.features, way.target.features)
            null = null_of(space, model, alike, deal, images[first + 1 : first + 1 + null_draws])
        sides.append(_side(way, images[first], space, model, asked, facts, null))
    return sides


def _side(
    way: Way,
    images: Array,
    space: Space,
    model: Decider,
    asked: Settings,
    facts: Mapping[str, float],
    null: DealtSizes | None,
) -> Side:
    """Decisions about people and counterparts, and what follows from them."""
    kept = np.flatnonzero(np.isfinite(images).all(axis=1))
    if not len(kept):
        raise ValueError(
            f"the map has no finite image of any row of {way.source.level}: its fit failed; try --map exact"
        )
    points, found = way.points[kept], counterparts(space, images[kept], way.target, way.target_points)
    score_image = model.scores(found.frame.set_axis(way.source.rows[kept]))
    flips = Flipsets(model.decisions(way.score[kept]), model.decisions(score_image))
    (rng,) = _rngs(asked, "intervals", way.direction)
    precision = Precision(asked.alpha, BOOTSTRAPS, PERMUTATIONS)
    moving = np.isin(np.arange(points.shape[1]), space.moving)
    # How good the map is, in the space that it was fitted in.
    own, others, mapped = (space.to_map(side) for side in (points, way.target_points, found.points))
    quality = Quality(ks(others, mapped), mean_distance(own, mapped, "l1"))
    if (found.person < 0).any():
        (draw,) = _rngs(asked, "compared", way.direction)
        compared = min(COMPARED, len(own), len(others))
        some = draw.choice(len(own), compared, replace=False)
        exact = exact_distances(own[some], others[draw.choice(len(others), compared, replace=False)])["l1"]
        quality = replace(
            quality,
            compared=compared,
            compared_distance=mean_distance(own[some], mapped[some], "l1"),
            exact_distance=exact,
        )
    return Side(
        way=way,
        kept=kept,
        found=found,
        score_image=score_image,
        flips=flips,
        target_decision=model.decisions(way.target_score),
        intervals=size_intervals(int(flips.positive.sum()), int(flips.negative.sum()), len(kept), asked.alpha),
        reports={
            name: transparency_report(points, found.points, getattr(flips, name), precision, rng, lines=moving)
            for name, rng in zip(FLIPSETS, rng.spawn(2), strict=True)
        },
        quality=quality,
        facts=facts,
        null=null,
    )


def _rngs(asked: Settings, what: str, direction: str, count: int = 1) -> tuple[np.random.Generator, ...]:
    """By what they are for, so that no part of the result depends on which others are asked for."""
    return generators("audit", "fliptest", str(asked.seed), what, direction, repetitions=count)
