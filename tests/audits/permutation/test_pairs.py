"""More than two groups, and rows of one person."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fairness_audits.audits.permutation.core import PermutationTest, permutation_test
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.monte_carlo import Settings
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.audits.permutation.pairs import largest_t
from fairness_audits.audits.permutation.rows import summed
from tests.audits.permutation.builders import at_most, simulate

QUICK = Settings(draws=400)


def compared(
    data: Predictions | Counts, metric: str, settings: Settings = QUICK
) -> tuple[list[PermutationTest], list[Any]]:
    return largest_t(data, METRICS[metric], settings, np.random.default_rng(1))


def of_rates(hits: Any, positives: Any) -> Counts:
    """Groups a, b, ... with so many hits among their positives, and 20 negatives."""
    table = np.full((len(hits), 2, 2), 10)
    table[:, 1, 1], table[:, 1, 0] = hits, np.subtract(positives, hits)
    return Counts.of_decisions(table, tuple("abcd"[: len(hits)]))


@pytest.mark.parametrize("metric", ["tpr", "auc", "mean_error"])
def test_a_single_pair_keeps_the_p_value_of_its_own_test(metric: str) -> None:
    data = simulate(np.random.default_rng(2), (150, 100), (0.5, 0.4), (1.0, 0.6))
    (test,), adjusted = compared(data, metric)
    assert adjusted == [test.p_value]


def test_no_pair_is_rejected_that_its_exact_test_accepts() -> None:
    """11 of 12 against 21 of 35: T of the smoothed rates is beyond its 95 % point, Fisher's p is 0.071."""
    _, alone = compared(of_rates([11, 21], [12, 35]), "tpr")
    assert alone[0] == pytest.approx(0.071, abs=0.001)
    rng, raised = np.random.default_rng(2), 0
    for _ in range(40):
        positives = rng.integers(4, 30, 3)
        tests, adjusted = compared(
            of_rates(rng.binomial(positives, [0.9, 0.6, 0.6]), positives), "tpr", Settings(draws=199)
        )
        assert [test.groups for test in tests] == [("a", "b"), ("a", "c"), ("b", "c")]
        for test, p in zip(tests, adjusted, strict=True):
            assert p >= test.p_value
            raised += p > test.p_value
    assert raised > 60


def test_a_group_without_variance_is_compared_like_any_other() -> None:
    """Perfect AUCs in a and b: nothing tells them apart, and both differ from those of c and d, which are alike."""
    rng = np.random.default_rng(7)
    label, group = np.tile([0, 1], 200), np.repeat([0, 1, 2, 3], 100)
    score = rng.normal(size=400) + label * np.array([50.0, 50.0, 0.6, 0.6])[group]
    data = Predictions(label, score, group, tuple("abcd"))
    _, adjusted = compared(data, "auc")
    assert adjusted[0] == 1
    assert [p <= 0.05 for p in adjusted] == [False, True, True, True, True, False]


def test_the_largest_statistic_of_rates_holds_its_level_whatever_the_prevalences() -> None:
    """Four equal rates, few positives in one group: permuted within the outcome, one in twenty rejects."""
    rejected, simulations = 0, 200
    for simulation in range(simulations):
        rng = np.random.default_rng(simulation)
        positives = rng.binomial([200, 300, 100, 60], [0.5, 0.2, 0.8, 0.3])
        counts = of_rates(rng.binomial(positives, 0.7), positives)
        _, adjusted = largest_t(counts, METRICS["tpr"], Settings(draws=99), rng)
        rejected += any(p is not None and p <= 0.05 for p in adjusted)
    assert rejected / simulations > 0.015
    assert at_most(rejected / simulations, 0.05, simulations)


