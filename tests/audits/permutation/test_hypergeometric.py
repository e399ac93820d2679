"""The hypergeometric law around a centre, and draws from it at any size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation import draws
from pipeline.audits.permutation.draws import draw, draw_huge, window


@pytest.mark.parametrize(
    ("marked", "total", "size"), [(7, 20, 9), (300, 1000, 40), (0, 5, 2), (5, 5, 3), (950, 1000, 999)]
)
def test_the_window_holds_the_whole_law(marked: int, total: int, size: int) -> None:
    x, log_weight = window(marked, total, size)
    weight = np.exp(log_weight)
    support = np.arange(max(0, size - total + marked), min(size, marked) + 1)
    np.testing.assert_array_equal(x, support)
    np.testing.assert_allclose(weight / weight.sum(), stats.hypergeom.pmf(x, total, marked, size), rtol=1e-9)


def test_what_a_window_leaves_out_underflows() -> None:
    x, log_weight = window(3 * 10**8, 10**9, 5 * 10**8)
    assert len(x) < 2e6
    assert max(log_weight[0], log_weight[-1]) < -700
    assert x[np.argmax(log_weight)] == pytest.approx(1.5e8, abs=1)


def test_large_draws_follow_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "SMALLEST_STIRLING", 20)
    for marked, others, size in ((40, 60, 30), (3, 500, 100), (2000, 3000, 900)):
        n = 20_000
        each = [np.full(n, v) for v in (marked, others, size)]
        drawn = draw_huge(each[0], each[1], each[2], np.random.default_rng(3))
        x = np.arange(drawn.min(), drawn.max() + 1)
        expected = n * stats.hypergeom.pmf(x, marked + others, marked, size)
        seen = np.bincount(drawn - x[0])
        kept = expected > 5
        p = stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue
        assert p > 1e-3


def test_beyond_numpys_limit_draws_have_the_moments_of_the_law() -> None:
    marked, others, size = 3 * 10**12, 5 * 10**12, 2 * 10**12
    drawn = draw(np.full(20_000, marked), np.array(others), np.array(size), np.random.default_rng(4))
    total = marked + others
    deviation = np.sqrt(size * (marked / total) * (others / total) * (total - size) / (total - 1))
    z = (drawn - size * marked / total) / deviation
    assert stats.kstest(z, "norm").pvalue > 1e-3


def test_draws_of_mixed_sizes_are_each_of_their_own_law() -> None:
    marked = np.array([2 * 10**9, 50])
    drawn = draw(marked[:, None], np.array([[2 * 10**9], [50]]), np.full((2, 4000), 20), np.random.default_rng(5))
    assert drawn.mean(axis=1) == pytest.approx([10, 10], abs=0.2)
    assert drawn.var(axis=1) == pytest.approx([5, 5 * 80 / 99], rel=0.1)
