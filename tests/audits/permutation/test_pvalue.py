"""p-values of random permutations, their error, stopping early, and the step-down form of the largest |T|."""

import math
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from fairness_audits.audits.inference import wilson_interval
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.draws import BLOCK, CountResampler, draw
from fairness_audits.audits.permutation.exact import Rates, exact_p, statistic
from fairness_audits.audits.permutation.intervals import inverted, newcombe
from fairness_audits.audits.permutation.monte_carlo import (
    Alternative,
    MonteCarlo,
    SafeStop,
    Settings,
    extreme,
    furthest,
    monte_carlo_p,
    until_safe,
)
from fairness_audits.audits.permutation.pairs import largest_p
from fairness_audits.audits.permutation.statistics import MetricEstimate, Proportion
from fairness_audits.results.estimate import Estimate
from fairness_audits.values import Array
from pipeline.report.rules import shares
from tests.audits.permutation.builders import at_most, simulate

DRAWS = [np.inf, -np.inf, np.nan, 3.0, 1.5, 0.0, -1.5, -3.0, 1.5 * (1 - 1e-15), -1.5 * (1 - 1e-15)]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("observed", [np.inf, -np.inf, 1.5, -1.5, 2.0, 0.0, np.nan])
def test_p_is_the_share_of_draws_as_extreme_be_they_finite_or_not(observed: float, alternative: Alternative) -> None:
    def as_extreme(draw: float) -> bool:
        if math.isnan(draw) or math.isnan(observed):
            return True
        if alternative == "two-sided":
            draw, own = abs(draw), abs(observed)
        else:
            draw, own = (draw, observed) if alternative == "greater" else (-draw, -observed)
        return draw >= own or math.isclose(draw, own)  # a tie, up to rounding

    p = (1 + sum(map(as_extreme, DRAWS))) / (1 + len(DRAWS))
    assert monte_carlo_p(extreme(np.array(DRAWS), observed, alternative).sum(), len(DRAWS)) == p
    # Of several statistics each has its own draws.
    beyond = extreme(np.array([DRAWS, [0.5] * len(DRAWS)]), np.array([observed, 1.0]), alternative)
    assert monte_carlo_p(beyond[0].sum(), len(DRAWS)) == p
    assert beyond[1].all() == (alternative == "less")


def test_a_statistic_beyond_the_furthest_draw_is_one_that_is_rejected() -> None:
    drawn = np.random.default_rng(5).normal(size=(3, 199))
    drawn[1, :9], drawn[2, :12] = np.nan, np.inf
    edge = furthest(np.abs(drawn), 0.05)
    for own, draws in zip(edge, drawn, strict=True):
        p = monte_carlo_p(extreme(draws, own * np.array([1, 1 + 1e-9]), "two-sided").sum(axis=-1), 199)
        assert (p[0] > 0.05, p[1] <= 0.05) == (True, np.isfinite(own))
    assert np.isfinite(edge).tolist() == [True, True, False]
    assert np.isinf(furthest(np.abs(drawn[:, :10]), 0.05)).all()


def test_stopping_early_decides_wrongly_no_more_often_than_the_risk() -> None:
    """At p = alpha itself, the hardest case, the chance ever to stop is at most the risk."""
    stop, rng = SafeStop(alpha=0.1, risk=0.05), np.random.default_rng(2)
    ever = sum(stop.first_stop(rng.random(3000) < 0.1, 0, 0) is not None for _ in range(2000)) / 2000
    assert 0.001 < ever <= 0.05


def test_blocks_of_draws_stop_where_one_run_would() -> None:
    stop, extremes = SafeStop(alpha=0.05, risk=1e-3), np.random.default_rng(4).random(3000) < 0.09
    whole = stop.first_stop(extremes, 0, 0)
    assert whole is not None
    first = whole - whole % 100
    for start in range(0, first + 1, 100):
        found = stop.first_stop(extremes[start : start + 100], start, int(extremes[:start].sum()))
        assert found == (whole - first if start == first else None)


