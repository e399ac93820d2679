"""Intervals for sigma: their coverage, their width, and where there are none."""

import numpy as np
import pytest

from pipeline.audits.robustness_bias.intervals import resamples, sigma_intervals
from pipeline.audits.robustness_bias.lengths import Lengths, counted
from pipeline.audits.robustness_bias.partitions import Partition
from pipeline.types import Array

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
