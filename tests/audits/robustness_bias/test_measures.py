"""I_P, RB and sigma: closed forms, what counts, what the others are, and what no choice of units changes."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.robustness_bias.measures import (
    DENOMINATORS,
    Lengths,
    Partition,
    by_level,
    counted,
    survival,
)
from fairness_audits.audits.robustness_bias.significance import Significance, sigma_intervals, significance
from fairness_audits.values import Array
from tests.audits.permutation.builders import at_most


def parted(*codes: Array | Sequence[int] | int) -> Partition:
    """Of levels a, b, ... with these codes."""
    known = np.concatenate([np.atleast_1d(code) for code in codes])
    return Partition("p", tuple("abcdefghij"[: known.max() + 1]), known)


def area(lengths: Lengths, member: Array, budget: float) -> float:
    return float(by_level(lengths, parted(np.where(member, 0, -1)), budget).area[0])


def exponential(n: int, mean: float) -> Array:
    """n quantiles of an exponential law, in no order that a group could be read off."""
    quantiles = -np.log(1 - (np.arange(n) + 0.5) / n)
    return mean * np.random.default_rng(0).permutation(quantiles)


def all_correct(distance: Any) -> Lengths:
    return counted(np.asarray(distance), np.ones(len(distance), dtype=bool), "correct")


def two_exponentials(n: int = 4000) -> tuple[Lengths, Partition]:
    """Level ``a`` has mean length 2, level ``b`` mean 1 and half as many points."""
    lengths = all_correct(np.concatenate([exponential(2 * n, 2.0), exponential(n, 1.0)]))
    return lengths, parted(np.repeat([0, 1], [2 * n, n]))


@pytest.mark.parametrize("budget", [0.1, 1.0, 3.0, 20.0])
def test_up_to_a_budget_the_area_is_that_of_the_exponential_survival(budget: float) -> None:
    """And up to the longest of all it is the mean."""
    lengths, partition = two_exponentials()
    found = by_level(lengths, partition, min(budget, lengths.longest))
    areas = np.array([mean * (1 - np.exp(-budget / mean)) for mean in (2.0, 1.0)])
    np.testing.assert_allclose(found.area, areas, rtol=1e-3)
    np.testing.assert_allclose(found.sigma, areas / areas[::-1] - 1, atol=1e-3)


def test_rb_of_exponential_distances_is_the_gap_of_two_exponential_survivals() -> None:
    lengths, partition = two_exponentials()
    tau = np.linspace(0, 6, 50)
    gap = np.exp(-tau / 2) - np.exp(-tau)
    for level in (0, 1):
        inside, outside = (survival(lengths, side, tau) for side in partition.element(level))
        np.testing.assert_allclose(np.abs(inside - outside), gap, atol=2e-4)


def test_a_share_is_of_lengths_strictly_above_tau() -> None:
    found = survival(all_correct([0.0, 1.0, 1.0, 3.0]), np.ones(4, dtype=bool), np.array([0.0, 0.5, 1.0, 2.9, 3.0]))
    np.testing.assert_array_equal(found, [0.75, 0.75, 0.25, 0.25, 0.0])


@settings(max_examples=30)
@given(st.lists(st.floats(0, 5), min_size=1, max_size=30), st.floats(0.01, 7))
def test_the_area_is_the_integral_of_the_step_function(distances: list[float], budget: float) -> None:
    lengths, everyone = all_correct(distances), np.ones(len(distances), dtype=bool)
    tau = np.unique([0.0, *distances])
    ends = np.minimum(np.append(tau[1:], np.inf), budget)
    integral = (survival(lengths, everyone, tau) * np.maximum(ends - tau, 0)).sum()
    assert area(lengths, everyone, budget) == pytest.approx(integral, abs=1e-9)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3), st.one_of(st.none(), st.floats(0.05, 3)))
def test_the_unit_of_length_the_order_of_the_points_and_the_numbers_of_the_levels_change_nothing(
    seed: int, unit: float, budget: float | None
) -> None:
    rng = np.random.default_rng(seed)
    distance, codes, order = rng.exponential(size=40), rng.integers(3, size=40), rng.permutation(40)
    lengths = all_correct(distance)
    limit = lengths.longest if budget is None else budget
    before = by_level(lengths, Partition("p", ("a", "b", "c"), codes), limit)
    after = by_level(
        all_correct(unit * distance[order]), Partition("p", ("c", "b", "a"), 2 - codes[order]), unit * limit
    )
    for name, scale in (("n", 1), ("area", unit), ("sigma", 1)):
        found, expected = getattr(after, name)[::-1], scale * getattr(before, name)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


NAN = np.nan
BY_HAND: dict[str, tuple[Any, ...]] = {
    # Outside a: 1, 1, 1 and 4. The mean of the two curves would have area 2.5; their sum, as (3) says literally, 5.
    "the others are pooled point by point and not curve by curve": (
        [3.5, 1, 1, 1, 4], [1, 1, 1, 1, 1], [0, 1, 1, 1, 2], 4, "correct",
        [1, 3, 1], [3.5, 1, 4], [1, 4 / 15 - 1, 32 / 13 - 1],
    ),
    "points of unknown level are on neither side": (
        [2, 1, 100], [1, 1, 1], [0, 1, -1], 200, "correct", [1, 1], [2, 1], [1, -1 / 2],
    ),
    "a wrong prediction has length 0, a failed attack none": (
        [4, 2, NAN, NAN, 3, 9], [1, 1, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1], 10, "paper", [3, 2], [2, 1.5], [1 / 3, -1 / 4],
    ),
    "neither of them has any": (
        [4, 2, NAN, NAN, 3, 9], [1, 1, 0, 1, 1, 0], [0, 0, 0, 0, 1, 1], 10, "correct", [2, 1], [3, 3], [0, 0],
    ),
    "the denominator can turn a sign: of all": (
        [2, 2, NAN, NAN, 1.5, 1.5], [1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1], 2, "paper",
        [4, 2], [1, 1.5], [-1 / 3, 1 / 2],
    ),
    "the denominator can turn a sign: of those who are right": (
        [2, 2, NAN, NAN, 1.5, 1.5], [1, 1, 0, 0, 1, 1], [0, 0, 0, 0, 1, 1], 2, "correct",
        [2, 2], [2, 1.5], [1 / 3, -1 / 4],
    ),
    "a level without a point that counts has no measure": (
        [NAN, 1, 2], [0, 1, 1], [0, 1, 2], 2, "correct", [0, 1, 1], [NAN, 1, 2], [NAN, -1 / 2, 1],
    ),
    "without others there is no sigma": ([1, 2], [1, 1], [0, 0], 2, "correct", [2], [1.5], [NAN]),
    "with others of no length there is none": ([1, 0], [1, 1], [0, 1], 2, "correct", [1, 1], [1, 0], [NAN, -1]),
    "without any point there is nothing": ([NAN, NAN], [0, 0], [0, 1], 2, "correct", [0, 0], [NAN, NAN], [NAN, NAN]),
}  # fmt: skip


@pytest.mark.parametrize("case", BY_HAND)
def test_by_hand(case: str) -> None:
    distance, correct, codes, budget, denominator, n, areas, sigmas = BY_HAND[case]
    lengths = counted(np.array(distance, dtype=float), np.array(correct, dtype=bool), denominator)
    found = by_level(lengths, parted(codes), budget)
    np.testing.assert_array_equal(found.n, n)
    np.testing.assert_allclose(found.area, areas)
    np.testing.assert_allclose(found.sigma, sigmas, atol=1e-12)


def test_a_level_without_a_point_that_counts_has_no_curve() -> None:
    lengths, partition = counted(np.array([NAN, 1.0, 2.0]), np.array([False, True, True]), "correct"), parted([0, 1, 2])
    assert np.isnan(survival(lengths, partition.element(0)[0], np.array([0.0, 1.0]))).all()


# Intervals for sigma: their coverage, their width, and where there are none.
SIZES = (60, 120)
MEANS = (1.0, 1.5)
PARTITION = parted(np.repeat([0, 1], SIZES))
ACCURACY = 0.8


def drawn(rng: np.random.Generator, denominator: str = "correct") -> Lengths:
    """Exponential distances, of which each is known with probability ``ACCURACY``."""
    distance = rng.exponential(np.repeat(MEANS, SIZES))
    return counted(distance, rng.random(len(distance)) < ACCURACY, denominator)


def interval(lengths: Lengths, partition: Partition, budget: float = 100.0, draws: int = 400, seed: int = 0) -> Array:
    (ends,) = sigma_intervals(lengths, [partition], budget, draws, 0.05, np.random.default_rng(seed))
    return ends


@pytest.mark.parametrize("denominator", DENOMINATORS)
def test_the_interval_holds_the_true_sigma_about_as_often_as_it_says(denominator: str) -> None:
    rng = np.random.default_rng(3)
    truth = np.array([MEANS[0] / MEANS[1] - 1, MEANS[1] / MEANS[0] - 1])
    found = np.array([interval(drawn(rng, denominator), PARTITION, draws=200, seed=k) for k in range(300)])
    held = ((found[:, 0] < truth) & (truth < found[:, 1])).mean(axis=0)
    # 95 %, less a little since both samples are small; four standard errors are .05.
    assert ((held > 0.89) & (held < 0.99)).all()


def test_partitions_share_the_resamples_and_do_not_disturb_one_another() -> None:
    lengths = drawn(np.random.default_rng(2))
    both = [parted(np.arange(sum(SIZES)) % 3), PARTITION]
    together = sigma_intervals(lengths, both, 100.0, 300, 0.05, np.random.default_rng(5))
    assert [ends.shape for ends in together] == [(2, 3), (2, 2)]
    np.testing.assert_array_equal(together[1], interval(lengths, PARTITION, draws=300, seed=5))


@pytest.mark.parametrize(("last", "without"), [(np.nan, [True, True, True]), (4.0, [True, False, True])])
def test_fewer_than_two_points_on_a_side_have_no_interval(last: float, without: list[bool]) -> None:
    ends = interval(all_correct([1.0, 2.0, 3.0, last]), parted(0, 1, 1, 2), 4.0, 100)
    assert np.isnan(ends).tolist() == [without] * 2


def test_a_side_of_equal_lengths_has_no_interval_rather_than_one_without_width() -> None:
    codes, distance = np.repeat([0, 1, 2], 40), np.random.default_rng(0).exponential(size=120)
    ends = interval(counted(distance, codes > 0, "paper"), parted(codes), 9.0, 50)
    assert np.isnan(ends).tolist() == [[True, False, False]] * 2
    # Beyond the budget all lengths are alike; of two complements neither has an interval.
    far, pair = all_correct(np.where(codes == 0, 5.0 + distance, distance)), parted(np.minimum(codes, 1))
    assert np.isnan(interval(far, pair, 5.0, 50)).all()
    assert np.isfinite(interval(far, pair, 50.0, 50)).all()


# The test of "significantly closer": its level under chance, its power, and how comparisons are counted.
def compared_upto(
    lengths: Lengths, partition: Partition, budget: float, draws: int = 99, seed: int = 0
) -> Significance:
    (found,) = significance(lengths, [partition], budget, draws, np.random.default_rng(seed))
    return found


def compared(distance: Any, partition: Partition, draws: int = 99, seed: int = 0) -> Significance:
    lengths = counted(np.asarray(distance), ~np.isnan(distance), "correct")
    return compared_upto(lengths, partition, lengths.longest, draws, seed)


def test_random_groups_are_found_closer_as_often_as_alpha_says() -> None:
    rng = np.random.default_rng(0)
    found = [compared(rng.exponential(size=45), parted(rng.integers(3, size=45)), seed=seed) for seed in range(300)]
    p, adjusted = (np.array([getattr(one, name) for one in found]) for name in ("p", "adjusted"))
    for alpha in (0.05, 0.2):
        error = np.sqrt(alpha * (1 - alpha) / 300)
        np.testing.assert_allclose((p <= alpha).mean(axis=0), alpha, atol=3.5 * error)
        assert (adjusted <= alpha).any(axis=1).mean() <= alpha + 3.5 * error


def test_the_p_value_is_that_of_the_studentised_permutation_test_of_the_means() -> None:
    """The smaller group varies more: unstudentised, groups of equal means would be told apart one time in four."""
    codes = np.repeat([0, 1], [15, 60])
    distance = np.random.default_rng(3).exponential(size=75) * np.where(codes == 0, 2.0, 1.0)
    data, p = Predictions(np.zeros(75), distance, codes, ("a", "b")), {}
    for method in ("studentized", "unstudentized"):
        found = permutation_test(data, "mean_score", rng=np.random.default_rng(8), draws=99, method=method)
        p[method] = found.p_value
    assert compared(distance, parted(codes), seed=8).p[0] == p["studentized"] != p["unstudentized"]


def test_two_levels_are_tested_and_counted_once() -> None:
    rng = np.random.default_rng(4)
    distance = rng.exponential(size=60) * np.repeat([1.0, 1.8], 30)
    pair = parted(np.repeat([0, 1], 30))
    alone = compared(distance, pair)
    assert alone.p[0] == alone.p[1] == alone.adjusted[0] == alone.adjusted[1] < 1
    both, lengths = [pair, parted(rng.integers(3, size=60))], all_correct(distance)
    first, second = significance(lengths, both, lengths.longest, 99, np.random.default_rng(0))
    p = np.append(first.p[0], second.p)
    np.testing.assert_allclose(np.append(first.adjusted[0], second.adjusted).min(), min(1.0, 4 * p.min()))


def test_lengths_beyond_the_budget_are_all_alike() -> None:
    rng = np.random.default_rng(5)
    partition, distance = parted(np.repeat([0, 1], 40)), rng.uniform(0, 1, 80) + np.where(rng.random(80) < 0.5, 3, 0)
    further = np.where((partition.codes == 1) & (distance > 3), 100.0, distance)
    near, same = (compared_upto(all_correct(own), partition, 3.0).p[0] for own in (distance, further))
    assert near == same


def test_misclassified_points_are_no_robust_ones_where_the_paper_counts_them() -> None:
    rng = np.random.default_rng(6)
    distance, codes = rng.exponential(size=200), np.repeat([0, 1], 100)
    correct = (codes == 0) | (rng.random(200) < 0.4)
    strict, lenient = (
        compared_upto(counted(distance, correct, name), parted(codes), 10.0, 199).p[0] for name in DENOMINATORS
    )
    assert strict == pytest.approx(1 / 200)
    assert lenient > 0.05


def test_a_group_misclassified_altogether_is_found_closer() -> None:
    codes = np.repeat([0, 1, 2], 200)
    lengths = counted(np.random.default_rng(7).exponential(size=600), codes > 0, "paper")
    found = compared_upto(lengths, parted(codes), 9.0, 199)
    assert (found.p[0], found.adjusted[0]) == pytest.approx((1 / 200, 3 / 200))
    pair = compared_upto(lengths, parted(np.minimum(codes, 1)), 9.0, 199)
    assert pair.p.tolist() == pair.adjusted.tolist() == [pytest.approx(1 / 200)] * 2


def test_a_side_of_equal_lengths_is_tested_by_the_share_of_permutations_as_far_apart() -> None:
    # Of the 10 ways to choose 2 of 5 points, one has the mean 0; at the other end (3 + 4) / 2 - 0 = 3.5 is further off.
    distance = np.array([0.0, 0.0, 0.0, 3.0, 4.0])
    gaps = [abs(distance[[*two]].mean() - np.delete(distance, two).mean()) for two in combinations(range(5), 2)]
    exact = np.mean(np.array(gaps) >= gaps[0] - 1e-9)
    found = compared(distance, parted(0, 0, 1, 1, 1), draws=4999)
    assert found.p[0] == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 4999))


@pytest.mark.parametrize(("members", "zeros"), [(2, 0.25), (4, 0.5), (6, 0.8)])
def test_samples_full_of_zeros_keep_the_level(members: int, zeros: float) -> None:
    rng, partition = np.random.default_rng(8), parted(np.repeat([0, 1], [members, 60]))
    n = 60 + members
    drawn = [np.where(rng.random(n) < zeros, 0.0, 1 + 0.1 * rng.random(n)) for _ in range(300)]
    p = np.array([compared(distance, partition, seed=seed).p[0] for seed, distance in enumerate(drawn)])
    for alpha in (0.05, 0.2):
        assert at_most((p <= alpha).mean(), alpha, 300, deviations=3.5)


def test_there_is_no_test_only_where_all_lengths_are_equal_or_a_side_is_empty() -> None:
    partition = Partition("p", ("a", "b", "c", "d"), np.array([0, 1, 1, 2, 2]))
    found = compared([1.0, 2.0, 2.0, 3.0, 4.0], partition)
    assert np.isnan(found.p).tolist() == np.isnan(found.adjusted).tolist() == [False, False, False, True]
    # One point of five: no permutation test can find it nearer than one time in five.
    assert found.p[0] > 0.1
    for distance in (np.full(5, np.nan), np.full(5, 2.0), np.zeros(5)):
        assert np.isnan(compared(distance, partition).p).all()
