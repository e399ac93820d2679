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
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pandas as pd

from pipeline.audits.fliptest.dealt import Deal, DealtSizes, deals
from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.audits.fliptest.intervals import SizeIntervals, size_intervals
from pipeline.audits.fliptest.transparency import TransparencyReport, transparency_report
from pipeline.audits.precision import Precision
from pipeline.cli.audit.fliptest import Settings
from pipeline.cli.audit.fliptest.maps import Kind
from pipeline.cli.audit.fliptest.model import Decider
from pipeline.cli.audit.fliptest.people import Group, Groups, Space
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
NOISE_PEOPLE = 500
"""At most so many people of each group are in a deal of the noise floor."""
SCORE = "the model's score"
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
    (:mod:`pipeline.transport.plan`); columns that a map does not move are those of the target group.
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
    space: Space, model: Decider, everyone: Everyone, dealt: Sequence[Deal], images: Sequence[Array], people: int
) -> DealtSizes:
    """The flipsets of each deal, whose source people have the ``images`` (n, k); whoever has none is left out.

    Their sizes are those of ``people`` people, of shares of however many were dealt.
    """
    flips = []
    for deal, image in zip(dealt, images, strict=True):
        finite = np.isfinite(image).all(axis=1)
        decided = _decided(space, model, everyone, deal.target, image[finite])
        flips.append(Flipsets(everyone.decision[deal.source[finite]], decided))
    found = DealtSizes.of(flips)
    share = people / len(dealt[0].source)
    return found if share == 1 else DealtSizes(found.positive * share, found.negative * share)


def _decided(space: Space, model: Decider, everyone: Everyone, target: Array, images: Array) -> Array:
    """Decisions (n,) about finite images (n, k) between dealt groups."""
    target_points = everyone.points[target]
    place = places(images, space.to_map(target_points))
    if (place >= 0).all():
        return everyone.decision[target[place]]
    points = space.snapped(space.from_map(images, everyone.points[0]), target_points)
    return model.decisions(model.scores(space.frame(points)))


@dataclass(frozen=True)
class Quality:
    """How near the counterparts are to the target group, and how far they are from the people.

    ``ks``: Kolmogorov-Smirnov distance of each moving column, and of the model's score: under a perfect map it has the
    target group's distribution, so this distance also sees how columns go together. ``distance``: mean L1 distance
    between people and counterparts in the space of the map; for ``compared`` people it is ``compared_distance``, and
    ``exact_distance`` under exact transport to as many of the target group (none compared where counterparts are real
    people).
    """

    ks: Mapping[str, float]
    distance: float
    compared: int
    compared_distance: float
    exact_distance: float

    @property
    def healthy(self) -> bool:
        """Whether the counterparts are distributed as the target group is, as far as is looked at."""
        return healthy(np.array(list(self.ks.values())))


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

    ``rows`` are the row numbers of the n people who have a counterpart in ``found`` (``non_finite`` more have none);
    ``points`` (n, d), ``score``, ``score_image`` (n,) and the decisions in ``flips`` are theirs. ``facts`` are the
    map's own about its fit.
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
    def points(self) -> Array:
        """The people who have a counterpart, (n, d)."""
        return self.way.points[self.kept]

    @property
    def real(self) -> bool:
        """Whether every counterpart is a person of the target group."""
        return bool((self.found.person >= 0).all())


def gather_healthy(
    groups: Groups, space: Space, model: Decider, scores: Array, kinds: Sequence[tuple[Kind, int]], asked: Settings
) -> tuple[list[Side], int]:
    """The first of the ``kinds`` of map, each with its deals, that is healthy in all directions, or the last."""
    for place, (kind, deals_made) in enumerate(kinds):
        sides = gather(groups, space, model, scores, kind, asked, deals_made)
        if place == len(kinds) - 1 or all(side.quality.healthy for side in sides):
            return sides, place
    raise AssertionError("expected at least one kind of map")


