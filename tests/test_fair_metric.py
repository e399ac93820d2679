"""The fair metric as mathematics: projectors, invariances, learned subspaces, angles."""

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy.special import expit

from fairness_audits.fair_metric import (
    from_directions,
    learn,
    learn_batch,
    principal_angles,
    rotated,
    sensitive_directions,
)
from fairness_audits.group_metrics import (
    accuracy,
    average_odds_difference,
    balanced_accuracy,
    equal_opportunity_difference,
    group_metrics,
    positive_rate,
    statistical_parity_difference,
)
from fairness_audits.values import Batch
from tests.errors import invalid

SEEDS = st.integers(0, 2**32 - 1)


def directions_of(seed: int, number: int = 2, d: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(number, d))


@given(SEEDS, st.integers(0, 5))
@settings(max_examples=30, deadline=None)
def test_the_matrix_is_the_projector_on_the_complement_of_the_directions(seed: int, number: int) -> None:
    directions = directions_of(seed, number)
    sigma = from_directions(directions).matrix
    np.testing.assert_allclose(sigma @ sigma, sigma, atol=1e-12)
    np.testing.assert_array_equal(sigma, sigma.T)
    np.testing.assert_allclose(sigma @ directions.T, 0, atol=1e-10)
    assert np.trace(sigma) == pytest.approx(5 - number, abs=1e-12)


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_the_distance_is_zero_exactly_for_differences_in_the_subspace(seed: int) -> None:
    rng = np.random.default_rng(seed)
    directions = directions_of(seed)
    metric = from_directions(directions)
    x = rng.normal(size=(7, 5))
    inside = x + rng.normal(size=(7, 2)) @ directions
    np.testing.assert_allclose(metric.squared_distance(x, inside), 0, atol=1e-24 * np.abs(inside).max() ** 2 + 1e-25)
    # Anything else is as far as its part outside the subspace is long (Pythagoras).
    outside = inside + rng.normal(size=(7, 5))
    within = np.linalg.lstsq(directions.T, (outside - x).T, rcond=None)[0].T @ directions
    expected = ((outside - x) ** 2).sum(axis=1) - (within**2).sum(axis=1)
    np.testing.assert_allclose(metric.squared_distance(x, outside), expected, rtol=1e-9, atol=1e-12)
    assert (metric.squared_distance(x, outside) > 0).all()


@given(SEEDS, st.floats(-1e150, 1e150).filter(lambda c: abs(c) > 1e-150))
@settings(max_examples=30, deadline=None)
def test_the_metric_depends_on_the_span_alone(seed: int, factor: float) -> None:
    directions = directions_of(seed)
    sigma = from_directions(directions).matrix
    np.testing.assert_allclose(from_directions(factor * directions).matrix, sigma, atol=1e-10)
    mixed = np.array([[1.0, 2.0], [-1.0, 0.5], [3.0, 1.0]]) @ directions
    metric = from_directions(mixed)
    np.testing.assert_allclose(metric.matrix, sigma, atol=1e-8)
    assert metric.basis.shape == (5, 2)


@pytest.mark.parametrize(("tilt", "rank"), [(0.0, 1), (1e-10, 1), (1e-6, 2)])
def test_a_direction_adds_a_dimension_only_by_what_it_has_outside_the_others(tilt: float, rank: int) -> None:
    basis = from_directions(np.array([[1.0, 0, 0], [-5.0, 5 * tilt, 0]])).basis
    assert basis.shape == (3, rank)


def test_without_directions_the_metric_is_euclidean() -> None:
    metric = from_directions(np.empty((0, 3)))
    np.testing.assert_array_equal(metric.matrix, np.eye(3))
    v = directions_of(3, d=3)
    np.testing.assert_array_equal(metric.operator(v)(v), v)
    assert metric.squared_distance(np.zeros(3), np.array([3.0, 4.0, 0])) == pytest.approx(25)


def test_the_largest_eigenvalue_of_a_projector_is_exactly_one() -> None:
    # A rounding error above 1 would refuse the step sizes on the stability limit.
    assert all(from_directions(directions_of(seed)).largest_eigenvalue == 1.0 for seed in range(20))
    assert from_directions(np.eye(3)).largest_eigenvalue == 0.0


@pytest.mark.parametrize(
    ("directions", "row"),
    [(np.ones(3), None), (np.array([[1.0, 0], [0, 0]]), 1), (np.array([[1.0, np.nan]]), 0)],
)
def test_directions_without_a_meaning_are_refused(directions: np.ndarray, row: int | None) -> None:
    with invalid(option="directions", row=row):
        from_directions(directions)


def test_basis_and_matrix_act_alike_on_arrays_and_tensors() -> None:
    metric = from_directions(directions_of(2))
    v = np.random.default_rng(0).normal(size=(2, 4, 5))
    expected = v @ metric.matrix
    np.testing.assert_allclose(metric.operator(v)(v), expected, atol=1e-14)
    single = torch.tensor(v, dtype=torch.float32)
    moved = metric.operator(single)(single)
    assert moved.dtype == torch.float32
    np.testing.assert_allclose(moved.numpy(), expected, atol=1e-5)
    # Whole numbers would truncate the metric.
    for points in (np.zeros((2, 5), dtype=int), torch.zeros((2, 5), dtype=torch.int64)):
        with invalid(option="features"):
            metric.operator(points)


