"""Intervals of sizes, signs and shifts, within a trial and over trials."""

import numpy as np
import pytest
from scipy import stats

from fairness_audits.audits.fliptest import intervals
from fairness_audits.audits.fliptest.intervals import (
    difference_intervals,
    fewest,
    mean_intervals,
    over_trials,
    sign_intervals,
    size_intervals,
)
from fairness_audits.audits.fliptest.transparency import standing, transparency_report
from fairness_audits.values import Array

Z = stats.norm.ppf(0.975)


def test_the_ends_of_a_size_are_the_shares_at_which_it_is_just_refuted() -> None:
    found = size_intervals(120, 30, 1000, 0.1)
    for (low, high), size in ((found.positive, 120), (found.negative, 30)):
        np.testing.assert_allclose(stats.binom.sf(size - 1, 1000, low / 1000), 0.05)
        np.testing.assert_allclose(stats.binom.cdf(size, 1000, high / 1000), 0.05)


def test_nobody_among_n_has_an_upper_end() -> None:
    """The rule of three: (1 - p)^n = alpha / 2 at p near 3.7 / n."""
    found = size_intervals(0, 0, 5000, 0.05)
    assert found.positive == found.negative == (0, pytest.approx(5000 * (1 - 0.025 ** (1 / 5000))))
    assert found.positive[1] == pytest.approx(3.7, abs=0.02)
    assert found.net == pytest.approx((-5000 * Z**2 / (5000 + Z**2), 5000 * Z**2 / (5000 + Z**2)))


def test_the_net_size_has_the_ends_that_tangos_score_just_refutes() -> None:
    """The score with the likeliest share of F- at the end, found by a search over the multinomial likelihood."""
    b, c, n = 30, 12, 200
    for end in size_intervals(b, c, n, 0.05).net:
        delta = end / n
        shares = np.linspace(max(0, -delta) + 1e-9, (1 - delta) / 2 - 1e-9, 400_001)
        likelihood = b * np.log(shares + delta) + c * np.log(shares) + (n - b - c) * np.log1p(-2 * shares - delta)
        q = shares[likelihood.argmax()]
        score = (b - c - end) / np.sqrt(n * (2 * q + delta * (1 - delta)))
        assert abs(score) == pytest.approx(Z, rel=1e-3)


def test_swapping_the_flipsets_turns_the_net_size_around_be_it_of_everybody_or_nobody() -> None:
    there, back = size_intervals(7, 2, 40, 0.05), size_intervals(2, 7, 40, 0.05)
    assert there.positive == back.negative
    np.testing.assert_allclose(there.net, -np.array(back.net)[::-1])
    assert size_intervals(10, 0, 10, 0.05).positive[1] == size_intervals(10, 0, 10, 0.05).net[1] == 10
    assert np.isnan([*size_intervals(0, 0, 0, 0.05).positive, *size_intervals(0, 0, 0, 0.05).net]).all()


def test_a_mean_sign_is_a_difference_of_shares() -> None:
    signs = np.repeat([[1, -1], [0, -1], [-1, -1]], [12, 5, 3], axis=0)
    low, high = sign_intervals(signs, 0.05)
    for j, (more, fewer) in enumerate(((12, 3), (0, 20))):
        ends = difference_intervals(np.array([more]), np.array([fewer]), 20, 0.05)
        assert (low[j], high[j]) == (ends[0][0], ends[1][0])
    assert (low[1], high[1]) == (-1, pytest.approx(-0.68, abs=0.01))


@pytest.mark.parametrize("members", [60, 8])
def test_the_interval_of_a_mean_covers_the_expected_mean(members: int) -> None:
    """Eight normal values: plain percentiles would cover in 82 of 100 cases at level .9, expanded ones in 90."""
    rng, inside = np.random.default_rng(members), np.zeros(2)
    for _ in range(600):
        values = np.stack([rng.normal(2, 3, size=members), rng.choice([-1, 1], size=members, p=[0.3, 0.7])], axis=1)
        low, high = mean_intervals(values, 1000, 0.1, rng)
        inside += (low <= [2, 0.4]) & (high >= [2, 0.4])
    # Few signs have no such interval.
    np.testing.assert_allclose((inside / 600)[: 2 if members > 8 else 1], 0.9, atol=3.5 * np.sqrt(0.09 / 600))


def test_blocks_of_weights_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).normal(size=(80, 3))

    def found() -> tuple[Array, Array]:
        return mean_intervals(values, 101, 0.05, np.random.default_rng(6))

    whole = found()
    monkeypatch.setattr(intervals, "WEIGHTS_AT_ONCE", 70)
    for part, expected in zip(found(), whole, strict=True):
        np.testing.assert_allclose(part, expected, rtol=1e-12)


