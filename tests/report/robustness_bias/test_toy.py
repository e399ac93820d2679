"""The two small worlds of section 2: what is drawn is computed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.report.robustness_bias import toy

WORLD = toy.two_boundaries()
CLASSES = toy.three_classes()


def test_both_boundaries_separate_the_classes_and_have_the_shares() -> None:
    for boundary, shares in zip(WORLD.boundaries, toy.SHARES, strict=True):
        assert np.linalg.norm(boundary.normal) == pytest.approx(1)
        assert WORLD.accuracy(boundary) == 1
        assert WORLD.attacked(boundary) == shares


def test_no_share_hangs_on_a_point_at_the_edge_of_the_budget() -> None:
    for boundary in WORLD.boundaries:
        assert np.abs(np.abs(boundary.signed(WORLD.points)) - WORLD.budget).min() > 0.01


def test_the_biased_boundary_is_closer_to_the_round_points_of_both_classes() -> None:
    biased, fair = (np.abs(boundary.signed(WORLD.points)) for boundary in WORLD.boundaries)
    for side in (0, 1):
        members = (WORLD.label == side) & (WORLD.subclass == toy.ROUND)
        assert (biased[members] < fair[members]).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 5), st.integers(2, 4))
def test_a_point_moved_by_its_distance_and_no_less_has_another_class(seed: int, d: int, classes: int) -> None:
    """No direction does it in less, and the nearest pair of logits does it in just that."""
    rng = np.random.default_rng(seed)
    weights, bias, points = rng.normal(size=(classes, d)), rng.normal(size=classes), rng.normal(size=(6, d))
    distance = toy.linear_distance(points, weights, bias)

    def predicted(moved: np.ndarray) -> np.ndarray:
        return (moved @ weights.T + bias).argmax(axis=-1)

    before = predicted(points)
    directions = rng.normal(size=(300, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    within = points[:, None] + 0.999 * distance[:, None, None] * directions
    assert (predicted(within) == before[:, None]).all()
    across = np.concatenate([weights[j] - weights[before] for j in range(classes)]).reshape(classes, len(points), d)
    length = np.linalg.norm(across, axis=-1, keepdims=True)
    steps = np.divide(across, length, out=np.zeros_like(across), where=length > 0) * 1.001 * distance[None, :, None]
    assert (predicted(points + steps) != before).any(axis=0).all()


def test_the_middle_class_is_closest_at_about_equal_accuracy() -> None:
    mean = [CLASSES.distance[CLASSES.label == c].mean() for c in range(toy.CLASSES)]
    assert np.argmin(mean) == 1
    assert mean[1] < 0.85 * min(mean[0], mean[2])
    accuracy = [CLASSES.correct[CLASSES.label == c].mean() for c in range(toy.CLASSES)]
    assert min(accuracy) > 0.95


def test_the_regression_is_where_its_loss_is_least() -> None:
    design = np.column_stack([CLASSES.points, np.ones(len(CLASSES.points))])

    def loss(weights: np.ndarray, bias: np.ndarray) -> float:
        logits = design @ np.column_stack([weights, bias]).T
        own = logits[np.arange(len(logits)), CLASSES.label]
        return float((np.log(np.exp(logits).sum(axis=1)) - own).mean() + toy.PENALTY / 2 * (weights**2).sum())

    best = loss(CLASSES.weights, CLASSES.bias)
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = 0.05 * rng.normal(size=(toy.CLASSES, 3))
        assert loss(CLASSES.weights + step[:, :2], CLASSES.bias + step[:, 2]) > best
