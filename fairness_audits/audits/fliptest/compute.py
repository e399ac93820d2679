"""The measurement: counterparts, decisions about them, flipsets, reports, the noise floor, and the quality of the map.

The noise floor are the flipsets that the same map finds between groups that are alike: the people of both groups are
dealt anew, at random, into groups of the same sizes, and the map is fitted again. The numbers made of that are those of
``fairness_audits.audits.fliptest.flipsets``. Where the groups have one joint distribution of all the columns that the
map moves, the observed groups are one more such deal, and the p-value is at most alpha with probability at most alpha,
whatever the map. It is not where they differ in columns alone that the model does not look at: a map moves people along
these too, so leave such columns out. Columns that name the group are held at the source group's value: what the model
does with them is no noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from fairness_audits.audits.fliptest.comparison import Comparison, compare
from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Deal, DealtSizes, Flipsets, deals
from fairness_audits.audits.fliptest.maps import Kind
from fairness_audits.audits.fliptest.model import Decider, Trial
from fairness_audits.audits.fliptest.people import Group, Groups
from fairness_audits.audits.fliptest.settings import Settings
from fairness_audits.audits.fliptest.space import Space
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import unlike
from fairness_audits.progress import progress_bar
from fairness_audits.results.formats import plural
from fairness_audits.seeds import generators
from fairness_audits.transport.quality import WORST_HEALTHY_KS, chance_ks, healthy, ks, mean_distance, unseen
from fairness_audits.values import Array

HELD_OUT = 2000
"""At most so many people of each group are held out from a map that is tried, which is fitted on as many others."""
NOISE_PEOPLE = 500
"""At most so many people of each group are in a deal of the noise floor."""
CHANCE = 0.05
"""How often chance may exceed the distance that is trusted of a map that is right."""
SCORE = "the model's score"
BOOTSTRAPS = 2_000
"""Resamples behind the intervals of the transparency report."""


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
    (:mod:`fairness_audits.transport.plan`); columns that a map does not move are those of the target group.
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


def as_source(space: Space, source: pd.DataFrame, target: pd.DataFrame) -> pd.DataFrame:
    """The people of both groups, the source group first, with its values of the inputs that no map moves."""
    inputs = pd.concat([source, target])
    for name in space.unmoved:
        inputs[name] = source[name].iloc[:1].repeat(len(inputs)).set_axis(inputs.index)
    return inputs


def null_of(
    space: Space, model: Decider, everyone: pd.DataFrame, dealt: Sequence[Deal], images: Sequence[Array], people: int
) -> DealtSizes:
    """The flipsets of each deal of ``everyone``, whose source people have the ``images`` (n, k); whoever has none is
    left out.

    Their sizes are those of ``people`` people, of shares of however many were dealt.
    """
    points, decision, flips = space.points(everyone), model.decisions(everyone), []
    for deal, image in zip(dealt, images, strict=True):
        finite = np.isfinite(image).all(axis=1)
        found = counterparts(space, image[finite], Group("", everyone.iloc[deal.target], None), points[deal.target])
        flips.append(Flipsets(decision[deal.source[finite]], model.decisions(found.frame)))
    sizes = DealtSizes.of(flips)
    share = people / len(dealt[0].source)
    return sizes if share == 1 else DealtSizes(sizes.positive * share, sizes.negative * share)


@dataclass(frozen=True)
class Quality:
    """How near the counterparts are to the target group, and how far they are from the people.

    ``ks``: Kolmogorov-Smirnov distance of each moving column, and of the model's score: under a perfect map it has the
    target group's distribution, so this distance also sees how columns go together. ``distance``: mean L1 distance
    between people and counterparts in the space of the map. ``unseen`` are columns whose differences are lost in the
    rounding and the optimality gap of the costs, in which counterparts are arbitrary.
    """

    ks: Mapping[str, float]
    distance: float
    unseen: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Whether the map sees every column, and its counterparts are distributed as the target group is."""
        return healthy(np.array(list(self.ks.values()))) and not self.unseen


@dataclass(frozen=True)
class Direction:
    """People of ``source``, their ``points`` (n, d), ``score`` and ``decision`` (n,), and those of ``target`` (m)."""

    name: Literal["forward", "reverse"]
    source: Group
    target: Group
    points: Array
    target_points: Array
    score: Array
    target_score: Array
    decision: Array
    target_decision: Array


