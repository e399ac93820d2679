"""Agreement of measures on models: corrected correlations and choices match a simulated truth."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from fairness_audits.values import Array
from pipeline.rank_agreement import FEWEST, agreement, chosen


def simulated(rho: float, noise: float, slope: float = 0.0, models: int = 20_000) -> tuple[Array, Array, Array]:
    """Return two measures with correlation rho given accuracy, on halves with independent noise, and the accuracy."""
    rng = np.random.default_rng(0)
    accuracy = rng.normal(size=models)
    truth = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], models).T + slope * accuracy
    first, second = (truth + noise * rng.normal(size=truth.shape) for _ in range(2))
    return first, second, accuracy


@pytest.mark.parametrize("rho", [-0.6, 0.0, 0.8])
def test_noise_shrinks_the_raw_correlation_and_not_the_corrected_one(rho: float) -> None:
    found = agreement(*simulated(rho, noise=1.0))
    true = 6 / np.pi * np.arcsin(rho / 2)
    assert found.corrected[0, 1] == pytest.approx(true, abs=0.03)
    assert found.raw[0, 1] == pytest.approx(6 / np.pi * np.arcsin(rho / 4), abs=0.02)
    assert found.reliability == pytest.approx(6 / np.pi * np.arcsin(1 / 4), abs=0.02)


def test_what_both_measures_owe_to_the_accuracy_is_no_agreement() -> None:
    first, second, accuracy = simulated(0.0, noise=0.3, slope=3.0)
    assert spearmanr(first[0], second[1])[0] > 0.8
    assert agreement(first, second, accuracy).corrected[0, 1] == pytest.approx(0, abs=0.05)


def test_without_noise_and_given_nothing_it_is_spearmans_correlation() -> None:
    first, _, accuracy = simulated(0.5, noise=0.0, models=50)
    found = agreement(first, first, np.zeros_like(accuracy))
    assert found.raw[0, 1] == pytest.approx(spearmanr(first[0], first[1])[0])
    assert found.corrected == pytest.approx(found.raw)


def test_the_partial_correlation_is_the_one_of_the_three_correlations() -> None:
    first, _, accuracy = simulated(0.5, noise=0.0, slope=0.7, models=60)
    ab, ac, bc = (spearmanr(*pair)[0] for pair in ((first[0], first[1]), (first[0], accuracy), (first[1], accuracy)))
    partial = (ab - ac * bc) / np.sqrt((1 - ac**2) * (1 - bc**2))
    assert agreement(first, first, accuracy).raw[0, 1] == pytest.approx(partial)


def test_constant_unknown_and_noisy_measures_have_no_correlation() -> None:
    first, second, accuracy = simulated(0.9, noise=0.1, models=400)
    noise = np.random.default_rng(1).normal(size=(2, 400))
    unknown = np.where(np.arange(400) == 7, np.nan, first[0])
    one, other = (
        np.vstack([half, noise[k], np.ones(400), unknown, accuracy]) for k, half in enumerate((first, second))
    )
    found = agreement(one, other, accuracy)
    assert np.isfinite(found.corrected[:2, :2]).all()
    assert np.isnan(found.corrected[2:]).all()
    assert np.isnan(found.reliability).tolist() == [False, False, False, True, True, True]
    assert np.isnan(agreement(first[:, : FEWEST - 1], second[:, : FEWEST - 1], accuracy[: FEWEST - 1]).raw).all()


def test_a_choice_is_measured_on_the_other_half() -> None:
    by = np.array([[3.0, 1.0, 2.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]])
    measured = np.array([[10.0, 20.0, 60.0], [1.0, 2.0, 6.0]])
    assert chosen(by, measured) == pytest.approx(np.array([[20, 2], [15, 1.5], [30, 3]]))


def test_the_regret_of_a_noisy_choice_is_the_expected_one() -> None:
    """With M equal models, the choice on one half gains nothing on the other; with true differences it does."""
    rng = np.random.default_rng(2)
    gains = []
    for spread in (0.0, 1.0):
        truth = spread * rng.normal(size=(2000, 20))
        one, other = (truth + rng.normal(size=truth.shape) for _ in range(2))
        found = np.array([chosen(np.vstack([a, np.zeros(20)]), b[None])[:, 0] for a, b in zip(one, other, strict=True)])
        gains.append((found[:, 1] - found[:, 0]).mean())
    # The smallest of 20 sums of truth and noise has mean -1.867 sqrt(2). Half of it comes from the truth.
    assert gains == pytest.approx([0, 1.867 / np.sqrt(2)], abs=0.06)
