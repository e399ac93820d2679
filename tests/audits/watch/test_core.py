"""The mathematics of a watch: expectations by enumeration, levels over time, closed forms and limits."""

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import binom, norm

from fairness_audits.audits.watch import core
from fairness_audits.values import Array

SIZES = np.array([[3, 4], [5, 2], [0, 3]])
"""Rows of two groups in three batches; one batch has rows of one group only."""
ALPHA = 0.05
WATCHES, WEEKS = 200, 104
SHARES = np.exp(core.LOG_SHARES)


def outcomes(rates: Array) -> tuple[Array, Array]:
    """Return all counts of events (N, batches, 2), and their probabilities (N,) under ``rates`` (batches, 2)."""
    cells = np.array(list(product(*(range(size + 1) for size in SIZES.ravel()))))
    events = cells.reshape(-1, *SIZES.shape)
    return events, binom.pmf(events, SIZES, rates).prod(axis=(1, 2))


def log_e(events: Array, trials: Array) -> Array:
    """Return the e-process without the confidence sequences."""
    return core.log_mean(core.contrasted(core.log_gains(events, trials)))


@pytest.mark.parametrize("rates", [[0.5, 0.5, 0.5], [0.1, 0.8, 0.3], [0.02, 0.02, 0.9], [0.99, 0.01, 0.5]])
def test_the_expectation_of_the_e_process_is_at_most_1_if_rates_are_equal_in_every_batch(rates: list[float]) -> None:
    events, probability = outcomes(np.repeat(np.array(rates)[:, None], 2, axis=1))
    assert probability.sum() == pytest.approx(1)
    expected = probability @ np.exp(log_e(events, SIZES))
    assert (expected <= 1 + 1e-12).all()
    assert (expected > 0.5).all()


def test_the_expectation_is_at_most_1_if_people_have_rates_of_their_own() -> None:
    """The groups are alike on average only."""
    own = np.array([[0.2, 0.8], [0.5, 0.5]])
    expected = 0.0
    for answers in product([0, 1], repeat=4):
        x = np.array(answers).reshape(2, 2)
        probability = np.where(x == 1, own, 1 - own).prod()
        expected += probability * np.exp(log_e(x.sum(axis=1)[None], np.array([[2, 2]])))[0]
    assert expected <= 1 + 1e-12


def test_the_capital_is_that_of_bets_on_one_row_after_another() -> None:
    """A loop over rows, with the rate predicted from earlier batches and the share of the other group as weight."""
    events, trials = np.array([[3, 10], [6, 5]]), np.array([[5, 20], [10, 10]])
    capital = np.ones((2, len(core.BETS)))
    for group in (0, 1):
        for batch, guess in ((0, 0.5), (1, [3.5 / 6, 10.5 / 21][group])):
            weight = trials[batch, 1 - group] / trials[batch].sum()
            for row in range(trials[batch, group]):
                answer = float(row < events[batch, group])
                bet = core.BETS * weight
                capital[group] *= (1 + bet * (answer - guess)) * np.exp(bet * guess)
    found = core.log_gains(events, trials)[-1]
    np.testing.assert_allclose(found, np.log(capital), rtol=1e-12)
    both = np.log(capital[0]) + np.log(capital[1])[::-1]
    np.testing.assert_allclose(core.contrasted(found), both, rtol=1e-9)
    evidence = core.watched(events, trials, ALPHA).log_e[-1]
    assert np.exp(evidence) == pytest.approx((SHARES * np.exp(both)).sum(), rel=1e-12)


def test_the_e_process_finds_a_gap_as_soon_as_the_safe_test_for_tables() -> None:
    """The safe test of Turner, Ly and Grünwald bets on the rates of the earlier batches."""
    events, trials = watches(200, np.tile([0.2, 0.3], (100, 1)), np.full(100, 0.4))
    before, of = np.cumsum(events, axis=1) - events, np.cumsum(trials, axis=1) - trials
    rate = (before + 0.18) / (of + 0.36)
    pooled = (trials * rate).sum(axis=-1, keepdims=True) / trials.sum(axis=-1, keepdims=True)
    block = events * np.log(rate / pooled) + (trials - events) * np.log((1 - rate) / (1 - pooled))
    safe = np.cumsum(block.sum(axis=-1), axis=1)
    own = log_e(events, trials)
    ours, theirs = ((evidence >= np.log(1 / ALPHA)).argmax(axis=1) for evidence in (own, safe))
    assert ours.mean() < 1.1 * theirs.mean()
    assert SHARES.sum() == pytest.approx(1)


