"""Rows made of distances: each measure once, what is counted without one, and levels that have none."""

import logging
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.audits.inference import Precision
from fairness_audits.audits.robustness_bias.examples import ENOUGH, Pair, chosen, shown
from fairness_audits.audits.robustness_bias.measures import Partition, comparisons, elements, partitions_of
from fairness_audits.audits.robustness_bias.rows import Measured, measured_rows
from fairness_audits.values import Array
from pipeline.report.robustness_bias import illustrations
from tests.builders import image_dataset, number

PRECISION = Precision(alpha=0.1, bootstraps=100, permutations=99)
WHERE = "deepfool, epoch 3"


def measured() -> Measured:
    """Level ``a``: three distances, a failure and a misclassified point; ``b``: two distances; ``c``: all wrong."""
    distance = np.array([1.0, 2.0, 3.0, np.nan, np.nan, 4.0, 8.0, np.nan, np.nan])
    correct = np.array([1, 1, 1, 1, 0, 1, 1, 0, 0], dtype=bool)
    codes = np.array([0, 0, 0, 0, 0, 1, 1, 2, 2])
    side = Partition("side", ("l", "r"), np.array([0, 1, 0, 1, 0, 1, 0, 1, -1]))
    return Measured(distance, correct, [Partition("group", ("a", "b", "c"), codes), side])


def table(budget: float | None = None, seed: int = 0) -> pd.DataFrame:
    return pd.DataFrame(measured_rows(measured(), budget, PRECISION, np.random.default_rng(seed), WHERE))


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return table()


def value(frame: pd.DataFrame, statistic: str, level: str = "", denominator: str = "") -> float:
    return number(frame, statistic=statistic, level=level, denominator=denominator)


def test_every_row_says_something_else_of_all_points_or_of_a_level(frame: pd.DataFrame) -> None:
    assert not frame.duplicated(subset=[name for name in frame if name != "value"]).any()
    assert frame["value"].dtype == float
    found = {name: value(frame, name) for name in ("points", "accuracy", "failed", "budget", "median_distance")}
    assert found == {"points": 9, "accuracy": 6 / 9, "failed": 1, "budget": 8, "median_distance": 3}
    assert value(frame, "mean_distance") == pytest.approx(18 / 5)
    assert [value(frame, "failed", level) for level in ("a", "b", "c")] == [1, 0, 0]
    assert [value(frame, "n_correct", level) for level in ("a", "b", "c", "l", "r")] == [4, 2, 0, 3, 3]


@pytest.mark.parametrize(
    ("denominator", "n", "areas", "medians"),
    [("paper", (4, 2, 2), (6 / 4, 6, 0), (1.5, 6, 0)), ("correct", (3, 2, 0), (2, 6, np.nan), (2, 6, np.nan))],
)
def test_a_denominator_says_whose_mean_it_is(
    frame: pd.DataFrame, denominator: str, n: tuple[float, ...], areas: tuple[float, ...], medians: tuple[float, ...]
) -> None:
    levels = ("a", "b", "c")
    assert tuple(value(frame, "n", level, denominator) for level in levels) == n
    np.testing.assert_allclose([value(frame, "auc", level, denominator) for level in levels], areas)
    np.testing.assert_allclose([value(frame, "mean_distance", level, denominator) for level in levels], areas)
    np.testing.assert_allclose([value(frame, "median_distance", level, denominator) for level in levels], medians)


def test_a_budget_cuts_the_area_and_leaves_the_distances() -> None:
    frame = table(budget=2.5)
    assert value(frame, "budget") == 2.5
    assert value(frame, "auc", "a", "correct") == pytest.approx((1 + 2 + 2.5) / 3)
    assert value(frame, "sigma", "a", "correct") == pytest.approx(5.5 / 3 / 2.5 - 1)
    assert value(frame, "mean_distance", "a", "correct") == pytest.approx(2)


def test_a_level_without_correct_points_has_no_sigma_and_is_named(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        frame = table()
    for statistic in ("sigma", "sigma_ci_low", "sigma_p", "auc"):
        assert np.isnan(value(frame, statistic, "c", "correct"))
    # Where misclassified points count, they are the least robust of all.
    assert value(frame, "sigma", "c", "paper") == -1
    assert 0 < value(frame, "sigma_p", "c", "paper") <= value(frame, "sigma_p_adjusted", "c", "paper") <= 1
    # No error can be read off lengths that are all alike.
    assert np.isnan(value(frame, "sigma_ci_low", "c", "paper"))
    assert caplog.messages == [f"{WHERE}, denominator correct: no point of group c counts, so sigma is undefined"]


def test_the_interval_goes_around_sigma_and_two_complements_have_one_test(frame: pd.DataFrame) -> None:
    low, sigma, high = (value(frame, name, "a", "correct") for name in ("sigma_ci_low", "sigma", "sigma_ci_high"))
    assert low < sigma < high
    for denominator in ("paper", "correct"):
        assert value(frame, "sigma_p", "l", denominator) == value(frame, "sigma_p", "r", denominator) < 1
        assert value(frame, "sigma_p_adjusted", "l", denominator) >= value(frame, "sigma_p", "l", denominator)


def test_the_same_stream_gives_the_same_rows(frame: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(frame, table())
    assert not frame.equals(table(seed=1))


def test_where_everything_failed_counts_are_all_there_is() -> None:
    nothing = Measured(np.full(3, np.nan), np.ones(3, dtype=bool), [Partition("p", ("a", "b"), np.array([0, 1, 1]))])
    frame = pd.DataFrame(measured_rows(nothing, None, PRECISION, np.random.default_rng(0), WHERE))
    assert value(frame, "failed") == 3
    assert np.isnan([value(frame, name) for name in ("budget", "median_distance", "mean_distance")]).all()
    assert frame.loc[frame["statistic"].str.startswith("sigma"), "value"].isna().all()


def test_the_elements_of_the_five_datasets_are_152_and_the_comparisons_150() -> None:
    """Classes of CIFAR-10, CIFAR-100 and its superclasses; ages and genders of two, and races of one."""
    study = ({"label": 10}, {"label": 100}, {"label": 20}, {"age": 8, "gender": 2}, {"age": 5, "gender": 2, "race": 5})
    named = [{name: tuple(map(str, range(size))) for name, size in each.items()} for each in study]
    assert sum(map(elements, named)) == 152
    assert sum(map(comparisons, named)) == 150


def test_an_element_and_its_others_leave_out_the_unknown_and_two_levels_are_one_comparison() -> None:
    three = Partition("p", ("a", "b", "c"), np.array([0, 2, -1, 1, 0]))
    inside, outside = three.element(0)
    assert inside.tolist() == [True, False, False, False, True]
    assert outside.tolist() == [False, True, False, True, False]
    assert three.comparisons.tolist() == [0, 1, 2]
    assert Partition("p", ("a", "b"), np.array([0, 1])).comparisons.tolist() == [0, 0]


def test_the_classes_come_first_and_rows_are_taken() -> None:
    codes = {"hair": np.array([1, 0, -1, 1]), "age": np.array([0, 1, 1, 0])}
    names = {"hair": ("long", "short"), "age": ("young", "old")}
    test = np.array([[3, 2, 1]])
    dataset = image_dataset(np.zeros((4, 1, 2, 2)), codes, names, 1, label_name="age", test=test)
    age, hair = partitions_of(dataset, dataset.test[0])
    assert (age.name, age.levels, age.codes.tolist()) == ("age", ("young", "old"), [0, 1, 1])
    assert (hair.name, hair.codes.tolist()) == ("hair", [1, -1, 0])


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
