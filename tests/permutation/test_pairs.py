"""More than two groups."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from pipeline.permutation.outcomes import Counts, Predictions
from pipeline.permutation.pairs import all_pairs, corrected
from pipeline.permutation.run import permutation_test
from pipeline.permutation.settings import Settings

Simulate = Callable[..., Predictions]
QUICK = Settings(draws=400)


def test_holm_steps_down_and_never_falls() -> None:
    p = np.array([0.04, 0.001, 0.03, 0.02])
    np.testing.assert_allclose(corrected(p, "holm"), [0.06, 0.004, 0.06, 0.06])
    np.testing.assert_allclose(corrected(p, "bonferroni"), [0.16, 0.004, 0.12, 0.08])
    np.testing.assert_allclose(corrected(p, "bh"), [0.04, 0.004, 0.04, 0.04])
    assert corrected(p, "none") is p


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
def test_with_two_groups_the_largest_statistic_is_the_only_one(simulate: Simulate, metric: str) -> None:
    data = simulate(np.random.default_rng(2), (150, 100), (0.5, 0.4), (1.0, 0.6))
    settings = Settings(draws=4000, method="studentized")
    found = all_pairs(data, metric, settings, rng=np.random.default_rng(1), correction="max_t")
    assert found.adjusted[0] == pytest.approx(found.tests[0].p_value, abs=0.03)


@pytest.mark.parametrize("metric", ["fnr", "auc"])
def test_max_t_is_no_less_powerful_than_bonferroni(simulate: Simulate, metric: str) -> None:
    data = simulate(np.random.default_rng(3), (150, 150, 150, 150), (0.5,) * 4, (1.0, 1.0, 1.0, 0.5))
    settings = Settings(draws=4000, method="studentized")
    largest = all_pairs(data, metric, settings, rng=np.random.default_rng(1), correction="max_t")
    single = all_pairs(data, metric, settings, rng=np.random.default_rng(1), correction="bonferroni")
    assert min(p for p in largest.adjusted if p is not None) <= min(p for p in single.adjusted if p is not None) + 0.01
    for p, test in zip(largest.adjusted, largest.tests, strict=True):
        assert p is not None
        assert test.p_value is not None
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
    from dataclasses import replace

    persons = replace(data, cluster=np.arange(270) // 3)
    found = all_pairs(persons, "auc", QUICK, rng=np.random.default_rng(1), correction="max_t")
    assert found.tests[2].units == (30, 30)
    assert all(p is not None and 0 < p <= 1 for p in found.adjusted)


def test_an_unknown_correction_is_refused(simulate: Simulate) -> None:
    data = simulate(np.random.default_rng(5), (20, 20), (0.5, 0.5), (1.0, 1.0))
    with pytest.raises(ValueError, match=r"expected a correction among holm, .* found 'tukey'"):
        all_pairs(data, "tpr", QUICK, rng=np.random.default_rng(1), correction="tukey")
