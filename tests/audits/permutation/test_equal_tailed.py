"""The two-sided test that doubles the nearer tail."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from pipeline.audits.permutation.exact import Rates, exact_p
from pipeline.audits.permutation.outcomes import Predictions
from pipeline.audits.permutation.pvalue import SafeStop
from pipeline.audits.permutation.run import permutation_test
from pipeline.audits.permutation.studentized import MonteCarlo, until_safe


def ranked(sizes: tuple[int, int], aucs: tuple[float, float], seed: int = 0) -> Predictions:
    """Two groups whose scores have these areas under the curve."""
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], sizes)
    label = (rng.random(len(group)) < 0.3).astype(int)
    score = rng.normal(size=len(group)) + label * norm.ppf(np.asarray(aucs))[group] * np.sqrt(2)
    return Predictions(label=label, score=norm.cdf(score), group=group, groups=("few", "many"))


@pytest.mark.parametrize("statistic", [-2.5, -0.3, 0.0, 1.1, 4.0])
@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.4])
def test_p_doubles_the_nearer_tail_and_the_interval_holds_what_is_not_rejected(statistic: float, alpha: float) -> None:
    reference = np.random.default_rng(1).gumbel(size=999)
    found = MonteCarlo(statistic, statistic, 1.0, reference, stopped=False)
    p = {side: found.p(side) for side in ("greater", "less", "equal-tailed")}
    assert p["equal-tailed"] == min(1.0, 2 * min(p["greater"], p["less"]))
    low, high = found.interval(alpha, "equal-tailed")
    assert (low <= 0 <= high) == (p["equal-tailed"] > alpha)
    shifted = [
        MonteCarlo(statistic - d, statistic - d, 1.0, reference, stopped=False) for d in (low - 1e-9, high + 1e-9)
    ]
    assert all(one.p("equal-tailed") <= alpha for one in shifted)


def test_of_a_symmetric_distribution_both_two_sided_tests_are_one() -> None:
    half = np.random.default_rng(2).normal(size=500)
    found = MonteCarlo(1.7, 1.7, 1.0, np.concatenate([half, -half]), stopped=False)
    assert found.extremes("two-sided") == 2 * found.extremes("equal-tailed")
    assert found.interval(0.05, "two-sided") == pytest.approx(found.interval(0.05, "equal-tailed"), abs=0.02)


def test_few_rows_against_many_that_are_ranked_almost_without_a_fault() -> None:
    data = ranked((100, 3900), (0.5, 0.96))
    both = {
        side: permutation_test(data, "auc", rng=np.random.default_rng(1), draws=2000, alternative=side)
        for side in ("two-sided", "equal-tailed")
    }
    assert both["equal-tailed"].p_value == pytest.approx(2 / 2001)
    assert both["two-sided"].p_value > 5 * both["equal-tailed"].p_value
    assert both["equal-tailed"].direction == -1
    # The metric of AUCs differs by at most 1.
    assert -1 < both["equal-tailed"].ci_low < both["equal-tailed"].ci_high < -0.2


def test_the_level_of_equal_aucs() -> None:
    rejected = [
        permutation_test(
            ranked((40, 400), (0.85, 0.85), seed),
            "auc",
            rng=np.random.default_rng(seed),
            draws=199,
            alternative="equal-tailed",
        ).rejected
        for seed in range(200)
    ]
    assert np.mean(rejected) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 200)


def test_of_an_exact_test_it_doubles_the_nearer_tail_too() -> None:
    found = exact_p(Rates(3, 40, 11, 30))
    assert found.of("equal-tailed") == 2 * found.less < 1
    assert exact_p(Rates(5, 10, 5, 10)).of("equal-tailed") == 1


def test_drawing_stops_when_the_nearer_tail_is_safe_at_half_the_level() -> None:
    rng = np.random.default_rng(3)
    drawn, stopped = until_safe(
        lambda _, size: rng.normal(size=size), -5.0, "equal-tailed", 100_000, SafeStop(0.025, 0.001)
    )
    assert stopped
    assert len(drawn) < 5_000
