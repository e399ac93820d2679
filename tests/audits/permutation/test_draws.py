"""Draws are permutations of rows, in distribution; each is determined by its seed and number alone."""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from fairness_audits.audits.permutation import draws, kernels
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.draws import CountResampler, Resampler, split
from fairness_audits.audits.permutation.kernels import choose, shuffle
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.resamplers import resampler
from fairness_audits.audits.permutation.samples import TOGETHER, auc_p
from fairness_audits.audits.permutation.statistics import BinnedAuc, MetricEstimate, studentized
from fairness_audits.values import Array
from tests.audits.permutation.builders import BIAS, ROWS


def test_counts_of_permuted_rows_have_the_law_of_the_draws() -> None:
    kinds, sizes, rng = np.array([4, 3, 5]), (5, 4, 3), np.random.default_rng(2)
    # The naive permutation: shuffle the rows, cut them into groups, count kinds.
    rows = rng.permuted(np.tile(np.repeat(np.arange(3), kinds), (20_000, 1)), axis=1)
    parts = np.split(rows, np.cumsum(sizes)[:-1], axis=1)
    naive = np.concatenate([(part[..., None] == np.arange(3)).sum(axis=1) for part in parts], axis=1)
    drawn = np.moveaxis(split(kinds, sizes, 20_000, rng), 0, 1).reshape(20_000, -1)
    # Chi-square of homogeneity, rare rows put together.
    # NumPy 2.0 alone gives the inverse a second axis.
    _, code = np.unique(np.concatenate([naive, drawn]), axis=0, return_inverse=True)
    table = np.stack([np.bincount(part, minlength=code.max() + 1) for part in np.split(code.ravel(), 2)])
    rare = table.sum(axis=0) < 20
    table = np.concatenate([table[:, ~rare], table[:, rare].sum(axis=1, keepdims=True)], axis=1)
    assert stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue > 1e-3


def test_within_strata_every_group_keeps_its_rows() -> None:
    table = np.array([[10, 5, 40], [3, 30, 8]])

    def first_and_last(counts: Array) -> MetricEstimate:
        return MetricEstimate(counts[..., 0], counts[..., 2])

    events, apart = CountResampler(first_and_last, table, seed=1, strata=np.array([0, 0, 1])).permuted(0, 500)
    assert (apart == table[:, None, 2]).all()
    expected = stats.hypergeom(48, 13, 15)
    assert events[0].mean() == pytest.approx(expected.mean(), abs=0.3)
    assert events[0].var() == pytest.approx(expected.var(), rel=0.25)


def test_tables_of_many_kinds_are_permuted_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    source = CountResampler(BinnedAuc(20), np.random.default_rng(6).integers(0, 9, (2, 40)), seed=5)
    whole = studentized(source.permuted(0, 1000))
    monkeypatch.setattr(draws, "COUNTS_AT_ONCE", 40 * 30)
    parts, again = (studentized(source.permuted(0, 1000)) for _ in range(2))
    assert parts.shape == (1000,)
    np.testing.assert_array_equal(parts, again)
    assert stats.ks_2samp(whole, parts).pvalue > 1e-3
    assert len(np.unique(parts)) > 900