@dataclass(frozen=True)
class DirectionResult:
    """What was found in one direction.

    ``people`` (n,) are the places of those who have a finite image, in the order of the ``counterparts``, their
    ``score_image`` (n,) and the ``comparison``. ``facts`` are the map's own about its fit.
    """

    direction: Direction
    people: Array
    counterparts: Counterparts
    score_image: Array
    comparison: Comparison
    quality: Quality
    facts: Mapping[str, float]
    null: DealtSizes | None

    @property
    def real(self) -> bool:
        """Whether every counterpart is a person of the target group."""
        return bool((self.counterparts.person >= 0).all())


@dataclass(frozen=True)
class HeldOut:
    """A kind of map beyond the people whom it is fitted on: half of each group, to which the other half is held.

    ``ks`` is the largest Kolmogorov-Smirnov distance between counterparts of the source group's other half and the
    target group's, of a moving column or the model's score, in any direction; ``limit`` the most that is trusted:
    WORST_HEALTHY_KS, or what chance exceeds one time in twenty where fewer people are held out.
    """

    ks: float
    limit: float


def gather_sound(
    groups: Groups, space: Space, trial: Trial, kinds: Sequence[tuple[Kind, int]], options: Settings
) -> tuple[list[DirectionResult], int, dict[str, HeldOut]]:
    """By the first of the ``kinds`` of map, each with its deals, that is sound; its place; and all that were tried.

    Sound is a map that is healthy on held-out people and, fitted to all, on these. Where none is, it is the one
    that does best on held-out people. One kind alone is not tried.
    """
    tried: dict[str, HeldOut] = {}
    both, model = directions(groups, space, trial, options), trial.model
    for place, (kind, null_draws) in enumerate(kinds):
        if len(kinds) > 1:
            tried[kind.name] = found = held_out(both, space, model, kind, options)
            if found.ks > found.limit:
                continue
        results = gather(both, space, model, kind, options, null_draws)
        # What one map cannot see by its scale, no other can.
        if len(kinds) == 1 or all(one.quality.healthy or one.quality.unseen for one in results):
            return results, place, tried
    place = int(np.argmin([one.ks / one.limit for one in tried.values()]))
    return gather(both, space, model, kinds[place][0], options, kinds[place][1]), place, tried


