"""Plans: power by another enumeration and by simulation of the tests; each question is the inverse of the other."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact

import fairness_audits as fa
from fairness_audits.audits.permutation.core import permutation_test
from fairness_audits.audits.permutation.equivalence import Bounds, of_rates
from fairness_audits.audits.permutation.exact import Rates, exact_p
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.planning import Planned, auc_variance, rejected, rows_needed, shown
from fairness_audits.audits.permutation.statistics import auc_of
from fairness_audits.errors import InvalidInput
from tests.audits.permutation.builders import near


@pytest.mark.parametrize(("m_a", "m_b"), [(7, 11), (15, 15), (1, 30)])
def test_fishers_test_of_every_outcome(m_a: int, m_b: int) -> None:
    expected = [
        [fisher_exact([[a, m_a - a], [b, m_b - b]]).pvalue <= 0.05 for b in range(m_b + 1)] for a in range(m_a + 1)
    ]
    np.testing.assert_array_equal(rejected(m_a, m_b, 0.05, range(m_a + 1), range(m_b + 1)), expected)
    np.testing.assert_array_equal(rejected(m_a, m_b, 0.05, range(1, 2), range(3, 9)), [expected[1][3:9]])


def test_a_margin_of_every_outcome() -> None:
    m_a, m_b = 12, 10
    expected = [
        [of_rates(Rates(a, m_a, b, m_b), Bounds.margin(0.3), 0.05).p_within <= 0.05 for b in range(m_b + 1)]
        for a in range(m_a + 1)
    ]
    np.testing.assert_array_equal(shown(m_a, m_b, 0.3, 0.05, range(m_a + 1), range(m_b + 1)), expected)


def test_the_power_of_a_rate_is_that_of_its_test() -> None:
    plan = Planned((0.25, 0.75), (0.4, 0.6), 0.05)
    m_a, m_b = plan.units(400)
    assert (m_a, m_b) == (40, 180)
    p = np.outer(binom.pmf(np.arange(41), 40, 0.5), binom.pmf(np.arange(181), 180, 0.75))
    assert plan.power(400, 0.5, 0.75) == pytest.approx(p[rejected(40, 180, 0.05, range(41), range(181))].sum())
    assert plan.power(400, 0.75, 0.75) <= 0.05


@pytest.mark.parametrize("margin", [None, 0.1])
def test_enumeration_and_the_normal_law_meet_where_rows_are_many(margin: float | None) -> None:
    exact = Planned((0.5, 0.5), (1.0, 1.0), 0.05, margin=margin)
    normal = Planned((0.5, 0.5), (1.0, 1.0), 0.05, lambda f: f * (1 - f), margin)
    for f_a in (0.3, 0.33, 0.36):
        assert exact.power(2000, f_a, 0.3) == pytest.approx(normal.power(2000, f_a, 0.3), abs=0.025)


@pytest.mark.parametrize(
    ("f_a", "f_b", "shares", "margin", "rows"),
    [
        (0.001, 0.01, (0.02, 0.98), None, 14_271),
        (0.995, 0.98, (0.03, 0.97), None, 11_714),
        (0.005, 0.02, (0.05, 0.95), None, 9_171),
        (0.0, 0.0, (0.1, 0.9), 0.003, 6_663),
        (0.998, 0.998, (0.05, 0.95), 0.005, 14_390),
    ],
)
def test_the_power_of_rare_rates_and_small_groups_is_that_of_the_audits_own_test(
    f_a: float, f_b: float, shares: tuple[float, float], margin: float | None, rows: int
) -> None:
    plan, rng, trials = Planned(shares, (1.0, 1.0), 0.05, margin=margin), np.random.default_rng(4), 300
    m_a, m_b = plan.units(rows)
    found = 0
    for x_a, x_b in zip(rng.binomial(m_a, f_a, trials), rng.binomial(m_b, f_b, trials), strict=True):
        rates = Rates(int(x_a), m_a, int(x_b), m_b)
        found += (
            exact_p(rates).two_sided <= 0.05
            if margin is None
            else of_rates(rates, Bounds.margin(margin), 0.05).p_within <= 0.05
        )
    power = plan.power(rows, f_a, f_b)
    assert abs(found / trials - power) <= 4 * np.sqrt(max(power * (1 - power), 1 / trials) / trials)


def test_no_power_is_promised_where_the_audit_is_inconclusive() -> None:
    mean = Planned((0.5, 0.5), (1.0, 1.0), 0.05, lambda _: 1.0)
    assert (mean.power(38, 0.0, 9.0), mean.power(40, 0.0, 9.0)) == (0.0, pytest.approx(1.0))
    auc = Planned((0.5, 0.5), (1.0, 1.0), 0.05, lambda auc: auc_variance(auc, 0.2), 0.02, 0.2)
    rows = rows_needed(auc, 1.0, 1.0, 0.8)
    # All k pairs of a group agree: z(.95) / z(.975) times 1 - .025^(1/k) is below .02 from k = 153 on.
    assert rows == pytest.approx(2 * 153 / 0.2, abs=10)
    for k, number in ((152, 0), (153, 1)):
        label = np.tile(np.repeat([0, 1], [4 * k, k]), 2)
        audit = fa.permutation_test(
            label, score=label + 0.0, group=np.repeat(["a", "b"], 5 * k), metric=["auc"], margin=0.02
        )
        assert audit.verdict.facts["shown"] == number
    assert "Even 1,000,000,000 rows" in fa.plan(metric="tpr", value=0.5, gap=1e-6).summary().replace("\n  ", " ")


def test_rows_have_the_power_and_one_fewer_does_not() -> None:
    for plan in (
        Planned((0.3, 0.7), (0.5, 0.5), 0.05),
        Planned((0.3, 0.7), (1.0, 1.0), 0.05, lambda auc: auc_variance(auc, 0.2)),
        Planned((0.5, 0.5), (1.0, 1.0), 0.05, margin=0.25),
    ):
        gap = 0.0 if plan.margin else -0.15
        rows = rows_needed(plan, 0.8 + gap, 0.8, 0.8)
        assert rows is not None
        assert plan.power(rows, 0.8 + gap, 0.8) >= 0.8 > plan.power(rows - 1, 0.8 + gap, 0.8)


def test_the_detectable_gap_is_the_inverse_of_the_rows() -> None:
    for call in ({"metric": "tpr"}, {"metric": "auc", "of_rows": 0.3}, {"metric": "mean", "sd": 0.3}):
        found = fa.plan(value=0.7, rows=900, **call).facts
        for name, side in (("gap_below", -1), ("gap_above", 1)):
            power = fa.plan(value=0.7, rows=900, gap=side * found[name] * (1 + 1e-9), **call).facts["power"]
            assert power == pytest.approx(0.8, abs=1e-3)


def test_the_formula_of_the_auc_is_the_power_of_its_permutation_test() -> None:
    """Exponential scores, for which Hanley and McNeil's variance is exact: AUC = rate / (1 + rate)."""
    rng, trials, rows = np.random.default_rng(1), 300, 600
    aucs, group = np.array([0.65, 0.75]), np.repeat([0, 1], rows // 2)
    rejections = 0
    for _ in range(trials):
        label = (rng.random(rows) < 0.4).astype(np.int64)
        scale = np.where(label == 1, (aucs / (1 - aucs))[group], 1.0)
        data = Predictions(label, scale * rng.exponential(size=rows), group, ("a", "b"))
        found = permutation_test(data, "auc", rng=rng, draws=199, alternative="equal-tailed")
        rejections += found.rejected
    plan = Planned((0.5, 0.5), (1.0, 1.0), 0.05, lambda auc: auc_variance(auc, 0.4))
    assert near(rejections / trials, plan.power(rows, *aucs), trials)


@pytest.mark.parametrize(("auc", "positives"), [(0.8, 0.1), (0.85, 0.05), (0.8, 0.9)])
def test_the_variance_of_an_auc_of_exponential_scores_is_exact(auc: float, positives: float) -> None:
    """DeLong's variance of a large sample, also if one class is rare."""
    rng, rows = np.random.default_rng(3), 200_000
    label = (rng.random(rows) < positives).astype(np.int64)
    scores = np.where(label == 1, auc / (1 - auc), 1.0) * rng.exponential(size=rows)
    assert rows * auc_of(label, scores).variance == pytest.approx(auc_variance(auc, positives), rel=0.06)


def test_the_formula_of_a_mean_is_the_power_of_its_permutation_test() -> None:
    rng, trials, rows = np.random.default_rng(2), 400, 200
    group, rejections = np.repeat([0, 1], (60, 140)), 0
    for _ in range(trials):
        data = Predictions(np.zeros(rows, dtype=np.int64), rng.normal(size=rows) + 0.4 * group, group, ("a", "b"))
        rejections += permutation_test(data, "mean_score", rng=rng, draws=199).rejected
    plan = Planned((0.3, 0.7), (1.0, 1.0), 0.05, lambda _: 1.0)
    assert near(rejections / trials, plan.power(rows, 0.0, 0.4), trials)


@pytest.mark.parametrize(
    "call",
    [
        {},
        {"gap": 0.5},
        {"gap": 0.0},
        {"gap": 0.1, "margin": 0.05},
        {"metric": "auc", "gap": 0.1},
        {"metric": "mean", "gap": 0.1},
        {"gap": 0.1, "shares": (0.6, 0.6)},
        {"gap": 0.1, "of_rows": (0.1, 0.2, 0.3)},
    ],
)
def test_what_does_not_fit_together_is_refused(call: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        fa.plan(**{"metric": "tpr", "value": 0.8, **call})
