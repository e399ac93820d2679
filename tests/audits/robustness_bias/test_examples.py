"""The example: whom the rule picks, and that what is shown is what it claims to be."""

from typing import Any

import numpy as np
import pytest

from pipeline.audits.robustness_bias.examples import ENOUGH, Pair, chosen, shown
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.types import Array

NAN = np.nan


def codes(*values: int) -> Array:
    return np.array(values)


def test_without_another_partition_two_classes_give_their_most_ordinary_members() -> None:
    label = np.repeat([0, 1, 2], [5, 3, 3])
    distance = np.array([9.0, 1.0, 1.2, 1.1, 0.9, 2.0, 2.1, 2.2, 5.0, 4.0, NAN])
    pair: Any = chosen(distance, label, [Partition("digit", ("0", "1", "2"), label)])
    # Class 2 has two measured points: too few. Class 0 has median 1.1, class 1 has 2.1.
    assert (pair.partition, pair.levels) == ("digit", (0, 1))
    assert (pair.near, pair.far.tolist()) == (3, [6, 5, 7])
    assert pair.budget == pytest.approx((1.1 + 2.1) / 2)


def test_of_another_partition_the_two_groups_have_one_class() -> None:
    # In class 0 the groups differ by 3, in class 1 by 1; across classes they would by 8.
    label = np.repeat([0, 1], 6)
    group = np.tile(np.repeat([0, 1], 3), 2)
    distance = np.repeat([4.0, 1.0, 9.0, 8.0], 3) + np.tile([-0.1, 0.0, 0.1], 4)
    pair: Any = chosen(distance, label, [Partition("age", ("y", "o"), label), Partition("race", ("a", "b"), group)])
    assert (pair.partition, pair.levels) == ("race", (1, 0))
    assert (pair.near, pair.far[0]) == (4, 1)
    assert set(label[[pair.near, *pair.far]]) == {0}
    assert pair.budget == pytest.approx(2.5)


def test_points_of_unknown_level_are_not_shown_and_equal_groups_are_no_example() -> None:
    label = np.zeros(9, dtype=np.int64)
    unknown = Partition("race", ("a", "b"), codes(0, 0, 0, 1, 1, 1, -1, -1, -1))
    classes = Partition("age", ("y",), label)
    distance = np.repeat([1.0, 2.0, 50.0], 3)
    pair: Any = chosen(distance, label, [classes, unknown])
    assert max(pair.near, *pair.far) < 6
    assert chosen(np.ones(9), label, [classes, unknown]) is None
    assert chosen(distance, label, [classes]) is None


@pytest.mark.parametrize(
    ("members", "levels"), [((ENOUGH, ENOUGH, 3), (0, 1)), ((ENOUGH, 2 * ENOUGH, 2 * ENOUGH), (0, 2))]
)
def test_small_groups_are_passed_over_and_enough_is_enough(members: tuple[int, ...], levels: tuple[int, int]) -> None:
    """Three points with the largest difference lose to a pair with enough; of those the largest difference wins."""
    label = np.repeat([0, 1, 2], members)
    distance = np.repeat([1.0, 2.0, 9.0], members)
    pair: Any = chosen(distance, label, [Partition("digit", ("0", "1", "2"), label)])
    assert pair.levels == levels


def test_where_no_pair_has_enough_the_largest_groups_are_compared() -> None:
    label = np.repeat([0, 1, 2], (8, 7, 3))
    pair: Any = chosen(np.repeat([1.0, 2.0, 9.0], (8, 7, 3)), label, [Partition("digit", ("0", "1", "2"), label)])
    assert pair.levels == (0, 1)


def picture(value: float) -> Array:
    return np.full((1, 2, 2), value)


def displayed(pair: Pair, values: list[float], to: list[float], boundary: float = 0.5) -> Any:
    """One-coloured pictures of class 0, where classes are parted at ``boundary``; the attack sends each to ``to``."""
    return shown(
        pair,
        lambda points: np.stack([picture(values[i]) for i in points]).astype(np.float32),
        lambda points: np.stack([picture(to[i]) for i in points]).astype(np.float32),
        lambda images: (images.mean(axis=(1, 2, 3)) > boundary).astype(np.int64),
        np.zeros(len(values), dtype=np.int64),
    )


def test_the_near_point_is_shown_as_attacked_and_the_far_one_moved_by_the_whole_budget() -> None:
    # Four pixels: a step of .1 in each is .2 long.
    examples = displayed(Pair("p", (0, 1), 0, codes(1), budget=0.5), [0.45, 0.1], [0.55, 0.6])
    assert examples.points.tolist() == [0, 1]
    assert examples.prediction.tolist() == [1, 0]
    np.testing.assert_allclose(examples.perturbed[0], picture(0.55), rtol=1e-6)
    np.testing.assert_allclose(examples.perturbed[1], picture(0.1 + 0.5 / 2), rtol=1e-6)


def test_a_far_point_that_is_fooled_within_the_budget_is_passed_over() -> None:
    # The attack overshoots on point 1: halfway to its result lies beyond the boundary already.
    pair = Pair("p", (0, 1), 0, codes(1, 2), budget=0.5)
    examples = displayed(pair, [0.45, 0.4, 0.1], [0.55, 0.99, 0.6])
    assert examples.points.tolist() == [0, 2]
    assert displayed(Pair("p", (0, 1), 0, codes(1), budget=0.5), [0.45, 0.4], [0.55, 0.99]) is None


def test_a_failed_attack_is_no_example() -> None:
    assert displayed(Pair("p", (0, 1), 0, codes(1), budget=0.5), [0.45, 0.1], [0.55, NAN]) is None
    assert displayed(Pair("p", (0, 1), 0, codes(1), budget=0.5), [0.45, 0.1], [NAN, 0.6]) is None