def test_the_interval_holds_the_p_values_that_could_not_have_stopped() -> None:
    stop, counts = SafeStop(alpha=0.05, risk=1e-3), (np.array(1000), np.array(30))
    low, high = stop.interval(30, 1000)
    wide = wilson_interval(0.03, 1000, level=0.999)
    assert low < wide[0] < 0.03 < wide[1] < high
    for edge, out in ((low, low * 0.99), (high, high * 1.01)):
        assert stop._log_evidence(*counts, (edge + 0.03) / 2) > np.log(1e-3) > stop._log_evidence(*counts, out)
    assert (stop.interval(0, 500)[0], stop.interval(500, 500)[1]) == (0, 1)


# The step-down form of the largest |T|.
PAIRS = list(combinations(range(4), 2))
EVERY = np.ones(len(PAIRS), dtype=bool)


def drawn(values: Array, permuted: Array) -> Any:
    """A resampler of what it is given: values (G,) and (G, B), variances 1/2, so that T is a difference of values."""

    def block(number: int, size: int) -> MetricEstimate:
        part = permuted[:, number * BLOCK : number * BLOCK + size]
        return MetricEstimate(part, np.full(part.shape, 0.5))

    return SimpleNamespace(observed=MetricEstimate(values, np.full(len(values), 0.5)), permuted=block)


def differences(values: Array) -> Array:
    """|T| of every pair, of values (G, ...)."""
    return np.array([abs(values[a] - values[b]) for a, b in PAIRS])


def by_definition(values: Array, permuted: Array, known: Array) -> Array:
    """One loop over pairs in descending order of |T|, each against the largest |T*| of itself and those after it."""
    t, drawn = differences(values), differences(permuted)
    order = [int(pair) for pair in np.argsort(-t) if known[pair]]
    p, reached = np.full(len(PAIRS), np.nan), 0.0
    for place, pair in enumerate(order):
        beyond = (drawn[order[place:]].max(axis=0) >= t[pair]).sum()
        reached = p[pair] = max(reached, (1 + beyond) / (permuted.shape[1] + 1))
    return p


@pytest.mark.parametrize("draws", [37, BLOCK + 300])
def test_each_pair_is_compared_with_the_largest_of_those_that_are_left(draws: int) -> None:
    rng = np.random.default_rng(1)
    values, permuted = np.array([0.0, 0.4, 1.1, 2.9]), rng.normal(size=(4, draws)) / np.sqrt(2)
    for known in (EVERY, np.array([True, False, True, True, True, False])):
        found = largest_p(drawn(values, permuted), PAIRS, known, draws)
        np.testing.assert_allclose(found, by_definition(values, permuted, known))


def test_pairs_with_an_infinite_statistic_are_the_most_extreme_and_permutations_without_one_count_as_such() -> None:
    permuted = np.random.default_rng(3).normal(size=(4, 99))
    values = np.array([0.0, 2.2, 0.1, np.inf])
    found = largest_p(drawn(values, permuted), PAIRS, EVERY, 99)
    np.testing.assert_allclose(found, by_definition(values, permuted, EVERY))
    assert [found[pair] for pair, groups in enumerate(PAIRS) if 3 in groups] == [1 / 100] * 3
    permuted = np.zeros((4, 99))
    permuted[0, :9] = np.nan
    p = largest_p(drawn(np.array([0.0, 0.0, 0.0, 3.0]), permuted), PAIRS, EVERY, 99)
    assert p[PAIRS.index((2, 3))] == pytest.approx(10 / 100)


def test_where_one_rate_differs_the_others_are_falsely_rejected_no_more_often_than_the_level() -> None:
    """Rates .6, .6, .6 and .9: the three false rejections that are possible, together, at most one time in twenty."""
    false, true, simulations, positives = 0, 0, 400, np.array([120, 60, 90, 150])
    equal = [pair for pair, groups in enumerate(PAIRS) if 3 not in groups]
    for simulation in range(simulations):
        hits = np.random.default_rng(simulation).binomial(positives, [0.6, 0.6, 0.6, 0.9])
        counts = np.stack([hits, positives - hits, np.zeros(4, dtype=int)], axis=-1)
        p = largest_p(CountResampler(Proportion(1.0), counts, simulation), PAIRS, EVERY, 199)
        false += bool((p[equal] <= 0.05).any())
        true += bool((np.delete(p, equal) <= 0.05).any())
    assert false / simulations > 0.015
    assert at_most(false / simulations, 0.05, simulations)
    assert true / simulations > 0.95


