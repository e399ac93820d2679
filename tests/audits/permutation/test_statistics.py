"""Metrics and their variances: closed forms, the AUC by three ways, and sums over clusters."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as reference
from sklearn.metrics import roc_auc_score

from pipeline.audits.permutation.metrics import METRICS, Mean, Rate, UserMetric, log_loss, metric_named
from pipeline.audits.permutation.outcomes import Counts, Predictions, decided
from pipeline.audits.permutation.resamplers import resampler
from pipeline.audits.permutation.rows import ClusteredRanks, RankedRows
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.statistics import BinnedAuc, MetricEstimate, Proportion, RatioOfSums, studentized
from pipeline.types import Array
from tests.audits.permutation.builders import BIAS, mean_error, simulate

rng = np.random.default_rng(2)
LABEL, DECISION = rng.integers(0, 2, 300), rng.integers(0, 2, 300)
TABLE = np.bincount(2 * LABEL + DECISION, minlength=4).reshape(2, 2)


def rate(name: str) -> float:
    metric = METRICS[name]
    assert isinstance(metric, Rate)
    return float(Proportion(0.0)(metric.split(TABLE)).value)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tpr", reference.recall_score(LABEL, DECISION)),
        ("tnr", reference.recall_score(LABEL, DECISION, pos_label=0)),
        ("precision", reference.precision_score(LABEL, DECISION)),
        ("npv", reference.precision_score(LABEL, DECISION, pos_label=0)),
        ("accuracy", reference.accuracy_score(LABEL, DECISION)),
        ("fnr", 1 - reference.recall_score(LABEL, DECISION)),
        ("fpr", 1 - reference.recall_score(LABEL, DECISION, pos_label=0)),
        ("selection_rate", DECISION.mean()),
    ],
)
def test_rates_are_those_of_the_rows(name: str, expected: float) -> None:
    assert rate(name) == pytest.approx(expected)


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if isinstance(metric, Rate)])
def test_the_three_kinds_share_out_all_rows_and_stay_within_their_stratum(name: str) -> None:
    metric = METRICS[name]
    assert isinstance(metric, Rate)
    assert metric.split(TABLE).sum() == TABLE.sum()
    among = np.array(metric.among)
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


def test_names_have_aliases_and_unknown_ones_are_listed() -> None:
    assert metric_named("recall") is METRICS["tpr"]
    with pytest.raises(ValueError, match=r"expected a metric among tpr, fnr, .*; found 'f2'"):
        metric_named("f2")


# The AUC and its variance by three ways of computing them, and what they do not depend on.


def delong(label: Array, score: Array) -> tuple[float, float]:
    """From the definition, with all pairs of a positive and a negative."""
    positive, negative = score[label == 1], score[label == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    variance = wins.mean(axis=1).var(ddof=1) / len(positive) + wins.mean(axis=0).var(ddof=1) / len(negative)
    return float(wins.mean()), float(variance)


def sample(n: int, ties: bool, seed: int = 1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    label, group = rng.integers(0, 2, n), rng.integers(0, 3, n)
    score = rng.normal(size=n) + label
    return label, np.round(score) if ties else score, group


def of_groups(label: Array, score: Array, group: Array) -> MetricEstimate:
    parts = [delong(label[group == g], score[group == g]) for g in range(3)]
    return MetricEstimate(*(np.array(values) for values in zip(*parts, strict=True)))


def counted(label: Array, score: Array, group: Array, groups: int) -> tuple[BinnedAuc, Array]:
    values, cell = np.unique(score, return_inverse=True)
    counts = np.zeros((groups, 2, len(values)), dtype=int)
    np.add.at(counts, (group, label, cell), 1)
    return BinnedAuc(len(values)), counts.reshape(groups, -1)


@pytest.mark.parametrize("ties", [False, True])
def test_one_pass_and_counts_of_scores_give_delongs_estimate_of_every_group(ties: bool) -> None:
    rows = label, score, group = sample(200, ties)
    expected, (statistic, counts) = of_groups(*rows), counted(*rows, 3)
    for found in (RankedRows.of(*rows, 3, seed=1).observed, statistic(counts)):
        np.testing.assert_allclose(found.value, expected.value)
        np.testing.assert_allclose(found.variance, expected.variance)
        assert found.value[0] == pytest.approx(roc_auc_score(label[group == 0], score[group == 0]))


def test_only_the_order_of_scores_matters_and_turning_it_round_gives_the_complement() -> None:
    label, score, group = sample(200, ties=False)
    one = RankedRows.of(label, score, group, 3, 1).observed
    same = RankedRows.of(label, np.exp(score), group, 3, 1).observed
    turned = RankedRows.of(label, -score, group, 3, 1).observed
    np.testing.assert_array_equal(one.value, same.value)
    np.testing.assert_allclose(turned.value, 1 - one.value)
    np.testing.assert_allclose(turned.variance, one.variance)


def test_without_positives_there_is_no_auc_and_with_one_there_is_no_variance() -> None:
    counts = np.array([[3, 4, 0, 0], [3, 4, 1, 0], [3, 4, 1, 1]])
    estimate = BinnedAuc(2)(counts)
    assert np.isnan(estimate.value).tolist() == [True, False, False]
    assert np.isnan(estimate.variance).tolist() == [True, True, False]


def clustered(label: Array, score: Array, weight: Array, cluster: Array) -> tuple[float, float]:
    """Obuchowski's estimate from the definition, with all pairs."""
    positive, negative = label == 1, label == 0
    wins = (score[positive][:, None] > score[negative]) + 0.5 * (score[positive][:, None] == score[negative])
    w, v = weight[positive], weight[negative]
    auc = float(w @ wins @ v / (w.sum() * v.sum()))
    psi = np.zeros(cluster.max() + 1)
    np.add.at(psi, cluster[positive], w * (wins @ v / v.sum() - auc) / w.sum())
    np.add.at(psi, cluster[negative], v * (w @ wins / w.sum() - auc) / v.sum())
    return auc, float(len(psi) / (len(psi) - 1) * (psi**2).sum())


