"""Every way to permute has the law of permuted rows, and its samples with replacement the variance of the metric."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.draws import Resampler
from pipeline.audits.permutation.metrics import METRICS
from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.resamplers import resampler
from pipeline.audits.permutation.statistics import studentized
from tests.audits.permutation.builders import BIAS, simulate

ROWS = simulate(np.random.default_rng(11), (150, 90), (0.5, 0.35), (1.3, 0.8))
DECIDED = replace(ROWS, score=np.asarray(ROWS.prediction, dtype=float))
WEIGHED = replace(ROWS, weight=np.random.default_rng(2).random(240) + 0.1)
CASES = {
    "counts of decisions": (ROWS, "precision"),
    "ranked rows": (ROWS, "auc"),
    "ranked rows with ties": (replace(ROWS, score=np.round(ROWS.score)), "auc"),
    "counts of scores": (DECIDED, "auc"),
    "sums of rows": (ROWS, "mean_score"),
    "sums of weighted rows": (WEIGHED, "mean_score"),
    "counts of kinds": (DECIDED, "mean_score"),
    "sums of persons": (replace(WEIGHED, cluster=np.arange(240) // 2), "mean_error"),
    "ranked persons": (replace(WEIGHED, cluster=np.arange(240) // 2), "auc"),
    "a user's metric": (ROWS, "bias"),
}
every_case = pytest.mark.parametrize("case", CASES)


def source(case: str, data: Predictions | None = None, bootstraps: int = 60) -> Resampler:
    rows, metric = CASES[case]
    return resampler(data or rows, METRICS.get(metric, BIAS), 5, 1.0, bootstraps)


def shuffled(rows: Predictions, rng: np.random.Generator) -> Predictions:
    """The rows with the groups of their units, rows or persons, permuted."""
    unit = np.arange(len(rows.group)) if rows.cluster is None else rows.cluster
    _, first = np.unique(unit, return_index=True)
    return replace(rows, group=rng.permutation(rows.group[first])[unit])


@every_case
def test_permuted_statistics_have_the_law_of_the_naive_permutation(case: str) -> None:
    rng = np.random.default_rng(3)
    drawn = studentized(source(case).permuted(0, 4000))
    naive = [float(studentized(source(case, shuffled(CASES[case][0], rng)).observed)) for _ in range(1000)]
    assert stats.ks_2samp(drawn, naive).pvalue > 1e-3
    assert np.std(drawn) == pytest.approx(np.std(naive), rel=0.1)
    assert np.std(drawn) == pytest.approx(1, abs=0.15)


@pytest.mark.parametrize("case", ["sums of rows", "counts of kinds"])
def test_permutations_share_out_what_there_is(case: str) -> None:
    """Means of the groups add up to that of all rows, whichever group is computed from the others."""
    one = source(case)
    units = np.array(one.units)
    np.testing.assert_allclose(units @ one.permuted(0, 200).value, units @ one.observed.value)


@every_case
def test_samples_with_replacement_have_the_variance_of_their_metric(case: str) -> None:
    one = source(case, bootstraps=1000)
    for pooled in (False, True):
        drawn = one.bootstrapped(0, 1500, pooled)
        spread = np.sqrt(one.observed.variance)
        assert (np.abs(drawn.mean(axis=1) - one.observed.value) < 0.2 * spread).all()
        np.testing.assert_allclose(drawn.var(axis=1), one.observed.variance, rtol=0.3)


@every_case
def test_fewer_draws_are_the_first_of_many_and_blocks_do_not_depend_on_one_another(case: str) -> None:
    """So results cannot depend on how the work is cut into blocks."""
    one = source(case)
    np.testing.assert_array_equal(one.permuted(0, 50).value, one.permuted(0, 200).value[:, :50])
    np.testing.assert_array_equal(one.permuted(1, 50).value, one.permuted(1, 50).value)
    assert (one.permuted(0, 50).value != one.permuted(1, 50).value).any()


@pytest.mark.parametrize(("metric", "persons"), [("auc", False), ("auc", True), ("mean_score", False)])
def test_more_groups_than_a_byte_can_number_are_refused(metric: str, persons: bool) -> None:
    groups = 257
    group = np.repeat(np.arange(groups), 4)
    label, score = np.tile([0, 1], 2 * groups), np.random.default_rng(1).random(4 * groups)
    names = tuple(str(g) for g in range(groups))
    data = Predictions(label, score, group, names, cluster=np.arange(4 * groups) // 2 if persons else None)
    with pytest.raises(ValueError, match="expected at most 256 groups to permute row by row, found 257"):
        resampler(data, METRICS[metric], 1, 1.0, 0)
    keep = group < 256
    cluster = None if data.cluster is None else data.cluster[keep]
    fewer = Predictions(label[keep], score[keep], group[keep], names[:-1], cluster=cluster)
    assert np.isfinite(resampler(fewer, METRICS[metric], 1, 1.0, 0).observed.value).all()