@pytest.mark.parametrize("statistic", [-2.5, -0.3, 0.0, 1.1, 4.0])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.4])
def test_p_doubles_the_nearer_tail_and_the_interval_holds_what_is_not_rejected(statistic: float, alpha: float) -> None:
    def at(shift: float) -> MonteCarlo:
        return MonteCarlo(statistic - shift, statistic - shift, 1.0, reference, stopped=False)

    reference = np.random.default_rng(1).gumbel(size=999)
    p = {side: at(0.0).p(side) for side in ("greater", "less", "equal-tailed")}
    assert p["equal-tailed"] == min(1.0, 2 * min(p["greater"], p["less"]))
    low, high = inverted(at(0.0), alpha, "equal-tailed")
    assert (low <= 0 <= high) == (p["equal-tailed"] > alpha)
    assert max(at(beyond).p("equal-tailed") for beyond in (low - 1e-9, high + 1e-9)) <= alpha


def test_of_a_symmetric_law_both_two_sided_tests_are_one_and_exact_ones_double_the_nearer_tail_too() -> None:
    half = np.random.default_rng(2).normal(size=500)
    found = MonteCarlo(1.7, 1.7, 1.0, np.concatenate([half, -half]), stopped=False)
    assert found.extremes("two-sided") == 2 * found.extremes("equal-tailed")
    assert inverted(found, 0.05, "two-sided") == pytest.approx(inverted(found, 0.05, "equal-tailed"), abs=0.02)
    exact = exact_p(Rates(3, 40, 11, 30))
    assert exact.of("equal-tailed") == 2 * exact.less < 1
    assert exact_p(Rates(5, 10, 5, 10)).of("equal-tailed") == 1


def test_few_rows_against_many_that_are_ranked_almost_without_a_fault() -> None:
    """Areas of .5 and .96."""
    few, many = np.sqrt(2) * stats.norm.ppf([0.5, 0.96])
    data = simulate(np.random.default_rng(0), (100, 3900), (0.3, 0.3), (few, many))
    found: list[Any] = [
        permutation_test(data, "auc", rng=np.random.default_rng(1), draws=2000, alternative=side)
        for side in ("two-sided", "equal-tailed")
    ]
    two, equal = found
    assert (equal.p_value, equal.direction) == (pytest.approx(2 / 2001), -1)
    assert two.p_value > 5 * equal.p_value
    # The metric of AUCs differs by at most 1.
    assert -1 < equal.ci_low < equal.ci_high < -0.2


def test_drawing_stops_when_the_nearer_tail_is_safe_at_half_the_level() -> None:
    rng = np.random.default_rng(3)
    settings = Settings(alternative="equal-tailed", draws=100_000, resampling_risk=0.001)
    drawn, stopped = until_safe(lambda _, size: rng.normal(size=size), -5.0, settings)
    assert stopped
    assert len(drawn) < 5_000


# Exact tests: Fisher's, with their level in every sample, intervals that agree with them, and hypergeometric draws.
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


def chances(rates: Rates, f_a: float, f_b: float) -> float:
    """The chance of two independent counts."""
    return float(stats.binom.pmf(rates.x_a, rates.m_a, f_a) * stats.binom.pmf(rates.x_b, rates.m_b, f_b))


def samples(m_a: int, m_b: int) -> list[Rates]:
    """All that there are of two groups."""
    return [Rates(a, m_a, b, m_b) for a in range(m_a + 1) for b in range(m_b + 1)]


def test_the_level_holds_in_every_sample_and_so_does_the_bound_on_wrong_directions() -> None:
    """Summed over all samples of two small groups, for rates over the whole range: no simulation."""
    alpha, p = 0.05, {rates: exact_p(rates) for rates in samples(14, 5)}
    for f in np.linspace(0.02, 0.98, 25):
        assert sum(chances(rates, f, f) for rates in p if p[rates].two_sided <= alpha) <= alpha
        # A slightly larger rate in A: to conclude that B has the larger one is wrong.
        assert sum(chances(rates, f + 0.01, f) for rates in p if p[rates].less <= alpha / 2) <= alpha / 2


def test_the_statistic_is_standardised_over_the_permutations() -> None:
    # Of x hits in A the difference is x / 9 - (7 - x) / 12.
    deviation = (1 / 9 + 1 / 12) * stats.hypergeom(21, 7, 9).std()
    assert statistic(Rates(5, 9, 2, 12)) == pytest.approx((5 / 9 - 2 / 12) / deviation)


