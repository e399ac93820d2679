"""The noise floor is made of deals of all people, and its p-value counts those as large as what was observed."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.audits.fliptest.dealt import DealtSizes, deals, halves, upper
from pipeline.audits.fliptest.sets import Flipsets


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