def test_groups_and_events_may_change_places() -> None:
    events, trials = np.array([[12, 40], [30, 90]]), np.array([[50, 100], [100, 200]])
    found = core.watched(events, trials, ALPHA)
    swapped = core.watched(events[:, ::-1], trials[:, ::-1], ALPHA)
    opposite = core.watched(trials - events, trials, ALPHA)
    for other in (swapped, opposite):
        np.testing.assert_allclose(other.log_e, found.log_e, rtol=1e-10)
        np.testing.assert_allclose(other.difference.estimate, -found.difference.estimate)
        np.testing.assert_allclose(other.difference.low, -found.difference.high)
    np.testing.assert_allclose(opposite.rates.low, 1 - found.rates.high)


def test_rows_of_one_group_alone_say_nothing_about_the_difference() -> None:
    events, trials = np.array([[12, 40], [0, 90]]), np.array([[50, 100], [0, 200]])
    both = core.watched(events, trials, ALPHA)
    first = core.watched(events[:1], trials[:1], ALPHA)
    for name in ("estimate", "low", "high"):
        assert getattr(both.difference, name)[1] == getattr(first.difference, name)[0]
    assert both.log_e[1] == pytest.approx(first.log_e[0], rel=1e-12)
    nothing = core.watched(np.array([[0, 3]]), np.array([[0, 5]]), ALPHA)
    assert nothing.log_e[0] == pytest.approx(0, abs=1e-12)
    assert (nothing.difference.low[0], nothing.difference.high[0]) == (-1, 1)
    assert np.isnan(nothing.difference.estimate[0])


@pytest.mark.parametrize("rates", [[[0.3, 0.3]] * 3, [[0.1, 0.6], [0.9, 0.2], [0.5, 0.5]]])
def test_each_bet_is_a_supermartingale_whatever_the_rates(rates: list[list[float]]) -> None:
    theta, weights = np.array(rates), core.row_weights(SIZES)
    means = np.cumsum(weights * SIZES * theta, axis=0)
    events, probability = outcomes(theta)
    gains = core.log_gains(events, SIZES)
    expected = np.tensordot(probability, np.exp(gains - core.BETS * means[..., None]), axes=1)
    contrast = core.contrasted(gains) - core.BETS * (means[:, :1] - means[:, 1:])
    of_difference = np.tensordot(probability, np.exp(contrast), axes=1)
    assert (expected <= 1 + 1e-12).all()
    assert (of_difference <= 1 + 1e-12).all()
    assert expected[-1].max() > 0.999


def test_the_ends_of_a_sequence_are_where_the_mean_of_the_bets_reaches_the_threshold() -> None:
    events, trials = np.array([[30, 90], [35, 50]]), np.array([[100, 150], [120, 80]])
    gains = core.log_gains(events, trials)
    found = core.watched(events, trials, ALPHA)
    size = np.cumsum((core.row_weights(trials) * trials)[:, 0])[-1]
    for end in (found.difference.low[-1], found.difference.high[-1]):
        capital = np.exp(core.contrasted(gains)[-1] - core.BETS * size * end)
        assert (SHARES * capital).sum() == pytest.approx(1 / ALPHA, rel=1e-9)
    for end in (found.rates.low[-1, 1], found.rates.high[-1, 1]):
        capital = np.exp(gains[-1, 1] - core.BETS * size * end)
        assert (SHARES * capital).sum() == pytest.approx(1 / ALPHA, rel=1e-9)


def test_the_sequence_excludes_0_exactly_if_the_e_value_reaches_the_threshold() -> None:
    events, trials = watches(50, np.tile([0.3, 0.36], (40, 1)), np.full(40, 0.4))
    found = core.watched(events, trials, ALPHA)
    excluded = (found.difference.low > 0) | (found.difference.high < 0)
    np.testing.assert_array_equal(excluded, found.log_e > np.log(1 / ALPHA))
    assert 0.2 < excluded.mean() < 0.8


def test_a_wrong_prediction_costs_evidence_and_an_empty_sequence_is_the_estimate() -> None:
    trials = np.full((2, 2), 10**6)
    found = core.watched(trials * np.array([[1, 0], [0, 1]]), trials, ALPHA).difference
    assert found.low[-1] < found.estimate[-1] == 0 < found.high[-1]
    gains = np.full(len(core.BETS), 50.0)
    empty = core.mean_sequence(gains, np.array(5.0), np.array(10.0), ALPHA, (0.0, 1.0))
    assert (empty.low, empty.estimate, empty.high) == (0.5, 0.5, 0.5)


