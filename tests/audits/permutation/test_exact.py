"""Exact tests: Fisher's, with their level in every sample, intervals that agree with them, and hypergeometric draws."""

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation import draws
from pipeline.audits.permutation.draws import draw, draw_huge, window
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


# The hypergeometric law around a centre, and draws from it at any size.


@pytest.mark.parametrize(
    ("marked", "total", "size"), [(7, 20, 9), (300, 1000, 40), (0, 5, 2), (5, 5, 3), (950, 1000, 999)]
)
def test_the_window_holds_the_whole_law(marked: int, total: int, size: int) -> None:
    x, log_weight = window(marked, total, size)
    weight = np.exp(log_weight)
    support = np.arange(max(0, size - total + marked), min(size, marked) + 1)
    np.testing.assert_array_equal(x, support)
    np.testing.assert_allclose(weight / weight.sum(), stats.hypergeom.pmf(x, total, marked, size), rtol=1e-9)


def test_what_a_window_leaves_out_underflows() -> None:
    x, log_weight = window(3 * 10**8, 10**9, 5 * 10**8)
    assert len(x) < 2e6
    assert max(log_weight[0], log_weight[-1]) < -700
    assert x[np.argmax(log_weight)] == pytest.approx(1.5e8, abs=1)


def test_large_draws_follow_the_law(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "SMALLEST_STIRLING", 20)
    for marked, others, size in ((40, 60, 30), (3, 500, 100), (2000, 3000, 900)):
        n = 20_000
        each = [np.full(n, v) for v in (marked, others, size)]
        drawn = draw_huge(each[0], each[1], each[2], np.random.default_rng(3))
        x = np.arange(drawn.min(), drawn.max() + 1)
        expected = n * stats.hypergeom.pmf(x, marked + others, marked, size)
        seen = np.bincount(drawn - x[0])
        kept = expected > 5
        p = stats.chisquare(seen[kept], expected[kept] * seen[kept].sum() / expected[kept].sum()).pvalue
        assert p > 1e-3


def test_beyond_numpys_limit_draws_have_the_moments_of_the_law() -> None:
    marked, others, size = 3 * 10**12, 5 * 10**12, 2 * 10**12
    drawn = draw(np.full(20_000, marked), np.array(others), np.array(size), np.random.default_rng(4))
    total = marked + others
    deviation = np.sqrt(size * (marked / total) * (others / total) * (total - size) / (total - 1))
    z = (drawn - size * marked / total) / deviation
    assert stats.kstest(z, "norm").pvalue > 1e-3


def test_draws_of_mixed_sizes_are_each_of_their_own_law() -> None:
    marked = np.array([2 * 10**9, 50])
    drawn = draw(marked[:, None], np.array([[2 * 10**9], [50]]), np.full((2, 4000), 20), np.random.default_rng(5))
    assert drawn.mean(axis=1) == pytest.approx([10, 10], abs=0.2)
    assert drawn.var(axis=1) == pytest.approx([5, 5 * 80 / 99], rel=0.1)
