"""The measurements: counterparts, decisions about them, flipsets, reports, the noise floor, and the map's quality.

The noise floor consists of the flipsets that the same map finds between groups that are alike. We split the people of
both groups at random into new groups of the same sizes and fit the map again.
``fairness_audits.audits.fliptest.flipsets`` defines the numbers. If the groups have the same joint distribution of all
columns that the map moves, the observed groups are one more such split. The p-value is then at most alpha with
probability at most alpha, whatever the map. This fails if the groups differ only in columns that the model ignores,
because a map moves people along these columns too. Leave such columns out. Columns that name the group stay at the
source group's value, because the model's response to them is not noise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd

from fairness_audits.arguments import Given
from fairness_audits.audits.fliptest.core import FlipTest, People, distances, flip_test, noise_floor
from fairness_audits.audits.fliptest.decisions import Decider
from fairness_audits.audits.fliptest.flipsets import FLIPSETS, Flipsets, RandomSplit, Sizes, random_splits
from fairness_audits.audits.fliptest.maps import REFITTED, Kind
from fairness_audits.audits.fliptest.people import Group, Groups
from fairness_audits.audits.fliptest.refits import Refits
from fairness_audits.audits.fliptest.space import Space
from fairness_audits.errors import InvalidInput
from fairness_audits.messages import unlike
from fairness_audits.progress import progress_bar, track
from fairness_audits.results.formats import plural
from fairness_audits.seeds import generators
from fairness_audits.transport.quality import WORST_HEALTHY_KS, chance_ks, healthy, mean_distance, unseen
from fairness_audits.values import Array

HELD_OUT = 2000
"""Largest number of people per group held out to check a map. The map is fitted on as many others."""
NOISE_PEOPLE = 500
"""Largest number of people per group in a split of the noise floor."""
CHANCE = 0.05
"""Probability that a correct map exceeds the trusted distance by chance."""
SCORE = "the model's score"
BOOTSTRAPS = 2_000
"""Number of resamples for the intervals of the transparency report."""


@dataclass(frozen=True)
class Counterparts:
    """The counterparts of n people, as ``points`` (n, d) of the space and as rows of the model's inputs, ``frame``.

    ``person`` (n,) is the file row of the real person that the counterpart is, or -1 if it is not a row of the file.
    ``clipped`` are the numbers (n, columns) that the map sent beyond the target group's range.
    """

    points: Array
    frame: pd.DataFrame
    person: Array
    clipped: pd.DataFrame


def counterparts(space: Space, images: Array, target: Group, target_points: Array) -> Counterparts:
    """Convert finite images (n, k) of a map to counterparts in the target group with rows ``target_points`` (m, d).

    If all images are rows of the target group, the counterparts are these people with their own values. Otherwise
    numbers are rounded in whole-number columns and clipped to the target group's range, because a transport map has
    images only among the target group. Categories have the target group's shares
    (:mod:`fairness_audits.transport.plan`). Columns that the map does not move take the target group's values.
    """
    place = places(images, space.to_map(target_points))
    if (place >= 0).all():
        return Counterparts(target_points[place], target.features.iloc[place], target.rows[place], pd.DataFrame())
    points = space.snapped(space.from_map(images, target_points[0]), target_points)
    points, frame, clipped = space.within(points, target.features)
    return Counterparts(points, frame, np.where(place >= 0, target.rows[place], -1), clipped)


def places(images: Array, candidates: Array) -> Array:
    """Return the index of the first candidate (m, k) equal to each image (n, k), or -1 if none is equal."""
    known: dict[bytes, int] = {}
    for position, row in enumerate(np.ascontiguousarray(candidates)):
        known.setdefault(row.tobytes(), position)
    return np.array([known.get(row.tobytes(), -1) for row in np.ascontiguousarray(images)], dtype=np.int64)


def as_source(space: Space, source: pd.DataFrame, target: pd.DataFrame) -> pd.DataFrame:
    """Return the people of both groups, source first; unmoved columns have the source group's values."""
    inputs = pd.concat([source, target])
    for name in space.unmoved:
        inputs[name] = source[name].iloc[:1].repeat(len(inputs)).set_axis(inputs.index)
    return inputs