def test_a_group_without_positives_is_no_rival() -> None:
    table = np.array([[[5, 5], [30, 40]], [[5, 5], [32, 38]], [[9, 9], [0, 0]]])
    data = Counts.of_decisions(table, ("a", "b", "c"))
    tests, adjusted = compared(data, "tpr")
    assert [p is None for p in adjusted] == [False, True, True]
    assert tests[1].undefined == "group 'c' has no rows with label 1"
    assert adjusted[0] == pytest.approx(tests[0].p_value, abs=0.1)


def test_clusters_move_together_in_all_groups() -> None:
    data = simulate(np.random.default_rng(4), (90, 90, 90), (0.5,) * 3, (1.0,) * 3)
    # Three copies of every row, held together by their cluster, tell no more than the rows.
    copies = {name: np.repeat(getattr(data, name), 3) for name in ("label", "score", "group")}
    persons = Predictions(**copies, groups=data.groups, cluster=np.repeat(np.arange(270), 3))
    settings = Settings(draws=2000)
    (_, once), (tests, thrice), (_, apart) = (
        compared(rows, "auc", settings) for rows in (data, persons, Predictions(**copies, groups=data.groups))
    )
    assert tests[2].units == (90, 90)
    for one, other, more in zip(once, thrice, apart, strict=True):
        assert one == pytest.approx(other, abs=0.05)
        assert more < one


def result_of(data: Predictions, metric: str, draws: int = 400) -> Any:
    return permutation_test(data, metric, rng=np.random.default_rng(1), draws=draws, method="studentized")


@pytest.mark.parametrize("metric", ["tpr", "precision", "mean_error", "auc"])
def test_copies_of_a_person_are_no_news(metric: str) -> None:
    """Three copies of every row, as clusters, leave the test as it is; as rows they would raise T by sqrt(3)."""
    rows = simulate(np.random.default_rng(3), (120, 80), (0.5, 0.4), (1.0, 0.8))
    person = np.tile(np.arange(200), 3)
    columns = {name: getattr(rows, name)[person] for name in ("label", "score", "group", "prediction")}
    alone = result_of(replace(rows, cluster=np.arange(200)), metric)
    together = result_of(replace(rows, **columns, cluster=person), metric)
    assert together.p_value == alone.p_value
    assert together.statistic == pytest.approx(alone.statistic)
    apart = result_of(replace(rows, **columns), metric)
    assert apart.statistic == pytest.approx(np.sqrt(3) * alone.statistic, rel=0.04)


@pytest.mark.parametrize("metric", ["mean_error", "auc"])
def test_the_level_holds_where_rows_of_a_person_are_alike(metric: str) -> None:
    """Persons have 1 to 8 rows with a common label and effect: as persons the level holds, as rows it does not."""
    rejected, simulations = {"persons": 0, "rows": 0}, 150
    for simulation in range(simulations):
        rng = np.random.default_rng(simulation)
        person = np.repeat(np.arange(120), rng.integers(1, 9, 120))
        label, effect = rng.integers(0, 2, 120)[person], rng.normal(size=120)[person]
        score = label + effect + 0.3 * rng.normal(size=len(person))
        data = Predictions(label, score, (person < 40).astype(int), ("a", "b"))
        for units, rows in (("rows", data), ("persons", replace(data, cluster=person))):
            rejected[units] += result_of(rows, metric, draws=99).rejected
    assert at_most(rejected["persons"] / simulations, 0.05, simulations)
    assert rejected["rows"] / simulations > 0.2


def test_the_units_that_are_permuted_are_persons_with_their_sums() -> None:
    rows = simulate(np.random.default_rng(5), (90, 60), (0.5, 0.5), (1.0, 1.0))
    result = permutation_test(replace(rows, cluster=np.arange(150) // 3), "auc", rng=np.random.default_rng(1), draws=50)
    assert (result.sizes, result.units) == ((90, 60), (30, 20))
    values = np.array([[1.0, 10], [2, 20], [4, 40]])
    np.testing.assert_array_equal(summed(values, np.array([1, 0, 1])), [[2, 20], [5, 50]])
