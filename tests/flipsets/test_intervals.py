"""Bootstrap intervals are those of resampled rows, and cover."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.flipsets import intervals
from pipeline.flipsets.intervals import mean_intervals, size_intervals


def test_a_size_has_the_quantiles_of_its_binomial_count() -> None:
    found = size_intervals(120, 30, 1000, 20_000, 0.1, np.random.default_rng(0))
    for (low, high), size in ((found.positive, 120), (found.negative, 30)):
        np.testing.assert_allclose([low, high], stats.binom.ppf([0.05, 0.95], 1000, size / 1000), atol=1)


def test_the_net_size_varies_as_the_difference_of_two_cells_of_a_multinomial() -> None:
    n, positive, negative = 2000, 300, 200
    low, high = size_intervals(positive, negative, n, 20_000, 0.05, np.random.default_rng(1)).net
    p, q = positive / n, negative / n
    deviation = np.sqrt(n * (p + q - (p - q) ** 2))
    np.testing.assert_allclose([low, high], 100 + 1.96 * deviation * np.array([-1, 1]), atol=2)


def test_the_interval_of_a_size_covers_the_expected_size() -> None:
    rng = np.random.default_rng(2)
    inside = 0
    for _ in range(400):
        positive, negative, _ = rng.multinomial(500, [0.1, 0.06, 0.84])
        found = size_intervals(positive, negative, 500, 400, 0.1, rng)
        inside += found.positive[0] <= 50 <= found.positive[1]
    assert abs(inside / 400 - 0.9) < 0.05


def test_a_mean_over_a_flipset_varies_as_under_resampling_of_all_rows() -> None:
    rng = np.random.default_rng(3)
    group, members = rng.gamma(1.0, size=(120, 2)), np.arange(120) < 25
    drawn = rng.integers(0, 120, size=(20_000, 120))
    inside = members[drawn]
    expected = [
        np.quantile((group[:, j][drawn] * inside).sum(axis=1) / inside.sum(axis=1), [0.025, 0.975]) for j in (0, 1)
    ]
    low, high = mean_intervals(group[members], 20_000, 0.05, rng)
    np.testing.assert_allclose(np.stack([low, high], axis=1), expected, rtol=0.02)


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


def test_fewer_than_two_members_have_no_interval() -> None:
    rng = np.random.default_rng(7)
    assert np.isnan(mean_intervals(np.ones((1, 2)), 50, 0.05, rng)).all()
    found = size_intervals(1, 0, 100, 50, 0.05, rng)
    assert np.isnan([*found.positive, *found.negative, *found.net]).all()
    found = size_intervals(1, 1, 100, 50, 0.05, rng)
    assert np.isnan(found.positive).all()
    assert np.isfinite(found.net).all()
    assert np.isnan([*size_intervals(0, 0, 0, 50, 0.05, rng).net]).all()