def held_out(directions: Sequence[Direction], space: Space, model: Decider, kind: Kind, options: Settings) -> HeldOut:
    """Fit the map on a half of each group drawn at random, and ask it about the other; infinity where that fails."""
    worst, limit = 0.0, WORST_HEALTHY_KS
    for direction in directions:
        rng, fitting = (_rngs(options, what, direction.name)[0] for what in ("halves", "held_out"))
        halves = []
        for n in (len(direction.points), len(direction.target_points)):
            size = min(n // 2, HELD_OUT)
            halves.append(np.split(rng.permutation(n)[: 2 * size], 2))
        (some, others), (there, elsewhere) = halves
        own, target = space.to_map(direction.points), space.to_map(direction.target_points)
        near = replace(direction.target, features=direction.target.features.iloc[there])
        try:
            with progress_bar(f"trying a map ({kind.name})"):
                (image,), maps = kind.fit([(own[some], target[there])], [fitting])
        except ValueError:
            return HeldOut(np.inf, limit)
        images = kind.extended(maps, own[some], image, own[others])
        finite = np.isfinite(images).all(axis=1)
        if not finite.any():
            return HeldOut(np.inf, limit)
        found = counterparts(space, images[finite], near, direction.target_points[there])
        score = model.scores(found.frame.set_axis(direction.source.rows[others[finite]]))
        distances = _distances(
            space, direction.target_points[elsewhere], direction.target_score[elsewhere], found.points, score
        )
        sizes = (len(some), len(there), int(finite.sum()), len(elsewhere))
        worst, limit = max(worst, *distances.values()), max(limit, chance_ks(sizes, len(distances), CHANCE))
    return HeldOut(worst, limit)


def _distances(space: Space, target: Array, target_score: Array, points: Array, score: Array) -> dict[str, float]:
    """The Kolmogorov-Smirnov distance of each moving column, and of the score, from those of the target group."""
    columns = ks(space.to_map(target), space.to_map(points))
    named = dict(zip((space.labels[place] for place in space.moving), columns.tolist(), strict=True))
    return {**named, unlike(SCORE, named, "output"): float(ks(target_score[:, None], score[:, None])[0])}


def directions(groups: Groups, space: Space, trial: Trial, options: Settings) -> list[Direction]:
    """The directions that are asked for; the ``trial`` is of the source group, then of the target group."""
    source, target = groups.source, groups.target
    here, there = (space.points(group.features) for group in (source, target))
    (score, other), (decision, others) = (np.split(all_, [len(here)]) for all_ in (trial.scores, trial.decisions))
    found = [Direction("forward", source, target, here, there, score, other, decision, others)]
    if options.reverse:
        found.append(Direction("reverse", target, source, there, here, other, score, others, decision))
    return found


def gather(
    directions: Sequence[Direction], space: Space, model: Decider, kind: Kind, options: Settings, null_draws: int
) -> list[DirectionResult]:
    """Fit the maps of all directions and deals in one job, then measure each direction.

    Raises InvalidInput where a map cannot be fitted and where the model fails on counterparts.
    """
    pairs, rngs, dealt = [], [], []
    for direction in directions:
        own, others = space.to_map(direction.points), space.to_map(direction.target_points)
        everyone = np.concatenate([own, others])
        (rng,) = _rngs(options, "deals", direction.name)
        dealt.append(deals(len(own), len(others), null_draws, rng, NOISE_PEOPLE))
        pairs += [(own, others), *((everyone[deal.source], everyone[deal.target]) for deal in dealt[-1])]
        rngs += [*_rngs(options, "map", direction.name), *_rngs(options, "null", direction.name, null_draws)]
    with progress_bar(f"fitting {plural(len(pairs), 'map')} ({kind.name})"):
        images, maps = kind.fit(pairs, rngs)
    results = []
    for place, (direction, deal) in enumerate(zip(directions, dealt, strict=True)):
        first = place * (1 + null_draws)
        facts = {name: float(values[first]) for name, values in maps.facts.items()}
        null = None
        if deal:
            alike = as_source(space, direction.source.features, direction.target.features)
            null = null_of(space, model, alike, deal, images[first + 1 : first + 1 + null_draws], len(direction.points))
        results.append(_measured(direction, images[first], space, model, kind, options, facts, null))
    return results


def _measured(
    direction: Direction,
    images: Array,
    space: Space,
    model: Decider,
    kind: Kind,
    options: Settings,
    facts: Mapping[str, float],
    null: DealtSizes | None,
) -> DirectionResult:
    """Decisions about people and counterparts, and what follows from them."""
    people = np.flatnonzero(np.isfinite(images).all(axis=1))
    if not len(people):
        problem = f"the map has no finite image of any row of {direction.source.level}, so its fit failed"
        raise InvalidInput(problem, option="map", remedy="Try --map=exact")
    points, found = (
        direction.points[people],
        counterparts(space, images[people], direction.target, direction.target_points),
    )
    images_of = found.frame.set_axis(direction.source.rows[people])
    score_image = model.scores(images_of)
    flips = Flipsets(direction.decision[people], model.decisions(images_of, score_image))
    (rng,) = _rngs(options, "intervals", direction.name)
    moving = np.isin(np.arange(points.shape[1]), space.moving)
    # How good the map is, in the space that it was fitted in.
    own, mapped = (space.to_map(side) for side in (points, found.points))
    distances = _distances(space, direction.target_points, direction.target_score, found.points, score_image)
    lost = unseen(
        space.to_map(direction.points),
        space.to_map(direction.target_points),
        getattr(kind.config, "cost", "squared_l1"),
        max(facts.get("gap", 0.0), 0.0),
    )
    columns = tuple(space.labels[place] for place in np.asarray(space.moving)[lost])
    quality = Quality(distances, mean_distance(own, mapped, "l1"), columns)
    return DirectionResult(
        direction=direction,
        people=people,
        counterparts=found,
        score_image=score_image,
        comparison=compare(
            points,
            found.points,
            flips,
            alpha=options.alpha,
            bootstraps=BOOTSTRAPS,
            rngs=rng.spawn(len(FLIPSETS)),
            moving=moving,
        ),
        quality=quality,
        facts=facts,
        null=null,
    )


def _rngs(options: Settings, what: str, direction: str, count: int = 1) -> tuple[np.random.Generator, ...]:
    """By what they are for, so that no part of the result depends on which others are asked for."""
    return generators("audit", "fliptest", str(options.seed), what, direction, repetitions=count)
