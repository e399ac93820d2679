"""P-values of random subsets: as all subsets give, of the right level, and not those of the normal limit."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.fliptest import transparency
from pipeline.audits.fliptest.transparency import subset_p_values
from pipeline.types import Array


def chosen(n: int, members: list[int]) -> Array:
    return np.isin(np.arange(n), members)


def test_p_values_are_the_share_of_all_subsets_that_are_as_extreme() -> None:
    rng = np.random.default_rng(0)
    values = np.stack([rng.normal(size=9), rng.integers(-1, 2, size=9)], axis=1)
    for members in ([0, 1, 4], [0, 1, 2, 5, 6, 8]):
        every = np.array([values[list(some)].mean(axis=0) for some in combinations(range(9), len(members))])
        off = np.abs(every - values.mean(axis=0))
        own = np.abs(values[members].mean(axis=0) - values.mean(axis=0))
        expected = (off >= own - 1e-9).mean(axis=0)
        found = subset_p_values(values, chosen(9, members), 20_000, rng)
        np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(0.25 / 20_000))


def test_under_the_null_p_values_keep_their_level() -> None:
    rng = np.random.default_rng(1)
    values = np.stack([rng.standard_cauchy(60), rng.random(60) < 0.1], axis=1)
    p = np.array([subset_p_values(values, chosen(60, rng.choice(60, 7, False).tolist()), 99, rng) for _ in range(600)])
    # The first column has (almost) no ties, so its level is the nominal one; the second has few values.
    assert abs((p[:, 0] <= 0.1).mean() - 0.1) < 3.5 * np.sqrt(0.09 / 600)
    assert (p[:, 1] <= 0.1).mean() < 0.1 + 3.5 * np.sqrt(0.09 / 600)


def test_members_that_differ_have_the_smallest_p_value_and_only_in_that_column() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(size=(500, 2))
    values[:40, 0] += 2
    p = subset_p_values(values, np.arange(500) < 40, 199, rng)
    assert p[0] == 1 / 200
    assert p[1] > 0.01


def test_a_shift_that_is_the_same_for_everyone_says_nothing_of_the_flipset() -> None:
    values = np.stack([np.full(50, 0.1), np.full(50, -1e9 / 3)], axis=1)
    np.testing.assert_array_equal(subset_p_values(values, np.arange(50) < 7, 99, np.random.default_rng(3)), 1)


def test_a_flipset_of_everyone_or_of_nobody() -> None:
    values = np.random.default_rng(4).normal(size=(30, 2))
    np.testing.assert_array_equal(subset_p_values(values, np.ones(30, bool), 99, np.random.default_rng(5)), 1)
    assert np.isnan(subset_p_values(values, np.zeros(30, bool), 99, np.random.default_rng(5))).all()


def test_blocks_of_draws_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values, members = np.random.default_rng(6).normal(size=(80, 3)), np.arange(80) < 11
    whole = subset_p_values(values, members, 150, np.random.default_rng(7))
    monkeypatch.setattr(transparency, "MEMBERS_AT_ONCE", 100)
    np.testing.assert_array_equal(subset_p_values(values, members, 150, np.random.default_rng(7)), whole)


def test_the_normal_limit_would_not_do_for_small_flipsets_with_skewed_shifts() -> None:
    rng = np.random.default_rng(8)
    n, k = 2000, 15
    values = rng.lognormal(sigma=1.5, size=n)
    sums = transparency._subset_sums((values - values.mean())[:, None], k, 40_000, rng)[:, 0] / k
    edge = np.quantile(sums, 0.999)
    deviation = values.std(ddof=1) * np.sqrt((1 - k / n) / k)
    assert (np.abs(sums) >= edge).mean() > 20 * 2 * stats.norm.sf(edge / deviation)
