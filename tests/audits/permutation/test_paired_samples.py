"""Changes of the AUC and of precisions between two versions: values, variances, level and power."""

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm

from fairness_audits.audits.permutation.paired_samples import SampleChange, auc_change, precision_change
from tests.audits.permutation.builders import near

RNG = np.random.default_rng(0)


def test_the_aucs_have_delongs_test() -> None:
    """By the definition: all pairs of a positive and a negative, and the covariance matrix of both AUCs."""
    label = RNG.integers(0, 2, 60)
    scores = np.stack([label + RNG.normal(size=60), 0.5 * label + RNG.normal(size=60)]).round(1)
    m, n = (label == 1).sum(), (label == 0).sum()
    wins = np.array([np.sign(s[label == 1][:, None] - s[label == 0]) / 2 + 0.5 for s in scores])
    covariance = np.cov(wins.mean(axis=2)) / m + np.cov(wins.mean(axis=1)) / n
    found = auc_change(label, *scores)
    assert (found.first, found.second) == pytest.approx(wins.mean(axis=(1, 2)))
    assert found.variance == pytest.approx(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    z = (found.second - found.first) / np.sqrt(found.variance)
    assert found.p_value == pytest.approx(2 * (1 - float(norm.cdf(abs(z)))))
    assert np.isnan(auc_change(np.ones(9, dtype=int), np.arange(9), np.arange(9)).p_value)
    assert auc_change(label, scores[0], scores[0]).p_value == 1


def test_aucs_without_variance_are_bounded_by_their_pairs() -> None:
    label = np.repeat([0, 1], (30, 12))
    score = label + RNG.random(42) / 2
    turned, same = auc_change(label, -score, score), auc_change(label, score, label + RNG.random(42) / 3)
    assert (turned.first, turned.second, turned.exact, turned.p_value) == (0.0, 1.0, True, 2 * 0.5**12)
    assert turned.interval(0.05) == pytest.approx((2 * 0.025 ** (1 / 12) - 1, 1.0))
    assert (same.first, same.second, same.p_value) == (1.0, 1.0, 1.0)
    assert same.interval(0.05) == pytest.approx((0.025 ** (1 / 12) - 1, 1 - 0.025 ** (1 / 12)))
    assert turned.interval(turned.p_value)[0] == pytest.approx(0), "the interval excludes 0 if p is below its level"


def decisions(rng: np.random.Generator, n: int, better: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels and two correlated decisions; the second is right more often by ``better``."""
    label, shared = rng.integers(0, 2, n), rng.normal(size=n)
    first, second = (label * by + shared + rng.normal(size=n) > 0.5 for by in (1.0, 1.0 + better))
    return label, first.astype(int), second.astype(int)


def test_the_variance_of_a_change_of_precision_is_that_of_generalised_estimating_equations() -> None:
    label, *both = decisions(RNG, 2000, 0.5)
    rows = [np.flatnonzero(one == 1) for one in both]
    person = np.concatenate(rows)
    design = np.column_stack([np.ones(len(person)), np.repeat([0, 1], [len(one) for one in rows])])
    order = np.argsort(person, kind="stable")
    family = sm.families.Gaussian()  # the identity link: the coefficient is the difference of two shares
    fitted = sm.GEE(label[person][order], design[order], groups=person[order], family=family).fit()
    found = precision_change(label, *both)
    assert (found.first, found.second) == pytest.approx([label[one].mean() for one in rows])
    assert found.variance == pytest.approx(fitted.cov_robust[1, 1], rel=0.01)
    assert found.p_value == pytest.approx(fitted.pvalues[1], abs=0.01)


def test_the_statistic_of_a_precision_by_hand() -> None:
    """One version is right in 6 of its 8 rows, the other in 9 of 10. Both select 4 right rows and 1 wrong row."""
    label = np.repeat([1, 1, 1, 0, 0], [4, 2, 5, 1, 1])
    first, second = np.repeat([[1, 1, 0, 1, 1], [1, 0, 1, 1, 0]], [4, 2, 5, 1, 1], axis=1)
    found = precision_change(label, first, second)
    assert (found.first, found.second, found.n, found.exact) == (6 / 8, 9 / 10, 2, False)
    pooled = 15 / 18
    shared = (4 * (1 - pooled) ** 2 + pooled**2) / 18
    z = (9 / 10 - 6 / 8) / np.sqrt((pooled * (1 - pooled) - 2 * shared) * (1 / 8 + 1 / 10))
    assert found.p_value == pytest.approx(2 * norm.sf(z))
    nobody = precision_change(label, np.zeros_like(label), second)
    assert np.isnan([nobody.p_value, nobody.first]).all()


def test_equal_precisions_of_versions_that_select_different_numbers_of_rows_are_not_told_apart() -> None:
    rng, trials = np.random.default_rng(5), 2000
    p = [precision_change(*(rng.random((3, 200)) < [[0.95], [0.2], [0.6]]).astype(int)).p_value for _ in range(trials)]
    assert near(float(np.mean(np.array(p) <= 0.05)), 0.05, trials)


@pytest.mark.parametrize("metric", ["auc", "precision"])
def test_level_coverage_and_power(metric: str) -> None:
    rng, trials = np.random.default_rng(3), 400

    def found(better: float, n: int = 150) -> SampleChange:
        if metric == "precision":
            return precision_change(*decisions(rng, n, better))
        label = rng.integers(0, 2, n)
        score = label + rng.normal(size=(2, n)) + rng.normal(size=n)
        return auc_change(label, score[0], score[1] + better * label)

    none = [found(0.0) for _ in range(trials)]
    assert near(float(np.mean([one.p_value <= 0.05 for one in none])), 0.05, trials)
    ends = [one.interval(0.05) for one in none]
    assert np.mean([low <= 0 <= high for low, high in ends]) > 0.92
    assert np.mean([found(2.0, 600).p_value <= 0.05 for _ in range(50)]) > 0.9
