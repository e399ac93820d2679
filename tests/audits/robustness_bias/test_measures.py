"""I_P, RB and sigma: closed forms, what counts, what the others are, and what no choice of units changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import proportion_confint

from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.robustness_bias.inference import (
    Significance,
    resamples,
    sigma_difference,
    sigma_intervals,
    sign_agreement,
    significance,
)
from pipeline.audits.robustness_bias.measures import (
    DENOMINATORS,
    Lengths,
    Partition,
    by_level,
    counted,
    robustness_bias,
    sigma,
    survival,
)
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


# Intervals for sigma: their coverage, their width, and where there are none.


SIZES = (60, 120)
MEANS = (1.0, 1.5)
PARTITION = Partition("p", ("a", "b"), np.repeat([0, 1], SIZES))
ACCURACY = 0.8


def drawn(rng: np.random.Generator, denominator: str = "correct") -> Lengths:
    """Exponential distances, of which each is known with probability ``ACCURACY``."""
    distance = rng.exponential(np.repeat(MEANS, SIZES))
    return counted(distance, rng.random(len(distance)) < ACCURACY, denominator)


def interval(lengths: Lengths, draws: int = 400, seed: int = 0, budget: float = 100.0) -> Array:
    (ends,) = sigma_intervals(lengths, [PARTITION], budget, draws, 0.05, np.random.default_rng(seed))
    return ends


@pytest.mark.parametrize("denominator", ["paper", "correct"])
def test_the_interval_holds_the_true_sigma_about_as_often_as_it_says(denominator: str) -> None:
    rng = np.random.default_rng(3)
    truth = np.array([MEANS[0] / MEANS[1] - 1, MEANS[1] / MEANS[0] - 1])
    held = np.array(
        [np.abs(np.sign(interval(drawn(rng, denominator), 200, k) - truth).sum(axis=0)) < 2 for k in range(300)]
    )
    # 95 %, less a little since both samples are small; four standard errors are .05.
    assert (held.mean(axis=0) > 0.89).all()
    assert (held.mean(axis=0) < 0.99).all()


def test_the_interval_is_as_wide_as_the_delta_method_says() -> None:
    lengths = drawn(np.random.default_rng(0))
    sides = [lengths.length[lengths.counts & (PARTITION.codes == level)] for level in (0, 1)]
    relative = sum(side.var() / side.mean() ** 2 / len(side) for side in sides)
    ratio = sides[0].mean() / sides[1].mean()
    low, high = interval(lengths, 4000)[:, 0]
    assert low < ratio - 1 < high
    assert high - low == pytest.approx(2 * 1.96 * ratio * np.sqrt(relative), rel=0.08)


def test_a_sample_with_replacement_has_n_points_each_once_on_average() -> None:
    (weight,) = resamples(50, 2000, np.random.default_rng(0))
    assert (weight.sum(axis=1) == 50).all()
    np.testing.assert_allclose(weight.mean(axis=0), 1, atol=0.15)
    np.testing.assert_allclose(weight.var(axis=0), 1 - 1 / 50, atol=0.15)


def test_the_unit_of_length_changes_no_interval() -> None:
    lengths = drawn(np.random.default_rng(1))
    longer = Lengths(lengths.length * 7, lengths.counts)
    np.testing.assert_allclose(interval(longer, budget=7.0), interval(lengths, budget=1.0), rtol=1e-9)


def test_partitions_share_the_resamples_and_do_not_disturb_one_another() -> None:
    lengths = drawn(np.random.default_rng(2))
    other = Partition("q", ("c", "d", "e"), np.arange(sum(SIZES)) % 3)
    together = sigma_intervals(lengths, [other, PARTITION], 100.0, 300, 0.05, np.random.default_rng(5))
    assert [ends.shape for ends in together] == [(2, 3), (2, 2)]
    np.testing.assert_array_equal(together[1], interval(lengths, 300, 5))


def test_fewer_than_two_points_on_a_side_have_no_interval() -> None:
    lengths = counted(np.array([1.0, 2.0, 3.0, np.nan]), np.array([True, True, True, True]), "correct")
    partition = Partition("p", ("a", "b", "c"), np.array([0, 1, 1, 2]))
    (ends,) = sigma_intervals(lengths, [partition], 3.0, 100, 0.05, np.random.default_rng(0))
    assert np.isnan(ends[:, [0, 1, 2]]).tolist() == [[True, True, True]] * 2
    lengths = counted(np.array([1.0, 2.0, 3.0, 4.0]), np.ones(4, dtype=bool), "correct")
    (ends,) = sigma_intervals(lengths, [partition], 4.0, 100, 0.05, np.random.default_rng(0))
    assert np.isnan(ends).tolist() == [[True, False, True]] * 2


def test_a_side_of_equal_lengths_has_no_interval_rather_than_one_without_width() -> None:
    rng = np.random.default_rng(0)
    codes, distance = np.repeat([0, 1, 2], 40), rng.exponential(size=120)
    wrong = counted(distance, codes > 0, "paper")
    (ends,) = sigma_intervals(wrong, [Partition("p", ("a", "b", "c"), codes)], 9.0, 50, 0.05, rng)
    assert np.isnan(ends).tolist() == [[True, False, False]] * 2
    # Beyond the budget all lengths are alike; of two complements neither has an interval.
    far = counted(np.where(codes == 0, 5.0 + distance, distance), np.ones(120, dtype=bool), "paper")
    pair = Partition("p", ("a", "b"), np.minimum(codes, 1))
    (ends,) = sigma_intervals(far, [pair], 5.0, 50, 0.05, rng)
    assert np.isnan(ends).all()
    (ends,) = sigma_intervals(far, [pair], 50.0, 50, 0.05, rng)
    assert np.isfinite(ends).all()


# The test of "significantly closer": its level under chance, its power, and how comparisons are counted.


DRAWS = 99


def compared(distance: Array, *partitions: Partition, draws: int = DRAWS, seed: int = 0) -> list[Significance]:
    lengths = counted(distance, ~np.isnan(distance), "correct")
    return significance(lengths, partitions, lengths.longest, draws, np.random.default_rng(seed))


def test_random_groups_are_found_closer_as_often_as_alpha_says() -> None:
    rng = np.random.default_rng(0)
    found = []
    for seed in range(300):
        partition = Partition("p", ("a", "b", "c"), rng.integers(3, size=45))
        found.append(compared(rng.exponential(size=45), partition, seed=seed)[0])
    p, adjusted = (np.array([getattr(one, name) for one in found]) for name in ("p", "adjusted"))
    for alpha in (0.05, 0.2):
        error = np.sqrt(alpha * (1 - alpha) / 300)
        np.testing.assert_allclose((p <= alpha).mean(axis=0), alpha, atol=3.5 * error)
        assert (adjusted <= alpha).any(axis=1).mean() <= alpha + 3.5 * error


def test_groups_of_equal_means_and_unequal_spread_keep_the_level() -> None:
    rng = np.random.default_rng(1)
    codes = np.repeat([0, 1], [30, 120])
    spread = np.where(codes == 0, 0.9, 0.2)
    partition = Partition("p", ("a", "b"), codes)
    p = [compared(2 + spread * rng.uniform(-1, 1, size=150), partition, seed=seed)[0].p[0] for seed in range(300)]
    # Without studentisation, the smaller group varying more, about one in four.
    assert np.mean(np.array(p) <= 0.05) < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 300)


def test_a_group_twice_as_far_is_found() -> None:
    rng = np.random.default_rng(2)
    partition = Partition("p", ("a", "b", "c"), np.repeat([0, 1, 2], 60))
    scale = np.repeat([2.0, 1.0, 1.0], 60)
    found = [compared(scale * rng.exponential(size=180), partition, draws=199, seed=seed)[0] for seed in range(40)]
    assert np.mean([one.adjusted[0] <= 0.05 for one in found]) > 0.85


def test_the_p_value_is_that_of_the_permutation_test_of_the_means() -> None:
    rng = np.random.default_rng(3)
    distance, codes = rng.exponential(size=50), np.repeat([0, 1], 25)
    (found,) = compared(distance, Partition("p", ("a", "b"), codes), seed=8)
    data = Predictions(np.zeros(50), distance, codes, ("a", "b"))
    assert found.p[0] == permutation_test(data, "mean_score", rng=np.random.default_rng(8), draws=DRAWS).p_value


def test_two_levels_are_tested_and_counted_once() -> None:
    rng = np.random.default_rng(4)
    distance = rng.exponential(size=60) * np.repeat([1.0, 1.8], 30)
    pair = Partition("p", ("a", "b"), np.repeat([0, 1], 30))
    (alone,) = compared(distance, pair)
    assert alone.p[0] == alone.p[1] == alone.adjusted[0] == alone.adjusted[1] < 1
    many = Partition("q", ("c", "d", "e"), rng.integers(3, size=60))
    first, second = compared(distance, pair, many)
    p = np.append(first.p[0], second.p)
    np.testing.assert_allclose(np.append(first.adjusted[0], second.adjusted).min(), min(1.0, 4 * p.min()))


def test_lengths_beyond_the_budget_are_all_alike() -> None:
    rng = np.random.default_rng(5)
    codes = np.repeat([0, 1], 40)
    distance = np.where(codes == 0, rng.uniform(0, 1, 80), rng.uniform(0, 1, 80)) + np.where(rng.random(80) < 0.5, 3, 0)
    lengths, partition = counted(distance, np.ones(80, dtype=bool), "correct"), Partition("p", ("a", "b"), codes)
    far = counted(np.where((codes == 1) & (distance > 3), 100.0, distance), np.ones(80, dtype=bool), "correct")
    near, same = (
        significance(one, [partition], 3.0, DRAWS, np.random.default_rng(0))[0].p[0] for one in (lengths, far)
    )
    assert near == same


def test_misclassified_points_are_no_robust_ones_where_the_paper_counts_them() -> None:
    rng = np.random.default_rng(6)
    distance, codes = rng.exponential(size=200), np.repeat([0, 1], 100)
    correct = (codes == 0) | (rng.random(200) < 0.4)
    partition = Partition("p", ("a", "b"), codes)
    strict, lenient = (
        significance(counted(distance, correct, name), [partition], 10.0, 199, np.random.default_rng(0))[0].p[0]
        for name in ("paper", "correct")
    )
    assert strict == pytest.approx(1 / 200)
    assert lenient > 0.05


def test_a_group_misclassified_altogether_is_found_closer() -> None:
    rng = np.random.default_rng(7)
    codes = np.repeat([0, 1, 2], [200, 200, 200])
    lengths = counted(rng.exponential(size=600), codes > 0, "paper")
    (found,) = significance(lengths, [Partition("p", ("a", "b", "c"), codes)], 9.0, 199, np.random.default_rng(0))
    assert found.p[0] == pytest.approx(1 / 200)
    assert found.adjusted[0] == pytest.approx(3 / 200)
    (pair,) = significance(
        lengths, [Partition("p", ("a", "b"), np.minimum(codes, 1))], 9.0, 199, np.random.default_rng(0)
    )
    assert pair.p.tolist() == pair.adjusted.tolist() == [pytest.approx(1 / 200)] * 2


def test_a_side_of_equal_lengths_is_tested_by_the_share_of_permutations_as_far_apart() -> None:
    # Of the 10 ways to choose 2 of 5 points, one has the mean 0; at the other end (3 + 4) / 2 - 0 = 3.5 is further off.
    partition = Partition("p", ("a", "b"), np.array([0, 0, 1, 1, 1]))
    distance = np.array([0.0, 0.0, 0.0, 3.0, 4.0])
    (found,) = compared(distance, partition, draws=4999)
    gaps = [
        abs(distance[[i, j]].mean() - np.delete(distance, [i, j]).mean()) for i in range(5) for j in range(i + 1, 5)
    ]
    exact = np.mean(np.array(gaps) >= gaps[0] - 1e-9)
    assert found.p[0] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4999))


@pytest.mark.parametrize(("members", "zeros"), [(2, 0.25), (4, 0.5), (6, 0.8)])
def test_samples_full_of_zeros_keep_the_level(members: int, zeros: float) -> None:
    rng = np.random.default_rng(8)
    partition = Partition("p", ("a", "b"), np.repeat([0, 1], [members, 60]))
    p = []
    for seed in range(300):
        distance = np.where(rng.random(60 + members) < zeros, 0.0, 1 + 0.1 * rng.random(60 + members))
        p.append(compared(distance, partition, seed=seed)[0].p[0])
    for alpha in (0.05, 0.2):
        assert np.mean(np.array(p) <= alpha) <= alpha + 3.5 * np.sqrt(alpha * (1 - alpha) / 300)


def test_what_is_adjusted_for_does_not_hang_on_how_many_groups_are_wrong_altogether() -> None:
    rng = np.random.default_rng(9)
    codes = np.arange(400) % 10
    lengths = counted(rng.exponential(size=400) * np.where(codes == 0, 4.0, 1.0), codes < 3, "paper")
    names = tuple("abcdefghij")
    (found,) = significance(lengths, [Partition("p", names, codes)], 99.0, 99, np.random.default_rng(0))
    assert np.isfinite(found.p).all()
    assert found.adjusted[0] == pytest.approx(10 * found.p[0]) == pytest.approx(10 / 100)


def test_there_is_no_test_only_where_all_lengths_are_equal_or_a_side_is_empty() -> None:
    partition = Partition("p", ("a", "b", "c", "d"), np.array([0, 1, 1, 2, 2]))
    (found,) = compared(np.array([1.0, 2.0, 2.0, 3.0, 4.0]), partition)
    assert np.isnan(found.p).tolist() == np.isnan(found.adjusted).tolist() == [False, False, False, True]
    # One point of five: no permutation test can find it nearer than one time in five.
    assert found.p[0] > 0.1
    for distance in (np.full(5, np.nan), np.full(5, 2.0), np.zeros(5)):
        assert np.isnan(compared(distance, partition)[0].p).all()


# Agreement of two measures: counted, with an interval, and with what could not be compared.


ONE = np.array([0.5, -0.2, 0.0, 0.3, np.nan, -1.0, 0.0])
OTHER = np.array([0.1, 0.2, 0.0, np.nan, 0.3, -0.1, 0.4])


def test_equal_signs_are_counted_among_the_groups_where_both_exist() -> None:
    found = sign_agreement(ONE, OTHER)
    assert (found.agreeing, found.total, found.undefined) == (3, 5, 2)
    assert found.share == pytest.approx(0.6)
    assert sign_agreement(OTHER, ONE) == found


def test_the_published_125_of_151_have_wilsons_interval() -> None:
    one = np.ones(151)
    found = sign_agreement(one, np.where(np.arange(151) < 125, 1.0, -1.0))
    assert found.agreeing == 125
    assert (found.low, found.high) == pytest.approx(proportion_confint(125, 151, method="wilson"))


def test_the_difference_is_signed_and_has_the_sample_variance() -> None:
    found = sigma_difference(ONE, OTHER)
    gaps = np.array([0.4, -0.4, 0.0, -0.9, -0.4])
    assert (found.total, found.undefined) == (5, 2)
    assert found.mean == pytest.approx(gaps.mean())
    assert found.variance == pytest.approx(((gaps - gaps.mean()) ** 2).sum() / 4)
    assert sigma_difference(OTHER, ONE).mean == pytest.approx(-found.mean)


def test_without_groups_there_is_no_share_and_no_mean_and_of_one_no_variance() -> None:
    nothing, one = np.full(1, np.nan), np.ones(1)
    share, none, single = sign_agreement(nothing, one), sigma_difference(nothing, one), sigma_difference(one, 0 * one)
    assert (share.total, share.undefined, none.total, single.mean) == (0, 1, 0, 1.0)
    assert np.isnan([share.share, share.low, share.high, single.variance, none.mean, none.variance]).all()
    for compare in (sign_agreement, sigma_difference):
        with pytest.raises(ValueError, match=r"found shapes \(2,\) and \(3,\): list the groups of both in one order"):
            compare(np.ones(2), np.ones(3))