def test_members_that_cannot_show_a_direction_have_no_interval() -> None:
    """Five that go one way do so with probability 2^-4 > .05 under no direction; six with 2^-5."""
    assert (fewest(0.05), fewest(0.5), fewest(0.03125)) == (6, 2, 6)
    rng = np.random.default_rng(7)
    for k, there in ((5, False), (6, True)):
        assert np.isfinite(mean_intervals(np.ones((k, 2)), 50, 0.05, rng)).all() == there
        assert np.isfinite(sign_intervals(np.ones((k, 2)), 0.05)).all() == there


def coverage(rng: np.random.Generator, trials: int, map_error: float, shared: float, studies: int = 2000) -> float:
    """How often intervals over trials hold 0.3, the mean line: people err by 1 / sqrt(50) and maps by ``map_error``.

    A share of the people is the same in all trials, so it errs alike in them.
    """
    inside = 0
    for _ in range(studies):
        people = rng.normal(scale=1 / np.sqrt(50), size=trials + 1)
        own = 0.3 + np.sqrt(1 - shared) * people[:-1] + np.sqrt(shared) * people[-1]
        value = own + rng.normal(scale=map_error, size=trials)
        half = Z / np.sqrt(50)
        found = over_trials(value, value - half, value + half, shared, 0.05)
        inside += found.low <= 0.3 <= found.high
    return inside / studies


@pytest.mark.parametrize("shared", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("map_error", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("trials", [2, 4, 10])
def test_intervals_cover_where_both_maps_and_people_err(trials: int, map_error: float, shared: float) -> None:
    """At the nominal level or above it, up to three standard errors of 2,000 studies."""
    found = coverage(np.random.default_rng(trials), trials, map_error, shared)
    assert found > 0.95 - 3 * np.sqrt(0.95 * 0.05 / 2000)


def test_from_people_to_standing() -> None:
    """No shift is noise, and one of a deviation stands out, be it the members' own or everybody's.

    Ten studies of five trials each; the map adds an error to every image.
    """
    words: list[list[str]] = []
    for study in range(10):
        rng = np.random.default_rng(study)
        reports = []
        for _ in range(5):
            features, members = rng.normal(size=(400, 3)), rng.random(400) < 0.15
            shift = rng.normal(scale=0.5, size=(400, 3)) + rng.normal(scale=0.1, size=3)
            shift[:, 1] += 1.0
            shift[members, 2] += 1.0
            reports.append(transparency_report(features, features - shift, members, 400, 0.05, rng))
        names = ("mean_shift", "mean_shift_ci_low", "mean_shift_ci_high")
        trials = zip(*(np.array([getattr(one, name) for one in reports]).T for name in names), strict=True)
        words.append([])
        for value, low, high in trials:
            line = over_trials(value, low, high, 0.0, 0.05)
            words[-1].append(standing(line.low, line.high))
    nothing, shared, own = (list(column) for column in zip(*words, strict=True))
    assert nothing.count("noise") >= 8
    assert shared == own == ["stands out"] * 10


T1, T2 = stats.t.ppf(0.975, [1, 2])


@pytest.mark.parametrize(
    ("values", "own", "shared", "half"),
    [
        ([1.0, 2.0, 3.0], 0.1, 0.0, T2 * np.sqrt(1 / 3)),
        ([1.0, 2.0, 3.0], Z, 1.0, np.sqrt(T2**2 / 3 + Z**2)),
        ([0.2, 0.2], Z, 0.0, T1 * np.sqrt(1 / 2)),
        ([0.2, 0.2], Z, 1.0, Z),
    ],
    ids=["nobody in both", "one people", "trials that agree by luck", "are not surer than their people"],
)
def test_intervals_over_trials_by_hand(values: list[float], own: float, shared: float, half: float) -> None:
    value = np.array(values)
    found = over_trials(value, value - own, value + own, shared, 0.05)
    assert (found.value, found.trials) == (pytest.approx(value.mean()), len(value))
    assert (found.low, found.high) == pytest.approx((value.mean() - half, value.mean() + half))


def test_one_trial_has_its_own_interval_and_empty_trials_do_not_count() -> None:
    gone = np.array([np.nan])
    for empty in (np.empty(0), gone):
        value, low, high = (np.append(end, empty) for end in (0.5, 0.1, 0.7))
        found = over_trials(value, low, high, 0.0, 0.05)
        assert (found.value, found.low, found.high, found.trials) == (0.5, 0.1, 0.7, 1)
    nobody = over_trials(gone, gone, gone, 0.0, 0.05)
    assert np.isnan([nobody.value, nobody.low, nobody.high]).all()
    assert nobody.trials == 0
    few = over_trials(np.ones(2), gone.repeat(2), gone.repeat(2), 0.0, 0.05)
    assert few.value == 1
    assert np.isnan(few.low)
