"""How many members flipsets share by trials."""

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.report import words as w
from pipeline.report.fliptest import trials
from pipeline.report.fliptest.trials import FirstTrial


def trial(decision: list[int], after: list[int], rows: list[int] | None = None) -> FirstTrial:
    """People with these decisions, before and after."""
    numbers = np.arange(len(decision)) if rows is None else np.array(rows)
    return FirstTrial({"decision": np.array(decision), "decision_image": np.array(after), "rows": numbers})


def test_two_of_four_and_two_of_four_share_one() -> None:
    """P(K = 0, 1, 2) = 1/6, 4/6, 1/6."""
    found = trials.shared_by_chance(4, 2, 2, level=0.6)
    assert (found.value, found.low, found.high) == (1.0, 1.0, 1.0)
    wide = trials.shared_by_chance(4, 2, 2, level=0.99)
    assert (wide.low, wide.high) == (0.0, 2.0)


@given(people=st.integers(1, 30), shares=st.tuples(st.floats(0, 1), st.floats(0, 1)))
def test_the_range_holds_at_least_its_level(people: int, shares: tuple[float, float]) -> None:
    k, n = (int(share * people) for share in shares)
    found = trials.shared_by_chance(people, k, n)
    inside = sum(comb(k, i) * comb(people - k, n - i) for i in range(int(found.low), int(found.high) + 1) if i <= n)
    assert inside / comb(people, n) >= 0.95 - 1e-9
    assert found.low <= found.value <= found.high or found.high - found.low < 1
    assert found.value == pytest.approx(trials.shared_by_chance(people, n, k).value)


def test_random_flipsets_share_as_many_as_said() -> None:
    rng = np.random.default_rng(0)
    found = trials.shared_by_chance(200, 60, 90)
    drawn = [
        len(set(rng.choice(200, 60, replace=False)) & set(rng.choice(200, 90, replace=False))) for _ in range(1000)
    ]
    assert np.mean(drawn) == pytest.approx(found.value, abs=0.5)
    assert np.mean([found.low <= k <= found.high for k in drawn]) > 0.93


def test_drawn_are_those_who_can_be_in_the_flipset() -> None:
    """Of six people four are decided against; two and three of them are in F-, so 2 x 3 / 4 are shared by trials."""
    one = trial([1, 1, 0, 0, 0, 0], [1, 0, 1, 1, 0, 0])
    other = trial([1, 1, 0, 0, 0, 0], [1, 1, 0, 1, 1, 1])
    assert trials.shared_by_chance_of(one, other, w.NEGATIVE).value == pytest.approx(1.5)
    assert trials.shared_by_chance_of(one, other, w.POSITIVE).value == 0
    assert trials.shared_members(one, other, w.NEGATIVE) == 1


def test_sets_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="two sets among 4 people, found 5 and 1 members"):
        trials.shared_by_chance(4, 5, 1)
    one = trial([0, 0], [1, 0])
    with pytest.raises(ValueError, match="people under both maps, found 2 and 2, none of whom is in both"):
        trials.shared_by_chance_of(one, trial([0, 0], [1, 0], rows=[6, 7]), w.NEGATIVE)


def test_people_whom_one_map_alone_moved_do_not_count() -> None:
    """The three of six whom the second map moved are all decided against; one and two of them are in F-: 1 x 2 / 3."""
    one = trial([1, 1, 0, 0, 0, 0], [1, 0, 1, 0, 0, 1])
    other = trial([0, 0, 0], [1, 1, 0], rows=[2, 3, 4])
    for pair in ((one, other), (other, one)):
        assert trials.shared_by_chance_of(*pair, w.NEGATIVE).value == pytest.approx(2 / 3)
    assert one.members_among(other.rows, w.NEGATIVE) == 1
