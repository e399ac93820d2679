"""Score tests and equivalence: published values, level by enumeration and simulation, agreement, limits."""

import numpy as np
import pytest
from scipy.stats import norm
from statsmodels.stats.proportion import confint_proportions_2indep

from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.equivalence import Bounds, of_rates
from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.intervals import score_interval
from fairness_audits.audits.permutation.outcomes import Counts, Predictions
from fairness_audits.audits.permutation.score_tests import (
    chances,
    nuisance,
    outcome_statistics,
    score_test,
)
from fairness_audits.errors import InvalidInput
from tests.audits.permutation.builders import at_most, near, simulate


@pytest.mark.parametrize(
    ("rates", "interval"),
    [
        ((56, 70, 48, 80), (0.0528, 0.3382)),
        ((9, 10, 3, 10), (0.1700, 0.8406)),
        ((5, 56, 0, 29), (-0.0326, 0.1933)),
        ((10, 10, 0, 20), (0.7156, 1.0)),
    ],
)
def test_intervals_of_a_difference_are_those_in_print(rates: tuple[int, ...], interval: tuple[float, float]) -> None:
    """Newcombe 1998, table II, method 6."""
    assert score_interval(Rates(*rates), 0.05) == pytest.approx(interval, abs=6e-5)


@pytest.mark.parametrize("rates", [(56, 70, 48, 80), (3, 400, 9, 350), (80, 90, 5, 200)])
def test_intervals_of_a_ratio_are_those_of_statsmodels(rates: tuple[int, ...]) -> None:
    expected = confint_proportions_2indep(*rates, compare="ratio", method="score")
    assert score_interval(Rates(*rates), 0.05, "ratio") == pytest.approx(expected, rel=1e-8)


def test_groups_change_places() -> None:
    rates, turned = Rates(13, 40, 30, 55), Rates(30, 55, 13, 40)
    for at in (-0.3, 0.0, 0.2):
        one, other = score_test(rates, at), score_test(turned, -at)
        assert (one.above, one.below) == pytest.approx((other.below, other.above), rel=1e-6)
    low, high = score_interval(rates, 0.05, "ratio")
    assert score_interval(turned, 0.05, "ratio") == pytest.approx((1 / high, 1 / low))


@pytest.mark.parametrize(("m_a", "m_b"), [(12, 12), (30, 20)])
@pytest.mark.parametrize("bounds", [Bounds.margin(0.2), Bounds.at_least(0.8, lowest_first=False)])
def test_small_samples_show_bounds_no_more_often_than_alpha(m_a: int, m_b: int, bounds: Bounds) -> None:
    """Over all outcomes, at rates just on the low bound; the score test by itself exceeds its level here."""
    statistics = outcome_statistics(m_a, m_b, bounds.low, bounds.comparison)
    f_a, f_b = nuisance(bounds.low, bounds.comparison)
    order = np.unique(statistics)[::-1]
    worst = (chances(statistics >= z, f_a, f_b).max() for z in order)
    least = next(z for z, after in zip(order, list(worst)[1:], strict=False) if after > 0.05)
    x_a, x_b = (int(x[0]) for x in np.nonzero(statistics == least))
    assert score_test(Rates(x_a, m_a, x_b, m_b), bounds.low, bounds.comparison).above <= 0.05
    # Between the points of the grid, too.
    between = (f_a[1:] + f_a[:-1]) / 2, (f_b[1:] + f_b[:-1]) / 2
    assert chances(statistics >= least, *between).max() <= 0.05 * 1.01
    assert chances(statistics >= norm.isf(0.05), f_a, f_b).max() > 0.05


def test_large_samples_have_the_level_of_the_score_test() -> None:
    rng, n = np.random.default_rng(0), 40_000
    drawn = rng.binomial(n, [0.30, 0.32], size=(4000, 2))
    below = [score_test(Rates(int(a), n, int(b), n), -0.02).above <= 0.05 for a, b in drawn]
    assert near(float(np.mean(below)), 0.05, 4000)
    one = of_rates(Rates(12_000, n, 12_800, n), Bounds.margin(0.02), 0.05)
    low, high = (score_test(Rates(12_000, n, 12_800, n), at) for at in (-0.02, 0.02))
    assert (one.p_within, one.p_beyond) == (max(low.above, high.below), 2 * min(low.below, high.above))


def test_few_rows_show_nothing() -> None:
    found = of_rates(Rates(0, 6, 2, 5), Bounds.margin(0.1), 0.05)
    assert found.p_within > 0.05 < found.p_beyond
    low, _ = found.interval
    assert low is not None
    assert low < -0.1


