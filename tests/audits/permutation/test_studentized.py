"""The theorems of DiCiccio et al. 2020: where the level of which test holds.

With the metric equal in both groups and nothing else, a permuted difference has a variance of its own, so the test of D
has level 2 Phi(-1.96 sqrt(its variance when permuted / its variance)), and that of T has level alpha.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from pipeline.audits.permutation.auc_statistic import BinnedAuc
from pipeline.audits.permutation.draws import split
from pipeline.audits.permutation.many_tables import table_p
from pipeline.audits.permutation.outcomes import Counts
from pipeline.audits.permutation.pvalue import extreme, monte_carlo_p
from pipeline.audits.permutation.ranked_rows import RankedRows
from pipeline.audits.permutation.result import Alternative
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.statistics import RatioOfSums, studentized
from pipeline.audits.permutation.summed_rows import SummedRows
from pipeline.types import Array

Tables = Callable[..., Array]
Near = Callable[..., bool]


def level_of_unstudentized(sampling: float, permuting: float) -> float:
    return float(2 * ndtr(-ndtri(0.975) * np.sqrt(permuting / sampling)))


def rejects(reference: Array, statistic: Array, alternative: Alternative = "two-sided", alpha: float = 0.05) -> bool:
    extremes = extreme(reference, statistic, alternative).sum()
    return bool(monte_carlo_p(extremes, len(reference)) <= alpha)


def test_means_section_2_2_the_weights_of_the_variances_swap(near: Near) -> None:
    """N Var D = s_A^2 / lambda + s_B^2 / (1 - lambda), but s_A^2 / (1 - lambda) + s_B^2 / lambda when permuted."""
    rng, simulations, (n_a, n_b), (s_a, s_b) = np.random.default_rng(1), 600, (200, 50), (1.0, 3.0)
    group = np.repeat([0, 1], (n_a, n_b))
    rejected, variances = {"D": 0, "T": 0}, []
    for simulation in range(simulations):
        values = rng.normal(size=n_a + n_b) * np.where(group == 0, s_a, s_b)
        rows = SummedRows(RatioOfSums(np.stack([values, np.ones(n_a + n_b)], axis=-1)), group, (n_a, n_b), simulation)
        observed, drawn = rows.observed, rows.permuted(0, 199)
        difference = drawn.value[0] - drawn.value[1]
        variances.append(difference.var())
        for name, statistic, reference in (
            ("D", observed.value[0] - observed.value[1], difference),
            ("T", studentized(observed), studentized(drawn)),
        ):
            rejected[name] += rejects(reference, statistic)
    sampling, swapped = s_a**2 / n_a + s_b**2 / n_b, s_a**2 / n_b + s_b**2 / n_a
    assert np.mean(variances) == pytest.approx(swapped, rel=0.03)
    expected = level_of_unstudentized(sampling, swapped)
    assert expected > 0.2
    assert near(rejected["D"] / simulations, expected, simulations)
    assert near(rejected["T"] / simulations, 0.05, simulations)


def test_theorem_3_the_studentised_rate_holds_its_level_where_prevalences_differ(tables: Tables, near: Near) -> None:
    """f(1-f)[1/(lambda pi_A) + 1/((1-lambda) pi_B)] / N against f(1-f) / (pibar lambda (1-lambda)) / N."""
    rng, sizes, shares = np.random.default_rng(2), (2000, 2000), (0.8, 0.2)
    drawn = tables(rng, 2000, sizes, shares, (0.75, 0.75))
    sampling = sum(1 / (n * share) for n, share in zip(sizes, shares, strict=True))
    permuting = sum(sizes) / (sizes[0] * sizes[1] * np.mean(shares))
    rejected = {
        method: float((table_p(drawn, "fnr", method=method, rng=rng, draws=399, smoothing=0.0) <= 0.05).mean())
        for method in ("studentized", "unstudentized", "bootstrap", "lift", "exact")
    }
    assert near(rejected["unstudentized"], level_of_unstudentized(sampling, float(permuting)), 2000)
    for method in ("studentized", "bootstrap", "lift"):
        assert near(rejected[method], 0.05, 2000)
    assert 0.03 < rejected["exact"] <= 0.055


def test_with_few_positives_studentising_fails_and_within_outcome_holds(tables: Tables, near: Near) -> None:
    """1000 against 100 rows, 80 % and 20 % positive: about 20 positives in B."""
    rng = np.random.default_rng(3)
    drawn = tables(rng, 2000, (1000, 100), (0.8, 0.2), (0.8, 0.8))

    def level(method: str, smoothing: float = 0.0) -> float:
        p = table_p(drawn, "fnr", method=method, rng=rng, draws=399, smoothing=smoothing)  # type: ignore[arg-type]
        return float((p <= 0.05).mean())

    published, smoothed = level("studentized"), level("studentized", 1.0)
    assert near(published, 0.090, 2000)
    assert smoothed < published - 0.015
    assert near(level("unstudentized"), 0.314, 2000)
    assert near(level("bootstrap"), 0.101, 2000)
    assert near(level("exact"), 0.032, 2000)


def test_at_an_extreme_threshold_walds_variance_rejects_and_the_smoothed_one_does_not(tables: Tables) -> None:
    rng = np.random.default_rng(4)
    drawn = tables(rng, 500, (1000, 100), (0.8, 0.2), (0.95, 0.95))
    published = table_p(drawn, "fnr", method="studentized", rng=rng, draws=399, smoothing=0.0)
    smoothed = table_p(drawn, "fnr", method="studentized", rng=rng, draws=399, smoothing=1.0)
    assert (published <= 0.05).mean() > 0.25
    assert (smoothed <= 0.05).mean() <= 0.03


def test_theorems_1_and_2_the_studentised_auc_holds_its_level_where_prevalences_differ(near: Near) -> None:
    rng, simulations = np.random.default_rng(5), 400
    group = np.repeat([0, 1], (300, 300))
    rejected = {"D": 0, "T": 0}
    for simulation in range(simulations):
        label = (rng.random(600) < np.where(group == 0, 0.8, 0.2)).astype(int)
        score = rng.normal(size=600) + 1.2 * label
        rows = RankedRows.of(label, score, group, 2, simulation)
        observed, drawn = rows.observed, rows.permuted(0, 199)
        for name, statistic, reference in (
            ("D", observed.value[0] - observed.value[1], drawn.value[0] - drawn.value[1]),
            ("T", studentized(observed), studentized(drawn)),
        ):
            rejected[name] += rejects(reference, statistic)
    assert near(rejected["T"] / simulations, 0.05, simulations)
    assert rejected["D"] / simulations > 0.09


def test_section_2_3_the_wrong_group_is_named_with_probability_at_most_half_alpha(near: Near) -> None:
    """A tiny effect of one sign, and spreads that make the unstudentised test reject often, half the time wrongly."""
    rng, simulations, (n_a, n_b) = np.random.default_rng(6), 800, (50, 200)
    group = np.repeat([0, 1], (n_a, n_b))
    wrong = {"unstudentized": 0, "studentized": 0}
    for simulation in range(simulations):
        values = rng.normal(size=n_a + n_b) * np.where(group == 0, 3.0, 1.0) + np.where(group == 0, 0.01, 0.0)
        rows = SummedRows(RatioOfSums(np.stack([values, np.ones(n_a + n_b)], axis=-1)), group, (n_a, n_b), simulation)
        observed, drawn = rows.observed, rows.permuted(0, 199)
        for name, statistic, reference in (
            ("unstudentized", observed.value[0] - observed.value[1], drawn.value[0] - drawn.value[1]),
            ("studentized", studentized(observed), studentized(drawn)),
        ):
            wrong[name] += rejects(reference, statistic, "less", 0.025)
    assert wrong["unstudentized"] / simulations > 0.08
    assert wrong["studentized"] / simulations < 0.025 + 4 * np.sqrt(0.025 * 0.975 / simulations)


def test_power_against_a_real_difference(tables: Tables) -> None:
    rng = np.random.default_rng(7)
    drawn = tables(rng, 300, (1000, 1000), (0.8, 0.2), (0.75, 0.60))
    for method in ("exact", "studentized"):
        p = table_p(drawn, "tpr", method=method, rng=rng, draws=199)  # type: ignore[arg-type]
        assert (p <= 0.05).mean() > 0.9


def test_many_tables_at_once_are_the_tests_one_by_one(tables: Tables) -> None:
    drawn = tables(np.random.default_rng(8), 5, (300, 100), (0.5, 0.3), (0.8, 0.7))
    for method in ("exact", "studentized", "unstudentized", "lift", "bootstrap"):
        together = table_p(drawn, "precision", method=method, rng=np.random.default_rng(1), draws=4000)  # type: ignore[arg-type]
        for table, p in zip(drawn, together, strict=True):
            counts = Counts.of_decisions(table, ("a", "b"))
            alone = permutation_test(
                counts,
                "precision",
                rng=np.random.default_rng(2),
                method=method,  # type: ignore[arg-type]
                draws=4000,
                bootstraps=4000,
            )
            assert alone.p_value == pytest.approx(p, abs=1e-12 if method == "exact" else 0.045)


def test_a_group_without_positives_has_no_p_value_among_many() -> None:
    table = np.array([[[5, 5], [3, 4]], [[5, 5], [0, 0]]])
    for method in ("exact", "studentized", "bootstrap"):
        p = table_p(table[None], "tpr", method=method, rng=np.random.default_rng(1), draws=9)  # type: ignore[arg-type]
        assert np.isnan(p).all()
    with pytest.raises(ValueError, match="expected a rate, found auc"):
        table_p(table[None], "auc", method="exact", rng=np.random.default_rng(1))


def test_binned_auc_draws_are_studentised_to_unit_variance() -> None:
    pooled = np.array([120, 80, 60, 40, 50, 60, 80, 110])
    drawn = split(pooled, [200, int(pooled.sum()) - 200], 4000, np.random.default_rng(9))
    assert np.std(studentized(BinnedAuc(4)(drawn))) == pytest.approx(1, abs=0.05)
