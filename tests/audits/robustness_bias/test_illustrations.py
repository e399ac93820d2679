"""The two small worlds of section 2: what is drawn is computed."""

import numpy as np
import pytest

from pipeline.audits.robustness_bias import illustrations

WORLD = illustrations.two_boundaries()
CLASSES = illustrations.three_classes()


def test_both_boundaries_separate_the_classes_and_have_the_shares() -> None:
    for boundary, shares in zip(WORLD.boundaries, illustrations.SHARES, strict=True):
        assert np.linalg.norm(boundary.normal) == pytest.approx(1)
        assert WORLD.accuracy(boundary) == 1
        assert WORLD.attacked(boundary) == shares


def test_no_share_hangs_on_a_point_at_the_edge_of_the_budget() -> None:
    for boundary in WORLD.boundaries:
        assert np.abs(np.abs(boundary.signed(WORLD.points)) - WORLD.budget).min() > 0.01


def test_the_biased_boundary_is_closer_to_the_round_points_of_both_classes() -> None:
    biased, fair = (np.abs(boundary.signed(WORLD.points)) for boundary in WORLD.boundaries)
    for side in (0, 1):
        members = (WORLD.label == side) & (WORLD.subclass == illustrations.ROUND)
        assert (biased[members] < fair[members]).all()


def test_the_middle_class_is_closest_at_about_equal_accuracy() -> None:
    mean = [CLASSES.distance[CLASSES.label == c].mean() for c in range(illustrations.CLASSES)]
    assert np.argmin(mean) == 1
    assert mean[1] < 0.85 * min(mean[0], mean[2])
    accuracy = [CLASSES.correct[CLASSES.label == c].mean() for c in range(illustrations.CLASSES)]
    assert min(accuracy) > 0.95


def test_the_regression_is_where_its_loss_is_least() -> None:
    design = np.column_stack([CLASSES.points, np.ones(len(CLASSES.points))])

    def loss(weights: np.ndarray, bias: np.ndarray) -> float:
        logits = design @ np.column_stack([weights, bias]).T
        own = logits[np.arange(len(logits)), CLASSES.label]
        return float((np.log(np.exp(logits).sum(axis=1)) - own).mean() + illustrations.PENALTY / 2 * (weights**2).sum())

    best = loss(CLASSES.weights, CLASSES.bias)
    rng = np.random.default_rng(0)
    for _ in range(50):
        step = 0.05 * rng.normal(size=(illustrations.CLASSES, 3))
        assert loss(CLASSES.weights + step[:, :2], CLASSES.bias + step[:, 2]) > best
