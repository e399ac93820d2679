"""The measurement itself: counterparts, decisions about them, flipsets, reports, and the quality of the map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from pipeline.audits.fliptest.dealt import Deal, DealtSizes, deals
from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.audits.fliptest.intervals import SizeIntervals, size_intervals
from pipeline.audits.fliptest.transparency import TransparencyReport, transparency_report
from pipeline.audits.precision import Precision
from pipeline.cli.audit.fliptest.counterparts import Counterparts, Everyone, counterparts, null_of
from pipeline.cli.audit.fliptest.groups import Group, Groups
from pipeline.cli.audit.fliptest.maps import Kind
from pipeline.cli.audit.fliptest.model import Model
from pipeline.cli.audit.fliptest.space import Space
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


@dataclass(frozen=True)
class Quality:
    """How near the counterparts are to the target group, and how far they are from the people.

    ``ks`` (k,): Kolmogorov-Smirnov distance of each moving column. ``distance``: mean L1 distance between people and
    counterparts in the space of the map; for ``compared`` people it is ``compared_distance``, and ``exact_distance``
    under exact transport to as many of the target group (none compared where counterparts are real people).
    """

    ks: Array
    distance: float
    compared: int
    compared_distance: float
    exact_distance: float


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


@dataclass(frozen=True)
class Asked:
    """Both directions or one, how many deals of the noise floor, how precise intervals and p-values are, the seed."""

    reverse: bool
    null_draws: int
    precision: Precision
    seed: int


def gather_healthy(
    groups: Groups, space: Space, model: Model, scores: Array, tries: Sequence[tuple[Kind, Asked]]
) -> tuple[list[Side], int]:
    """The first of the ``tries`` whose maps are healthy in all directions, or else the last; and its place."""
    for place, (kind, asked) in enumerate(tries):
        sides = gather(groups, space, model, scores, kind, asked)
        if place == len(tries) - 1 or all(healthy(side.quality.ks) for side in sides):
            return sides, place
    raise AssertionError("expected at least one try")


def gather(groups: Groups, space: Space, model: Model, scores: Array, kind: Kind, asked: Asked) -> list[Side]:
    """Fit the maps of all directions and deals in one job, then measure each direction.

    ``scores`` are those of the source group, then of the target group. Raises ValueError where a map cannot be fitted
    and where the model fails on counterparts.
    """
    ways = _ways(groups, space, scores, asked.reverse)
    dealt = [_dealt(way, asked) for way in ways]
    pairs = [pair for way, deal in zip(ways, dealt, strict=True) for pair in _pairs(space, way, deal)]
    rngs = [rng for way in ways for rng in _fit_rngs(way, asked)]
    title = f"fitting {plural(len(pairs), 'map')} ({kind.name})"
    with followed(kind.fit, 1, title, "pipeline.transport") as fit:
        images, maps = fit(pairs, rngs)
    sides = []
    for place, (way, deal) in enumerate(zip(ways, dealt, strict=True)):
        first = place * (1 + asked.null_draws)
        facts = {name: float(values[first]) for name, values in maps.facts.items()}
        own, *others = images[first : first + 1 + asked.null_draws]
        sides.append(_side(way, own, space, model, asked, facts, _null(way, deal, others, space, model)))
    return sides


def _ways(groups: Groups, space: Space, scores: Array, reverse: bool) -> list[Way]:
    source, target = groups.source, groups.target
    points, others = space.points(source.features), space.points(target.features)
    score, other = np.split(scores, [len(points)])
    forward = Way("forward", source, target, points, others, score, other)
    return [forward, Way("reverse", target, source, others, points, other, score)] if reverse else [forward]


def _dealt(way: Way, asked: Asked) -> list[Deal]:
    (rng,) = _rngs(asked, "deals", way.direction)
    return deals(len(way.points), len(way.target_points), asked.null_draws, rng)


def _pairs(space: Space, way: Way, dealt: Sequence[Deal]) -> list[tuple[Array, Array]]:
    """Source and target of a direction's own map, then those of its deals."""
    own, other = space.to_map(way.points), space.to_map(way.target_points)
    everyone = np.concatenate([own, other])
    return [(own, other), *((everyone[deal.source], everyone[deal.target]) for deal in dealt)]


def _fit_rngs(way: Way, asked: Asked) -> list[np.random.Generator]:
    return [*_rngs(asked, "map", way.direction), *_rngs(asked, "null", way.direction, asked.null_draws)]


def _null(way: Way, dealt: Sequence[Deal], images: Sequence[Array], space: Space, model: Model) -> DealtSizes | None:
    if not dealt:
        return None
    everyone = Everyone.of(space, model, way.source.features, way.target.features)
    return null_of(space, model, everyone, dealt, images)


def _side(
    way: Way,
    images: Array,
    space: Space,
    model: Model,
    asked: Asked,
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
    precision = asked.precision
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
        quality=_quality(space, way, points, found, asked),
        facts=facts,
        null=null,
    )


def _quality(space: Space, way: Way, points: Array, found: Counterparts, asked: Asked) -> Quality:
    """How good the map is, in the space that it was fitted in."""
    own, images, others = (space.to_map(side) for side in (points, found.points, way.target_points))
    compared, distance, exact = 0, np.nan, np.nan
    if (found.person < 0).any():
        (rng,) = _rngs(asked, "compared", way.direction)
        compared = min(COMPARED, len(own), len(others))
        some = rng.choice(len(own), compared, replace=False)
        distance = mean_distance(own[some], images[some], "l1")
        exact = exact_distances(own[some], others[rng.choice(len(others), compared, replace=False)])["l1"]
    return Quality(ks(others, images), mean_distance(own, images, "l1"), compared, distance, exact)


def _rngs(asked: Asked, what: str, direction: str, count: int = 1) -> tuple[np.random.Generator, ...]:
    """By what they are for, so that no part of the result depends on which others are asked for."""
    return generators("audit", "fliptest", str(asked.seed), what, direction, repetitions=count)
