r"""The noise floor: the flipsets that a map finds between groups that are alike, because they were dealt at random.

People are dealt into two groups, a map is fitted between these, and the flipsets under it are counted. Dealt groups
have one distribution, so every flip between them is made by the map and by chance: the null of Black et al. 2020,
section 5.1, for the data and the model that are audited. With the sizes S_1, ..., S_B of B deals,

.. math:: p = \frac{1 + \#\{b : S_b \ge S\}}{B + 1}, \qquad
          u = S_{(\lceil (1 - \alpha)(B + 1) \rceil)},

p is that of an observed size S, and u is what one more deal goes beyond with probability at most alpha: of 19 deals and
alpha = .05, the largest. Fewer deals than 1 / alpha - 1 have no such u.

Exact transport between two halves of one group is an assignment, for a few hundred people a matter of milliseconds
(:func:`sizes_between_halves`); a learned map would have to be trained for each deal, so the audit has no such floor for
learned maps. With fewer people counterparts lie further apart, and more people flip: where a half is smaller than the
audited group, the floor is rather too high than too low.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.audits.permutation.pvalue import monte_carlo_p
from pipeline.transport.cost import cost_matrix
from pipeline.types import Array

COST = "squared_l1"
"""The paper's, and that of the maps that the floor stands beside unless their settings say otherwise."""

Judge = Callable[[Array, Array], tuple[Array, Array]]
"""Features (n, d) and a coin for each person (n,) to scores and decisions, (n,) each."""


@dataclass(frozen=True)
class Deal:
    """People dealt into two groups: positions (n,) and (m,) among all of them."""

    source: Array
    target: Array


@dataclass(frozen=True)
class DealtSizes:
    """Sizes of the flipsets of B deals, (B,) each."""

    positive: Array
    negative: Array

    @classmethod
    def of(cls, flips: Sequence[Flipsets]) -> DealtSizes:
        """The sizes of each deal's flipsets."""
        sizes = [(int(one.positive.sum()), int(one.negative.sum())) for one in flips]
        return cls(*np.array(sizes, dtype=np.int64).reshape(-1, 2).T)

    @property
    def either(self) -> Array:
        """How many people flip, either way."""
        return self.positive + self.negative

    @property
    def net(self) -> Array:
        """|F+| - |F-|."""
        return self.positive - self.negative

    def p_value(self, sizes: Array, observed: int) -> float:
        """The p-value of an observed size among those of the deals."""
        return float(monte_carlo_p(np.array([(sizes >= observed).sum()]), len(sizes))[0])


def deals(n: int, m: int, draws: int, rng: np.random.Generator) -> list[Deal]:
    """``draws`` ways to deal n + m people at random into n and m."""
    return [Deal(*np.split(rng.permutation(n + m), [n])) for _ in range(draws)]


def halves(people: int, most: int, draws: int, rng: np.random.Generator) -> list[Deal]:
    """``draws`` ways to deal people at random into two groups of one size, of at most ``most`` each.

    Whoever is left over is in neither.
    """
    side = min(people // 2, most)
    return [Deal(*np.split(rng.permutation(people)[: 2 * side], [side])) for _ in range(draws)]


def upper(sizes: Array, alpha: float) -> float:
    """What one more deal goes beyond with probability at most alpha, by those of B deals (B,); NaN if B is too few."""
    place = math.ceil((1 - alpha) * (len(sizes) + 1) - 1e-9)
    return float(np.sort(sizes)[place - 1]) if place <= len(sizes) else float("nan")


def sizes_between_halves(
    features: Array,
    coins: Array,
    transported: Array,
    judge: Judge,
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
    decided = (judge(rows, coin)[1].reshape(len(dealt), side) for rows in (people, counterparts))
    return DealtSizes.of([Flipsets(own, other) for own, other in zip(*decided, strict=True)]), side


def _assigned(moving: Array, deal: Deal) -> Array:
    """Exact transport: whom of the one half each person of the other gets, (side,), so that costs are least in all."""
    from scipy.optimize import linear_sum_assignment

    _, assigned = linear_sum_assignment(cost_matrix(moving[deal.source], moving[deal.target], COST))
    return np.asarray(assigned)
