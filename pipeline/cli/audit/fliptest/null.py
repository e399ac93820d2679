"""The noise floor: the flipsets that the same map finds between groups that are alike.

The people of both groups are dealt anew, at random, into groups of the same sizes, and the map is fitted again. Dealt
groups have one distribution, so every flip between them is made by the map and by chance. Where the groups have one
joint distribution of all the columns that the map moves, the observed groups are one more such deal, and

    p = (1 + #{b : size of deal b >= observed size}) / (B + 1)

is at most alpha with probability at most alpha, whatever the map. It is not where they differ in columns alone that the
model does not look at: a map moves people along these too, so leave such columns out. Columns that name the group are
held at the source group's value: what the model does with them is no noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.cli.audit.fliptest.counterparts import places
from pipeline.cli.audit.fliptest.model import Model
from pipeline.cli.audit.fliptest.space import Space
from pipeline.flipsets.sets import Flipsets
from pipeline.permutation.pvalue import monte_carlo_p
from pipeline.types import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Deal:
    """People of both groups dealt into two: positions (n,) and (m,) among all of them."""

    source: Array
    target: Array


@dataclass(frozen=True)
class Null:
    """Sizes of the flipsets of B deals, (B,) each."""

    positive: Array
    negative: Array

    @property
    def either(self) -> Array:
        """How many people flip, either way."""
        return self.positive + self.negative

    def p_value(self, sizes: Array, observed: int) -> float:
        """The p-value of an observed size among those of the deals."""
        return float(monte_carlo_p(np.array([(sizes >= observed).sum()]), len(sizes))[0])


def deals(n: int, m: int, draws: int, rng: np.random.Generator) -> list[Deal]:
    """``draws`` ways to deal n + m people at random into n and m."""
    dealt = [rng.permutation(n + m) for _ in range(draws)]
    return [Deal(order[:n], order[n:]) for order in dealt]


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
        import pandas as pd

        inputs = pd.concat([source, target])
        for name in space.unmoved:
            value = source[name].iloc[:1]
            inputs[name] = value.repeat(len(inputs)).set_axis(inputs.index)
        return cls(space.points(inputs), model.decisions(model.scores(inputs)))


def null_of(space: Space, model: Model, everyone: Everyone, dealt: Sequence[Deal], images: Sequence[Array]) -> Null:
    """The flipsets of each deal, whose source people have the ``images`` (n, k); whoever has none is left out."""
    positive, negative = [], []
    for deal, image in zip(dealt, images, strict=True):
        finite = np.isfinite(image).all(axis=1)
        flips = Flipsets(
            everyone.decision[deal.source[finite]], _decided(space, model, everyone, deal.target, image[finite])
        )
        positive.append(int(flips.positive.sum()))
        negative.append(int(flips.negative.sum()))
    return Null(np.array(positive), np.array(negative))


def _decided(space: Space, model: Model, everyone: Everyone, target: Array, images: Array) -> Array:
    """Decisions (n,) about finite images (n, k) between dealt groups."""
    place = places(images, space.to_map(everyone.points[target]))
    if (place >= 0).all():
        return everyone.decision[target[place]]
    points = space.snapped(space.from_map(images, everyone.points[0]))
    return model.decisions(model.scores(space.frame(points)))
