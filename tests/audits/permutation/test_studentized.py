"""The theorems of DiCiccio et al. 2020: where the level of which test holds.

With the metric equal in both groups and nothing else, a permuted difference has a variance of its own, so the test of D
has level 2 Phi(-1.96 sqrt(its variance when permuted / its variance)), and that of T has level alpha.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from pipeline.audits.permutation.draws import split
from pipeline.audits.permutation.many_samples import table_p
from pipeline.audits.permutation.outcomes import Counts
from pipeline.audits.permutation.pvalue import Alternative, extreme, monte_carlo_p
from pipeline.audits.permutation.rows import SummedRows
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.simulations import sampled
from pipeline.audits.permutation.statistics import BinnedAuc, RatioOfSums, studentized

Near = Callable[..., bool]


def rejected(
    rng: np.random.Generator,
    simulations: int,
    sizes: tuple[int, int],
    spreads: tuple[float, float],
    shift: float = 0.0,
    alternative: Alternative = "two-sided",
    alpha: float = 0.05,
) -> tuple[float, float, float]:
    """Shares of samples in which D and T of two means are rejected, and the mean variance of permuted D.

    Group A is normal with the first spread and the mean ``shift``, group B with the second and the mean 0.
    """
    group, found = np.repeat([0, 1], sizes), []
    for simulation in range(simulations):
        values = rng.normal(size=len(group)) * np.array(spreads)[group] + np.where(group == 0, shift, 0.0)
        rows = SummedRows(RatioOfSums(np.stack([values, np.ones(len(group))], axis=-1)), group, sizes, simulation)
        observed, drawn = rows.observed, rows.permuted(0, 199)
        permuted = drawn.value[0] - drawn.value[1]
        tests = (observed.value[0] - observed.value[1], permuted), (studentized(observed), studentized(drawn))
        p = [monte_carlo_p(extreme(reference, own, alternative).sum(), 199) for own, reference in tests]
        found.append([p[0] <= alpha, p[1] <= alpha, permuted.var()])
    return tuple(np.mean(found, axis=0))


def test_means_section_2_2_the_weights_of_the_variances_swap(near: Near) -> None:
    """N Var D = s_A^2 / lambda + s_B^2 / (1 - lambda), but s_A^2 / (1 - lambda) + s_B^2 / lambda when permuted."""
    simulations, (n_a, n_b), (s_a, s_b) = 600, (200, 50), (1.0, 3.0)
    plain, studentised, variance = rejected(np.random.default_rng(1), simulations, (n_a, n_b), (s_a, s_b))
    sampling, swapped = s_a**2 / n_a + s_b**2 / n_b, s_a**2 / n_b + s_b**2 / n_a
    assert variance == pytest.approx(swapped, rel=0.03)
    expected = float(2 * ndtr(-ndtri(0.975) * np.sqrt(swapped / sampling)))
    assert expected > 0.2
    assert near(plain, expected, simulations)
    assert near(studentised, 0.05, simulations)


def test_with_few_positives_studentising_fails_and_within_outcome_holds(near: Near) -> None:
    """1000 against 100 rows, 80 % and 20 % positive: about 20 positives in B."""
    rng = np.random.default_rng(3)
    drawn = sampled((1000, 100), (0.8, 0.2), (0.8, 0.8), 0.8, 2000, rng)

    def level(method: str, smoothing: float = 0.0) -> float:
        p = table_p(drawn, "fnr", method=method, rng=rng, draws=399, smoothing=smoothing)  # type: ignore[arg-type]
        return float((p <= 0.05).mean())

    published, smoothed = level("studentized"), level("studentized", 1.0)
    assert near(published, 0.090, 2000)
    assert smoothed < published - 0.015
    assert near(level("unstudentized"), 0.314, 2000)
    assert near(level("bootstrap"), 0.101, 2000)
    assert near(level("exact"), 0.032, 2000)


def test_at_an_extreme_threshold_walds_variance_rejects_and_the_smoothed_one_does_not() -> None:
    rng = np.random.default_rng(4)
    drawn = sampled((1000, 100), (0.8, 0.2), (0.95, 0.95), 0.95, 500, rng)
    published = table_p(drawn, "fnr", method="studentized", rng=rng, draws=399, smoothing=0.0)
    smoothed = table_p(drawn, "fnr", method="studentized", rng=rng, draws=399, smoothing=1.0)
    assert (published <= 0.05).mean() > 0.25
    assert (smoothed <= 0.05).mean() <= 0.03


def test_section_2_3_the_wrong_group_is_named_with_probability_at_most_half_alpha() -> None:
    """A tiny effect of one sign, and spreads that make the unstudentised test reject often, half the time wrongly."""
    plain, studentised, _ = rejected(np.random.default_rng(6), 800, (50, 200), (3.0, 1.0), 0.01, "less", 0.025)
    assert plain > 0.08
    assert studentised < 0.025 + 4 * np.sqrt(0.025 * 0.975 / 800)


def test_many_tables_at_once_are_the_tests_one_by_one() -> None:
    drawn = sampled((300, 100), (0.5, 0.3), (0.8, 0.7), 0.75, 5, np.random.default_rng(8))
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
