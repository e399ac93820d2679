"""Any metric of the user's own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline.audits.permutation.metrics import UserMetric
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.resamplers import resampler
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.statistics import studentized
from pipeline.types import Array

Simulate = Callable[..., Predictions]


def mean_error(y: Array, score: Array, weight: Array) -> Array:
    return ((score - y) * weight).sum(axis=-1) / weight.sum(axis=-1)


BATCHED = UserMetric("bias", mean_error, batched=True)  # type: ignore[arg-type]


def test_algorithm_1_agrees_with_the_closed_form(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(1), (200, 100), (0.5, 0.4), (1.0, 0.6))
    by_bootstrap = permutation_test(rows, BATCHED, rng=np.random.default_rng(1), draws=300, bootstraps=100)
    closed = permutation_test(rows, "mean_error", rng=np.random.default_rng(2), draws=5000)
    assert by_bootstrap.estimates == pytest.approx(closed.estimates)
    assert by_bootstrap.statistic == pytest.approx(closed.statistic, rel=0.2)
    assert by_bootstrap.p_value == pytest.approx(closed.p_value, abs=0.08)


def test_the_bootstrap_variance_is_the_closed_one_on_average(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(2), (200, 100), (0.5, 0.4), (1.0, 0.6))
    for data in (rows, replace(rows, cluster=np.arange(300) // 2), replace(rows, weight=rows.score**2)):
        from pipeline.audits.permutation.metrics import METRICS

        closed = resampler(data, METRICS["mean_error"], 1, 1.0, 0).observed
        bootstrapped = resampler(data, BATCHED, 1, 1.0, 4000).observed
        np.testing.assert_allclose(bootstrapped.value, closed.value)
        np.testing.assert_allclose(bootstrapped.variance, closed.variance, rtol=0.12)


def test_one_by_one_and_all_at_once_give_the_same_test(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(3), (40, 30), (0.5, 0.4), (1.0, 0.6))

    def bias(y: Array, score: Array, weight: Array) -> float:
        assert weight.ndim == 1
        return float(mean_error(y, score, weight))

    one = permutation_test(rows, bias, rng=np.random.default_rng(1), draws=20, bootstraps=10)
    other = permutation_test(rows, BATCHED, rng=np.random.default_rng(1), draws=20, bootstraps=10)
    assert one.metric == "bias"
    assert one.p_value == other.p_value
    assert one.statistic == pytest.approx(other.statistic)


@pytest.mark.parametrize("method", ["unstudentized", "lift", "bootstrap"])
def test_the_other_methods_take_user_metrics_too(simulate: Simulate, method: str) -> None:
    rows = simulate(np.random.default_rng(4), (200, 100), (0.5, 0.4), (1.0, 0.6))
    kwargs = {"method": method, "draws": 1500, "bootstraps": 1500}
    one = permutation_test(rows, BATCHED, rng=np.random.default_rng(1), **kwargs)  # type: ignore[arg-type]
    other = permutation_test(rows, "mean_error", rng=np.random.default_rng(2), **kwargs)  # type: ignore[arg-type]
    assert one.p_value == pytest.approx(other.p_value, abs=0.06)


def test_permutations_of_rows_have_unit_studentised_variance(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(5), (100, 60), (0.5, 0.5), (1.0, 1.0))
    drawn = studentized(resampler(rows, BATCHED, 3, 1.0, 50).permuted(0, 400))
    assert np.std(drawn) == pytest.approx(1, abs=0.15)


def test_a_metric_that_counts_rows_of_weight_zero_is_refused(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(6), (40, 30), (0.5, 0.4), (1.0, 0.6))
    with pytest.raises(ValueError, match="when the other rows are there with weight 0: make it a function of weighted"):
        permutation_test(rows, lambda y, score, weight: float(score.mean()), rng=np.random.default_rng(1))


def test_a_batched_metric_must_give_one_value_a_row_of_weights(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(7), (40, 30), (0.5, 0.4), (1.0, 0.6))
    wrong = UserMetric("wrong", lambda y, s, w: float((s * w).sum() / w.sum()), batched=True)
    with pytest.raises(ValueError, match=r"expected metric 'wrong' to give \(200,\) values .* found \(\)"):
        permutation_test(rows, wrong, rng=np.random.default_rng(1))


def test_draws_in_which_the_metric_fails_count_against_rejection() -> None:
    """Two positives among 40 rows: many permutations leave a group without one."""

    def recall(y: Array, score: Array, weight: Array) -> float:
        if not (weight * y).sum():
            raise ValueError("no positives")
        return float((weight * y * (score > 0)).sum() / (weight * y).sum())

    label = np.zeros(40, dtype=int)
    label[[0, 39]] = 1
    score = np.where(np.arange(40) < 20, 1.0, -1.0)
    rows = Predictions(label, score, (np.arange(40) >= 20).astype(int), ("a", "b"))
    result = permutation_test(rows, recall, rng=np.random.default_rng(1), draws=200, method="unstudentized")
    assert 60 < result.undefined_draws < 140
    assert result.p_value == 1.0


def test_user_metrics_need_rows() -> None:
    counts = Counts.of_decisions(np.ones((2, 2, 2), dtype=int), ("a", "b"))
    with pytest.raises(ValueError, match="metric 'bias' needs rows, found a table of counts"):
        permutation_test(counts, BATCHED, rng=np.random.default_rng(1))
