"""More than two groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pipeline.audits.correction import corrected
from pipeline.audits.permutation import pairs
from pipeline.audits.permutation.outcomes import Counts, Predictions
from pipeline.audits.permutation.result import Settings
from pipeline.audits.permutation.run import permutation_test

Simulate = Callable[..., Predictions]
QUICK = Settings(draws=400)
all_pairs: Any = pairs.all_pairs


def test_all_pairs_are_the_tests_of_each_pair(simulate: Simulate) -> None:
    data = simulate(np.random.default_rng(1), (80, 60, 70), (0.5, 0.4, 0.6), (1.0, 0.4, 1.0))
    found = all_pairs(data, "tpr", QUICK, rng=np.random.default_rng(1))
    assert [test.groups for test in found.tests] == [("a", "b"), ("a", "c"), ("b", "c")]
    for test in found.tests:
        alone = permutation_test(data, "tpr", rng=np.random.default_rng(9), groups=test.groups)
        assert test.p_value == alone.p_value
    expected = corrected(np.array([test.p_value for test in found.tests]), "holm")
    assert found.adjusted == pytest.approx(tuple(expected))


@pytest.mark.parametrize("metric", ["tpr", "auc", "mean_error"])
def test_a_single_pair_keeps_the_p_value_of_its_own_test(simulate: Simulate, metric: str) -> None:
    data = simulate(np.random.default_rng(2), (150, 100), (0.5, 0.4), (1.0, 0.6))
    found = all_pairs(data, metric, QUICK, rng=np.random.default_rng(1), correction="max_t")
    assert found.adjusted == (found.tests[0].p_value,)
    assert "needs no correction" in found.guarantee


def test_no_pair_is_rejected_that_its_exact_test_accepts() -> None:
    """11 of 12 against 21 of 35: T of the smoothed rates is beyond its 95 % point, Fisher's p is 0.071."""
    pair = np.array([[[5, 5], [1, 11]], [[5, 5], [14, 21]]])
    alone = all_pairs(
        Counts.of_decisions(pair, ("a", "b")), "tpr", QUICK, rng=np.random.default_rng(1), correction="max_t"
    )
    assert alone.adjusted[0] == pytest.approx(0.071, abs=0.001)
    assert alone.rejected == (False,)
    rng, raised = np.random.default_rng(2), 0
    for _ in range(40):
        positives = rng.integers(4, 30, 3)
        hits = rng.binomial(positives, [0.9, 0.6, 0.6])
        table = np.full((3, 2, 2), 5)
        table[:, 1, 1], table[:, 1, 0] = hits, positives - hits
        found = all_pairs(
            Counts.of_decisions(table, tuple("abc")), "tpr", Settings(draws=199), rng=rng, correction="max_t"
        )
        for test, p, rejected in zip(found.tests, found.adjusted, found.rejected, strict=True):
            assert p >= test.p_value
            assert test.rejected or not rejected
            raised += p > test.p_value
    assert raised > 60
    assert "Monte-Carlo" in found.guarantee


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(alternative="greater"), "expected alternative two-sided with correction max_t, found 'greater'"),
        (Settings(method="unstudentized"), "exact or studentized with correction max_t, found 'unstudentized'"),
        (Settings(method="lift"), "exact or studentized with correction max_t, found 'lift'"),
        (Settings(method="bootstrap"), "exact or studentized with correction max_t, found 'bootstrap'"),
        (Settings(resampling_risk=0.01), r"expected no resampling_risk with correction max_t, found 0\.01"),
    ],
)
def test_the_largest_statistic_stands_for_no_other_test(simulate: Simulate, settings: Settings, message: str) -> None:
    data = simulate(np.random.default_rng(2), (50, 50, 50), (0.5,) * 3, (1.0,) * 3)
    with pytest.raises(ValueError, match=message):
        all_pairs(data, "auc", settings, rng=np.random.default_rng(1), correction="max_t")
    assert all_pairs(data, "auc", settings, rng=np.random.default_rng(1), correction="holm").adjusted[0] is not None


