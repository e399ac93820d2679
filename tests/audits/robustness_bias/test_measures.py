"""I_P, RB and sigma: closed forms, what counts, what the others are, and what no choice of units changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.audits.robustness_bias.lengths import DENOMINATORS, Lengths, counted
from pipeline.audits.robustness_bias.measures import by_level, robustness_bias, sigma, survival
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.types import Array

LEVELS = ("a", "b", "c")


def area(lengths: Lengths, member: Array, budget: float) -> float:
    return float(by_level(lengths, Partition("p", ("in",), np.where(member, 0, -1)), budget).area[0])


def exponential(n: int, mean: float) -> Array:
    """n quantiles of an exponential law, in no order that a group could be read off."""
    quantiles = -np.log(1 - (np.arange(n) + 0.5) / n)
    return mean * np.random.default_rng(0).permutation(quantiles)


def all_correct(distance: Array) -> Lengths:
    return counted(distance, np.ones(len(distance), dtype=bool), "correct")


def two_exponentials(n: int = 4000) -> tuple[Lengths, Partition]:
    """Level ``far`` has mean length 2, level ``near`` mean 1 and half as many points."""
    lengths = all_correct(np.concatenate([exponential(2 * n, 2.0), exponential(n, 1.0)]))
    return lengths, Partition("side", ("far", "near"), np.repeat([0, 1], [2 * n, n]))


def test_sigma_of_exponential_distances_is_the_ratio_of_their_means_less_one() -> None:
    lengths, partition = two_exponentials()
    far, near = by_level(lengths, partition, lengths.longest).sigma
    assert far == pytest.approx(1.0, abs=1e-3)
    assert near == pytest.approx(-0.5, abs=1e-3)


@pytest.mark.parametrize("budget", [0.1, 1.0, 3.0])
def test_up_to_a_budget_the_area_is_that_of_the_exponential_survival(budget: float) -> None:
    lengths, partition = two_exponentials()
    found = by_level(lengths, partition, budget)
    areas = np.array([mean * (1 - np.exp(-budget / mean)) for mean in (2.0, 1.0)])
    np.testing.assert_allclose(found.area, areas, rtol=1e-3)
    np.testing.assert_allclose(found.sigma, areas / areas[::-1] - 1, atol=1e-3)


def test_rb_of_exponential_distances_is_the_gap_of_two_exponential_survivals() -> None:
    lengths, partition = two_exponentials()
    tau = np.linspace(0, 6, 50)
    gap = np.exp(-tau / 2) - np.exp(-tau)
    for level in (0, 1):
        np.testing.assert_allclose(robustness_bias(lengths, partition, level, tau), gap, atol=2e-4)


def test_a_share_is_of_lengths_strictly_above_tau() -> None:
    lengths = all_correct(np.array([0.0, 1.0, 1.0, 3.0]))
    everyone = np.ones(4, dtype=bool)
    found = survival(lengths, everyone, np.array([0.0, 0.5, 1.0, 2.9, 3.0]))
    np.testing.assert_array_equal(found, [0.75, 0.75, 0.25, 0.25, 0.0])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.floats(0, 5), min_size=1, max_size=30), st.floats(0.01, 7))
def test_the_area_is_the_integral_of_the_step_function(distances: list[float], budget: float) -> None:
    lengths = all_correct(np.array(distances))
    everyone = np.ones(len(distances), dtype=bool)
    tau = np.unique([0.0, *distances])
    ends = np.minimum(np.append(tau[1:], np.inf), budget)
    integral = (survival(lengths, everyone, tau) * np.maximum(ends - tau, 0)).sum()
    assert area(lengths, everyone, budget) == pytest.approx(integral, abs=1e-9)


@pytest.mark.parametrize(("end", "points"), [(2.0, 2000), (1.0, 2000), (1.0, 100)])
def test_a_grid_of_tau_gives_the_area_up_to_its_step(end: float, points: int) -> None:
    lengths, partition = two_exponentials(50)
    grid, step = np.linspace(0, end, points), end / (points - 1)
    for level in (0, 1):
        inside, _ = partition.element(level)
        share = survival(lengths, inside, grid)
        assert abs(np.trapezoid(share, grid) - area(lengths, inside, end)) <= step / 2
        assert abs(share[:-1].sum() * step - area(lengths, inside, end)) <= step


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.one_of(st.none(), st.floats(0.05, 3)))
def test_the_unit_of_length_changes_no_sigma(seed: int, unit: float, budget: float | None) -> None:
    rng = np.random.default_rng(seed)
    distance, codes = rng.exponential(size=40), rng.integers(3, size=40)
    partition = Partition("p", LEVELS, codes)
    one, other = all_correct(distance), all_correct(distance * unit)
    limit = one.longest if budget is None else budget
    np.testing.assert_allclose(
        by_level(other, partition, limit * unit).sigma, by_level(one, partition, limit).sigma, rtol=1e-9, atol=1e-12
    )


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_the_order_of_the_points_and_the_numbers_of_the_levels_change_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    distance, codes, order = rng.exponential(size=30), rng.integers(3, size=30), rng.permutation(30)
    before = by_level(all_correct(distance), Partition("p", LEVELS, codes), 2.0)
    after = by_level(all_correct(distance[order]), Partition("p", LEVELS, 2 - codes[order]), 2.0)
    for name in ("n", "area", "sigma"):
        np.testing.assert_allclose(getattr(after, name), getattr(before, name)[::-1], rtol=1e-12)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.floats(0.05, 3))
def test_two_complements_have_opposite_signs(seed: int, budget: float) -> None:
    rng = np.random.default_rng(seed)
    partition = Partition("p", ("a", "b"), np.append([0, 1], rng.integers(2, size=20)))
    one, other = by_level(all_correct(rng.exponential(size=22)), partition, budget).sigma
    assert (1 + one) * (1 + other) == pytest.approx(1)


def test_the_others_are_pooled_point_by_point_and_not_curve_by_curve() -> None:
    # Outside a: lengths 1, 1, 1 and 4; the mean of the two curves would have area 2.5.
    lengths = all_correct(np.array([3.5, 1.0, 1.0, 1.0, 4.0]))
    found = by_level(lengths, Partition("p", LEVELS, np.array([0, 1, 1, 1, 2])), lengths.longest)
    assert found.sigma[0] == pytest.approx(3.5 / (7 / 4) - 1)
    # Taken literally, (3) has the sum of the curves of b and c below the line, of area 5, and no positive sign.
    assert found.sigma[0] > 0 > 3.5 / 5 - 1


def test_points_of_unknown_level_are_on_neither_side() -> None:
    lengths = all_correct(np.array([2.0, 1.0, 100.0]))
    found = by_level(lengths, Partition("p", ("a", "b"), np.array([0, 1, -1])), 200.0)
    np.testing.assert_allclose(found.sigma, [1.0, -0.5])


def test_what_a_wrong_prediction_and_a_failed_attack_contribute() -> None:
    # Level a: lengths 4 and 2, one misclassified, one failed. Level b: length 3 and one misclassified with a distance.
    # The failed one is on neither side of the share.
    distance = np.array([4.0, 2.0, np.nan, np.nan, 3.0, 9.0])
    correct = np.array([True, True, False, True, True, False])
    partition = Partition("p", ("a", "b"), np.array([0, 0, 0, 0, 1, 1]))
    strict = by_level(counted(distance, correct, "paper"), partition, 10.0)
    lenient = by_level(counted(distance, correct, "correct"), partition, 10.0)
    assert (strict.n.tolist(), lenient.n.tolist()) == ([3, 2], [2, 1])
    np.testing.assert_allclose(strict.area, [6 / 3, 3 / 2])
    np.testing.assert_allclose(lenient.area, [6 / 2, 3 / 1])
    share = np.array([2 / 3, 1 / 2])
    np.testing.assert_allclose(strict.area, lenient.area * share)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000))
def test_a_failed_attack_changes_no_measure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    distance, correct = rng.exponential(size=40), rng.random(40) < 0.7
    failed, codes = correct & (rng.random(40) < 0.3), rng.integers(3, size=40)
    for denominator in DENOMINATORS:
        all_points = counted(np.where(failed, np.nan, distance), correct, denominator)
        without = counted(distance[~failed], correct[~failed], denominator)
        here = by_level(all_points, Partition("p", LEVELS, codes), 2.0)
        there = by_level(without, Partition("p", LEVELS, codes[~failed]), 2.0)
        for name in ("n", "area", "sigma"):
            np.testing.assert_allclose(getattr(here, name), getattr(there, name), rtol=1e-12)


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_attacks_that_fail_on_far_points_weaken_sigma_and_do_not_turn_it(denominator: str) -> None:
    near, far = exponential(400, 0.3), exponential(200, 0.9)
    distance = np.concatenate([far, near])
    correct = np.arange(600) % 10 > 0
    partition = Partition("p", ("far", "near"), np.repeat([0, 1], [200, 400]))
    truth = by_level(counted(distance, correct, denominator), partition, 10.0).sigma[0]
    found = by_level(counted(np.where(distance > 1.2, np.nan, distance), correct, denominator), partition, 10.0).sigma[
        0
    ]
    assert 0.2 < found < truth


def test_the_denominator_can_turn_a_sign() -> None:
    distance, correct = np.array([2.0, 2.0, np.nan, np.nan, 1.5, 1.5]), np.array([1, 1, 0, 0, 1, 1], dtype=bool)
    partition = Partition("p", ("a", "b"), np.array([0, 0, 0, 0, 1, 1]))
    strict, lenient = (
        by_level(counted(distance, correct, name), partition, 2.0).sigma[0] for name in ("paper", "correct")
    )
    assert strict < 0 < lenient


def test_a_level_without_a_point_that_counts_has_no_measure_and_no_curve() -> None:
    lengths = counted(np.array([np.nan, 1.0, 2.0]), np.array([False, True, True]), "correct")
    partition = Partition("p", LEVELS, np.array([0, 1, 2]))
    found = by_level(lengths, partition, 2.0)
    assert found.n.tolist() == [0, 1, 1]
    assert np.isnan(found.area[0])
    assert np.isnan(found.sigma[0])
    np.testing.assert_allclose(found.sigma[1:], [-0.5, 1.0])
    inside, _ = partition.element(0)
    assert np.isnan(survival(lengths, inside, np.array([0.0, 1.0]))).all()
    assert np.isnan(robustness_bias(lengths, partition, 0, np.array([0.5]))).all()


def test_without_others_or_with_others_of_no_length_there_is_no_sigma() -> None:
    alone = Partition("p", ("a",), np.zeros(2, dtype=np.int64))
    assert np.isnan(by_level(all_correct(np.array([1.0, 2.0])), alone, 2.0).sigma).all()
    none = by_level(all_correct(np.array([1.0, 0.0])), Partition("p", ("a", "b"), np.array([0, 1])), 2.0)
    assert np.isnan(none.sigma[0])
    assert none.sigma[1] == -1
    assert np.isnan(sigma(np.zeros((1, 2)), np.zeros((1, 2)))).all()


@pytest.mark.parametrize(
    ("distance", "correct", "denominator", "found"),
    [
        ([1.0], [True], "all", "expected a denominator among paper, correct; found 'all'"),
        ([1.0, 2.0], [True], "paper", r"one distance and one `correct` a point, found \(2,\) and \(1,\)"),
        ([-1.0, np.nan], [True, True], "paper", "finite distances of at least 0.* found -1.0"),
        ([np.inf], [True], "correct", "finite distances of at least 0.* found inf"),
    ],
)
def test_what_is_no_distance_is_refused(
    distance: list[float], correct: list[bool], denominator: str, found: str
) -> None:
    with pytest.raises(ValueError, match=found):
        counted(np.array(distance), np.array(correct), denominator)
