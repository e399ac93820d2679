"""Intervals over trials cover where maps and people err, and twice the median is a p-value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.audits.fliptest.intervals import over_trials, twice_the_median
from pipeline.types import Array

Z = stats.norm.ppf(0.975)


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


def test_people_alone_do_not_cover_what_maps_do() -> None:
    """The interval of the first trial alone, which is what one map has to offer, covers in a third of such studies."""
    rng = np.random.default_rng(1)
    value = 0.3 + rng.normal(scale=1 / np.sqrt(50), size=2000) + rng.normal(scale=0.5, size=2000)
    assert np.mean(np.abs(value - 0.3) < Z / np.sqrt(50)) < 0.5


def test_from_people_to_standing() -> None:
    """A shift of everybody is as the whole group, none is noise, and one of the members stands out.

    Ten studies of five trials each; the map adds an error to every image. The members' own shift is one deviation.
    """
    from pipeline.audits.fliptest.transparency import standing, transparency_report
    from pipeline.audits.precision import Precision

    precision = Precision(alpha=0.05, bootstraps=400, permutations=999)
    words: list[list[str]] = []
    for study in range(10):
        rng = np.random.default_rng(study)
        reports = []
        for _ in range(5):
            features = rng.normal(size=(400, 3))
            members = rng.random(400) < 0.15
            shift = rng.normal(scale=0.5, size=(400, 3)) + rng.normal(scale=0.1, size=3)
            shift[:, 1] += 1.0
            shift[members, 2] += 1.0
            reports.append(transparency_report(features, features - shift, members, precision, rng))
        ends = [np.array([getattr(one, f"mean_shift{end}") for one in reports]) for end in ("", "_ci_low", "_ci_high")]
        p = np.array([one.mean_shift_p_adjusted for one in reports])
        value, low, high = ends
        lines = [over_trials(value[:, j], low[:, j], high[:, j], 0.0, 0.05) for j in range(3)]
        words.append([standing(line.low, line.high, twice_the_median(p[:, j]), 0.05) for j, line in enumerate(lines)])
    nothing, shared, own = (list(column) for column in zip(*words, strict=True))
    assert nothing.count("noise") >= 8
    assert shared.count("as the whole group") >= 9
    assert "noise" not in shared
    assert own == ["stands out"] * 10


def test_by_hand() -> None:
    """Values 1, 2, 3 of trials that share nobody: 2 -+ t sqrt(1 / 3); of one people: 2 -+ sqrt(t^2 / 3 + z^2)."""
    value, half = np.array([1.0, 2.0, 3.0]), np.full(3, Z)
    apart = over_trials(value, value - 0.1, value + 0.1, 0.0, 0.05)
    assert (apart.value, apart.trials) == (2, 3)
    assert apart.high - 2 == pytest.approx(stats.t.ppf(0.975, 2) * np.sqrt(1 / 3))
    together = over_trials(value, value - half, value + half, 1.0, 0.05)
    assert together.high - 2 == pytest.approx(np.sqrt(stats.t.ppf(0.975, 2) ** 2 / 3 + Z**2))
    assert 2 - together.low == pytest.approx(together.high - 2)


def test_trials_that_agree_by_luck_are_not_surer_than_their_people() -> None:
    value = np.full(2, 0.2)
    found = over_trials(value, value - Z, value + Z, 0.0, 0.05)
    assert found.high - found.value == pytest.approx(stats.t.ppf(0.975, 1) * np.sqrt(1 / 2))
    one_people = over_trials(value, value - Z, value + Z, 1.0, 0.05)
    assert (one_people.low, one_people.high) == (pytest.approx(0.2 - Z), pytest.approx(0.2 + Z))


def test_one_trial_has_its_own_interval_and_empty_trials_do_not_count() -> None:
    found = over_trials(np.array([0.5]), np.array([0.1]), np.array([0.7]), 0.0, 0.05)
    assert (found.value, found.low, found.high, found.trials) == (0.5, 0.1, 0.7, 1)
    gone = np.array([np.nan])
    value, low, high = (np.append(end, gone) for end in (0.5, 0.1, 0.7))
    with_empty = over_trials(value, low, high, 0.0, 0.05)
    assert with_empty == found
    nobody = over_trials(gone, gone, gone, 0.0, 0.05)
    assert np.isnan([nobody.value, nobody.low, nobody.high]).all()
    assert nobody.trials == 0
    few = over_trials(np.array([1.0, 1.0]), np.full(2, np.nan), np.full(2, np.nan), 0.0, 0.05)
    assert few.value == 1
    assert np.isnan(few.low)


def test_what_cannot_be_pooled_is_refused() -> None:
    one = np.ones(2)
    with pytest.raises(
        ValueError, match=r"expected a value and two ends for each trial, found shapes \(2,\), \(2,\) and"
    ):
        over_trials(one, one, np.ones(3), 0.0, 0.05)
    with pytest.raises(ValueError, match=r"the share of people in common in \[0, 1\], found 1.5"):
        over_trials(one, one, one, 1.5, 0.05)


@pytest.mark.parametrize("dependence", [0.0, 0.7, 1.0])
def test_twice_the_median_keeps_its_level_however_trials_depend(dependence: float) -> None:
    rng = np.random.default_rng(0)

    def trial() -> Array:
        normal = np.sqrt(dependence) * rng.normal() + np.sqrt(1 - dependence) * rng.normal(size=5)
        return np.asarray(stats.norm.sf(normal))

    level = np.mean([twice_the_median(trial()) <= 0.1 for _ in range(3000)])
    assert level <= 0.1 + 3 * np.sqrt(0.09 / 3000)


def test_twice_the_median_by_hand() -> None:
    assert twice_the_median(np.array([0.04])) == 0.04
    assert twice_the_median(np.array([0.01, 0.02, 0.9])) == 0.04
    assert twice_the_median(np.array([0.7, 0.8, np.nan])) == 1
    assert np.isnan(twice_the_median(np.array([np.nan])))
