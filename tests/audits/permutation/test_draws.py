"""Draws of counts are the permutation of rows, in distribution."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation import draws
from pipeline.audits.permutation.draws import CountResampler, split
from pipeline.audits.permutation.statistics import BinnedAuc, Proportion, studentized
from pipeline.types import Array


def shuffled(kinds: Array, sizes: tuple[int, ...], times: int, rng: np.random.Generator) -> Array:
    """The naive permutation: shuffle the rows, cut them into groups, count kinds (G, times, U)."""
    rows = rng.permuted(np.tile(np.repeat(np.arange(len(kinds)), kinds), (times, 1)), axis=1)
    parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    return np.stack([np.stack([(part == u).sum(axis=1) for u in range(len(kinds))], axis=-1) for part in parts])


def homogeneity(a: Array, b: Array) -> float:
    """p-value that two samples of rows of integers have one law (chi-square, rare rows put together)."""
    _, code = np.unique(np.concatenate([a, b]), axis=0, return_inverse=True)
    table = np.stack([np.bincount(part, minlength=code.max() + 1) for part in (code[: len(a)], code[len(a) :])])
    rare = table.sum(axis=0) < 20
    table = np.concatenate([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)], axis=1)
    return float(stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue)


def test_groups_of_the_right_size_share_out_the_pool() -> None:
    pooled = np.array([[5, 0, 9, 2], [1, 1, 1, 13]])
    counts = split(pooled, [np.array([4, 10]), 3, np.array([9, 3])], 50, np.random.default_rng(1))
    assert counts.shape == (3, 2, 50, 4)
    np.testing.assert_array_equal(counts.sum(axis=0), np.repeat(pooled[:, None], 50, axis=1))
    np.testing.assert_array_equal(counts.sum(axis=-1)[:, 0, 0], [4, 3, 9])
    assert (counts >= 0).all()


def test_counts_of_permuted_rows_have_the_law_of_the_draws() -> None:
    kinds, sizes, rng = np.array([4, 3, 5]), (5, 4, 3), np.random.default_rng(2)
    naive, drawn = shuffled(kinds, sizes, 20_000, rng), split(kinds, sizes, 20_000, rng)
    joint = [np.moveaxis(c, 0, 1).reshape(20_000, -1) for c in (naive, drawn)]
    assert homogeneity(*joint) > 1e-3


@pytest.mark.parametrize("statistic", [Proportion(1.0), BinnedAuc(3)])
def test_studentised_statistics_have_the_law_of_the_naive_permutation(statistic: Proportion | BinnedAuc) -> None:
    kinds = np.array([60, 30, 90]) if isinstance(statistic, Proportion) else np.array([50, 30, 20, 20, 30, 40])
    rng = np.random.default_rng(3)
    counts = np.stack([kinds // 3, kinds - kinds // 3])
    drawn = studentized(CountResampler(statistic, counts, seed=7).permuted(0, 4000))
    naive = studentized(statistic(shuffled(kinds, tuple(counts.sum(axis=1)), 4000, rng)))
    assert stats.ks_2samp(drawn, naive).pvalue > 1e-3
    assert np.std(drawn) == pytest.approx(1, abs=0.1)


def test_within_strata_every_group_keeps_its_rows() -> None:
    counts = np.array([[10, 5, 40], [3, 30, 8]])
    seen: list[Array] = []

    def remembered(drawn: Array) -> object:
        seen.append(drawn)
        return Proportion(0.0)(drawn)

    CountResampler(remembered, counts, seed=1, strata=np.array([0, 0, 1])).permuted(0, 500)  # type: ignore[arg-type]
    drawn = seen[0]
    assert (drawn[..., 2] == counts[:, None, 2]).all()
    events = drawn[0, :, 0]
    expected = stats.hypergeom(48, 13, 15)
    assert events.mean() == pytest.approx(expected.mean(), abs=0.3)
    assert events.var() == pytest.approx(expected.var(), rel=0.25)


def test_blocks_do_not_depend_on_one_another() -> None:
    source = CountResampler(Proportion(1.0), np.array([[10, 5, 40], [3, 30, 8]]), seed=11)
    later = source.permuted(3, 100).value
    np.testing.assert_array_equal(source.permuted(3, 100).value, later)
    assert (source.permuted(2, 100).value != later).any()


def test_samples_with_replacement_have_the_variance_of_their_metric() -> None:
    counts = np.array([[100, 200, 300], [400, 100, 50]])
    source = CountResampler(Proportion(0.0), counts, seed=5)
    drawn, expected = source.bootstrapped(0, 4000, pooled=False), source.observed
    np.testing.assert_allclose(drawn.mean(axis=1), expected.value, atol=0.003)
    np.testing.assert_allclose(drawn.var(axis=1), expected.variance, rtol=0.1)
    pooled = source.bootstrapped(0, 4000, pooled=True)
    np.testing.assert_allclose(pooled.var(axis=1), expected.variance, rtol=0.1)


def test_tables_of_many_kinds_are_permuted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = np.random.default_rng(6).integers(0, 9, (2, 40))
    source = CountResampler(BinnedAuc(20), counts, seed=5)
    whole = studentized(source.permuted(0, 1000))
    monkeypatch.setattr(draws, "COUNTS_AT_ONCE", 40 * 30)
    parts = studentized(source.permuted(0, 1000))
    assert parts.shape == (1000,)
    np.testing.assert_array_equal(parts, studentized(source.permuted(0, 1000)))
    assert stats.ks_2samp(whole, parts).pvalue > 1e-3
    assert len(np.unique(parts)) > 900
