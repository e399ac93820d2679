"""Examples: which two points are shown and how they are perturbed; the small worlds of section 2."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fairness_audits.audits.robustness_bias.measures import Partition
from fairness_audits.values import Array
from pipeline.example_pairs import ENOUGH, Pair, chosen, shown
from pipeline.report.robustness_bias import illustrations


def test_without_another_partition_two_classes_give_their_most_ordinary_members() -> None:
    label = np.repeat([0, 1, 2], [5, 3, 3])
    distance = np.array([9.0, 1.0, 1.2, 1.1, 0.9, 2.0, 2.1, 2.2, 5.0, 4.0, np.nan])
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
    label, distance = np.zeros(9, dtype=np.int64), np.repeat([1.0, 2.0, 50.0], 3)
    classes, unknown = Partition("age", ("y",), label), Partition("race", ("a", "b"), np.repeat([0, 1, -1], 3))
    pair: Any = chosen(distance, label, [classes, unknown])
    assert max(pair.near, *pair.far) < 6
    assert chosen(np.ones(9), label, [classes, unknown]) is None
    assert chosen(distance, label, [classes]) is None


@pytest.mark.parametrize(
    ("members", "levels"),
    [((ENOUGH, ENOUGH, 3), (0, 1)), ((ENOUGH, 2 * ENOUGH, 2 * ENOUGH), (0, 2)), ((8, 7, 3), (0, 1))],
    ids=["small groups are passed over", "enough is enough", "where no pair has enough the largest are compared"],
)
def test_which_groups_are_compared(members: tuple[int, ...], levels: tuple[int, int]) -> None:
    """Three points with the largest difference lose to a pair with enough; of those the largest difference wins."""
    label, distance = np.repeat([0, 1, 2], members), np.repeat([1.0, 2.0, 9.0], members)
    pair: Any = chosen(distance, label, [Partition("digit", ("0", "1", "2"), label)])
    assert pair.levels == levels


def displayed(at: list[float], to: list[float], far: list[int]) -> Any:
    """One-coloured pictures of class 0, where classes are parted at 1/2; the attack sends each to ``to``."""

    def pictures(values: list[float]) -> Callable[[Array], Array]:
        return lambda points: np.array(values, dtype=np.float32)[points][:, None, None, None].repeat(4, axis=3)

    return shown(
        Pair("p", (0, 1), 0, np.array(far), budget=0.5),
        pictures(at),
        pictures(to),
        lambda images: (images.mean(axis=(1, 2, 3)) > 0.5).astype(np.int64),
        np.zeros(len(to), dtype=np.int64),
    )


def test_the_near_point_is_shown_as_attacked_and_the_far_one_moved_by_the_whole_budget() -> None:
    points, perturbed, prediction = displayed([0.45, 0.1], [0.55, 0.6], far=[1])
    assert (points.tolist(), prediction.tolist()) == ([0, 1], [1, 0])
    # Four pixels: a step of .1 in each is .2 long.
    np.testing.assert_allclose(perturbed, np.array([[[[0.55] * 4]], [[[0.1 + 0.5 / 2] * 4]]]), rtol=1e-6)


def test_a_far_point_that_is_fooled_within_the_budget_is_passed_over_and_a_failed_attack_is_no_example() -> None:
    # The attack overshoots on point 1: halfway to its result lies beyond the boundary already.
    points, *_ = displayed([0.45, 0.4, 0.1], [0.55, 0.99, 0.6], far=[1, 2])
    assert points.tolist() == [0, 2]
    for at, to in (([0.45, 0.4], [0.55, 0.99]), ([0.45, 0.1], [0.55, np.nan]), ([0.45, 0.1], [np.nan, 0.6])):
        assert displayed(at, to, far=[1]) is None


# The two small worlds of section 2: what is drawn is computed.
WORLD = illustrations.two_boundaries()
CLASSES = illustrations.three_classes()


def test_both_boundaries_separate_the_classes_with_shares_that_hang_on_no_point_at_the_edge() -> None:
    for boundary, shares in zip(WORLD.boundaries, illustrations.SHARES, strict=True):
        assert np.linalg.norm(boundary) == pytest.approx(1)
        assert WORLD.accuracy(boundary) == 1
        assert WORLD.attacked(boundary) == shares
        assert np.abs(np.abs(WORLD.signed(boundary)) - WORLD.budget).min() > 0.01


def test_the_biased_boundary_is_closer_to_the_round_points_of_both_classes() -> None:
    biased, fair = (np.abs(WORLD.signed(boundary)) for boundary in WORLD.boundaries)
    for side in (0, 1):
        members = (WORLD.label == side) & (WORLD.subclass == illustrations.ROUND)
        assert (biased[members] < fair[members]).all()


def test_the_middle_class_is_closest_at_about_equal_accuracy() -> None:
    mean = [CLASSES.distance[CLASSES.label == c].mean() for c in range(illustrations.CLASSES)]
    assert np.argmin(mean) == 1
    assert mean[1] < 0.85 * min(mean[0], mean[2])
    accuracy = [CLASSES.correct[CLASSES.label == c].mean() for c in range(illustrations.CLASSES)]
    assert min(accuracy) > 0.95