@pytest.mark.parametrize("rows", [10**4, 10**6])
def test_a_sequence_is_wider_than_an_interval_by_a_factor_that_hardly_grows(rows: int) -> None:
    """One look needs 1.96 standard errors, and all looks at once at most the boundary of a mixture of K bets."""
    n = np.full((50, 2), rows // 100)
    found = core.watched(n * [0.4, 0.5], n, ALPHA)
    error = np.sqrt((0.24 + 0.25) / (rows / 2))
    half = (found.difference.high[-1] - found.difference.low[-1]) / 2
    assert 3.0 < half / error < np.sqrt(2 * np.log(1 / SHARES.min() / ALPHA))


def watches(number: int, rates: Array, share: Array, people: int = 300) -> tuple[Array, Array]:
    rng = np.random.default_rng(7)
    first = rng.binomial(people, share, (number, len(share)))
    trials = np.stack([first, people - first], axis=-1)
    return rng.binomial(trials, rates), trials


def season(low: float) -> Array:
    return low + 0.1 * (1 + np.sin(np.arange(WEEKS) / 8))


@pytest.mark.parametrize("changing", [False, True])
def test_the_errors_over_two_years_of_weeks_are_at_most_alpha(changing: bool) -> None:
    rates = np.stack([season(0.2) if changing else np.full(WEEKS, 0.3)] * 2, axis=-1)
    share = season(0.2) if changing else np.full(WEEKS, 0.3)
    events, trials = watches(WATCHES, rates, share)
    found = core.watched(events, trials, ALPHA)
    weight = trials.prod(axis=-1) / trials.sum(axis=-1)
    truth = np.cumsum(weight * rates[:, 0], axis=1) / np.cumsum(weight, axis=1)
    wrong = [
        found.log_e >= np.log(1 / ALPHA),
        (found.difference.low > 0) | (found.difference.high < 0),
        (found.rates.low[..., 0] > truth) | (found.rates.high[..., 0] < truth),
        (found.rates.low[..., 1] > truth) | (found.rates.high[..., 1] < truth),
    ]
    most = ALPHA + norm.isf(0.001) * np.sqrt(ALPHA * (1 - ALPHA) / WATCHES)
    assert all(one.any(axis=1).mean() <= most for one in wrong)


def test_the_sequence_covers_an_average_difference_that_changes() -> None:
    gap = np.where(np.arange(WEEKS) < 40, 0.0, 0.1)
    rates = np.stack([np.full(WEEKS, 0.3), 0.3 + gap], axis=-1)
    events, trials = watches(WATCHES, rates, season(0.3))
    found = core.watched(events, trials, ALPHA)
    weight = trials.prod(axis=-1) / trials.sum(axis=-1)
    truth = np.cumsum(weight * -gap, axis=1) / np.cumsum(weight, axis=1)
    outside = (found.difference.low > truth) | (found.difference.high < truth)
    assert outside.any(axis=1).mean() <= ALPHA
    assert (found.log_e[:, -1] >= np.log(1 / ALPHA)).all()


def test_closed_e_values_are_the_least_mean_over_all_sets() -> None:
    e = np.random.default_rng(0).lognormal(1, 2, (5, 3))
    found = core.closed(np.log(e))
    for place in range(5):
        others = [one for one in range(5) if one != place]
        sets = [(place, *some) for size in range(5) for some in combinations(others, size)]
        np.testing.assert_allclose(found[place], np.min([e[list(one)].mean(axis=0) for one in sets], axis=0))
    np.testing.assert_allclose(core.closed(np.log(e[:1])), e[:1])
    assert np.isfinite(core.closed(np.array([[1e5], [0.0]]))).all()


def test_later_batches_do_not_change_earlier_conclusions() -> None:
    events, trials = watches(1, np.full((WEEKS, 2), 0.3), np.full(WEEKS, 0.4))
    whole = core.watched(events[0], trials[0], ALPHA)
    for end in (1, 2, 50):
        found = core.watched(events[0, :end], trials[0, :end], ALPHA)
        np.testing.assert_array_equal(found.log_e, whole.log_e[:end])
        np.testing.assert_array_equal(found.difference.high, whole.difference.high[:end])
        np.testing.assert_array_equal(found.rates.low, whole.rates.low[:end])
