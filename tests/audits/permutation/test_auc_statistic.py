"""The AUC and its variance by three ways of computing them, and what they do not depend on."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import roc_auc_score

from pipeline.audits.permutation.draws import CountResampler
from pipeline.audits.permutation.rows import ClusteredRanks, RankedRows
from pipeline.audits.permutation.statistics import BinnedAuc, MetricEstimate, studentized
from pipeline.types import Array


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


def test_compiled_permutations_have_the_law_of_the_draws_of_counts() -> None:
    rng = np.random.default_rng(4)
    label = (rng.random(300) < 0.4).astype(int)
    score, group = np.round(rng.normal(size=300) + label), (rng.random(300) < 0.3).astype(int)
    by_counts = studentized(CountResampler(*counted(label, score, group, 2), 1).permuted(0, 4000))
    by_rows = studentized(RankedRows.of(label, score, group, 2, 2).permuted(0, 4000))
    assert stats.ks_2samp(by_counts, by_rows).pvalue > 1e-3


def test_samples_with_replacement_have_delongs_variance() -> None:
    label, score, group = sample(900, ties=False)
    rows = RankedRows.of(label, score, group, 3, 1)
    for pooled in (False, True):
        drawn = rows.bootstrapped(0, 600, pooled)
        np.testing.assert_allclose(drawn.mean(axis=1), rows.observed.value, atol=0.006)
        np.testing.assert_allclose(drawn.var(axis=1), rows.observed.variance, rtol=0.25)


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


def test_clusters_of_one_row_are_rows() -> None:
    label, score, group = sample(600, ties=False)
    rows = RankedRows.of(label, score, group, 3, 1).observed
    persons = ClusteredRanks.of(label, score, np.ones(600), np.arange(600), group, 3, 1).observed
    np.testing.assert_allclose(persons.value, rows.value)
    np.testing.assert_allclose(persons.variance, rows.variance, rtol=0.01)
