"""p-values of random permutations, their error, stopping early, and the step-down form of the largest |T|."""

import math
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.draws import BLOCK, CountResampler
from pipeline.audits.permutation.pairs import largest_p
from pipeline.audits.permutation.pvalue import Alternative, SafeStop, bound, extreme, furthest, monte_carlo_p, wilson
from pipeline.audits.permutation.statistics import MetricEstimate, Proportion
from pipeline.types import Array


def test_among_exchangeable_statistics_the_p_value_keeps_its_level_for_any_number_of_draws() -> None:
    rng = np.random.default_rng(1)
    for draws in (19, 20, 37):
        drawn = rng.integers(0, 50, (100_000, draws + 1))
        p = monte_carlo_p(extreme(drawn[:, 1:], drawn[:, 0], "greater").sum(axis=1), draws)
        for alpha in (0.05, 0.1, 0.3):
            assert (p <= alpha).mean() <= alpha + 0.003
        assert p.min() == 1 / (draws + 1)


DRAWS = [np.inf, -np.inf, np.nan, 3.0, 1.5, 0.0, -1.5, -3.0, 1.5 * (1 - 1e-15), -1.5 * (1 - 1e-15)]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("observed", [np.inf, -np.inf, 1.5, -1.5, 2.0, 0.0, np.nan])
def test_p_is_the_share_of_draws_at_least_as_extreme_be_they_finite_or_not(
    observed: float, alternative: Alternative
) -> None:
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


def test_without_a_scale_a_bound_is_nothing_or_infinite() -> None:
    units, scale = np.array([2.0, 0.0, 2.0, np.inf, np.inf]), np.array([0.5, 0.0, 0.0, 0.0, 0.5])
    np.testing.assert_array_equal(bound(units, scale), [1, 0, 0, np.inf, np.inf])


def test_wilsons_interval_by_hand_and_its_ends() -> None:
    z = stats.norm.ppf(0.975)
    ends = np.roots([1 + z**2 / 10, -(0.6 + z**2 / 10), 0.09])
    assert wilson(3, 10) == pytest.approx(tuple(np.sort(ends)))
    assert (wilson(0, 10)[0], wilson(10, 10)[1]) == (0, 1)


def test_stopping_early_decides_wrongly_no_more_often_than_the_risk() -> None:
    """At p = alpha itself, the hardest case, the chance ever to stop is at most the risk."""
    stop, rng = SafeStop(alpha=0.1, risk=0.05), np.random.default_rng(2)
    ever = sum(stop.first_stop(rng.random(3000) < 0.1, 0, 0) is not None for _ in range(2000)) / 2000
    assert 0.001 < ever <= 0.05


def test_a_clear_p_value_stops_soon_and_the_decision_is_right() -> None:
    stop, rng = SafeStop(alpha=0.05, risk=1e-3), np.random.default_rng(3)
    for p, rejects in ((0.4, False), (0.001, True)):
        extremes = rng.random(5000) < p
        last = stop.first_stop(extremes, 0, 0)
        assert last is not None
        assert stop.fewest <= last + 1 < 400
        assert (extremes[: last + 1].mean() <= 0.05) == rejects


def test_blocks_of_draws_stop_where_one_run_would() -> None:
    stop, extremes = SafeStop(alpha=0.05, risk=1e-3), np.random.default_rng(4).random(3000) < 0.09
    whole = stop.first_stop(extremes, 0, 0)
    found = None
    for start, end in pairwise(range(0, 3001, 100)):
        found = stop.first_stop(extremes[start:end], start, int(extremes[:start].sum()))
        if found is not None:
            found += start
            break
    assert whole is not None
    assert found == whole


def test_the_interval_holds_the_p_values_that_could_not_have_stopped() -> None:
    stop = SafeStop(alpha=0.05, risk=1e-3)
    low, high = stop.interval(30, 1000)
    assert low < 0.03 < high
    wide = wilson(30, 1000, level=0.999)
    assert low < wide[0]
    assert high > wide[1]
    for edge, out in ((low, low * 0.99), (high, high * 1.01)):
        inside = SafeStop(alpha=(edge + 0.03) / 2, risk=1e-3)
        assert inside._log_evidence(np.array(1000), np.array(30), inside.alpha) > np.log(1e-3)
        assert inside._log_evidence(np.array(1000), np.array(30), out) < np.log(1e-3)
    assert stop.interval(0, 500)[0] == 0
    assert stop.interval(500, 500)[1] == 1


# The step-down form of the largest |T|.


PAIRS = list(combinations(range(4), 2))
EVERY = np.ones(len(PAIRS), dtype=bool)