def test_a_hundred_million_rows_are_enumerated_and_no_p_value_is_zero() -> None:
    rates = Rates(20_000_000, 50_000_000, 20_012_000, 50_000_000)
    p = exact_p(rates)
    assert (p.less, p.two_sided) == pytest.approx((stats.norm.cdf(statistic(rates)), 2 * p.less), rel=1e-3)
    p = exact_p(Rates(10**6, 10**6, 0, 10**6))
    assert 0 < p.two_sided < 1e-300
    assert p.less == 1


def test_newcombes_interval_covers_the_difference_of_unequal_rates() -> None:
    covered = 0.0
    for rates in samples(60, 25):
        if (chance := chances(rates, 0.3, 0.1)) > 1e-5:
            low, high = newcombe(rates, 0.05, "two-sided")
            covered += chance * (low <= 0.3 - 0.1 <= high)
    assert covered == pytest.approx(0.95, abs=0.02)
    low, high = newcombe(TABLES[0], 0.05, "two-sided")
    assert newcombe(TABLES[0], 0.025, "greater") == (low, 1.0)
    assert newcombe(TABLES[0], 0.025, "less") == (-1.0, high)
    # Newcombe 1998, table II, method 10.
    published = newcombe(Rates(56, 70, 48, 80), 0.05, "two-sided")
    assert published == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize("rates", [Rates(56, 70, 48, 80), Rates(0, 9, 3, 8), Rates(5, 5, 5, 5), Rates(1, 3, 7, 900)])
def test_the_report_and_the_audit_give_one_interval_for_a_difference_of_shares(rates: Rates) -> None:
    ours, published = (Estimate(x / m, n=m) for x, m in ((rates.x_a, rates.m_a), (rates.x_b, rates.m_b)))
    found = shares(published, ours, 0.0, 0.95)
    assert (found.low, found.high) == newcombe(rates, 0.05, "two-sided")


def test_newcombes_interval_by_itself_leaves_out_all_zeros_that_the_exact_test_rejects() -> None:
    """So it needs no more than to be extended to 0, in the few tables where the exact test is the stricter one."""
    tables = samples(12, 6) + samples(12, 14)
    zero_kept = extended = 0
    for rates in tables:
        low, high = newcombe(rates, 0.05, "two-sided")
        inside, rejected = low <= 0 <= high, exact_p(rates).two_sided <= 0.05
        assert not (inside and rejected)
        zero_kept += inside
        extended += not inside and not rejected
    assert zero_kept > 0.4 * len(tables)
    assert 0 < extended < 0.12 * len(tables)


@pytest.mark.parametrize(
    ("marked", "others", "size"),
    [
        *((3 * 10**12, 5 * 10**12, 2 * 10**12), (9 * 10**9, 2 * 10**9, 8 * 10**9), (10**10, 10**10, 40)),
        *((50, 10**9, 6 * 10**8), (10**9, 300, 7 * 10**8), (2 * 10**9, 10**9, 3 * 10**9 - 60), (10**7, 10**13, 10**7)),
    ],
)
def test_beyond_numpys_limit_draws_have_the_moments_of_the_law(marked: int, others: int, size: int) -> None:
    drawn = draw(np.full(20_000, marked), np.array(others), np.array(size), np.random.default_rng(4))
    # SciPy's law overflows here.
    total = marked + others
    deviation = np.sqrt(size * (marked / total) * (others / total) * (total - size) / (total - 1))
    z = (drawn - size * marked / total) / deviation
    assert (z.mean(), z.std()) == pytest.approx((0, 1), abs=0.03)
    assert (drawn >= max(0, size - others)).all()
    assert (drawn <= min(size, marked)).all()
    assert deviation < 1e3 or stats.kstest(z, "norm").pvalue > 1e-3


def test_draws_of_mixed_sizes_are_each_of_their_own_law() -> None:
    marked = np.array([2 * 10**9, 50])
    drawn = draw(marked[:, None], np.array([[2 * 10**9], [50]]), np.full((2, 4000), 20), np.random.default_rng(5))
    assert drawn.mean(axis=1) == pytest.approx([10, 10], abs=0.2)
    assert drawn.var(axis=1) == pytest.approx([5, 5 * 80 / 99], rel=0.1)
