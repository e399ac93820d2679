"""The test of "significantly closer": its level under chance, its power, and how comparisons are counted."""

import numpy as np
import pytest

from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.robustness_bias.lengths import counted
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.audits.robustness_bias.significance import Significance, significance
from pipeline.types import Array

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
