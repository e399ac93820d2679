"""The one call: choice of the test, results that agree with themselves, and what they do not depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.metrics import METRICS, Rate
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.pvalue import Alternative
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.studentized import MonteCarlo

Simulate = Callable[..., Predictions]
METHODS = ("studentized", "unstudentized", "lift", "bootstrap")
KINDS: tuple[Alternative, ...] = ("two-sided", "greater", "less")
RATES = [name for name, metric in METRICS.items() if isinstance(metric, Rate)]


@pytest.fixture
def rows(simulate: Simulate) -> Predictions:
    data = simulate(np.random.default_rng(11), (150, 90), (0.5, 0.35), (1.3, 0.8))
    return replace(data, score=1 / (1 + np.exp(-data.score)))


def checked(data: Predictions | Counts, metric: str, seed: int = 1, **settings: Any) -> Any:
    return permutation_test(data, metric, rng=np.random.default_rng(seed), **{"draws": 400, **settings})


@pytest.mark.parametrize("metric", list(METRICS))
def test_rates_are_exact_and_everything_else_is_studentised(rows: Predictions, metric: str) -> None:
    result = checked(rows, metric)
    assert result.method == ("exact" if metric in RATES else "studentized")
    assert result.exact == (metric in RATES)
    assert result.draws == (0 if result.exact else 400)
    assert not result.undefined


def test_recall_is_fishers_test_among_the_positives(rows: Predictions) -> None:
    table = rows.counted().table
    expected = stats.fisher_exact(table[:, 1, ::-1]).pvalue
    assert checked(rows, "recall").p_value == pytest.approx(expected)
    assert checked(rows.counted(), "fnr").p_value == pytest.approx(expected)
    assert checked(rows, "precision").p_value == pytest.approx(stats.fisher_exact(table[:, ::-1, 1]).pvalue)


@pytest.mark.parametrize("metric", ["tpr", "auc", "log_loss"])
@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_result(rows: Predictions, metric: str, method: str) -> None:
    assert checked(rows, metric, method=method) == checked(rows, metric, method=method)
    assert checked(rows, metric, method=method).ci_low != checked(rows, metric, seed=2, method=method).ci_low


@pytest.mark.parametrize("metric", ["tpr", "auc", "mean_score"])
def test_fewer_draws_are_the_first_of_many(rows: Predictions, metric: str) -> None:
    """So results cannot depend on how the work is cut into blocks."""
    from pipeline.audits.permutation.resamplers import resampler

    source = resampler(rows, METRICS[metric], 5, 1.0, 0)
    np.testing.assert_array_equal(source.permuted(0, 50).value, source.permuted(0, 200).value[:, :50])
    np.testing.assert_array_equal(source.permuted(1, 50).value, source.permuted(1, 50).value)
    assert (source.permuted(0, 50).value != source.permuted(1, 50).value).any()


@pytest.mark.parametrize("metric", ["tpr", "precision", "auc", "mean_error"])
@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_swapping_the_groups_turns_the_result_round(rows: Predictions, metric: str, method: str) -> None:
    one = checked(rows, metric, method=method, draws=2000, groups=("a", "b"))
    other = checked(rows, metric, method=method, draws=2000, groups=("b", "a"))
    assert one.difference == pytest.approx(-other.difference)
    assert one.estimates == other.estimates[::-1]
    assert one.direction in (-other.direction, 0) or other.direction == 0
    assert one.p_value == pytest.approx(other.p_value, abs=1e-12 if one.exact else 0.05)
    assert one.ci_low == pytest.approx(-other.ci_high, abs=1e-9 if one.exact else 0.03)


@pytest.mark.parametrize("method", ["auto", *METHODS])
@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_interval_leaves_out_zero_exactly_where_the_test_rejects(
    simulate: Simulate, method: str, alternative: str
) -> None:
    decisions = set()
    for seed in range(25):
        data = simulate(np.random.default_rng(seed), (60, 40), (0.5, 0.4), (1.0, 0.2 if seed % 2 else 1.8))
        for metric in ("tpr", "auc"):
            result = checked(data, metric, method=method, alternative=alternative, draws=199)
            assert result.rejected == (not result.ci_low <= 0 <= result.ci_high)
            assert result.rejected == (result.p_value is not None and result.p_value <= 0.05)
            if result.direction:
                assert np.sign(result.difference) == result.direction
                assert result.higher == ("a" if result.direction > 0 else "b")
            decisions.add(result.rejected)
    assert decisions == {True, False}


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_monte_carlo_intervals_leave_out_zero_exactly_where_p_is_at_most_alpha(alternative: Alternative) -> None:
    """At every place that the observed statistic can have among the draws, with no help from the verdict."""
    reference = np.random.default_rng(1).normal(size=199)
    for statistic in [*np.sort(reference), *np.sort(reference) + 1e-6]:
        found = MonteCarlo(2.5 * statistic, statistic, 2.5, reference, stopped=False)
        low, high = found.interval(0.05, alternative)
        assert (low > 0 or high < 0) == (found.p(alternative) <= 0.05)


@pytest.mark.parametrize("alternative", KINDS)
@pytest.mark.parametrize("difference", [1.0, -1.0])
def test_without_a_variance_intervals_leave_out_zero_exactly_where_p_is_at_most_alpha(
    difference: float, alternative: Alternative
) -> None:
    """The statistic is infinite, and so are as many draws of either sign as they may be."""
    for positive in range(25):
        for negative in range(25):
            reference = np.r_[np.full(positive, np.inf), np.full(negative, -np.inf), np.linspace(-2, 2, 151)]
            found = MonteCarlo(difference, difference * np.inf, 0.0, reference, stopped=False)
            low, high = found.interval(0.05, alternative)
            assert (low > 0 or high < 0) == (found.p(alternative) <= 0.05)
            assert low <= difference <= high


def test_the_opposite_of_an_infinite_difference_is_not_rejected() -> None:
    """Precision 1 of 20 rows against 0 of 12, without smoothing: only permutations that part them as well match it."""
    table = np.array([[[5, 0], [5, 20]], [[5, 12], [5, 0]]])
    for groups, own in ((table, "greater"), (table[::-1], "less")):
        for alternative in KINDS:
            result = checked(
                Counts.of_decisions(groups, ("a", "b")),
                "precision",
                method="studentized",
                smoothing=0.0,
                alternative=alternative,
            )
            assert abs(result.statistic or 0) == np.inf
            assert result.p_value == (1 / 401 if alternative in (own, "two-sided") else 1)


def test_a_direction_is_concluded_at_half_the_level() -> None:
    """Some tables are rejected by the two-sided test though neither side is certain enough to be named."""
    unnamed = 0
    for a in range(13):
        for b in range(5):
            table = np.array([[[1, 1], [12 - a, a]], [[1, 1], [4 - b, b]]])
            two, more, less = (
                checked(Counts.of_decisions(table, ("a", "b")), "tpr", alternative=kind) for kind in KINDS
            )
            assert (two.direction == 1) == (more.p_value <= 0.025)
            assert (two.direction == -1) == (less.p_value <= 0.025)
            unnamed += two.rejected and not two.direction
    assert unnamed


def test_a_one_sided_test_concludes_its_own_side_alone(simulate: Simulate) -> None:
    data = simulate(np.random.default_rng(1), (200, 200), (0.5, 0.5), (2.0, 0.3))
    for metric in ("tpr", "auc"):
        greater, less = (checked(data, metric, alternative=kind) for kind in ("greater", "less"))
        assert (greater.direction, less.direction) == (1, 0)
        assert greater.rejected
        assert not less.rejected


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        ("tpr", "group 'b' has no rows with label 1"),
        ("auc", "group 'b' has no rows with label 1"),
        ("precision", "group 'a' has no rows with prediction 1"),
    ],
)
@pytest.mark.parametrize("method", ["auto", "studentized", "bootstrap"])
def test_a_metric_that_does_not_exist_says_why(metric: str, reason: str, method: str) -> None:
    label, group = np.array([0, 1, 1, 0, 0, 0]), np.array([0, 0, 0, 1, 1, 1])
    score, prediction = np.linspace(0, 1, 6), np.array([0, 0, 0, 1, 0, 1])
    result = checked(Predictions(label, score, group, ("a", "b"), prediction=prediction), metric, method=method)
    assert result.undefined == reason
    assert (result.p_value, result.difference, result.ci_low, result.rejected) == (None, None, None, False)
    assert sum(estimate is None for estimate in result.estimates) == 1


def test_an_infinite_loss_and_a_missing_variance_say_why() -> None:
    label, group = np.array([0, 1, 0, 1, 0, 1, 0, 1]), np.repeat([0, 1], 4)
    score = np.array([0.2, 0.8, 0.6, 0.4, 0.1, 0.0, 0.2, 0.7])
    infinite = checked(Predictions(label, score, group, ("a", "b")), "log_loss")
    assert infinite.undefined == "the log loss of group 'b' is infinite: a prediction that was certain was wrong"
    score = np.array([0.2, 0.8, 0.6, 0.4, 0.1, 0.9, 0.2, 0.7])
    perfect = checked(Predictions(label, score, group, ("a", "b")), "auc")
    assert "the estimated variance of the AUC in group 'b' is zero" in perfect.undefined
    assert perfect.estimates == (0.75, 1.0)
    assert checked(Predictions(label, score, group, ("a", "b")), "auc", method="unstudentized").p_value is not None


def test_two_perfect_aucs_are_no_proof_that_no_difference_is_possible() -> None:
    label, group = np.tile([0, 1], 10), np.repeat([0, 1], 10)
    perfect = checked(Predictions(label, label + np.linspace(0, 0.5, 20), group, ("a", "b")), "auc")
    assert perfect.estimates == (1.0, 1.0)
    assert "the estimated variance of the AUC in group 'a' is zero" in perfect.undefined
    assert (perfect.p_value, perfect.ci_low, perfect.ci_high) == (None, None, None)


@pytest.mark.parametrize(("metric", "label"), [("tpr", 1), ("fpr", 0), ("auc", 0), ("auc", 1)])
def test_rows_without_weight_are_not_said_to_be_missing(rows: Predictions, metric: str, label: int) -> None:
    weight = np.where((rows.group == 1) & (rows.label == label), 0.0, 1.0)
    assert (
        checked(replace(rows, weight=weight), metric).undefined == f"group 'b' has no weight on rows with label {label}"
    )


@pytest.mark.parametrize(("metric", "persons"), [("auc", False), ("auc", True), ("mean_score", False)])
def test_more_groups_than_a_byte_can_number_are_refused(metric: str, persons: bool) -> None:
    from pipeline.audits.permutation.resamplers import resampler

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


def test_sequential_draws_stop_early_with_the_decision_of_all(simulate: Simulate) -> None:
    for shift in (0.2, 1.0):
        data = simulate(np.random.default_rng(1), (200, 200), (0.5, 0.5), (1.0, shift))
        all_draws = checked(data, "auc", draws=20_000)
        early = checked(data, "auc", draws=20_000, resampling_risk=1e-3)
        assert early.rejected == all_draws.rejected
        assert 200 <= early.draws < 2000
        assert early.p_low <= all_draws.p_value <= early.p_high
        assert "decide otherwise is at most 0.001" in early.guarantee


def test_undecided_draws_say_so(simulate: Simulate) -> None:
    data = simulate(np.random.default_rng(3), (200, 200), (0.5, 0.5), (1.0, 0.67))
    result = checked(data, "auc", draws=250, resampling_risk=1e-6)
    assert result.draws == 250
    assert "without the decision becoming safe" in result.guarantee


def test_scaling_all_weights_changes_nothing(rows: Predictions) -> None:
    weight = np.random.default_rng(2).random(240) + 0.1
    for metric in ("tpr", "auc", "mean_error"):
        one = checked(replace(rows, weight=weight), metric)
        other = checked(replace(rows, weight=8 * weight), metric)
        assert one.p_value == other.p_value
        assert one.method == "studentized"


@pytest.mark.parametrize("steps", [2, 20, 10**6])
def test_counts_of_scores_are_tested_like_the_rows(rows: Predictions, steps: int) -> None:
    """With few values of the score by draws of counts, with hardly any two rows alike by the rows."""
    score = np.floor(rows.score * steps) / steps
    values, cell = np.unique(score, return_inverse=True)
    table = np.zeros((2, 2, len(values)), dtype=np.int64)
    np.add.at(table, (rows.group, rows.label, cell), 1)
    bins = Counts(table, rows.groups, values, np.nextafter(values, 2))
    for metric in ("auc", "mean_score", "squared_error"):
        by_bins = checked(bins, metric, draws=4000)
        by_rows = checked(replace(rows, score=score), metric, draws=4000, seed=2)
        assert by_bins.estimates == pytest.approx(by_rows.estimates)
        assert by_bins.statistic == pytest.approx(by_rows.statistic)
        assert by_bins.p_value == pytest.approx(by_rows.p_value, abs=0.04)


def test_an_empty_cell_where_the_loss_is_infinite_does_no_harm() -> None:
    table = np.array([[[9, 40, 30], [0, 20, 60]], [[8, 50, 40], [0, 30, 50]]])
    scores = np.array([0.0, 0.3, 0.7])
    assert not checked(Counts(table, ("a", "b"), scores, scores), "log_loss").undefined
    table[1, 1, 0] = 1
    assert (
        "the log loss of group 'b' is infinite"
        in checked(Counts(table, ("a", "b"), scores, scores), "log_loss").undefined
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metric": "auc", "method": "exact"}, "no exact test of auc on these data"),
        ({"metric": "tpr", "groups": ("a", "z")}, r"expected groups among \['a', 'b'\], found \['z'\]"),
        ({"metric": "tpr", "groups": ("a", "a")}, "expected two different groups"),
        ({"metric": "auc", "method": "lift", "resampling_risk": 0.01}, "cannot stop early"),
    ],
)
def test_bad_settings_are_named(rows: Predictions, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        checked(rows, **arguments)


def test_bad_data_for_a_metric_are_named(rows: Predictions, simulate: Simulate) -> None:
    with pytest.raises(ValueError, match="rates need decisions"):
        checked(replace(rows, prediction=None), "tpr")
    with pytest.raises(ValueError, match=r"expected label in \{0, 1\}, found 2"):
        checked(replace(rows, label=rows.label * 2), "auc")
    with pytest.raises(ValueError, match="log_loss needs scores that are probabilities"):
        checked(replace(rows, score=rows.score * 3), "log_loss")
    with pytest.raises(ValueError, match="auc needs scores, found counts of decisions"):
        checked(rows.counted(), "auc")
    three = simulate(np.random.default_rng(1), (20, 20, 20), (0.5,) * 3, (1.0,) * 3)
    with pytest.raises(ValueError, match=r"the data have 3 groups, \['a', 'b', 'c'\]: name two, or use all_pairs"):
        checked(three, "tpr")
