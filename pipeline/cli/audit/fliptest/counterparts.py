"""From a map's images to counterparts that the model can be asked about."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from pipeline.cli.audit.fliptest.groups import Group
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
    categories are snapped to the nearest one; columns that a map does not move are those of the target group.
    """
    place = places(images, space.to_map(target_points))
    if (place >= 0).all():
        return Counterparts(target_points[place], target.features.iloc[place], target.rows[place])
    points = space.snapped(space.from_map(images, target_points[0]))
    return Counterparts(points, space.frame(points), np.where(place >= 0, target.rows[place], -1))


def places(images: Array, candidates: Array) -> Array:
    """The position of the first candidate (m, k) that each image (n, k) equals, -1 where none does."""
    known: dict[bytes, int] = {}
    for position, row in enumerate(np.ascontiguousarray(candidates)):
        known.setdefault(row.tobytes(), position)
    return np.array([known.get(row.tobytes(), -1) for row in np.ascontiguousarray(images)], dtype=np.int64)
