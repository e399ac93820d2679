"""p-values of random permutations, their error, and stopping early."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.permutation.pvalue import Alternative, SafeStop, bound, extreme, furthest, monte_carlo_p, wilson


def test_among_exchangeable_statistics_the_p_value_keeps_its_level_for_any_number_of_draws() -> None:
    rng = np.random.default_rng(1)
    for draws in (19, 20, 37):
        drawn = rng.integers(0, 50, (100_000, draws + 1))
        p = monte_carlo_p(extreme(drawn[:, 1:], drawn[:, 0], "greater").sum(axis=1), draws)
        for alpha in (0.05, 0.1, 0.3):
            assert (p <= alpha).mean() <= alpha + 0.003
        assert p.min() == 1 / (draws + 1)


@pytest.mark.parametrize(
    ("observed", "alternative", "expected"),
    [
        (2.0, "two-sided", [True, False, True, True]),
        (-2.0, "two-sided", [True, False, True, True]),
        (2.0, "greater", [False, False, True, True]),
        (-2.0, "less", [True, False, False, True]),
        (0.0, "two-sided", [True, True, True, True]),
    ],
)
def test_ties_and_missing_statistics_count_as_extreme(
    observed: float, alternative: Alternative, expected: list[bool]
) -> None:
    permuted = np.array([-2.0 * (1 - 1e-15), -1.0, 3.0, np.nan])
    assert extreme(permuted, observed, alternative).tolist() == expected


DRAWS = [np.inf, -np.inf, np.nan, 3.0, 1.5, 0.0, -1.5, -3.0]


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
@pytest.mark.parametrize("observed", [np.inf, -np.inf, 1.5, -1.5, 2.0, 0.0, np.nan])
def test_p_is_the_share_of_draws_at_least_as_extreme_be_they_finite_or_not(
    observed: float, alternative: Alternative
) -> None:
    def as_extreme(draw: float) -> bool:
        if math.isnan(draw) or math.isnan(observed):
            return True
        if alternative == "two-sided":
            return abs(draw) >= abs(observed)
        return draw >= observed if alternative == "greater" else draw <= observed

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