def null_of(
    space: Space,
    model: Decider,
    everyone: pd.DataFrame,
    splits: Sequence[RandomSplit],
    images: Sequence[Array],
    people: int,
) -> Sizes:
    """Return the flipsets of each split of ``everyone``; the source people have the ``images`` (n, k).

    People without an image are left out. Sizes are the shares in a split times ``people``, whatever the size of the
    split.
    """
    points, decision = space.points(everyone), model.decisions(everyone)
    decided = np.full((len(splits), len(splits[0].source)), -1)
    for own, split, image in zip(decided, track("evaluating random splits", splits), images, strict=True):
        finite = np.isfinite(image).all(axis=1)
        found = counterparts(space, image[finite], Group("", everyone.iloc[split.target], None), points[split.target])
        own[finite] = model.decisions(found.frame)
    return noise_floor(decision, splits, decided).scaled(people / decided.shape[1])


@dataclass(frozen=True)
class Quality:
    """How close the counterparts are to the target group, and how far they are from the people.

    ``ks`` are the :func:`~fairness_audits.audits.fliptest.core.distances` by name. ``distance`` is the mean L1 distance
    between people and counterparts in the space of the map. ``unseen`` are columns whose differences are lost in
    rounding and in the optimality gap of the costs. Counterparts are arbitrary in these columns.
    """

    ks: Mapping[str, float]
    distance: float
    unseen: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        """Return whether the map sees every column and its counterparts match the distribution of the target group."""
        return healthy(np.array(list(self.ks.values()))) and not self.unseen


@dataclass(frozen=True)
class Direction:
    """The ``people`` of the group ``source`` and the ``targets`` of the group ``target``, with points of the ``space``.

    It does not hold the model, which results must not keep.
    """

    name: Literal["forward", "reverse"]
    space: Space
    given: Given
    source: Group
    target: Group
    people: People
    targets: People

    @property
    def sides(self) -> tuple[Array, Array]:
        """Return the people of both groups as a map sees them, (n, k) and (m, k)."""
        return self.space.to_map(self.people.points), self.space.to_map(self.targets.points)

    def counterparts(self, images: Array) -> Counterparts:
        """Return the counterparts of people with finite ``images``."""
        return counterparts(self.space, images, self.target, self.targets.points)

    def rngs(self, what: str, count: int = 1) -> tuple[np.random.Generator, ...]:
        """Return generators keyed by purpose, so that no result depends on which other results are requested."""
        return generators("audit", "fliptest", str(self.given.seed), what, self.name, repetitions=count)


@dataclass(frozen=True)
class AttributeAlone:
    """Decide (n,) about people with the target group's values in the group ``columns``, all else unchanged.

    Without such columns the model is blind to the group, and the decisions are those about the people themselves.
    """

    columns: tuple[str, ...]
    flips: Flipsets


@dataclass(frozen=True)
class DirectionResult:
    """The findings in one direction.

    ``mapped`` (n,) are the indices of people with a finite image. ``counterparts`` and the people of ``found`` have the
    same order. ``facts`` are the map's own report on its fit. ``refits`` and ``alone`` cover all people of the
    direction.
    """

    direction: Direction
    mapped: Array
    counterparts: Counterparts
    found: FlipTest
    quality: Quality
    facts: Mapping[str, float]
    null: Sizes | None
    refits: Refits | None
    alone: AttributeAlone

    @property
    def real(self) -> bool:
        """Return whether every counterpart is a person of the target group."""
        return bool((self.counterparts.person >= 0).all())


@dataclass(frozen=True)
class HeldOut:
    """A kind of map checked on held-out people: it is fitted on half of each group and checked on the other half.

    ``ks`` is the largest Kolmogorov-Smirnov distance between the counterparts of the source group's other half and the
    target group's other half, over moving columns, the model's score and directions. ``limit`` is the largest trusted
    distance: WORST_HEALTHY_KS, or the distance that chance exceeds one time in twenty if fewer people are held out.
    """

    ks: float
    limit: float


