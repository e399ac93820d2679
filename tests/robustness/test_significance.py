"""The test of "significantly closer": its level under chance, its power, and how comparisons are counted."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.permutation.outcomes import Predictions
from pipeline.permutation.run import permutation_test
from pipeline.robustness.lengths import counted
from pipeline.robustness.partitions import Partition
from pipeline.robustness.significance import Significance, significance
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


def test_a_side_of_one_point_or_of_equal_lengths_has_no_test() -> None:
    partition = Partition("p", ("a", "b", "c"), np.array([0, 1, 1, 2, 2]))
    (found,) = compared(np.array([1.0, 2.0, 2.0, 3.0, 4.0]), partition)
    assert np.isnan(found.p).tolist() == np.isnan(found.adjusted).tolist() == [True, True, False]
    assert found.adjusted[2] == found.p[2]
    nothing = compared(np.full(5, np.nan), partition)
    assert np.isnan(nothing[0].p).all()
