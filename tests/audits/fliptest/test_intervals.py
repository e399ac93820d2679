"""Intervals of sizes, signs and shifts are the ones that are named, and cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.fliptest import intervals
from pipeline.audits.fliptest.intervals import (
    difference_intervals,
    expanded,
    fewest,
    mean_intervals,
    sign_intervals,
    size_intervals,
)


def test_the_ends_of_a_size_are_the_shares_at_which_it_is_just_refuted() -> None:
    found = size_intervals(120, 30, 1000, 0.1)
    for (low, high), size in ((found.positive, 120), (found.negative, 30)):
        np.testing.assert_allclose(stats.binom.sf(size - 1, 1000, low / 1000), 0.05)
        np.testing.assert_allclose(stats.binom.cdf(size, 1000, high / 1000), 0.05)


def test_nobody_among_n_has_an_upper_end() -> None:
    """The rule of three: (1 - p)^n = alpha / 2 at p near 3.7 / n."""
    found = size_intervals(0, 0, 5000, 0.05)
    assert found.positive == found.negative
    assert found.positive[0] == 0
    assert found.positive[1] == pytest.approx(5000 * (1 - 0.025 ** (1 / 5000)))
    assert found.positive[1] == pytest.approx(3.7, abs=0.02)
    z = stats.norm.ppf(0.975)
    assert found.net == (pytest.approx(-5000 * z**2 / (5000 + z**2)), pytest.approx(5000 * z**2 / (5000 + z**2)))


def test_the_net_size_has_the_ends_that_tangos_score_just_refutes() -> None:
    """The score with the likeliest share of F- at the end, found by a search over the multinomial likelihood."""
    b, c, n = 30, 12, 200
    for end in size_intervals(b, c, n, 0.05).net:
        delta = end / n
        shares = np.linspace(max(0, -delta) + 1e-9, (1 - delta) / 2 - 1e-9, 400_001)
        likelihood = b * np.log(shares + delta) + c * np.log(shares) + (n - b - c) * np.log1p(-2 * shares - delta)
        q = shares[likelihood.argmax()]
        score = (b - c - end) / np.sqrt(n * (2 * q + delta * (1 - delta)))
        assert abs(score) == pytest.approx(stats.norm.ppf(0.975), rel=1e-3)


def test_the_net_size_is_beyond_zero_where_mcnemars_test_says_so() -> None:
    for b, c in ((20, 9), (21, 9), (9, 21), (3, 0), (4, 0)):
        low, high = size_intervals(b, c, 500, 0.05).net
        assert (low > 0 or high < 0) == (abs(b - c) / np.sqrt(b + c) > stats.norm.ppf(0.975))


def test_swapping_the_flipsets_turns_the_net_size_around() -> None:
    there, back = size_intervals(7, 2, 40, 0.05), size_intervals(2, 7, 40, 0.05)
    assert there.positive == back.negative
    np.testing.assert_allclose(there.net, -np.array(back.net)[::-1])


def test_everybody_or_nobody_flips() -> None:
    assert size_intervals(10, 0, 10, 0.05).positive[1] == size_intervals(10, 0, 10, 0.05).net[1] == 10
    assert np.isnan([*size_intervals(0, 0, 0, 0.05).positive, *size_intervals(0, 0, 0, 0.05).net]).all()
    with pytest.raises(ValueError, match="expected sizes of two disjoint flipsets of 10 people, found 8 and 3"):
        size_intervals(8, 3, 10, 0.05)


@pytest.mark.parametrize("shares", [[0.1, 0.06, 0.84], [0.004, 0.001, 0.995]])
def test_intervals_of_sizes_cover_the_expected_sizes(shares: list[float]) -> None:
    rng = np.random.default_rng(2)
    inside = np.zeros(3)
    expected = 500 * np.array([shares[0], shares[1], shares[0] - shares[1]])
    for _ in range(1000):
        positive, negative, _ = rng.multinomial(500, shares)
        found = size_intervals(positive, negative, 500, 0.1)
        ends = np.array([found.positive, found.negative, found.net])
        inside += (ends[:, 0] <= expected) & (expected <= ends[:, 1])
    assert (inside / 1000 > 0.9 - 3 * np.sqrt(0.09 / 1000)).all()


def test_a_mean_sign_is_a_difference_of_shares() -> None:
    signs = np.repeat([[1, -1], [0, -1], [-1, -1]], [12, 5, 3], axis=0)
    low, high = sign_intervals(signs, 0.05)
    for j, (more, fewer) in enumerate(((12, 3), (0, 20))):
        ends = difference_intervals(np.array([more]), np.array([fewer]), 20, 0.05)
        assert (low[j], high[j]) == (ends[0][0], ends[1][0])
    assert (low[1], high[1]) == (-1, pytest.approx(-0.68, abs=0.01))


def test_a_mean_over_a_flipset_varies_as_under_resampling_of_all_rows() -> None:
    rng = np.random.default_rng(3)
    group, members = rng.gamma(1.0, size=(120, 2)), np.arange(120) < 25
    drawn = rng.integers(0, 120, size=(20_000, 120))
    inside = members[drawn]
    tail = expanded(25, 0.05)
    expected = [
        np.quantile((group[:, j][drawn] * inside).sum(axis=1) / inside.sum(axis=1), [tail, 1 - tail]) for j in (0, 1)
    ]
    low, high = mean_intervals(group[members], 20_000, 0.05, rng)
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, rtol=0.03)


def test_the_interval_of_a_mean_covers_the_expected_mean() -> None:
    rng = np.random.default_rng(4)
    inside = np.zeros(2)
    for _ in range(400):
        values = np.stack([rng.normal(2, 3, size=60), rng.choice([-1, 1], size=60, p=[0.3, 0.7])], axis=1)
        low, high = mean_intervals(values, 300, 0.1, rng)
        inside += (low <= [2, 0.4]) & (high >= [2, 0.4])
    np.testing.assert_allclose(inside / 400, 0.9, atol=0.05)


def test_blocks_of_weights_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).normal(size=(30, 3))
    whole = mean_intervals(values, 101, 0.05, np.random.default_rng(6))
    monkeypatch.setattr(intervals, "WEIGHTS_AT_ONCE", 70)
    parts = mean_intervals(values, 101, 0.05, np.random.default_rng(6))
    np.testing.assert_allclose(parts, whole, rtol=1e-12)


def test_means_of_few_members_cover_too() -> None:
    """Eight normal values: plain percentiles would cover in 82 of 100 cases at level .9, expanded ones in 90."""
    rng = np.random.default_rng(8)
    inside = 0
    for _ in range(600):
        low, high = mean_intervals(rng.normal(size=(8, 1)), 1000, 0.1, rng)
        inside += low[0] <= 0 <= high[0]
    assert abs(inside / 600 - 0.9) < 3.5 * np.sqrt(0.09 / 600)


def test_members_that_cannot_show_a_direction_have_no_interval() -> None:
    """Five that go one way do so with probability 2^-4 > .05 under no direction; six with 2^-5."""
    assert (fewest(0.05), fewest(0.5), fewest(0.03125)) == (6, 2, 6)
    rng = np.random.default_rng(7)
    for k, there in ((5, False), (6, True)):
        assert np.isfinite(mean_intervals(np.ones((k, 2)), 50, 0.05, rng)).all() == there
        assert np.isfinite(sign_intervals(np.ones((k, 2)), 0.05)).all() == there