def gather_sound(
    groups: Groups, space: Space, model: Decider, kinds: Sequence[tuple[Kind, int, int]], given: Given
) -> tuple[list[DirectionResult], int, dict[str, HeldOut]]:
    """Measure with the first sound map of the ``kinds``, each with splits and refits; return its index and all trials.

    A map is sound if it is healthy on held-out people and, fitted to all, on everyone. If none is sound, use the map
    that does best on held-out people. A single kind is not tried.
    """
    tried: dict[str, HeldOut] = {}
    both = directions(groups, space, model, given)
    for place, (kind, *repeats) in enumerate(kinds):
        if len(kinds) > 1:
            tried[kind.name] = found = held_out(both, model, kind)
            if found.ks > found.limit:
                continue
        results = gather(both, model, kind, *repeats)
        # If the scale hides a column from one map, it hides it from all maps.
        if len(kinds) == 1 or all(one.quality.healthy or one.quality.unseen for one in results):
            return results, place, tried
    place = int(np.argmin([one.ks / one.limit for one in tried.values()]))
    kind, *repeats = kinds[place]
    return gather(both, model, kind, *repeats), place, tried


def held_out(directions: Sequence[Direction], model: Decider, kind: Kind) -> HeldOut:
    """Fit the map on a random half of each group and evaluate it on the other half; infinity if this fails."""
    worst, limit = 0.0, WORST_HEALTHY_KS
    for direction in directions:
        (rng,), (fitting,) = (direction.rngs(what) for what in ("halves", "held_out"))
        halves = []
        for side in (direction.people, direction.targets):
            n = len(side.points)
            size = min(n // 2, HELD_OUT)
            halves.append(np.split(rng.permutation(n)[: 2 * size], 2))
        (some, others), (there, elsewhere) = halves
        own, target = direction.sides
        near = replace(direction.target, features=direction.target.features.iloc[there])
        try:
            with progress_bar(f"trying a map ({kind.name})"):
                (image,), maps = kind.fit([(own[some], target[there])], [fitting])
        except ValueError:
            return HeldOut(np.inf, limit)
        images = kind.extended(maps, own[some], image, own[others], rng)
        finite = np.isfinite(images).all(axis=1)
        if not finite.any():
            return HeldOut(np.inf, limit)
        found = counterparts(direction.space, images[finite], near, direction.targets.points[there])
        score = model.scores(found.frame.set_axis(direction.source.rows[others[finite]]))
        off = distances(direction.targets.at(elsewhere), found.points, score, direction.space.moving)
        sizes = (len(some), len(there), int(finite.sum()), len(elsewhere))
        worst, limit = max(worst, *off), max(limit, chance_ks(sizes, len(off), CHANCE))
    return HeldOut(worst, limit)


def directions(groups: Groups, space: Space, model: Decider, given: Given) -> list[Direction]:
    """Return the requested directions; the ``model`` was tried on the source group, then the target group."""
    source, target = groups.source, groups.target
    everyone = People(
        np.concatenate([space.points(one.features) for one in (source, target)]), model.own_scores, model.own_decisions
    )
    here, there = (everyone.at(place) for place in np.split(np.arange(len(everyone.points)), [len(source.rows)]))
    found = [Direction("forward", space, given, source, target, here, there)]
    return [*found, Direction("reverse", space, given, target, source, there, here)] if given.reverse else found


def gather(
    directions: Sequence[Direction], model: Decider, kind: Kind, null_draws: int, refits: int
) -> list[DirectionResult]:
    """Fit the maps of all directions and splits in one job, measure each direction, and refit its map.

    Raises InvalidInput if a map cannot be fitted or the model fails on counterparts.
    """
    pairs, rngs, splits = [], [], []
    for direction in directions:
        own, others = direction.sides
        everyone = np.concatenate([own, others])
        (rng,) = direction.rngs("deals")
        splits.append(random_splits(len(own), len(others), null_draws, rng, NOISE_PEOPLE))
        pairs += [(own, others), *((everyone[split.source], everyone[split.target]) for split in splits[-1])]
        rngs += [*direction.rngs("map"), *direction.rngs("null", null_draws)]
    with progress_bar(f"fitting {plural(len(pairs), 'map')} ({kind.name})"):
        images, maps = kind.fit(pairs, rngs)
    results = []
    for place, (direction, random) in enumerate(zip(directions, splits, strict=True)):
        first = place * (1 + null_draws)
        facts = {name: float(values[first]) for name, values in maps.facts.items()}
        null = None
        if random:
            alike = as_source(direction.space, direction.source.features, direction.target.features)
            dealt, people = images[first + 1 : first + 1 + null_draws], len(direction.people.points)
            null = null_of(direction.space, model, alike, random, dealt, people)
        again = refitted(direction, model, kind, refits) if refits else None
        results.append(_measured(direction, images[first], model, kind, facts, null, again))
    return results


def refitted(direction: Direction, model: Decider, kind: Kind, refits: int) -> Refits:
    """Fit the map to people of both groups drawn with replacement, and decide about the counterparts of everybody.

    Raises ValueError if a map cannot be fitted or the model fails on counterparts.
    """
    own, others = direction.sides
    most = REFITTED.get(kind.name)
    found = np.full((refits, len(own)), -1, dtype=np.int8)
    with progress_bar(f"fitting {plural(refits, 'map')} to resampled people ({kind.name})", refits) as step:
        for r, rng in enumerate(direction.rngs("refits", refits)):
            here, there = (rng.integers(len(side), size=min(len(side), most or len(side))) for side in (own, others))
            images = kind.drawn_again(own, others, (here, there), rng)
            # Equal people may get different categories, so the order of the people must not decide who gets which.
            people = rng.permutation(np.flatnonzero(np.isfinite(images).all(axis=1)))
            if len(people):
                matches = direction.counterparts(images[people]).frame
                found[r, people] = model.decisions(matches.set_axis(direction.source.rows[people]))
            step()
    return Refits(direction.people.decision, found, direction.given.held_share)


def attribute_alone(direction: Direction, model: Decider) -> AttributeAlone:
    """Evaluate the model on the people with the target group's values in the columns that name the group."""
    frame, target, own = direction.source.features, direction.target.features, direction.people.decision
    columns = tuple(name for name in direction.space.unmoved if not _same(frame[name].iloc[0], target[name].iloc[0]))
    if not columns:
        return AttributeAlone(columns, Flipsets(own, own))
    changed = frame.copy()
    for name in columns:
        changed[name] = target[name].iloc[:1].repeat(len(frame)).set_axis(frame.index)
    return AttributeAlone(columns, Flipsets(own, model.decisions(changed)))


def _same(one: object, other: object) -> bool:
    """Return whether two values are equal or both missing."""
    return bool(pd.isna(one) and pd.isna(other)) or one == other


def _measured(
    direction: Direction,
    images: Array,
    model: Decider,
    kind: Kind,
    facts: Mapping[str, float],
    null: Sizes | None,
    refits: Refits | None,
) -> DirectionResult:
    """Compute the decisions about people and counterparts, and everything derived from them."""
    space, mapped = direction.space, np.flatnonzero(np.isfinite(images).all(axis=1))
    if not len(mapped):
        problem = f"the map has no finite image for any row of {direction.source.level}, so its fit failed"
        raise InvalidInput(problem, option="map", remedy="Try map=exact")
    people, matches = direction.people.at(mapped), direction.counterparts(images[mapped])
    frame = matches.frame.set_axis(direction.source.rows[mapped])
    score = model.scores(frame)
    (rng,) = direction.rngs("intervals")
    found = flip_test(
        people,
        People(matches.points, score, model.decisions(frame, score)),
        direction.targets,
        moving=space.moving,
        alpha=direction.given.alpha,
        bootstraps=BOOTSTRAPS,
        rngs=rng.spawn(len(FLIPSETS)),
    )
    # Measure how far the map moves people in the space in which it was fitted.
    moved = mean_distance(space.to_map(people.points), space.to_map(matches.points), "l1")
    lost = unseen(*direction.sides, getattr(kind.config, "cost", "squared_l1"), max(facts.get("gap", 0.0), 0.0))
    labels = [space.labels[place] for place in space.moving]
    named = dict(zip((*labels, unlike(SCORE, labels, "output")), found.ks.tolist(), strict=True))
    return DirectionResult(
        direction=direction,
        mapped=mapped,
        counterparts=matches,
        found=found,
        quality=Quality(named, moved, tuple(np.array(labels)[lost].tolist())),
        facts=facts,
        null=null,
        refits=refits,
        alone=attribute_alone(direction, model),
    )