@given(st.floats(-180, 180))
@settings(max_examples=30, deadline=None)
def test_the_rotated_metric_turns_the_discounted_axis(angle: float) -> None:
    b = np.deg2rad(angle)
    turn = np.array([[np.cos(b), -np.sin(b)], [np.sin(b), np.cos(b)]])
    np.testing.assert_allclose(rotated(angle).matrix, turn @ np.diag([0, 1]) @ turn.T, atol=1e-12)


def attributes(seed: int = 0, n: int = 400, d: int = 4) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    return x, {name: (x @ rng.normal(size=d) + rng.logistic(size=n) > 0).astype(int) for name in ("sex", "race")}


def test_a_learned_direction_is_a_stationary_point_of_the_penalised_likelihood() -> None:
    x, protected = attributes()
    for direction, group in zip(sensitive_directions(x, protected), protected.values(), strict=True):
        # The intercept is free, so find it from its own equation, then check the equation of the coefficients.
        scores = x @ direction
        intercept = 0.0
        for _ in range(50):
            p = expit(scores + intercept)
            intercept += (group - p).sum() / (p * (1 - p)).sum()
        residual = x.T @ (group - expit(scores + intercept)) - direction
        np.testing.assert_allclose(residual, 0, atol=1e-6)


def test_a_sensitive_input_is_an_axis_and_stays_out_of_the_regressions() -> None:
    x, protected = attributes()
    x[:, 1] = protected["sex"]
    directions = sensitive_directions(x, protected, [1])
    assert directions.shape == (3, 4)
    np.testing.assert_array_equal(directions[:2, 1], 0)
    np.testing.assert_array_equal(directions[2], [0, 1, 0, 0])
    others = sensitive_directions(np.delete(x, 1, axis=1), protected)
    np.testing.assert_allclose(np.delete(directions[:2], 1, axis=1), others, atol=1e-12)
    metric = learn(x, protected, [1])
    assert metric.squared_distance(x[:1], x[:1] + 7 * np.eye(4)[1])[0] < 1e-24


@pytest.mark.parametrize("group", [np.zeros(400, int), np.arange(400) % 3])
def test_an_attribute_without_two_groups_is_refused(group: np.ndarray) -> None:
    x, _ = attributes()
    with invalid(option="protected", column="sex"):
        learn(x, {"sex": group})


def test_features_that_are_not_finite_are_refused_by_row() -> None:
    x, protected = attributes()
    x[[3, 5], 0] = np.nan
    with invalid(option="features", row=3):
        learn(x, protected)


def test_a_batch_is_learned_as_its_repetitions_are_whose_subspaces_have_one_dimension() -> None:
    x, protected = zip(*(attributes(seed) for seed in (1, 2)), strict=True)
    groups = {name: np.stack([p[name] for p in protected]) for name in ("sex", "race")}
    stacked = learn_batch(Batch(np.stack(x), np.zeros((2, 400)), groups))
    for r in range(2):
        single = learn(x[r], protected[r])
        np.testing.assert_array_equal(stacked.matrix[r], single.matrix)
        np.testing.assert_array_equal(stacked.directions[r], single.directions)
    groups["race"] = np.stack([protected[0]["race"], protected[1]["sex"]])
    with invalid(option="protected"):
        learn_batch(Batch(np.stack(x), np.zeros((2, 400)), groups))


def test_angles_are_those_between_turned_axes() -> None:
    assert principal_angles(rotated(10), rotated(55))[0] == pytest.approx(45)


# Group metrics: hand-counted values, symmetries, and rates over nobody.


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


def test_balanced_accuracy_does_not_change_when_a_class_is_repeated_and_one_split_serves_many() -> None:
    repeated = np.repeat(np.arange(11), np.where(LABEL == 1, 5, 1))
    assert balanced_accuracy(LABEL[repeated], PREDICTED[repeated]) == balanced_accuracy(LABEL, PREDICTED)
    assert accuracy(LABEL[repeated], PREDICTED[repeated]) != accuracy(LABEL, PREDICTED)
    many = np.stack([PREDICTED, LABEL])
    metrics = group_metrics(LABEL[None], many, {"sex": GROUP[None]})
    assert all(values.shape == (2,) for values in metrics.values())
    assert metrics["aod_sex"][0] == average_odds_difference(LABEL, PREDICTED, GROUP)
    assert metrics["balanced_accuracy"][1] == 1


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


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e8, 1e12])
def test_a_direction_beside_a_column_of_very_different_scale_is_right_or_refused(scale: float) -> None:
    """Against Newton's method in standard deviations, with the penalty in the columns' own units."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 2, 300)
    z = rng.normal(size=(300, 3)) + group[:, None] * [0.8, 0.5, 0.0]
    features = z * [1, scale, 1] + [0, 3 * scale, 0]
    sd = features.std(axis=0)
    x = np.column_stack([(features - features.mean(axis=0)) / sd, np.ones(300)])
    penalty, own = np.append(sd**-2.0, 0), np.zeros(4)
    for _ in range(50):
        p = 1 / (1 + np.exp(-x @ own))
        hessian = x.T @ (x * (p * (1 - p))[:, None]) + np.diag(penalty)
        own -= np.linalg.solve(hessian, x.T @ (p - group) + penalty * own)
    if scale >= 1e8:
        with invalid(option="features", column="g"):
            sensitive_directions(features, {"g": group})
    else:
        (found,) = sensitive_directions(features, {"g": group})
        np.testing.assert_allclose(found, own[:3] / sd, rtol=1e-8)