@pytest.mark.parametrize("ties", [False, True])
def test_clusters_and_weights_give_obuchowskis_estimate(ties: bool) -> None:
    label, score, _ = sample(120, ties)
    rng = np.random.default_rng(5)
    cluster, weight = np.unique(rng.integers(0, 40, 120), return_inverse=True)[1], rng.random(120)
    group = rng.integers(0, 2, cluster.max() + 1)
    found = ClusteredRanks.of(label, score, weight, cluster, group, 2, seed=1).observed
    for g in (0, 1):
        rows = group[cluster] == g
        own = np.unique(cluster[rows], return_inverse=True)[1]
        auc, variance = clustered(label[rows], score[rows], weight[rows], own)
        assert found.value[g] == pytest.approx(auc)
        assert found.variance[g] == pytest.approx(variance)


# What a permutation test sees is checked before it is used; any metric of the user's own.


LABELS, SCORES = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.8, 0.4, 0.6, 0.6])
GROUP = np.array([0, 0, 1, 1, 2])
ROWS = Predictions(LABELS, SCORES, GROUP, ("a", "b", "c"), prediction=decided(SCORES, 0.6))


def test_rows_become_the_table_of_their_combinations_whichever_pair_and_decide_at_the_threshold_itself() -> None:
    table = ROWS.counted().table
    assert table.sum() == 5
    assert (table[0, 0, 0], table[0, 1, 1]) == (1, 1)
    assert (table[1, 1, 0], table[1, 0, 1]) == (1, 1)
    assert table[2, 1, 1] == 1
    np.testing.assert_array_equal(decided(np.array([0.49, 0.5, 0.51]), 0.5), [0, 1, 1])
    pair = ROWS.pair(2, 0)
    assert pair.groups == ("c", "a")
    np.testing.assert_array_equal(pair.counted().table, ROWS.counted().pair(2, 0).table)


