"""Rows of one person move together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.rows import summed
from pipeline.audits.permutation.run import permutation_test

Simulate = Callable[..., Predictions]
METRICS = ("tpr", "precision", "mean_error", "auc")


def result_of(data: Predictions, metric: str, draws: int = 400) -> Any:
    return permutation_test(data, metric, rng=np.random.default_rng(1), draws=draws, method="studentized")


def checked(data: Predictions, metric: str, draws: int = 400) -> float:
    return float(result_of(data, metric, draws).p_value)


@pytest.mark.parametrize("metric", METRICS)
def test_copies_of_a_person_are_no_news(simulate: Simulate, metric: str) -> None:
    """Three copies of every row, as clusters, leave the test as it is; as rows they would raise T by sqrt(3)."""
    rows = simulate(np.random.default_rng(3), (120, 80), (0.5, 0.4), (1.0, 0.8))
    person = np.arange(200)
    copied = np.tile(person, 3)
    prediction = rows.prediction
    assert prediction is not None
    tripled = Predictions(
        rows.label[copied], rows.score[copied], rows.group[copied], rows.groups, prediction=prediction[copied]
    )
    alone = result_of(replace(rows, cluster=person), metric)
    together = result_of(replace(tripled, cluster=copied), metric)
    assert together.p_value == alone.p_value
    assert together.statistic == pytest.approx(alone.statistic)
    assert result_of(tripled, metric).statistic == pytest.approx(np.sqrt(3) * alone.statistic, rel=0.04)


@pytest.mark.parametrize("metric", METRICS)
def test_persons_of_one_row_are_rows(simulate: Simulate, metric: str) -> None:
    rows = simulate(np.random.default_rng(4), (300, 200), (0.5, 0.4), (1.0, 0.8))
    one = checked(rows, metric, draws=3000)
    assert checked(replace(rows, cluster=np.arange(500)), metric, draws=3000) == pytest.approx(one, abs=0.04)


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
        rejected["rows"] += checked(data, metric, draws=99) <= 0.05
        rejected["persons"] += checked(replace(data, cluster=person), metric, draws=99) <= 0.05
    assert rejected["persons"] / simulations < 0.05 + 4 * np.sqrt(0.05 * 0.95 / simulations)
    assert rejected["rows"] / simulations > 0.2


def test_the_units_that_are_permuted_are_persons(simulate: Simulate) -> None:
    rows = simulate(np.random.default_rng(5), (90, 60), (0.5, 0.5), (1.0, 1.0))
    result = permutation_test(replace(rows, cluster=np.arange(150) // 3), "auc", rng=np.random.default_rng(1), draws=50)
    assert (result.sizes, result.units) == ((90, 60), (30, 20))


def test_sums_over_clusters() -> None:
    values = np.array([[1.0, 10], [2, 20], [4, 40]])
    np.testing.assert_array_equal(summed(values, np.array([1, 0, 1])), [[2, 20], [5, 50]])
