"""What a permutation test sees is checked before it is used; any metric of the user's own."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline.audits.permutation.metrics import UserMetric
from pipeline.audits.permutation.outcomes import Counts, Predictions, decided
from pipeline.audits.permutation.resamplers import resampler
from pipeline.audits.permutation.run import permutation_test
from pipeline.types import Array
from tests.audits.permutation.builders import BIAS, mean_error, simulate

LABEL, SCORE = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.8, 0.4, 0.6, 0.6])
GROUP = np.array([0, 0, 1, 1, 2])
ROWS = Predictions(LABEL, SCORE, GROUP, ("a", "b", "c"), prediction=decided(SCORE, 0.6))


def test_rows_become_the_table_of_their_combinations() -> None:
    table = ROWS.counted().table
    assert table.sum() == 5
    assert (table[0, 0, 0], table[0, 1, 1]) == (1, 1)
    assert (table[1, 1, 0], table[1, 0, 1]) == (1, 1)
    assert table[2, 1, 1] == 1


def test_a_decision_is_positive_at_the_threshold_itself() -> None:
    np.testing.assert_array_equal(decided(np.array([0.49, 0.5, 0.51]), 0.5), [0, 1, 1])


def test_pairing_and_counting_commute() -> None:
    pair = ROWS.pair(2, 0)
    assert pair.groups == ("c", "a")
    np.testing.assert_array_equal(pair.counted().table, ROWS.counted().pair(2, 0).table)


def test_a_threshold_on_bins_counts_the_decisions_of_the_rows(rng: np.random.Generator) -> None:
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
        ({"score": SCORE[:3]}, r"expected score of shape \(5,\)"),
        ({"score": np.array([0.1, np.nan, 0.4, np.inf, 0.6])}, "score has 2 values that are not finite"),
        ({"group": GROUP.astype(float)}, "expected group as integer codes"),
        ({"group": np.zeros(5, dtype=int)}, r"groups \['b', 'c'\] have no rows"),
        ({"group": GROUP + 1}, "expected group codes below 3, found 3"),
        ({"groups": ("a",), "group": np.zeros(5, dtype=int)}, "at least two groups"),
        ({"prediction": np.array([0, 1, 2, 0, 1])}, r"expected prediction in \{0, 1\}, found 2"),
        ({"weight": -SCORE}, "expected weight >= 0, found -0.8"),
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


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


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
        from pipeline.audits.permutation.metrics import METRICS

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


def test_a_metric_that_counts_rows_of_weight_zero_is_refused() -> None:
    rows = simulate(np.random.default_rng(6), (40, 30), (0.5, 0.4), (1.0, 0.6))
    with pytest.raises(ValueError, match="when the other rows are there with weight 0: make it a function of weighted"):
        permutation_test(rows, lambda y, score, weight: float(score.mean()), rng=np.random.default_rng(1))


def test_a_batched_metric_must_give_one_value_a_row_of_weights() -> None:
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
        permutation_test(counts, BIAS, rng=np.random.default_rng(1))