@pytest.mark.parametrize(("n", "size"), [(7, 3), (40, 1), (40, 39), (37, 2)])
def test_every_subset_is_equally_likely(n: int, size: int) -> None:
    """3 of 7 start from random bytes; the others are few enough, or leave few enough out, to be chosen one by one."""
    member, words = np.zeros(n, np.uint8), np.empty((n + 7) // 8, np.uint64)
    place = {subset: i for i, subset in enumerate(combinations(range(n), size))}
    seen = np.zeros(len(place))
    for b in range(40 * len(place)):
        choose(17, b, size, words, member, 1)
        seen[place[tuple(np.flatnonzero(member == 0))]] += 1
    assert stats.chisquare(seen).pvalue > 1e-3


@pytest.mark.parametrize("size", [90, 5, 200])
def test_permutations_of_two_groups_side_by_side_are_those_of_one_at_a_time(size: int) -> None:
    label, sizes = np.random.default_rng(2).integers(0, 2, 203).astype(np.uint8), np.array([size, 203 - size])
    untied = np.empty(0, dtype=bool)
    codes, alone, together = np.empty((40, 203), np.uint8), np.zeros((40, 3, 4)), np.zeros((40, 3, 4))
    kernels.permuted_codes(5, 3, sizes, codes)
    for one, moments in zip(codes, alone, strict=True):
        kernels.ranked_moments(one, label, untied, moments)
    kernels.permuted_ranks(5, 3, sizes, label, untied, together)
    np.testing.assert_array_equal(together, alone)


def test_every_order_is_equally_likely() -> None:
    place = {order: i for i, order in enumerate(permutations(range(4)))}
    seen = np.zeros(24)
    for b in range(2400):
        values = np.arange(4)
        shuffle(5, b, values)
        seen[place[tuple(values)]] += 1
    assert stats.chisquare(seen).pvalue > 1e-3


PROGRAM = """
import hashlib
import numpy as np
from fairness_audits.audits.permutation import kernels
from tests.audits.permutation.test_draws import CASES, source

rng, digest = np.random.default_rng(3), hashlib.sha256()
x, y = rng.normal(size=(2, 202, 5)) / rng.random((2, 202, 5))
products, pooled = np.zeros((9, 2, 5)), np.zeros((9, 3, 5))
kernels.permuted_products(5, 0, x, y, products)
kernels.pooled_products(5, 0, x, pooled)
codes, sums = np.empty((9, 203), np.uint8), np.zeros((9, 2, 6, 16))
kernels.permuted_codes(5, 0, np.array([90, 113]), codes)
kernels.ranked_sums(codes, (rng.random((203, 16)) < 0.4).astype(float), sums)
large, columns = np.zeros((9, 3, 6)), rng.normal(size=(6, 301)) * 10.0 ** rng.integers(-6, 6, (6, 1))
kernels.permuted_sums(5, 0, np.array([99, 100, 102]), columns, large)
for values in (products, pooled, codes, sums, large, *(part for case in CASES for part in source(case).permuted(0, 9))):
    digest.update(np.ascontiguousarray(values).tobytes())
entries = [f for f in vars(kernels).values() if hasattr(f, "stats")]
print(digest.hexdigest(), sum(sum(f.stats.cache_misses.values()) for f in entries))
"""


@pytest.mark.slow
def test_what_is_read_from_disk_gives_the_bytes_of_what_was_just_compiled(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    runs = [
        subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (first, compiled), (second, compiled_again) = (run.stdout.split() for run in runs)
    assert (int(compiled) > 0, int(compiled_again)) == (True, 0)
    assert first == second


def ranked(samples: int, sizes: tuple[int, int], positives: tuple[float, float], seed: int) -> tuple[Array, Array]:
    """Labels and groups of samples whose positives stand one standard deviation higher."""
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], sizes)
    label = (rng.random((samples, sum(sizes))) < np.array(positives)[group]).astype(np.int64)
    order = np.argsort(rng.normal(size=label.shape) + label, axis=1)
    return np.take_along_axis(label, order, axis=1), group[order]


def test_p_values_are_those_of_the_test_of_one_sample() -> None:
    """Other permutations of the same sample: within their Monte-Carlo error."""
    label, group = ranked(TOGETHER + 3, (60, 40), (0.5, 0.4), 2)
    found = auc_p(label, group, rng=np.random.default_rng(1), draws=2000)
    for one in (0, TOGETHER + 2):
        data = Predictions(label[one], np.arange(100.0), group[one], ("a", "b"))
        for method, p in found.items():
            alone = permutation_test(data, "auc", rng=np.random.default_rng(2), draws=2000, method=method).p_value  # type: ignore[arg-type]
            assert alone is not None
            assert abs(alone - p[one]) < 4 * np.sqrt(2 * alone * (1 - alone) / 2000)


# Every way to permute has the law of permuted rows.
DECIDED = replace(ROWS, score=np.asarray(ROWS.prediction, dtype=float))
PERSONS = replace(ROWS, cluster=np.arange(240) // 2)
CASES = {
    "counts of decisions": (ROWS, "precision"),
    "ranked rows": (ROWS, "auc"),
    "ranked rows with ties": (replace(ROWS, score=np.round(ROWS.score)), "auc"),
    "counts of scores": (DECIDED, "auc"),
    "sums of rows": (ROWS, "mean_score"),
    "counts of kinds": (DECIDED, "mean_score"),
    "sums of persons": (PERSONS, "mean_error"),
    "ranked persons": (PERSONS, "auc"),
    "a user's metric": (ROWS, "bias"),
}
every_case = pytest.mark.parametrize("case", CASES)


def source(case: str, data: Predictions | None = None) -> Resampler:
    rows, metric = CASES[case]
    return resampler(data or rows, METRICS.get(metric, BIAS), 5, 1.0, 60)


def regrouped(rows: Predictions, rng: np.random.Generator) -> Predictions:
    """The rows with the groups of their units, rows or persons, permuted."""
    unit = np.arange(len(rows.group)) if rows.cluster is None else rows.cluster
    _, first = np.unique(unit, return_index=True)
    return replace(rows, group=rng.permutation(rows.group[first])[unit])


@every_case
def test_permuted_statistics_have_the_law_of_the_naive_permutation(case: str) -> None:
    rng = np.random.default_rng(3)
    drawn = studentized(source(case).permuted(0, 4000))
    naive = [float(studentized(source(case, regrouped(CASES[case][0], rng)).observed)) for _ in range(1000)]
    assert stats.ks_2samp(drawn, naive).pvalue > 1e-3
    assert np.std(drawn) == pytest.approx(np.std(naive), rel=0.1)
    assert np.std(drawn) == pytest.approx(1, abs=0.15)


@every_case
def test_fewer_draws_are_the_first_of_many_and_blocks_do_not_depend_on_one_another(case: str) -> None:
    """So results cannot depend on how the work is cut into blocks."""
    one = source(case)
    np.testing.assert_array_equal(one.permuted(0, 50).value, one.permuted(0, 200).value[:, :50])
    np.testing.assert_array_equal(one.permuted(1, 50).value, one.permuted(1, 50).value)
    assert (one.permuted(0, 50).value != one.permuted(1, 50).value).any()
