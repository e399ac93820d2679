"""Exact distances of linear classifiers: closed forms, an independent solver in the box, invariances, failures."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from pipeline.attacks import linear_distance as module
from pipeline.attacks.linear_distance import linear_distance, linear_distance_in_box, to_plane_in_box
from pipeline.types import Array
from tests.attacks.builders import in_the_corner, linear

BOTH = pytest.mark.parametrize("measure", [linear_distance, linear_distance_in_box])


def test_two_pixels_by_hand() -> None:
    # z = (3 a + 4 b - 2, 0): the boundary is 3 a + 4 b = 2, and a point is |3 a + 4 b - 2| / 5 from it.
    weight, bias = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([-2.0, 0.0])
    images = np.array([[0.5, 0.5], [0.1, 0.1], [1.0, 1.0]]).reshape(3, 1, 1, 2)
    found = linear_distance(weight, bias, images, np.array([0, 1, 1]))
    # The last is misclassified.
    np.testing.assert_allclose(found.distance, [0.3, 0.26, 0.0], rtol=1e-12)
    assert not found.failed.any()
    assert (found.forward_passes, found.backward_passes, found.adversarial) == (3, 0, None)


def test_the_box_by_hand() -> None:
    # From (.1, .5) the plane 3 a + 4 b = .5 is met at a = -.14, so a stops at 0 and b goes on to .125.
    weight, bias = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([-0.5, 0.0])
    image, label = np.array([0.1, 0.5]).reshape(1, 1, 1, 2), np.array([0])
    free, boxed = (measure(weight, bias, image, label) for measure in (linear_distance, linear_distance_in_box))
    np.testing.assert_allclose(free.distance, 1.8 / 5)
    np.testing.assert_allclose(boxed.distance, np.hypot(0.1, 0.375))


def test_no_class_changes_within_the_distance_and_one_does_just_beyond() -> None:
    model = linear(3, n=20)
    distance = linear_distance(model.weight, model.bias, model.images, model.label).distance
    rng = np.random.default_rng(0)
    x = model.images.reshape(20, -1).astype(float)
    for i, (far, own) in enumerate(zip(distance, model.label, strict=True)):
        away = rng.normal(size=(500, x.shape[1]))
        away = np.concatenate([away, model.weight - model.weight[own] + 1e-12])
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        within, beyond = (((x[i] + s * far * away) @ model.weight.T + model.bias).argmax(1) for s in (0.999, 1.001))
        assert (within == own).all()
        assert (beyond != own).any()


def solved(gap: float, v: Array, x: Array) -> float:
    """min ||delta|| with v' delta = -gap in the box, by a general solver."""
    constraint = {"type": "eq", "fun": lambda d: v @ d + gap, "jac": lambda d: v}
    bounds = np.stack([-x, 1 - x], axis=1)
    found = minimize(
        lambda d: d @ d,
        np.zeros(len(x)),
        jac=lambda d: 2 * d,
        bounds=bounds,
        constraints=constraint,
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert found.success, found.message
    return float(np.sqrt(found.fun))


@pytest.mark.parametrize("seed", range(6))
def test_in_the_box_it_agrees_with_a_general_solver(seed: int) -> None:
    rng = np.random.default_rng(seed)
    # Pixels on the box's sides, and weights of 0.
    x, v = rng.uniform(size=8).round(1), rng.normal(size=8).round(1)
    x[:2], v[2] = (0.0, 1.0), 0.0
    reach = float(v @ x - np.minimum(v, 0).sum())
    for share in (0.0, 0.1, 0.5, 0.9, 1 - 1e-9):
        (found,) = to_plane_in_box(np.array([[share * reach]]), v[None, None], x[None, None])[0]
        assert found == pytest.approx(solved(share * reach, v, x), rel=1e-5, abs=1e-6)
    assert np.isinf(to_plane_in_box(np.array([[1.001 * reach]]), v[None, None], x[None, None])).all()


def test_the_box_matters_only_where_it_is_in_the_way() -> None:
    model = linear(4)
    free, boxed = (
        measure(model.weight, model.bias, model.images, model.label)
        for measure in (linear_distance, linear_distance_in_box)
    )
    # Around mid-grey no boundary is as far as a side of the box.
    np.testing.assert_allclose(boxed.distance, free.distance, rtol=1e-9)
    dark = in_the_corner(model)
    free, boxed = (
        measure(dark.weight, dark.bias, dark.images, dark.label)
        for measure in (linear_distance, linear_distance_in_box)
    )
    assert (boxed.distance[~boxed.failed] >= free.distance[~boxed.failed] * (1 - 1e-12)).all()
    assert np.median(boxed.distance / free.distance) > 1.1


@BOTH
def test_what_leaves_the_boundaries_where_they_are_changes_nothing(measure: Callable[..., Any]) -> None:
    model = linear(5)
    rng = np.random.default_rng(0)
    expected = measure(model.weight, model.bias, model.images, model.label).distance
    shift, order = rng.normal(size=model.weight.shape[1]), rng.permutation(model.weight.shape[1])
    classes = rng.permutation(5)
    shuffled = model.images.reshape(60, -1)[:, order].reshape(model.images.shape)
    same = [
        measure(7 * model.weight, 7 * model.bias, model.images, model.label),
        measure(model.weight + shift, model.bias + 3, model.images, model.label),
        measure(model.weight[:, order], model.bias, shuffled, model.label),
        measure(model.weight[classes], model.bias[classes], model.images, np.argsort(classes)[model.label]),
    ]
    for found in same:
        np.testing.assert_allclose(found.distance, expected, rtol=1e-9)


@BOTH
def test_blocks_change_nothing(measure: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    model = linear(6)
    whole = measure(model.weight, model.bias, model.images, model.label)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 1000)
    parts = measure(model.weight, model.bias, model.images, model.label)
    np.testing.assert_allclose(parts.distance, whole.distance, rtol=1e-12)


@BOTH
def test_without_a_boundary_it_fails_and_says_so(measure: Callable[..., Any]) -> None:
    found = measure(np.ones((3, 4)), np.array([1.0, 0.0, 0.0]), np.full((2, 1, 2, 2), 0.5), np.array([0, 1]))
    # The second point is misclassified, which needs no boundary.
    np.testing.assert_array_equal(found.failed, [True, False])
    np.testing.assert_array_equal(found.distance, [np.nan, 0.0])


def test_a_class_that_the_box_holds_no_point_of_is_out_of_reach_in_it_alone() -> None:
    # Class 1 begins where the sum of two pixels is 3.
    weight, bias = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([3.0, 0.0])
    image, label = np.full((1, 1, 1, 2), 0.5), np.array([0])
    assert linear_distance_in_box(weight, bias, image, label).failed.all()
    assert linear_distance(weight, bias, image, label).distance == pytest.approx(2 / np.sqrt(2))


@BOTH
def test_shapes_that_do_not_fit_are_refused(measure: Callable[..., Any]) -> None:
    weight, bias, images, label = np.ones((3, 4)), np.zeros(3), np.zeros((2, 1, 2, 2)), np.zeros(2, dtype=int)
    for wrong in (
        (weight[0], bias[:1], images, label),
        (weight[:1], bias[:1], images, label),
        (weight, bias[:2], images, label),
        (weight, bias, images[:, :, :1], label),
        (weight, bias, images, label[:1]),
    ):
        with pytest.raises(ValueError, match=r"expected weight \(K, d\) with K >= 2, bias \(K,\), images of d pixels"):
            measure(*wrong)
