"""Exact tests: Fisher's, with their level in every sample and intervals that agree with them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.exact import Rates, exact_p, odds_ratio, restricted, score, score_interval, statistic

rng = np.random.default_rng(6)
TABLES = [
    Rates(int(rng.integers(0, a + 1)), int(a), int(rng.integers(0, b + 1)), int(b))
    for a, b in rng.integers(1, 60, (60, 2))
]


def fourfold(r: Rates) -> list[list[int]]:
    return [[r.x_a, r.m_a - r.x_a], [r.x_b, r.m_b - r.x_b]]


def test_p_values_are_fishers() -> None:
    for rates in TABLES:
        p = exact_p(rates)
        expected = [stats.fisher_exact(fourfold(rates), kind).pvalue for kind in ("greater", "less", "two-sided")]
        np.testing.assert_allclose([p.greater, p.less, p.two_sided], expected, rtol=1e-8)


def test_the_p_value_is_the_share_of_permutations() -> None:
    rates = Rates(5, 9, 2, 12)
    rows = np.repeat([1, 0], [rates.events, rates.trials - rates.events])
    drawn = rng.permuted(np.tile(rows, (40_000, 1)), axis=1)[:, : rates.m_a].sum(axis=1)
    assert (drawn >= 5).mean() == pytest.approx(exact_p(rates).greater, abs=0.005)


def test_the_level_holds_in_every_sample_and_so_does_the_bound_on_wrong_directions() -> None:
    """Summed over all samples of two small groups, for rates over the whole range: no simulation."""
    m_a, m_b, alpha = 14, 5, 0.05
    cells = [(a, b, exact_p(Rates(a, m_a, b, m_b))) for a in range(m_a + 1) for b in range(m_b + 1)]
    for f in np.linspace(0.02, 0.98, 25):
        chance = {(a, b): stats.binom.pmf(a, m_a, f) * stats.binom.pmf(b, m_b, f) for a, b, _ in cells}
        assert sum(chance[a, b] for a, b, p in cells if p.two_sided <= alpha) <= alpha
        # A slightly larger rate in A: to conclude that B has the larger one is wrong.
        above = {(a, b): stats.binom.pmf(a, m_a, f + 0.01) * stats.binom.pmf(b, m_b, f) for a, b, _ in cells}
        assert sum(above[a, b] for a, b, p in cells if p.less <= alpha / 2) <= alpha / 2


def test_the_statistic_is_standardised_over_the_permutations() -> None:
    rates = Rates(5, 9, 2, 12)
    law = stats.hypergeom(21, 7, 9)
    difference = lambda x: x / 9 - (7 - x) / 12  # noqa: E731
    x = np.arange(8)
    deviation = np.sqrt((law.pmf(x) * difference(x) ** 2).sum())
    assert statistic(rates) == pytest.approx(difference(5) / deviation)


def test_a_hundred_million_rows_are_enumerated() -> None:
    rates = Rates(20_000_000, 50_000_000, 20_012_000, 50_000_000)
    p = exact_p(rates)
    assert p.less == pytest.approx(stats.norm.cdf(statistic(rates)), rel=1e-3)
    assert p.two_sided == pytest.approx(2 * p.less, rel=1e-3)


def test_a_p_value_too_small_for_a_double_is_not_zero() -> None:
    p = exact_p(Rates(10**6, 10**6, 0, 10**6))
    assert 0 < p.two_sided < 1e-300
    assert p.less == 1


def test_the_odds_ratio_and_its_interval_are_the_conditional_ones() -> None:
    for rates in TABLES[:25]:
        estimate, low, high = odds_ratio(rates, 0.1, "two-sided")
        expected = stats.contingency.odds_ratio(fourfold(rates))
        interval = expected.confidence_interval(0.9)
        np.testing.assert_allclose([estimate, low, high], [expected.statistic, *interval], rtol=1e-6)


@pytest.mark.parametrize("kind", ["greater", "less"])
def test_the_odds_ratio_interval_leaves_out_one_where_the_one_sided_test_rejects(kind: str) -> None:
    for rates in TABLES:
        _, low, high = odds_ratio(rates, 0.05, kind)  # type: ignore[arg-type]
        assert (not low <= 1 <= high) == (exact_p(rates).of(kind) <= 0.05)  # type: ignore[arg-type]


def test_the_score_of_no_difference_is_pearsons_chi_square() -> None:
    for rates in TABLES[:20]:
        if 0 < rates.events < rates.trials:
            expected = stats.chi2_contingency(fourfold(rates), correction=False).statistic
            assert score(rates, 0.0) ** 2 == pytest.approx(expected * (rates.trials - 1) / rates.trials)


@pytest.mark.parametrize("d", [-0.7, -0.2, 0.1, 0.55])
def test_restricted_rates_differ_by_d_and_are_the_likeliest(d: float) -> None:
    for rates in TABLES[:20]:
        f_a, f_b = restricted(rates, d)
        assert f_a - f_b == pytest.approx(d)
        grid = np.linspace(max(0, -d), min(1, 1 - d), 2001)
        log_likelihood = stats.binom.logpmf(rates.x_a, rates.m_a, np.clip(grid + d, 0, 1)) + stats.binom.logpmf(
            rates.x_b, rates.m_b, grid
        )
        assert f_b == pytest.approx(grid[np.argmax(log_likelihood)], abs=1e-3)


def test_the_score_interval_inverts_the_score_test() -> None:
    for rates in TABLES:
        low, high = score_interval(rates, 0.05, "two-sided")
        assert -1 <= low <= rates.difference <= high <= 1
        for end in (low, high):
            assert abs(end) == 1 or abs(score(rates, end)) == pytest.approx(stats.norm.ppf(0.975), rel=1e-6)
        assert score_interval(rates, 0.025, "greater") == (pytest.approx(low), 1.0)
        assert score_interval(rates, 0.025, "less") == (-1.0, pytest.approx(high))


def test_the_score_interval_covers_the_difference_of_unequal_rates() -> None:
    f_a, f_b, m_a, m_b = 0.3, 0.1, 60, 25
    covered = 0.0
    for a in range(m_a + 1):
        for b in range(m_b + 1):
            chance = stats.binom.pmf(a, m_a, f_a) * stats.binom.pmf(b, m_b, f_b)
            if chance > 1e-5:
                low, high = score_interval(Rates(a, m_a, b, m_b), 0.05, "two-sided")
                covered += chance * (low <= f_a - f_b <= high)
    assert covered == pytest.approx(0.95, abs=0.02)


def test_the_score_interval_by_itself_leaves_out_all_zeros_that_the_exact_test_rejects() -> None:
    """So it needs no more than to be extended to 0, in the few tables where the exact test is the stricter one."""
    tables = [Rates(a, 12, b, m) for m in (6, 14) for a in range(13) for b in range(m + 1)]
    zero_kept = extended = 0
    for rates in tables:
        low, high = score_interval(rates, 0.05, "two-sided")
        inside, rejected = low <= 0 <= high, exact_p(rates).two_sided <= 0.05
        assert inside == (abs(score(rates, 0.0)) <= stats.norm.ppf(0.975))
        assert not (inside and rejected)
        zero_kept += inside
        extended += not inside and not rejected
    assert zero_kept > 0.4 * len(tables)
    assert 0 < extended < 0.12 * len(tables)