def gather(
    groups: Groups, space: Space, model: Decider, scores: Array, kind: Kind, asked: Settings, null_draws: int
) -> list[Side]:
    """Fit the maps of all directions and deals in one job, then measure each direction.

    ``scores`` are those of the source group, then of the target group. Raises ValueError where a map cannot be fitted
    and where the model fails on counterparts.
    """
    ways = _ways(groups, space, scores, asked.reverse)
    dealt = [
        deals(
            len(way.points), len(way.target_points), null_draws, _rngs(asked, "deals", way.direction)[0], NOISE_PEOPLE
        )
        for way in ways
    ]
    pairs = [pair for way, deal in zip(ways, dealt, strict=True) for pair in _pairs(space, way, deal)]
    rngs = [rng for way in ways for rng in _fit_rngs(way, asked, null_draws)]
    title = f"fitting {plural(len(pairs), 'map')} ({kind.name})"
    with followed(kind.fit, 1, title, "pipeline.transport") as fit:
        images, maps = fit(pairs, rngs)
    sides = []
    for place, (way, deal) in enumerate(zip(ways, dealt, strict=True)):
        first = place * (1 + null_draws)
        facts = {name: float(values[first]) for name, values in maps.facts.items()}
        own, *others = images[first : first + 1 + null_draws]
        sides.append(_side(way, own, space, model, asked, facts, _null(way, deal, others, space, model)))
    return sides


def _ways(groups: Groups, space: Space, scores: Array, reverse: bool) -> list[Way]:
    source, target = groups.source, groups.target
    points, others = space.points(source.features), space.points(target.features)
    score, other = np.split(scores, [len(points)])
    forward = Way("forward", source, target, points, others, score, other)
    return [forward, Way("reverse", target, source, others, points, other, score)] if reverse else [forward]


def _pairs(space: Space, way: Way, dealt: Sequence[Deal]) -> list[tuple[Array, Array]]:
    """Source and target of a direction's own map, then those of its deals."""
    own, other = space.to_map(way.points), space.to_map(way.target_points)
    everyone = np.concatenate([own, other])
    return [(own, other), *((everyone[deal.source], everyone[deal.target]) for deal in dealt)]


def _fit_rngs(way: Way, asked: Settings, null_draws: int) -> list[np.random.Generator]:
    return [*_rngs(asked, "map", way.direction), *_rngs(asked, "null", way.direction, null_draws)]


def _null(way: Way, dealt: Sequence[Deal], images: Sequence[Array], space: Space, model: Decider) -> DealtSizes | None:
    if not dealt:
        return None
    everyone = Everyone.of(space, model, way.source.features, way.target.features)
    return null_of(space, model, everyone, dealt, images, len(way.points))


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
    found = counterparts(space, images[kept], way.target, way.target_points)
    score_image = model.scores(found.frame.set_axis(way.source.rows[kept]))
    flips = Flipsets(model.decisions(way.score[kept]), model.decisions(score_image))
    (rng,) = _rngs(asked, "intervals", way.direction)
    precision = Precision(asked.alpha, BOOTSTRAPS, PERMUTATIONS)
    points = way.points[kept]
    moving = np.isin(np.arange(points.shape[1]), space.moving)
    return Side(
        way=way,
        kept=kept,
        found=found,
        score_image=score_image,
        flips=flips,
        target_decision=model.decisions(way.target_score),
        intervals=size_intervals(int(flips.positive.sum()), int(flips.negative.sum()), len(kept), precision.alpha),
        reports={
            name: transparency_report(points, found.points, getattr(flips, name), precision, rng, lines=moving)
            for name, rng in zip(FLIPSETS, rng.spawn(2), strict=True)
        },
        quality=_quality(space, way, points, found, score_image, asked),
        facts=facts,
        null=null,
    )


def _quality(
    space: Space, way: Way, points: Array, found: Counterparts, score_image: Array, asked: Settings
) -> Quality:
    """How good the map is, in the space that it was fitted in."""
    own, images, others = (space.to_map(side) for side in (points, found.points, way.target_points))
    compared, distance, exact = 0, np.nan, np.nan
    if (found.person < 0).any():
        (rng,) = _rngs(asked, "compared", way.direction)
        compared = min(COMPARED, len(own), len(others))
        some = rng.choice(len(own), compared, replace=False)
        distance = mean_distance(own[some], images[some], "l1")
        exact = exact_distances(own[some], others[rng.choice(len(others), compared, replace=False)])["l1"]
    by_column = dict(zip((space.labels[place] for place in space.moving), ks(others, images), strict=True))
    by_score = {SCORE: ks(way.target_score[:, None], score_image[:, None])[0]}
    return Quality(by_column | by_score, mean_distance(own, images, "l1"), compared, distance, exact)


def _rngs(asked: Settings, what: str, direction: str, count: int = 1) -> tuple[np.random.Generator, ...]:
    """By what they are for, so that no part of the result depends on which others are asked for."""
    return generators("audit", "fliptest", str(asked.seed), what, direction, repetitions=count)