def test_a_pair_without_variance_is_no_rival() -> None:
    """Perfect AUCs in a and b: no pair with them can be studentised, and c against d is as if they were not there."""
    rng = np.random.default_rng(7)
    label, group = np.tile([0, 1], 80), np.repeat([0, 1, 2, 3], 40)
    score = rng.normal(size=160) + label * np.array([50.0, 50.0, 1.0, 0.5])[group]
    data = Predictions(label, score, group, tuple("abcd"))
    found = all_pairs(data, "auc", QUICK, rng=np.random.default_rng(1), correction="max_t")
    assert [p is None for p in found.adjusted] == [True] * 5 + [False]


@pytest.mark.parametrize("metric", ["fnr", "auc"])
def test_max_t_is_no_less_powerful_than_bonferroni(simulate: Simulate, metric: str) -> None:
    data = simulate(np.random.default_rng(3), (150, 150, 150, 150), (0.5,) * 4, (1.0, 1.0, 1.0, 0.5))
    settings = Settings(draws=4000, method="studentized")
    largest = all_pairs(data, metric, settings, rng=np.random.default_rng(1), correction="max_t")
    single = all_pairs(data, metric, settings, rng=np.random.default_rng(1), correction="bonferroni")
    assert min(p for p in largest.adjusted if p is not None) <= min(p for p in single.adjusted if p is not None) + 0.01
    for p, test in zip(largest.adjusted, largest.tests, strict=True):
        assert p >= test.p_value - 0.02


def test_the_largest_statistic_of_rates_holds_its_level_whatever_the_prevalences() -> None:
    """Four equal rates, few positives in one group: permuted within the outcome, one in twenty rejects."""
    rejected, simulations = 0, 300
    for simulation in range(simulations):
        rng = np.random.default_rng(simulation)
        positives = rng.binomial([200, 300, 100, 60], [0.5, 0.2, 0.8, 0.3])
        hits = rng.binomial(positives, 0.7)
        table = np.zeros((4, 2, 2), dtype=np.int64)
        table[:, 1, 1], table[:, 1, 0], table[:, 0, 0] = hits, positives - hits, 50
        counts = Counts.of_decisions(table, tuple("abcd"))
        found = all_pairs(counts, "tpr", Settings(draws=99), rng=rng, correction="max_t")
        rejected += any(found.rejected)
    assert 0.015 < rejected / simulations < 0.05 + 4 * np.sqrt(0.05 * 0.95 / simulations)


def test_a_group_without_positives_is_no_rival() -> None:
    table = np.array([[[5, 5], [30, 40]], [[5, 5], [32, 38]], [[9, 9], [0, 0]]])
    data = Counts.of_decisions(table, ("a", "b", "c"))
    for correction in ("holm", "max_t"):
        found = all_pairs(data, "tpr", QUICK, rng=np.random.default_rng(1), correction=correction)
        assert [p is None for p in found.adjusted] == [False, True, True]
        assert found.tests[1].undefined == "group 'c' has no rows with label 1"
        assert found.adjusted[0] == pytest.approx(found.tests[0].p_value, abs=0.1)
        assert found.rejected == (False, False, False)


def test_clusters_move_together_in_all_groups(simulate: Simulate) -> None:
    data = simulate(np.random.default_rng(4), (90, 90, 90), (0.5,) * 3, (1.0,) * 3)
    # Three copies of every row, held together by their cluster, tell no more than the rows.
    copies = {name: np.repeat(getattr(data, name), 3) for name in ("label", "score", "group")}
    persons = Predictions(**copies, groups=data.groups, cluster=np.repeat(np.arange(270), 3))
    settings = Settings(draws=2000)
    once, thrice, apart = (
        all_pairs(rows, "auc", settings, rng=np.random.default_rng(1), correction="max_t")
        for rows in (data, persons, Predictions(**copies, groups=data.groups))
    )
    assert thrice.tests[2].units == (90, 90)
    for one, other, more in zip(once.adjusted, thrice.adjusted, apart.adjusted, strict=True):
        assert one == pytest.approx(other, abs=0.05)
        assert more < one


def test_an_unknown_correction_is_refused(simulate: Simulate) -> None:
    data = simulate(np.random.default_rng(5), (20, 20), (0.5, 0.5), (1.0, 1.0))
    with pytest.raises(ValueError, match=r"expected a correction among holm, .* found 'tukey'"):
        all_pairs(data, "tpr", QUICK, rng=np.random.default_rng(1), correction="tukey")