@pytest.mark.parametrize("bounds", [Bounds.margin(0.1), Bounds.at_least(0.8, False), Bounds.at_least(0.8, True)])
def test_the_interval_lies_within_the_bounds_exactly_where_they_are_shown(bounds: Bounds) -> None:
    rng = np.random.default_rng(3)
    for m_a, m_b, f_a, f_b in zip(*rng.integers(5, 120, (2, 25)), *rng.uniform(size=(2, 25)), strict=True):
        rates = Rates(int(rng.binomial(m_a, f_a)), int(m_a), int(rng.binomial(m_b, f_b)), int(m_b))
        found = of_rates(rates, bounds, 0.05)
        low, high = found.interval
        if low is None and high is None:
            continue
        inside = (low is not None and low >= bounds.low) and (
            np.isinf(bounds.high) or (high is not None and high <= bounds.high)
        )
        touching = low == bounds.low or high == bounds.high
        assert (found.p_within <= 0.05) == inside or touching


def test_a_ratio_without_events_has_no_interval_and_shows_nothing() -> None:
    found = of_rates(Rates(0, 50, 0, 60), Bounds.at_least(0.8, lowest_first=True), 0.05)
    assert (found.estimate, found.interval) == (None, (None, None))
    assert min(found.p_within, found.p_beyond) > 0.05


def test_a_studentised_margin_has_its_level_at_the_margin_and_power_within() -> None:
    """Means that differ by the margin are shown to be within it in 5 % of samples, equal ones of this size in most."""
    rng, trials = np.random.default_rng(5), 300
    shown = {0.0: 0, 0.5: 0}
    for gap in shown:
        for _ in range(trials):
            group = np.repeat([0, 1], (150, 90))
            score = rng.normal(size=240) * np.where(group, 2.0, 1.0) + gap * group
            data = Predictions(np.zeros(240, dtype=np.int64), score, group, ("a", "b"))
            found = permutation_test(data, "mean_score", rng=rng, bounds=Bounds.margin(0.5), draws=199)
            assert found.equivalence is not None
            shown[gap] += found.equivalence.p_within <= 0.05
    assert near(shown[0.5] / trials, 0.05, trials)
    assert shown[0.0] / trials > 0.4


def test_a_studentised_margin_tends_to_that_of_the_score_test() -> None:
    """For the same counts of decisions and many rows."""
    data = simulate(np.random.default_rng(2), (3000, 4000), (0.5, 0.5), (1.0, 1.05))
    counts = data.counted()
    asked = {"rng": np.random.default_rng(0), "bounds": Bounds.margin(0.05)}
    exact = permutation_test(counts, "tpr", **asked).equivalence  # type: ignore[arg-type]
    drawn = permutation_test(counts, "tpr", method="studentized", **asked).equivalence  # type: ignore[arg-type]
    assert exact is not None
    assert drawn is not None
    assert drawn.interval == pytest.approx(exact.interval, abs=2e-3)
    assert drawn.p_within == pytest.approx(exact.p_within, abs=0.02)


def test_a_group_ranked_without_a_fault_shows_no_small_margin() -> None:
    """Nine pairs without an error leave an AUC of .72 possible: within .1 of another AUC near 1 is not shown."""
    rng = np.random.default_rng(0)
    label = np.r_[np.tile([0, 1], 9), rng.integers(0, 2, 4000)]
    score = np.r_[np.tile([0.0, 10.0], 9), rng.normal(size=4000) + 4 * label[18:]]
    data = Predictions(label, score, np.repeat([0, 1], (18, 4000)), ("few", "many"))
    found = permutation_test(data, "auc", rng=rng, bounds=Bounds.margin(0.1), draws=499)
    assert found.equivalence is not None
    assert found.equivalence.p_within > 0.05
    assert at_most(found.equivalence.p_within, 1.0, 1)


def test_ratios_are_of_rates() -> None:
    rows = Counts.of_decisions(np.array([[[50, 50], [20, 80]], [[50, 50], [80, 20]]]), ("a", "b"))
    found = permutation_test(rows, "selection_rate", rng=np.random.default_rng(0), bounds=Bounds.at_least(0.8, False))
    assert found.equivalence is not None
    assert found.equivalence.estimate == pytest.approx(0.65 / 0.35)
    assert found.equivalence.p_beyond < 0.01
    with pytest.raises(InvalidInput):
        permutation_test(rows, "f1", rng=np.random.default_rng(0), bounds=Bounds.at_least(0.8, False))
