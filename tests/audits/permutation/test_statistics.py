"""Metrics and their variances: closed forms, the AUC by three ways, and sums over clusters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as reference

from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.metrics import METRICS, Mean, Rate, log_loss
from fairness_audits.audits.permutation.outcomes import Predictions, decided
from fairness_audits.audits.permutation.resamplers import resampler
from fairness_audits.audits.permutation.rows import ClusteredRanks, RankedRows
from fairness_audits.audits.permutation.statistics import (
    BinnedAuc,
    MetricEstimate,
    Proportion,
    RatioOfSums,
    studentized,
)
from fairness_audits.values import Array
from tests.audits.permutation.builders import BIAS, delong, mean_error, simulate, tabulated, wins

rng = np.random.default_rng(2)
LABEL, DECISION = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
TABLE = np.bincount(2 * LABEL + DECISION, minlength=4).reshape(2, 2)
RATES = {
    "tpr": reference.recall_score(LABEL, DECISION),
    "tnr": reference.recall_score(LABEL, DECISION, pos_label=0),
    "precision": reference.precision_score(LABEL, DECISION),
    "npv": reference.precision_score(LABEL, DECISION, pos_label=0),
    "accuracy": reference.accuracy_score(LABEL, DECISION),
    "fnr": 1 - reference.recall_score(LABEL, DECISION),
    "fpr": 1 - reference.recall_score(LABEL, DECISION, pos_label=0),
    "selection_rate": DECISION.mean(),
    "base_rate": LABEL.mean(),
}


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if isinstance(metric, Rate)])
def test_rates_are_those_of_the_rows_which_three_kinds_share_out_within_a_stratum(name: str) -> None:
    metric: Any = METRICS[name]
    kinds, among = metric.split(TABLE), np.array(metric.among)
    assert Proportion(0.0)(kinds).value == pytest.approx(RATES[name])
    assert kinds.sum() == TABLE.sum()
    # Of a label, of a prediction, or all.
    assert (among[:, 0] == among[:, 1]).all() or (among[0] == among[1]).all()


def test_walds_variance_is_that_of_a_share_smoothing_fades_and_leaves_one_where_there_are_trials() -> None:
    counts = np.array([30, 70, 900])
    assert Proportion(0.0)(counts).variance == pytest.approx(0.3 * 0.7 / 100)
    assert Proportion(1.0)(counts).variance == pytest.approx((31 / 102) * (71 / 102) / 102)
    ratio = Proportion(1.0)(counts * 10**4).variance / Proportion(0.0)(counts * 10**4).variance
    assert ratio == pytest.approx(1, abs=1e-5)
    assert Proportion(0.0)(np.array([0, 40, 7])).variance == 0
    assert Proportion(1.0)(np.array([0, 40, 7])).variance == pytest.approx((1 / 42) * (41 / 42) / 42)
    assert np.isnan(Proportion(1.0)(np.array([0, 0, 7]))).all()


def test_a_difference_of_means_is_studentised_as_in_welchs_test() -> None:
    a, b = rng.normal(1e6, 1, 40), rng.normal(1e6, 5, 60)
    values = np.concatenate([a, b])
    statistic = RatioOfSums(np.stack([values, np.ones(100)], axis=-1))
    chosen = np.stack([np.arange(100) < 40, np.arange(100) >= 40]).astype(int)
    expected = stats.ttest_ind(a, b, equal_var=False).statistic
    assert studentized(statistic(chosen)) == pytest.approx(expected, rel=1e-6)


def test_the_variance_of_a_weighted_mean_is_that_of_its_linearisation() -> None:
    value, weight = rng.normal(size=50), rng.random(50)
    estimate = RatioOfSums(np.stack([value * weight, weight], axis=-1))(np.ones(50, dtype=int))
    mean = np.average(value, weights=weight)
    assert estimate.value == pytest.approx(mean)
    assert estimate.variance == pytest.approx(50 / 49 * ((weight * (value - mean)) ** 2).sum() / weight.sum() ** 2)


def test_equal_metrics_give_zero_and_missing_ones_give_none() -> None:
    values, variances = np.array([[1.0, 1.0, 2.0, np.nan], [1.0, 1.0, 1.0, 1.0]]), np.array([[0.0, 1, 0, 1]] * 2)
    np.testing.assert_array_equal(studentized(MetricEstimate(values, variances)), [0, 0, np.inf, np.nan])


def test_log_loss_is_that_of_the_probabilities_and_errors_are_of_score_against_label() -> None:
    score = rng.random(300)
    assert log_loss(LABEL, score).mean() == pytest.approx(reference.log_loss(LABEL, score))
    assert log_loss(np.array([1.0]), np.array([0.0])) == np.inf
    assert log_loss(np.array([1.0, 0.0]), np.array([1.0, 0.0])).tolist() == [0, 0]
    values = {
        name: METRICS[name].value(np.array([1.0]), np.array([0.25]))  # type: ignore[union-attr]
        for name, metric in METRICS.items()
        if isinstance(metric, Mean) and name != "log_loss" and not metric.decisions
    }
    assert values == {"mean_score": 0.25, "mean_error": -0.75, "absolute_error": 0.75, "squared_error": 0.5625}


def sample(n: int, ties: bool, seed: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    label, group = rng.integers(0, 2, n), rng.integers(0, 3, n)
    score = rng.normal(size=n) + label
    return label, np.round(score) if ties else score, group


@pytest.mark.parametrize("ties", [False, True])
def test_one_pass_and_counts_of_scores_give_delongs_estimate_of_every_group(ties: bool) -> None:
    label, score, group = rows = sample(200, ties)
    table = tabulated(group, label, np.unique(score, return_inverse=True)[1])
    expected = [delong(label[group == g], score[group == g]) for g in range(3)]
    for found in (RankedRows.of(*rows, 3, seed=1).observed, BinnedAuc(table.shape[2])(table.reshape(3, -1))):
        np.testing.assert_allclose(np.transpose(found), expected)


def test_without_positives_there_is_no_auc_and_with_one_there_is_no_variance() -> None:
    counts = np.array([[3, 4, 0, 0], [3, 4, 1, 0], [3, 4, 1, 1]])
    estimate = BinnedAuc(2)(counts)
    assert np.isnan(estimate.value).tolist() == [True, False, False]
    assert np.isnan(estimate.variance).tolist() == [True, True, False]


def clustered(label: Array, score: Array, cluster: Array) -> tuple[float, float]:
    """Obuchowski's estimate from the definition, with all pairs."""
    won = wins(label, score)
    auc, psi = float(won.mean()), np.zeros(cluster.max() + 1)
    np.add.at(psi, cluster[label == 1], (won.mean(axis=1) - auc) / won.shape[0])
    np.add.at(psi, cluster[label == 0], (won.mean(axis=0) - auc) / won.shape[1])
    return auc, float(len(psi) / (len(psi) - 1) * (psi**2).sum())


