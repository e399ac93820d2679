"""The noise floor is made of deals of all people, and its p-value counts those as large as what was observed."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.audits.fliptest.dealt import DealtSizes, deals, halves, sizes_between_halves, upper
from pipeline.audits.fliptest.flipsets import Flipsets
from pipeline.transport.plan import best_plan
from pipeline.types import Array


def test_every_deal_gives_each_person_one_place() -> None:
    dealt = deals(3, 5, 200, np.random.default_rng(1))
    for deal in dealt:
        assert (len(deal.source), len(deal.target)) == (3, 5)
        assert sorted([*deal.source, *deal.target]) == list(range(8))
    share = np.mean([np.isin(0, deal.source) for deal in dealt])
    assert share == pytest.approx(3 / 8, abs=4 * np.sqrt(3 / 8 * 5 / 8 / 200))


def test_halves_are_of_one_size_and_nobody_is_in_both() -> None:
    for people, most, side in ((9, 100, 4), (50, 10, 10), (1, 5, 0)):
        for deal in halves(people, most, 20, np.random.default_rng(2)):
            assert len(deal.source) == len(deal.target) == side
            assert len({*deal.source, *deal.target}) == 2 * side
    used = [person for deal in halves(50, 10, 200, np.random.default_rng(3)) for person in deal.source]
    assert np.bincount(used, minlength=50).min() > 0


def test_the_p_value_counts_the_observed_groups_among_the_deals() -> None:
    null = DealtSizes(np.array([1, 2, 0, 4]), np.array([1, 0, 0, 3]))
    np.testing.assert_array_equal(null.either, [2, 2, 0, 7])
    np.testing.assert_array_equal(null.net, [0, 2, 0, 1])
    assert null.p_value(null.either, 2) == 4 / 5
    assert null.p_value(null.either, 3) == 2 / 5
    assert null.p_value(null.either, 8) == 1 / 5
    assert null.p_value(null.either, 0) == 1


def test_sizes_are_those_of_the_flipsets() -> None:
    flips = [Flipsets(np.array([1, 1, 0, 0]), np.array(image)) for image in ([0, 0, 1, 0], [1, 1, 0, 0])]
    found = DealtSizes.of(flips)
    assert (found.positive.tolist(), found.negative.tolist()) == ([2, 0], [1, 0])
    assert DealtSizes.of([]).either.tolist() == []


def test_one_more_deal_goes_beyond_the_upper_end_as_rarely_as_promised() -> None:
    rng = np.random.default_rng(4)
    sizes = rng.normal(size=(20_000, 20))
    beyond = np.mean([row[-1] > upper(row[:-1], 0.05) for row in sizes])
    assert beyond == pytest.approx(0.05, abs=4 * np.sqrt(0.05 * 0.95 / 20_000))


def test_the_upper_end_is_the_largest_of_nineteen_and_none_of_fewer() -> None:
    sizes = np.random.default_rng(5).permutation(40)
    assert upper(sizes[:19], 0.05) == sizes[:19].max()
    assert np.isnan(upper(sizes[:18], 0.05))
    assert upper(sizes[:39], 0.05) == np.sort(sizes[:39])[37]


def above_zero(features: Array, coins: Array) -> tuple[Array, Array]:
    return features[:, 0], (features[:, 0] > 0).astype(int)


def test_along_a_line_the_halves_are_matched_in_order() -> None:
    features = np.random.default_rng(0).normal(size=(81, 1))
    found, side = sizes_between_halves(
        features, np.zeros(81), np.ones(1, bool), above_zero, 30, 25, np.random.default_rng(1)
    )
    assert side == 30
    for k, deal in enumerate(halves(81, 30, 25, np.random.default_rng(1))):
        own, other = (np.sort(features[end, 0]) > 0 for end in (deal.source, deal.target))
        assert found.positive[k] == (own > other).sum()
        assert found.negative[k] == (own < other).sum()
    assert found.either.sum() > 0


def test_matches_cost_no_more_than_exact_transport() -> None:
    """A decision that is a person's own cost: the sum over the halves is that of the best plan."""
    rng = np.random.default_rng(2)
    features = rng.normal(size=(60, 3))
    seen: list[Array] = []

    def remembered(rows: Array, coins: Array) -> tuple[Array, Array]:
        seen.append(rows)
        return coins, np.zeros(len(rows), dtype=int)

    sizes_between_halves(features, np.zeros(60), np.ones(3, bool), remembered, 30, 1, np.random.default_rng(3))
    people, counterparts = seen
    paid = (np.abs(people - counterparts).sum(axis=1) ** 2).mean()
    assert paid == pytest.approx(best_plan(people, counterparts, "squared_l1").cost)
    assert len(np.unique(np.vstack([people, counterparts]), axis=0)) == 60


def test_a_person_keeps_the_coin_and_the_columns_that_no_map_moves() -> None:
    """Equal people with coins of their own: a decision by the coin, or by the column that stays, flips nobody."""
    rng = np.random.default_rng(4)
    features = np.column_stack([rng.normal(size=50), rng.integers(0, 2, 50)])
    for decide in (lambda x, coins: (coins, (coins > 0.5).astype(int)), lambda x, coins: (coins, x[:, 1].astype(int))):
        found, _ = sizes_between_halves(
            features, rng.random(50), np.array([True, False]), decide, 500, 10, np.random.default_rng(5)
        )
        assert found.either.tolist() == [0] * 10


def test_more_people_flip_less_by_chance() -> None:
    features = np.random.default_rng(6).normal(size=(1200, 2))
    shares = []
    for most in (40, 160, 600):
        found, side = sizes_between_halves(
            features, np.zeros(1200), np.ones(2, bool), above_zero, most, 19, np.random.default_rng(7)
        )
        shares.append(found.either.mean() / side)
    assert shares[0] > shares[1] > shares[2] > 0


def test_one_person_cannot_be_halved() -> None:
    found, side = sizes_between_halves(
        np.ones((1, 1)), np.zeros(1), np.ones(1, bool), above_zero, 9, 19, np.random.default_rng(8)
    )
    assert (side, len(found.either)) == (0, 0)
