"""How many people of one group flip between two halves of it, dealt at random, under exact transport.

The null of section 5.1 of Black et al. (2020) for the group and the model that are audited: both halves have one
distribution, so all these flips are chance. Exact transport between two halves of one size is an assignment, for a few
hundred people a matter of milliseconds; a learned map would have to be trained for each deal, so learned maps have no
such floor here.

With fewer people counterparts lie further apart, and more people flip: where a half is smaller than the audited group,
the floor is rather too high than too low.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pipeline.audits.fliptest.dealt import Deal, DealtSizes, halves
from pipeline.audits.fliptest.sets import Flipsets
from pipeline.transport.cost import cost_matrix
from pipeline.types import Array

COST = "squared_l1"
"""The paper's, and that of the maps that the floor stands beside unless their settings say otherwise."""

Decide = Callable[[Array, Array], Array]
"""Features (n, d) and a coin for each person (n,) to decisions (n,)."""


def sizes_between_halves(
    features: Array,
    coins: Array,
    transported: Array,
    decide: Decide,
    most: int,
    draws: int,
    rng: np.random.Generator,
) -> tuple[DealtSizes, int]:
    """Flipset sizes of each of ``draws`` deals of these people (n, d), and how many stand on each side.

    At most ``most`` on a side. Columns that are not ``transported`` (d,) stay as they are. Nobody on a side, no sizes.
    """
    dealt = halves(len(features), most, draws, rng)
    side = min(len(features) // 2, most)
    if not dealt or not side:
        return DealtSizes.of([]), side
    people = np.concatenate([features[deal.source] for deal in dealt])
    coin = np.concatenate([coins[deal.source] for deal in dealt])
    counterparts = people.copy()
    matched = np.concatenate([deal.target[_assigned(features[:, transported], deal)] for deal in dealt])
    counterparts[:, transported] = features[matched][:, transported]
    decided = (decide(rows, coin).reshape(len(dealt), side) for rows in (people, counterparts))
    return DealtSizes.of([Flipsets(own, other) for own, other in zip(*decided, strict=True)]), side


def _assigned(moving: Array, deal: Deal) -> Array:
    """Exact transport: whom of the one half each person of the other gets, (side,), so that costs are least in all."""
    from scipy.optimize import linear_sum_assignment

    _, assigned = linear_sum_assignment(cost_matrix(moving[deal.source], moving[deal.target], COST))
    return np.asarray(assigned)
