"""Compiled permutations are uniform, and each is determined by its seed and number alone."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.draws import BLOCK
from pipeline.audits.permutation.kernels import assign, choose, permuted_ranks, permuted_sums, shuffle
from pipeline.audits.permutation.rows import RankedRows, SummedRows
from pipeline.audits.permutation.statistics import RatioOfSums


@pytest.mark.parametrize(("n", "size"), [(7, 3), (40, 1), (40, 39), (37, 2)])
def test_every_subset_is_equally_likely(n: int, size: int) -> None:
    """3 of 7 start from random bytes; the others are few enough, or leave few enough out, to be chosen one by one."""
    member, words = np.empty(n, np.uint8), np.empty((n + 7) // 8, np.uint64)
    place = {subset: i for i, subset in enumerate(combinations(range(n), size))}
    seen = np.zeros(len(place))
    for b in range(40 * len(place)):
        choose(17, b, size, words, member)
        seen[place[tuple(np.flatnonzero(member == 0))]] += 1
    assert stats.chisquare(seen).pvalue > 1e-3


def test_every_order_is_equally_likely() -> None:
    place = {order: i for i, order in enumerate(permutations(range(4)))}
    seen = np.zeros(24)
    for b in range(2400):
        values = np.arange(4)
        shuffle(5, b, values)
        seen[place[tuple(values)]] += 1
    assert stats.chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("sizes", [(3, 997), (500, 500), (990, 10), (200, 300, 500)])
def test_groups_have_their_sizes_and_rows_are_alike(sizes: tuple[int, ...]) -> None:
    codes, words = np.empty(1000, np.uint8), np.empty(125, np.uint64)
    inside = np.zeros(1000)
    for b in range(400):
        assign(1, b, np.array(sizes), words, codes)
        np.testing.assert_array_equal(np.bincount(codes, minlength=len(sizes)), sizes)
        inside += codes == 0
    share = sizes[0] / 1000
    z = (inside - 400 * share) / np.sqrt(400 * share * (1 - share))
    assert (z**2).mean() == pytest.approx(1, abs=0.2)


def test_neighbouring_permutations_are_independent() -> None:
    codes, words = np.empty((200, 512), np.uint8), np.empty(64, np.uint64)
    for b in range(200):
        choose(3, b, 256, words, codes[b])
    common = (1 - codes.astype(int)) @ (1 - codes.astype(int)).T
    shared = common[np.triu_indices(200, 1)]
    law, x = stats.hypergeom(512, 256, 256), np.arange(112, 145)
    seen, expected = np.bincount(shared, minlength=146)[x], law.pmf(x)
    assert stats.chisquare(seen, expected / expected.sum() * seen.sum()).pvalue > 1e-3


def test_a_permutation_does_not_depend_on_where_a_run_starts() -> None:
    rng = np.random.default_rng(1)
    label, columns = rng.integers(0, 2, 300).astype(np.uint8), rng.normal(size=(2, 300))
    sizes, none = np.array([100, 200]), np.empty(0, dtype=bool)
    whole, tail = np.zeros((20, 3, 4)), np.zeros((5, 3, 4))
    permuted_ranks(9, 0, sizes, label, none, whole)
    permuted_ranks(9, 15, sizes, label, none, tail)
    np.testing.assert_array_equal(whole[15:], tail)
    sums, last = np.zeros((20, 2, 2)), np.zeros((1, 2, 2))
    permuted_sums(9, 0, sizes, columns, sums)
    permuted_sums(9, 19, sizes, columns, last)
    np.testing.assert_array_equal(sums[19:], last)


def test_blocks_follow_one_another() -> None:
    rng = np.random.default_rng(2)
    rows = RankedRows.of(rng.integers(0, 2, 50), rng.normal(size=50), rng.integers(0, 2, 50), 2, 3)
    moments = np.zeros((1, 3, 4))
    permuted_ranks(3, BLOCK, np.array(rows.units), rows.label, rows.tie_end, moments)
    assert rows.permuted(1, 4).value[0, 0] == moments[0, 1, 1] / (moments[0, 0, 1] * moments[0, 0, 0])


@pytest.mark.parametrize("plain", [True, False])
def test_sums_of_groups_give_the_law_of_permuted_means(plain: bool) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.exponential(size=403), np.ones(403) if plain else rng.random(403)
    group = (rng.random(403) < 0.3).astype(int)
    units = (int((group == 0).sum()), int(group.sum()))
    rows = SummedRows(RatioOfSums(np.stack([a, b], axis=-1)), group, units, 5)
    drawn = rows.permuted(0, 2000)
    naive = np.array([(a[p].sum() / b[p].sum()) for p in (rng.permutation(403)[: units[0]] for _ in range(2000))])
    assert stats.ks_2samp(drawn.value[0], naive).pvalue > 1e-3
    if plain:
        np.testing.assert_allclose(np.array(units) @ drawn.value, a.sum())