def test_a_threshold_on_bins_counts_the_decisions_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    score, label, group = rng.random(500), rng.integers(0, 2, 500), rng.integers(0, 2, 500)
    edges = np.linspace(0, 1, 11)
    table = np.zeros((2, 2, 10), dtype=np.int64)
    np.add.at(table, (group, label, np.minimum(np.searchsorted(edges, score, "right") - 1, 9)), 1)
    bins = Counts(table, ("a", "b"), edges[:-1], edges[1:])
    rows = Predictions(label, score, group, ("a", "b"), prediction=decided(score, edges[7]))
    np.testing.assert_array_equal(bins.at(edges[7]).table, rows.counted().table)
    with pytest.raises(ValueError, match=r"cuts through the scores from 0\.7 to 0\.8"):
        bins.at(0.75)
    with pytest.raises(ValueError, match="cuts through"):
        bins.at(1.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"score": SCORES[:3]}, r"expected score of shape \(5,\)"),
        ({"score": np.array([0.1, np.nan, 0.4, np.inf, 0.6])}, "score has 2 values that are not finite"),
        ({"group": GROUP.astype(float)}, "expected group as integer codes"),
        ({"group": np.zeros(5, dtype=int)}, r"groups \['b', 'c'\] have no rows"),
        ({"group": GROUP + 1}, "expected group codes below 3, found 3"),
        ({"groups": ("a",), "group": np.zeros(5, dtype=int)}, "at least two groups"),
        ({"prediction": np.array([0, 1, 2, 0, 1])}, r"expected prediction in \{0, 1\}, found 2"),
        ({"weight": -SCORES}, "expected weight >= 0, found -0.8"),
        ({"cluster": np.array([0, 0, 0, 1, 2])}, r"1 clusters \(the first has code 0\) have rows in more than one"),
    ],
)
def test_bad_rows_are_named(change: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        replace(ROWS, **change)


@pytest.mark.parametrize(
    ("table", "lower", "upper", "message"),
    [
        (np.ones((2, 2, 3), int), [0.0, 1.0], [0.0, 1.0], r"of shape \(2, 2, 2\), found \(2, 2, 3\)"),
        (np.ones((2, 2, 2)), [0.0, 1.0], [0.0, 1.0], "expected counts, integers >= 0"),
        (-np.ones((2, 2, 2), int), [0.0, 1.0], [0.0, 1.0], "expected counts, integers >= 0"),
        (np.ones((2, 2, 2), int), [1.0, 0.0], [1.0, 0.0], "in ascending order"),
        (np.ones((2, 2, 2), int), [0.0, 0.4], [0.5, 1.0], "do not overlap"),
        (np.array([[[1, 0], [0, 0]], [[0, 0], [0, 0]]]), [0.0, 1.0], [0.0, 1.0], r"groups \['b'\] have no rows"),
    ],
)
def test_bad_tables_are_named(table: np.ndarray, lower: list, upper: list, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Counts(table, ("a", "b"), np.array(lower), np.array(upper))


# Any metric of the user's own.


def test_algorithm_1_agrees_with_the_closed_form() -> None:
    rows = simulate(np.random.default_rng(1), (200, 100), (0.5, 0.4), (1.0, 0.6))
    by_bootstrap = permutation_test(rows, BIAS, rng=np.random.default_rng(1), draws=300, bootstraps=100)
    closed = permutation_test(rows, "mean_error", rng=np.random.default_rng(2), draws=5000)
    assert by_bootstrap.estimates == pytest.approx(closed.estimates)
    assert by_bootstrap.statistic == pytest.approx(closed.statistic, rel=0.2)
    assert by_bootstrap.p_value == pytest.approx(closed.p_value, abs=0.08)


def test_the_bootstrap_variance_is_the_closed_one_on_average() -> None:
    rows = simulate(np.random.default_rng(2), (200, 100), (0.5, 0.4), (1.0, 0.6))
    for data in (rows, replace(rows, cluster=np.arange(300) // 2), replace(rows, weight=rows.score**2)):
        closed = resampler(data, METRICS["mean_error"], 1, 1.0, 0).observed
        bootstrapped = resampler(data, BIAS, 1, 1.0, 4000).observed
        np.testing.assert_allclose(bootstrapped.value, closed.value)
        np.testing.assert_allclose(bootstrapped.variance, closed.variance, rtol=0.12)


def test_one_by_one_and_all_at_once_give_the_same_test() -> None:
    rows = simulate(np.random.default_rng(3), (40, 30), (0.5, 0.4), (1.0, 0.6))

    def bias(y: Array, score: Array, weight: Array) -> float:
        assert weight.ndim == 1
        return float(mean_error(y, score, weight))

    one = permutation_test(rows, bias, rng=np.random.default_rng(1), draws=20, bootstraps=10)
    other = permutation_test(rows, BIAS, rng=np.random.default_rng(1), draws=20, bootstraps=10)
    assert one.metric == "bias"
    assert one.p_value == other.p_value
    assert one.statistic == pytest.approx(other.statistic)


@pytest.mark.parametrize("method", ["unstudentized", "lift", "bootstrap"])
def test_the_other_methods_take_user_metrics_too(method: str) -> None:
    rows = simulate(np.random.default_rng(4), (200, 100), (0.5, 0.4), (1.0, 0.6))
    kwargs = {"method": method, "draws": 1500, "bootstraps": 1500}
    one = permutation_test(rows, BIAS, rng=np.random.default_rng(1), **kwargs)  # type: ignore[arg-type]
    other = permutation_test(rows, "mean_error", rng=np.random.default_rng(2), **kwargs)  # type: ignore[arg-type]
    assert one.p_value == pytest.approx(other.p_value, abs=0.06)


FEW = simulate(np.random.default_rng(6), (40, 30), (0.5, 0.4), (1.0, 0.6))
WRONG = UserMetric("wrong", lambda y, s, w: float((s * w).sum() / w.sum()), batched=True)


@pytest.mark.parametrize(
    ("rows", "metric", "message"),
    [
        (FEW, lambda y, score, weight: float(score.mean()), "are there with weight 0: make it a function of weighted"),
        (FEW, WRONG, r"expected metric 'wrong' to give \(200,\) values .* found \(\)"),
        (FEW.counted(), BIAS, "metric 'bias' needs rows, found a table of counts"),
    ],
    ids=["it counts rows of weight zero", "it gives one value for many weights", "it is asked of counts"],
)
def test_a_metric_that_cannot_be_permuted_is_refused(rows: Any, metric: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        permutation_test(rows, metric, rng=np.random.default_rng(1))


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
