"""Plans: power by another enumeration and by simulation of the tests; each question is the inverse of the other."""

import numpy as np
import pytest
from scipy.stats import binom, fisher_exact

import fairness_audits as fa
from fairness_audits.audits.permutation.equivalence import Bounds, of_rates
from fairness_audits.audits.permutation.exact import Rates
from fairness_audits.audits.permutation.outcomes import Predictions
from fairness_audits.audits.permutation.permutation_test import permutation_test
from fairness_audits.audits.permutation.planning import Planned, auc_variance, rejected, rows_needed, shown
from fairness_audits.audits.permutation.statistics import auc_of
from fairness_audits.errors import InvalidInput
from tests.audits.permutation.builders import near


@pytest.mark.parametrize(("m_a", "m_b"), [(7, 11), (15, 15), (1, 30)])
def test_fishers_test_of_every_outcome(m_a: int, m_b: int) -> None:
    expected = [
        [fisher_exact([[a, m_a - a], [b, m_b - b]]).pvalue <= 0.05 for b in range(m_b + 1)] for a in range(m_a + 1)
    ]
    np.testing.assert_array_equal(rejected(m_a, m_b, 0.05), expected)


def test_a_margin_of_every_outcome() -> None:
    m_a, m_b = 12, 10
    expected = [
        [of_rates(Rates(a, m_a, b, m_b), Bounds.margin(0.3), 0.05).p_within <= 0.05 for b in range(m_b + 1)]
        for a in range(m_a + 1)
    ]
    np.testing.assert_array_equal(shown(m_a, m_b, 0.3, 0.05), expected)


def test_the_power_of_a_rate_is_that_of_its_test() -> None:
    plan = Planned((0.25, 0.75), (0.4, 0.6), 0.05)
    m_a, m_b = plan.units(400)
    assert (m_a, m_b) == (40, 180)
    p = np.outer(binom.pmf(np.arange(41), 40, 0.5), binom.pmf(np.arange(181), 180, 0.75))
    assert plan.power(400, 0.5, 0.75) == pytest.approx(p[rejected(40, 180, 0.05)].sum())
    assert plan.power(400, 0.75, 0.75) <= 0.05


@pytest.mark.parametrize("margin", [None, 0.1])
def test_enumeration_and_the_normal_law_meet_where_rows_are_many(margin: float | None) -> None:
    exact = Planned((0.5, 0.5), (1.0, 1.0), 0.05, margin=margin)
    normal = Planned((0.5, 0.5), (1.0, 1.0), 0.05, lambda f: f * (1 - f), margin)
    for f_a in (0.3, 0.33, 0.36):
        assert exact.power(2000, f_a, 0.3) == pytest.approx(normal.power(2000, f_a, 0.3), abs=0.025)


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
def test_what_does_not_fit_together_is_refused(call: dict[str, object]) -> None:
    with pytest.raises(InvalidInput):
        fa.plan(**{"metric": "tpr", "value": 0.8, **call})
