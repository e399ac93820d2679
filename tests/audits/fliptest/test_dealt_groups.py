"""Flips between halves of one group are those of exact transport between them."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.audits.fliptest.dealt import halves
from pipeline.audits.fliptest.dealt_groups import sizes_between_halves
from pipeline.transport.plan import best_plan
from pipeline.types import Array


def above_zero(features: Array, coins: Array) -> Array:
    return (features[:, 0] > 0).astype(int)


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

    def remembered(rows: Array, coins: Array) -> Array:
        seen.append(rows)
        return np.zeros(len(rows), dtype=int)

    sizes_between_halves(features, np.zeros(60), np.ones(3, bool), remembered, 30, 1, np.random.default_rng(3))
    people, counterparts = seen
    paid = (np.abs(people - counterparts).sum(axis=1) ** 2).mean()
    assert paid == pytest.approx(best_plan(people, counterparts, "squared_l1").cost)
    assert len(np.unique(np.vstack([people, counterparts]), axis=0)) == 60


def test_a_person_keeps_the_coin_and_the_columns_that_no_map_moves() -> None:
    """Equal people with coins of their own: a decision by the coin, or by the column that stays, flips nobody."""
    rng = np.random.default_rng(4)
    features = np.column_stack([rng.normal(size=50), rng.integers(0, 2, 50)])
    for decide in (lambda rows, coins: (coins > 0.5).astype(int), lambda rows, coins: rows[:, 1].astype(int)):
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