@pytest.mark.parametrize("ties", [False, True])
def test_clusters_give_obuchowskis_estimate(ties: bool) -> None:
    label, score, _ = sample(120, ties)
    rng = np.random.default_rng(5)
    cluster = np.unique(rng.integers(0, 40, 120), return_inverse=True)[1]
    group = rng.integers(0, 2, cluster.max() + 1)
    found = ClusteredRanks.of(label, score, cluster, group, 2, seed=1).observed
    for g in (0, 1):
        rows = group[cluster] == g
        own = np.unique(cluster[rows], return_inverse=True)[1]
        expected = clustered(label[rows], score[rows], own)
        assert (found.value[g], found.variance[g]) == pytest.approx(expected)


def test_rows_become_the_table_of_their_combinations_whichever_pair_and_decide_at_the_threshold_itself() -> None:
    label, score, group = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.8, 0.4, 0.6, 0.6]), np.array([0, 0, 1, 1, 2])
    rows = Predictions(label, score, group, ("a", "b", "c"), prediction=decided(score, 0.6))
    table = [[[1, 0], [0, 1]], [[0, 1], [1, 0]], [[0, 0], [0, 1]]]
    np.testing.assert_array_equal(rows.counted().table, table)
    pair = rows.pair(2, 0)
    assert pair.groups == ("c", "a")
    np.testing.assert_array_equal(pair.counted().table, rows.counted().pair(2, 0).table)


@pytest.mark.parametrize(
    ("seed", "settings", "tolerance"),
    [
        (1, {"draws": 300, "bootstraps": 100}, 0.08),
        (4, {"method": "unstudentized", "draws": 1500}, 0.06),
    ],
)
def test_algorithm_1_agrees_with_the_closed_form_and_the_unstudentised_test_takes_user_metrics_too(
    seed: int, settings: dict[str, Any], tolerance: float
) -> None:
    rows = simulate(np.random.default_rng(seed), (200, 100), (0.5, 0.4), (1.0, 0.6))
    by_bootstrap = permutation_test(rows, BIAS, rng=np.random.default_rng(1), **settings)
    closed = permutation_test(rows, "mean_error", rng=np.random.default_rng(2), **{**settings, "draws": 5000})
    assert by_bootstrap.estimates == pytest.approx(closed.estimates)
    assert by_bootstrap.statistic == pytest.approx(closed.statistic, rel=0.2)
    assert by_bootstrap.p_value == pytest.approx(closed.p_value, abs=tolerance)


def test_the_bootstrap_variance_is_the_closed_one_on_average() -> None:
    rows = simulate(np.random.default_rng(2), (200, 100), (0.5, 0.4), (1.0, 0.6))
    for data in (rows, replace(rows, cluster=np.arange(300) // 2)):
        closed = resampler(data, METRICS["mean_error"], 1, 1.0, 0).observed
        bootstrapped = resampler(data, BIAS, 1, 1.0, 4000).observed
        np.testing.assert_allclose(bootstrapped.value, closed.value)
        np.testing.assert_allclose(bootstrapped.variance, closed.variance, rtol=0.12)


def test_one_by_one_and_all_at_once_give_the_same_test() -> None:
    rows = simulate(np.random.default_rng(3), (40, 30), (0.5, 0.4), (1.0, 0.6))

    def bias(y: Array, score: Array, weight: Array) -> float:
        assert weight.ndim == 1
        return float(mean_error(y, score, weight))

    one, other = (
        permutation_test(rows, metric, rng=np.random.default_rng(1), draws=20, bootstraps=10) for metric in (bias, BIAS)
    )
    assert (one.metric, one.p_value) == ("bias", other.p_value)
    assert one.statistic == pytest.approx(other.statistic)


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
