"""Theorem 3.1 and corollaries 3.2, 3.3 and C.2 as the validity audit shows them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import binom, norm

from pipeline.audits.loss_ratio import loss_ratio_validity
from pipeline.audits.loss_ratio.ratio_tests import loss_ratio_test
from pipeline.seeds import generators
from pipeline.types import AuditResult, Dataset
from tests.builders import dataset, logistic

CONFIG = loss_ratio_validity.Config(
    sample_sizes=[50, 3200],
    draws=4000,
    alpha=0.05,
    delta_over_truth=[0.9, 1.0, 1.1],
    regularization=50.0,
    step_size=0.01,
    steps=100,
    schedule="constant",
    power=0.0,
    angle=0.0,
)
LARGE = CONFIG.sample_sizes[-1]
BAND = binom.ppf([1e-6, 1 - 1e-6], CONFIG.draws, CONFIG.alpha) / CONFIG.draws
"""Where a share of the draws with probability alpha lies except twice in a million times: .035 to .067."""


def population(n: int = 20_000) -> Dataset:
    """Two overlapping classes in the plane; a logistic regression on both coordinates is unfair in the first."""
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 2)) + np.stack([np.zeros(n), 2.0 * label - 1], axis=1)
    return dataset(x, label, {"g": label})


@pytest.fixture(scope="module")
def result() -> AuditResult:
    return loss_ratio_validity.run(population(), logistic(1.0, 2.0), CONFIG, generators("validity", repetitions=1))


def rate(result: AuditResult, statistic: str, test: str, n: int, multiple: float | None = None) -> float:
    rows = result.rows.query("statistic == @statistic and test == @test and n_sample == @n")
    if multiple is not None:
        rows = rows[rows["delta_over_truth"] == multiple]
    (found,) = rows["value"]
    return float(found)


@pytest.mark.parametrize("test", ["loss", "error"])
def test_coverage_and_level_are_nominal_in_samples_of_some_size(result: AuditResult, test: str) -> None:
    low, high = BAND
    assert low <= rate(result, "rejection_rate", test, LARGE, 1.0) <= high
    assert low <= 1 - rate(result, "coverage_two_sided", test, LARGE) <= high
    # The one-sided interval misses the truth exactly where the test at delta = truth rejects.
    assert rate(result, "coverage_one_sided", test, LARGE) == pytest.approx(
        1 - rate(result, "rejection_rate", test, LARGE, 1.0)
    )


@pytest.mark.parametrize("alpha", [0.025, 0.1])
def test_a_quantile_of_the_wrong_tail_would_be_noticed(alpha: float) -> None:
    # z_{1-alpha/2} in the place of z_{1-alpha} halves the level of the test; the reverse doubles the interval's misses.
    other = loss_ratio_validity.run(
        population(),
        logistic(1.0, 2.0),
        replace(CONFIG, sample_sizes=[LARGE], alpha=alpha),
        generators("wrong", repetitions=1),
    )
    low, high = BAND
    for test in ("loss", "error"):
        assert not low <= rate(other, "rejection_rate", test, LARGE, 1.0) <= high
        assert not low <= 1 - rate(other, "coverage_two_sided", test, LARGE) <= high


@pytest.mark.parametrize("test", ["loss", "error"])
def test_the_test_rejects_what_is_above_delta_and_not_what_is_below(result: AuditResult, test: str) -> None:
    for n in CONFIG.sample_sizes:
        rates = [rate(result, "rejection_rate", test, n, multiple) for multiple in CONFIG.delta_over_truth]
        assert rates == sorted(rates, reverse=True)
    assert rate(result, "rejection_rate", test, LARGE, 0.9) > 0.99
    assert rate(result, "rejection_rate", test, LARGE, 0.9) >= rate(result, "rejection_rate", test, 50, 0.9)
    assert rate(result, "rejection_rate", test, LARGE, 1.1) < 0.001


@pytest.mark.parametrize("test", ["loss", "error"])
def test_standardized_means_approach_the_normal_distribution(result: AuditResult, test: str) -> None:
    # Below .04 is Monte Carlo noise: the loss ratios here are near normal in samples of 50 already.
    noise = 0.04
    assert rate(result, "kolmogorov_distance", test, LARGE) < noise
    assert (rate(result, "kolmogorov_distance", test, 50) > noise) == (test == "error")
    quantiles, levels = result.arrays[f"quantiles_{test}"][0], result.arrays["quantile_levels"]
    assert quantiles.shape == (2, 99)
    np.testing.assert_allclose(quantiles[1, 4:-4], norm.ppf(levels)[4:-4], atol=0.25)


def test_the_truth_is_the_mean_over_the_population(result: AuditResult) -> None:
    rows = result.rows.query("statistic == 'truth' and test == 'loss'")
    assert rows["value"].item() > 1.2
    deltas = result.rows.query("statistic == 'rejection_rate' and test == 'loss'")
    np.testing.assert_allclose(deltas["delta"], deltas["delta_over_truth"] * rows["value"].item())


def test_samples_are_drawn_from_the_whole_population_with_replacement() -> None:
    # Of a population of three, one point has ratio 4: samples of two see it 0, 1 or 2 times.
    original, attacked = np.ones(3), np.array([1.0, 1, 4])
    rng = np.random.default_rng(0)
    samples = loss_ratio_validity.draw(loss_ratio_test, original, attacked, 2.0, 2, 9000, 0.05, rng)
    middle = (samples.ci_low + samples.ci_high) / 2
    shares = [np.isclose(middle, mean).mean() for mean in (1.0, 2.5, 4.0)]
    np.testing.assert_allclose(shares, [4 / 9, 4 / 9, 1 / 9], atol=0.025)
    assert len(samples.standardized) == np.isclose(middle, 2.5).sum()


def test_a_population_without_errors_is_refused() -> None:
    data = population(100)
    data = replace(data, label=(data.features @ [1, 2] > 0).astype(int))
    with pytest.raises(ValueError, match="misclassifies none of the 100 points of the population"):
        loss_ratio_validity.run(data, logistic(1.0, 2.0), replace(CONFIG, draws=5), generators("x", repetitions=1))
