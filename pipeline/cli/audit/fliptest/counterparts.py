"""From a map's images to counterparts that the model can be asked about; and the noise floor of flipsets among them.

The noise floor are the flipsets that the same map finds between groups that are alike: the people of both groups are
dealt anew, at random, into groups of the same sizes, and the map is fitted again. The numbers made of that are those of
``pipeline.audits.fliptest.dealt``. Where the groups have one joint distribution of all the columns that the map moves,
the observed groups are one more such deal, and the p-value is at most alpha with probability at most alpha, whatever
the map. It is not where they differ in columns alone that the model does not look at: a map moves people along these
too, so leave such columns out. Columns that name the group are held at the source group's value: what the model does
with them is no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.audits.fliptest.dealt import Deal, DealtSizes
from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.cli.audit.fliptest.groups import Group
from pipeline.cli.audit.fliptest.model import Model
from pipeline.cli.audit.fliptest.space import Space
from pipeline.types import Array


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
    def of(cls, space: Space, model: Model, source: pd.DataFrame, target: pd.DataFrame) -> Everyone:
        """The people of both groups, asked about as if they were of the source group."""
        inputs = pd.concat([source, target])
        for name in space.unmoved:
            value = source[name].iloc[:1]
            inputs[name] = value.repeat(len(inputs)).set_axis(inputs.index)
        return cls(space.points(inputs), model.decisions(model.scores(inputs)))


def null_of(
    space: Space, model: Model, everyone: Everyone, dealt: Sequence[Deal], images: Sequence[Array]
) -> DealtSizes:
    """The flipsets of each deal, whose source people have the ``images`` (n, k); whoever has none is left out."""
    flips = []
    for deal, image in zip(dealt, images, strict=True):
        finite = np.isfinite(image).all(axis=1)
        decided = _decided(space, model, everyone, deal.target, image[finite])
        flips.append(Flipsets(everyone.decision[deal.source[finite]], decided))
    return DealtSizes.of(flips)


def _decided(space: Space, model: Model, everyone: Everyone, target: Array, images: Array) -> Array:
    """Decisions (n,) about finite images (n, k) between dealt groups."""
    target_points = everyone.points[target]
    place = places(images, space.to_map(target_points))
    if (place >= 0).all():
        return everyone.decision[target[place]]
    points = space.snapped(space.from_map(images, everyone.points[0]), target_points)
    return model.decisions(model.scores(space.frame(points)))