@dataclass(frozen=True)
class Drawn:
    """A resampler of what it is given: values (G,) and (G, B), variances 1/2, so that T is a difference of values."""

    values: Array
    permuted_values: Array

    @property
    def observed(self) -> MetricEstimate:
        return MetricEstimate(self.values, np.full(self.values.shape, 0.5))

    @property
    def units(self) -> tuple[int, ...]:
        return (1,) * len(self.values)

    def permuted(self, block: int, size: int) -> MetricEstimate:
        drawn = self.permuted_values[:, block * BLOCK : block * BLOCK + size]
        return MetricEstimate(drawn, np.full(drawn.shape, 0.5))

    def bootstrapped(self, block: int, size: int, pooled: bool) -> Array:
        raise NotImplementedError


def by_definition(values: Array, permuted: Array, known: Array) -> Array:
    """One loop over pairs in descending order of |T|, each against the largest |T*| of itself and those after it."""
    t = np.array([abs(values[a] - values[b]) for a, b in PAIRS])
    drawn = np.array([np.abs(permuted[a] - permuted[b]) for a, b in PAIRS])
    order = [int(pair) for pair in np.argsort(-t) if known[pair]]
    p, reached = np.full(len(PAIRS), np.nan), 0.0
    for place, pair in enumerate(order):
        beyond = sum(drawn[order[place:], b].max() >= t[pair] for b in range(permuted.shape[1]))
        reached = max(reached, (1 + beyond) / (permuted.shape[1] + 1))
        p[pair] = reached
    return p


@pytest.mark.parametrize("draws", [37, BLOCK + 300])
def test_each_pair_is_compared_with_the_largest_of_those_that_are_left(draws: int) -> None:
    rng = np.random.default_rng(1)
    values, permuted = np.array([0.0, 0.4, 1.1, 2.9]), rng.normal(size=(4, draws)) / np.sqrt(2)
    for known in (EVERY, np.array([True, False, True, True, True, False])):
        found = largest_p(Drawn(values, permuted), PAIRS, known, draws)
        np.testing.assert_allclose(found, by_definition(values, permuted, known))


def test_one_outlying_group_does_not_hide_the_others_and_never_costs_them() -> None:
    """Single-step p-values, (1 + #{max of all >= |T|}) / (B + 1), are never smaller, and some are larger."""
    rng = np.random.default_rng(2)
    values, permuted = np.array([0.0, 2.2, 0.1, 9.0]), rng.normal(size=(4, 2000)) / np.sqrt(2)
    stepped = largest_p(Drawn(values, permuted), PAIRS, EVERY, 2000)
    t = np.array([abs(values[a] - values[b]) for a, b in PAIRS])
    largest = np.array([np.abs(permuted[a] - permuted[b]) for a, b in PAIRS]).max(axis=0)
    single = (1 + (largest >= t[:, None]).sum(axis=1)) / 2001
    assert (stepped <= single).all()
    assert stepped[PAIRS.index((0, 1))] < 0.6 * single[PAIRS.index((0, 1))]


def test_a_statistic_that_a_permutation_does_not_have_counts_as_extreme() -> None:
    permuted = np.zeros((4, 99))
    permuted[0, :9] = np.nan
    p = largest_p(Drawn(np.array([0.0, 0.0, 0.0, 3.0]), permuted), PAIRS, EVERY, 99)
    assert p[PAIRS.index((2, 3))] == pytest.approx(10 / 100)


def test_pairs_with_an_infinite_statistic_are_the_most_extreme() -> None:
    permuted = np.random.default_rng(3).normal(size=(4, 99))
    values = np.array([0.0, 2.2, 0.1, np.inf])
    found = largest_p(Drawn(values, permuted), PAIRS, EVERY, 99)
    np.testing.assert_allclose(found, by_definition(values, permuted, EVERY))
    assert [found[pair] for pair, groups in enumerate(PAIRS) if 3 in groups] == [1 / 100] * 3


def test_where_one_rate_differs_the_others_are_falsely_rejected_no_more_often_than_the_level() -> None:
    """Rates .6, .6, .6 and .9: the three false rejections that are possible, together, at most one time in twenty."""
    false, true, simulations, positives = 0, 0, 400, np.array([120, 60, 90, 150])
    equal = [pair for pair, groups in enumerate(PAIRS) if 3 not in groups]
    for simulation in range(simulations):
        rng = np.random.default_rng(simulation)
        hits = rng.binomial(positives, [0.6, 0.6, 0.6, 0.9])
        counts = np.stack([hits, positives - hits, np.zeros(4, dtype=int)], axis=-1)
        source = CountResampler(Proportion(1.0), counts, simulation)
        p = largest_p(source, PAIRS, EVERY, 199)
        false += bool((p[equal] <= 0.05).any())
        true += bool((np.delete(p, equal) <= 0.05).any())
    assert 0.015 < false / simulations < 0.05 + 4 * np.sqrt(0.05 * 0.95 / simulations)
    assert true / simulations > 0.95
