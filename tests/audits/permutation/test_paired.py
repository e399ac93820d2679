"""Changes between two versions: McNemar's test, level and power of random signs, what has no pairs."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, norm
from statsmodels.stats.contingency_tables import mcnemar

from fairness_audits.audits.compare.no_worse import of_gap, of_group, of_means
from fairness_audits.audits.permutation.metrics import METRICS
from fairness_audits.audits.permutation.paired import MANY_ROWS, change, score_interval, values
from fairness_audits.errors import InvalidInput
from tests.audits.permutation.builders import at_most, near


@pytest.mark.parametrize(("up", "down", "same"), [(12, 3, 85), (0, 9, 20), (0, 0, 30), (40, 41, 0)])
def test_a_rate_has_mcnemars_exact_test(up: int, down: int, same: int) -> None:
    delta = np.r_[np.ones(up), -np.ones(down), np.zeros(same)]
    found = change(delta, rate=True, alpha=0.05, draws=9, rng=np.random.default_rng(0))
    assert found.exact
    assert found.estimate == pytest.approx((up - down) / len(delta))
    assert found.p_value == pytest.approx(mcnemar([[same, up], [down, 0]], exact=True).pvalue)
    assert found.low <= found.estimate <= found.high


def test_random_signs_have_their_level_where_signs_are_random() -> None:
    rng, trials = np.random.default_rng(1), 600
    p = [change(rng.standard_t(3, size=30), rate=False, alpha=0.05, draws=99, rng=rng).p_value for _ in range(trials)]
    assert near(float(np.mean(np.array(p) <= 0.05)), 0.05, trials)
    assert change(rng.normal(size=200) + 0.4, rate=False, alpha=0.05, draws=199, rng=rng).p_value <= 0.01


def test_values_that_are_no_rates_have_no_interval_in_units_of_pairs() -> None:
    call: dict[str, Any] = {"rate": False, "alpha": 0.05, "draws": 99, "rng": np.random.default_rng(0)}
    same = change(np.zeros(30), **call)
    assert (same.p_value, same.exact, np.isnan([same.low, same.high]).all()) == (1.0, False, True)
    # One amount in a hundred changes, by 1.
    one = change(np.r_[1.0, np.zeros(99)], **call)
    assert (one.exact, one.low) == (False, pytest.approx(0.01 - 1.984217 * 0.01))


def test_the_interval_of_a_rate_covers() -> None:
    rng, trials = np.random.default_rng(2), 600
    held = 0
    for _ in range(trials):
        delta = rng.choice([1, 0, -1], 80, p=[0.2, 0.7, 0.1])
        found = change(delta, rate=True, alpha=0.05, draws=9, rng=rng)
        held += found.low <= 0.1 <= found.high
    assert near(held / trials, 0.95, trials)


@pytest.mark.parametrize("name", ["precision", "npv", "f1"])
def test_a_metric_whose_rows_depend_on_the_version_is_refused(name: str) -> None:
    y, d = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])
    with pytest.raises(InvalidInput):
        values(METRICS[name], y, d)  # type: ignore[arg-type]


def test_values_are_those_of_the_metric() -> None:
    y, d = np.array([0, 1, 1, 0]), np.array([0, 1, 0, 1])
    value, among = values(METRICS["tpr"], y, d)  # type: ignore[arg-type]
    assert value[among].tolist() == [1, 0]
    value, among = values(METRICS["squared_error"], y, np.array([0.5, 1, 0, 0.25]))  # type: ignore[arg-type]
    assert value[among].tolist() == [0.25, 0, 1, 0.0625]


def test_random_signs_are_the_same_in_any_number_of_parts() -> None:
    """One draw after the other from the generator, however many are held in memory at once."""
    delta, draws = np.random.default_rng(5).normal(size=5000) + 0.02, 1500
    found = change(delta, rate=False, alpha=0.05, draws=draws, rng=np.random.default_rng(6))
    rng = np.random.default_rng(6)
    sums = [abs((2.0 * rng.integers(0, 2, len(delta)) - 1) @ delta) for _ in range(draws)]
    assert found.p_value == (1 + int((np.array(sums) >= abs(delta.sum())).sum())) / (draws + 1)


@pytest.mark.parametrize("heavy", [False, True])
def test_many_rows_have_the_p_value_of_all_their_signs(heavy: bool) -> None:
    """Normal differences, and differences of which ten carry nearly all of the variance."""
    rng, n, draws = np.random.default_rng(7), 3 * MANY_ROWS, 2000
    delta = rng.normal(size=n)
    delta[:10] += 1000 * heavy
    delta += (0 if heavy else 1) * 1.5 / np.sqrt(n) - (delta.mean() if not heavy else 0)
    p = change(delta, rate=False, alpha=0.05, draws=draws, rng=np.random.default_rng(8)).p_value
    expected = 2 * norm.sf(1.5) if not heavy else 2 * 0.5**10
    assert near(p, expected, draws)


def test_sums_that_tie_but_for_rounding_tie() -> None:
    """Both signs of 0.1 + 0.2 - 0.3: of 2^3 choices of signs, all reach the observed sum of 0."""
    delta = np.array([0.1, 0.2, -0.3])
    assert delta.sum() != 0
    assert change(delta, rate=False, alpha=0.05, draws=999, rng=np.random.default_rng(0)).p_value == 1


@pytest.mark.parametrize(("n", "margin"), [(20, 0.1), (50, 0.05), (100, 0.02)])
def test_the_bound_of_a_rate_has_its_level_where_few_pairs_change(n: int, margin: float) -> None:
    """By enumeration, with a true change at the margin. Adding half pairs instead has a level above 10 %."""
    every = [(up, down) for down in range(n + 1) for up in range(n + 1 - down)]
    near_0 = [(up, down) for up, down in every if up + down <= 5 * np.sqrt(n) + 5]
    shown = {pair for pair in near_0 if score_interval(*pair, n, 0.05)[0] > -margin}
    for share in (margin, margin + 0.02, margin + 0.05):
        up_share = share - margin
        chance = sum(binom.pmf(down, n, share) * binom.pmf(up, n - down, up_share / (1 - share)) for up, down in shown)
        assert chance <= 0.057


def test_what_gets_worse_has_its_level_at_the_margin() -> None:
    """The second gap exceeds the first by the margin: wherever the first gap is, 5 % at most are shown."""
    rng, trials, n, margin = np.random.default_rng(9), 400, 300, 0.05
    for first, second in (((0.5, 0.5), (0.55, 0.5)), ((0.4, 0.5), (0.35, 0.5)), ((0.4, 0.5), (0.65, 0.5))):
        shown = 0
        own = np.repeat([True, False], n)
        for _ in range(trials):
            u = rng.random(2 * n)
            other = np.where(rng.random(2 * n) < 0.9, u, rng.random(2 * n))
            pair = np.stack([u < np.where(own, *first), other < np.where(own, *second)]).astype(float)
            shown += of_gap(of_means(pair, rate=True), own, ~own, 0.05, 0.05).high < margin
        assert at_most(shown / trials, 0.05, trials)


def test_bounds_of_a_group_are_one_sided_in_the_direction_of_the_metric() -> None:
    rng = np.random.default_rng(10)
    pair = np.stack([rng.random(400) < 0.6, rng.random(400) < 0.5]).astype(float)
    combined, own = of_means(pair, rate=True), np.ones(400, dtype=bool)
    up, down = (int((pair[1] - pair[0] == sign).sum()) for sign in (1, -1))
    low, high = score_interval(up, down, 400, 0.05)
    tpr, fpr = (of_group(metric, combined, own, 0.05, 0.05) for metric in ("tpr", "fpr"))
    assert tpr is not None
    assert fpr is not None
    assert (tpr.low, tpr.high) == pytest.approx((-high, -low))
    assert (fpr.low, fpr.high) == pytest.approx((low, high))
    assert of_group("selection_rate", combined, own, 0.05, 0.05) is None
