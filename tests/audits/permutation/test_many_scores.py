"""Many samples at once give the p-values of each by itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.kernels import LANES, permuted_codes, ranked_moments, ranked_sums
from pipeline.audits.permutation.many_samples import TOGETHER, auc_p
from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.run import permutation_test
from pipeline.types import Array


def ranked(samples: int, sizes: tuple[int, int], positives: tuple[float, float], seed: int) -> tuple[Array, Array]:
    """Labels and groups of samples whose positives stand one standard deviation higher."""
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], sizes)
    label = (rng.random((samples, sum(sizes))) < np.array(positives)[group]).astype(np.int64)
    order = np.argsort(rng.normal(size=label.shape) + label, axis=1)
    return np.take_along_axis(label, order, axis=1), group[order]


def test_the_sums_of_sixteen_samples_are_those_of_each() -> None:
    label, _ = ranked(LANES, (40, 25), (0.6, 0.3), 1)
    codes, none = np.empty((5, 65), np.uint8), np.empty(0, dtype=bool)
    permuted_codes(3, 0, np.array([40, 25]), codes)
    sums = np.zeros((5, 2, 6, LANES))
    ranked_sums(codes, np.ascontiguousarray(label.T, dtype=float), sums)
    for b in range(5):
        for lane in range(LANES):
            moments = np.zeros((3, 4))
            ranked_moments(codes[b], label[lane].astype(np.uint8), none, moments)
            for g in (0, 1):
                negative, positive = moments[:, 2 * g], moments[:, 2 * g + 1]
                expected = [positive[0], negative[0], positive[1], positive[2], negative[1], negative[2]]
                np.testing.assert_array_equal(sums[b, g, :, lane], expected)


def test_p_values_are_those_of_the_test_of_one_sample() -> None:
    """Other permutations of the same sample: within their Monte-Carlo error."""
    label, group = ranked(TOGETHER + 3, (60, 40), (0.5, 0.4), 2)
    found = auc_p(label, group, rng=np.random.default_rng(1), draws=2000)
    for one in (0, TOGETHER + 2):
        data = Predictions(label[one], np.arange(100.0), group[one], ("a", "b"))
        for method, p in zip(found._fields, found, strict=True):
            alone = permutation_test(data, "auc", rng=np.random.default_rng(2), draws=2000, method=method).p_value  # type: ignore[arg-type]
            assert alone is not None
            assert abs(alone - p[one]) < 4 * np.sqrt(2 * alone * (1 - alone) / 2000)


def test_in_groups_that_are_alike_p_values_are_uniform() -> None:
    label, group = ranked(800, (50, 50), (0.5, 0.5), 3)
    for p in auc_p(label, group, rng=np.random.default_rng(1), draws=199):
        assert stats.kstest(p, "uniform").pvalue > 1e-3
        assert p.min() == pytest.approx(1 / 200, abs=0.03)


def test_a_sample_without_a_test_has_no_p_value() -> None:
    label, group = ranked(3, (30, 30), (0.5, 0.5), 4)
    label[0, group[0] == 1] = 0
    # Group B separates its classes: its AUC is 1, with an estimated variance of 0.
    own = np.flatnonzero(group[1] == 1)
    label[1, own] = np.arange(30) >= 15
    found = auc_p(label, group, rng=np.random.default_rng(1), draws=99)
    assert np.isnan(found.unstudentized).tolist() == [True, False, False]
    assert np.isnan(found.studentized).tolist() == [True, True, False]
