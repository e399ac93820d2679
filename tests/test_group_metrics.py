"""Group metrics: hand-counted values, symmetries, and rates over nobody."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from pipeline.group_metrics import (
    accuracy,
    average_odds_difference,
    balanced_accuracy,
    equal_opportunity_difference,
    group_metrics,
    positive_rate,
    statistical_parity_difference,
)

# Group 0: positives predicted 1, 1, 0 and negatives 1, 0; group 1: positives 1, 1 and negatives 0, 0, 0, 1.
GROUP = np.array([0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
LABEL = np.array([1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 0])
PREDICTED = np.array([1, 1, 0, 1, 0, 1, 1, 0, 0, 0, 1])

BITS = arrays.arrays(int, (3, 40), elements=st.integers(0, 1))


def test_every_metric_of_a_counted_example() -> None:
    assert accuracy(LABEL, PREDICTED) == pytest.approx(8 / 11)
    assert balanced_accuracy(LABEL, PREDICTED) == pytest.approx((4 / 5 + 4 / 6) / 2)
    assert equal_opportunity_difference(LABEL, PREDICTED, GROUP) == pytest.approx(2 / 3 - 1)
    assert average_odds_difference(LABEL, PREDICTED, GROUP) == pytest.approx(((2 / 3 - 1) + (1 / 2 - 1 / 4)) / 2)
    assert statistical_parity_difference(PREDICTED, GROUP) == pytest.approx(3 / 5 - 3 / 6)


@given(BITS, BITS, BITS)
def test_swapping_the_groups_or_the_predictions_changes_the_sign(label, predicted, group) -> None:  # type: ignore[no-untyped-def]
    for difference in (average_odds_difference, equal_opportunity_difference):
        value = difference(label, predicted, group)
        np.testing.assert_allclose(difference(label, predicted, 1 - group), -value, atol=1e-15)
        np.testing.assert_allclose(difference(label, 1 - predicted, group), -value, atol=1e-15)
    value = statistical_parity_difference(predicted, group)
    np.testing.assert_allclose(statistical_parity_difference(predicted, 1 - group), -value, atol=1e-15)


@given(BITS, BITS)
def test_a_perfect_predictor_has_equal_odds(label, group) -> None:  # type: ignore[no-untyped-def]
    odds = average_odds_difference(label, label, group)
    assert ((odds == 0) | np.isnan(odds)).all()
    balanced = balanced_accuracy(label, label)
    assert ((balanced == 1) | np.isnan(balanced)).all()


@given(BITS)
def test_a_constant_predictor_has_balanced_accuracy_one_half_and_no_differences(label) -> None:  # type: ignore[no-untyped-def]
    predicted = np.ones_like(label)
    balanced = balanced_accuracy(label, predicted)
    assert ((balanced == 0.5) | np.isnan(balanced)).all()
    parity = statistical_parity_difference(predicted, label)
    assert ((parity == 0) | np.isnan(parity)).all()


def test_balanced_accuracy_does_not_change_when_a_class_is_repeated() -> None:
    repeated = np.repeat(np.arange(11), np.where(LABEL == 1, 5, 1))
    assert balanced_accuracy(LABEL[repeated], PREDICTED[repeated]) == balanced_accuracy(LABEL, PREDICTED)
    assert accuracy(LABEL[repeated], PREDICTED[repeated]) != accuracy(LABEL, PREDICTED)


def test_rates_over_nobody_are_nan_counted_and_silent() -> None:
    label = np.array([[1, 1, 0, 0], [1, 1, 1, 1]])
    predicted = np.array([[1, 0, 1, 0], [1, 0, 1, 0]])
    group = np.array([[0, 0, 1, 1], [0, 1, 0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metrics = group_metrics(label, predicted, {"sex": group})
    # First row: no positives in group 1. Second row: no negatives at all.
    assert np.isnan(metrics["equal_opportunity_sex"]).tolist() == [True, False]
    assert np.isnan(metrics["aod_sex"]).tolist() == [True, True]
    assert np.isnan(metrics["balanced_accuracy"]).tolist() == [False, True]
    assert metrics["undefined_group_metrics"].tolist() == [2, 2]
    assert np.isnan(positive_rate(predicted[0], np.zeros(4)))


def test_one_split_serves_many_classifiers() -> None:
    many = np.stack([PREDICTED, LABEL])
    metrics = group_metrics(LABEL[None], many, {"sex": GROUP[None]})
    assert all(values.shape == (2,) for values in metrics.values())
    assert metrics["aod_sex"][0] == average_odds_difference(LABEL, PREDICTED, GROUP)
    assert metrics["balanced_accuracy"][1] == 1
