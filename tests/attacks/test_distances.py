"""What all attacks share: batches, passes, evaluation mode, bisection, and what they refuse."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from pipeline.attacks import Execution
from pipeline.attacks import linear_distance as module
from pipeline.attacks.distances import Closest, CountedNetwork, drawn_in, fooled_by, margin, measured, norms
from pipeline.attacks.linear_distance import linear_distance, linear_distance_in_box, to_plane_in_box
from pipeline.types import Array
from tests.attacks.builders import in_the_corner, linear


def brighter(network: CountedNetwork, x: torch.Tensor, label: torch.Tensor) -> Closest:
    """The attack that adds a tenth to every pixel."""
    closest, everyone = Closest(x), torch.arange(len(x))
    closest.offer(everyone, x + 0.1, fooled_by(network.logits(x + 0.1), label), 1)
    return closest


def sums(x: torch.Tensor) -> torch.Tensor:
    """Class 1 where the mean pixel is above 1/2."""
    mean = x.flatten(1).mean(1)
    return torch.stack([torch.full_like(mean, 0.5), mean], dim=1)


IMAGES = np.linspace(0.3, 0.5, 21, dtype=np.float32)[:, None, None, None].repeat(4, axis=3)
LABEL = np.zeros(21, dtype=np.int64)


@pytest.mark.parametrize("batch_size", [1, 4, 21, 100])
def test_distances_do_not_depend_on_the_batch_and_failures_are_counted(batch_size: int) -> None:
    found = measured(sums, IMAGES, LABEL, brighter, Execution(batch_size))
    crosses = IMAGES.mean(axis=(1, 2, 3)) + 0.1 > 0.5
    assert found.adversarial is not None
    np.testing.assert_array_equal(found.failed, ~crosses)
    np.testing.assert_array_equal(np.isnan(found.distance), ~crosses)
    np.testing.assert_allclose(found.distance[crosses], 0.2, rtol=1e-6)
    np.testing.assert_allclose(found.adversarial[crosses], IMAGES[crosses] + np.float32(0.1))
    np.testing.assert_array_equal(found.adversarial[~crosses], IMAGES[~crosses])
    np.testing.assert_array_equal(found.steps, crosses)
    assert (found.forward_passes, found.backward_passes) == (21, 0)


def test_no_points_have_no_distances_and_adversarial_images_are_kept_only_if_asked_for() -> None:
    found = measured(sums, IMAGES[:0], LABEL[:0], brighter, Execution())
    assert found.adversarial is not None
    assert (found.distance.shape, found.adversarial.shape, found.forward_passes) == ((0,), (0, 1, 1, 4), 0)
    kept = measured(sums, IMAGES, LABEL, brighter, Execution())
    not_kept = measured(sums, IMAGES, LABEL, brighter, Execution(keep_adversarial=False))
    assert not_kept.adversarial is None
    np.testing.assert_array_equal(kept.distance, not_kept.distance)


def test_a_distance_is_that_of_the_kept_image_in_double_precision() -> None:
    images = np.random.default_rng(0).uniform(0.4, 0.45, size=(9, 3, 8, 8)).astype(np.float32)
    found = measured(sums, images, LABEL[:9], brighter, Execution())
    assert found.adversarial is not None
    away = (found.adversarial.astype(float) - images.astype(float)).reshape(9, -1)
    np.testing.assert_allclose(found.distance, np.linalg.norm(away, axis=1), rtol=1e-12)


def test_a_module_is_evaluated_without_dropout_and_handed_back_as_it_came() -> None:
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2))
    network[2].bias.requires_grad_(False)
    network[0].eval()
    first, second = (measured(network, IMAGES, LABEL, brighter, Execution()) for _ in range(2))
    np.testing.assert_array_equal(first.distance, second.distance)
    assert [module.training for module in network.modules()] == [True, False, True, True]
    assert [values.requires_grad for values in network.parameters()] == [True, False]


def test_passes_are_counted_in_images_and_gradients_are_those_of_each_point() -> None:
    network = CountedNetwork(lambda x: torch.stack([x.flatten(1).square().sum(1), x.flatten(1).sum(1)], dim=1))
    x = torch.rand(5, 1, 2, 2)
    network.logits(x[:2])
    leaf, logits = network.traced(x)
    first = network.gradient(logits[:, 0], leaf, again=True)
    second = network.gradient(logits[:, 1], leaf)
    assert (network.forward_passes, network.backward_passes) == (7, 10)
    torch.testing.assert_close(first, 2 * x)
    torch.testing.assert_close(second, torch.ones_like(x))


def test_only_closer_images_that_fool_are_kept() -> None:
    x = torch.zeros(3, 1, 1, 1)
    closest = Closest(x)
    rows, yes = torch.tensor([0, 2]), torch.tensor([True, True])
    closest.offer(rows, torch.full((2, 1, 1, 1), 0.5), yes, 1)
    closest.offer(rows, torch.full((2, 1, 1, 1), 0.25), torch.tensor([True, False]), torch.tensor([2, 2]))
    closest.offer(rows, torch.full((2, 1, 1, 1), 0.75), yes, 3)
    assert closest.distance.tolist() == [0.25, torch.inf, 0.5]
    assert closest.steps.tolist() == [2, 0, 1]
    assert closest.found.tolist() == [True, False, True]


@pytest.mark.parametrize("bisections", [0, 1, 4, 12])
def test_bisection_comes_as_near_to_the_boundary_as_its_number_says(bisections: int) -> None:
    x, label = torch.tensor(IMAGES), torch.tensor(LABEL)
    closest = Closest(x)
    closest.offer(torch.arange(21), x + 0.5, torch.ones(21, dtype=torch.bool), 1)
    network = CountedNetwork(sums)
    drawn = drawn_in(network, closest, label, bisections)
    exact = 2 * (0.5 - x.flatten(1).mean(1))
    assert fooled_by(sums(drawn.adversarial), label).all()
    assert (drawn.distance >= exact - 1e-6).all()
    assert (drawn.distance <= exact + 1.0 * 2.0**-bisections + 1e-6).all()
    assert network.forward_passes == 21 * bisections


def test_the_margin_is_positive_for_the_predicted_class_alone() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [4.0, 4.0, 0.0], [0.0, torch.nan, 0.0]])
    label = torch.tensor([1, 2, 0, 0])
    assert margin(logits, label)[:3].tolist() == [1.0, -1.0, 0.0]
    assert fooled_by(logits, label).tolist() == [False, True, False, False]
    assert norms(torch.full((2, 1, 3, 3), 2.0)).tolist() == [6.0, 6.0]


@pytest.mark.parametrize(
    ("network", "images", "label", "message"),
    [
        (sums, 100 * IMAGES, LABEL, r"pixels in \[0, 1\], found values from 30 to 50: divide the images"),
        (sums, IMAGES[:, 0, 0], LABEL, r"\(n, c, h, w\) and one label each, found shapes \(21, 4\) and \(21,\)"),
        (sums, IMAGES, LABEL - 1, "expected labels that number the classes from 0, found -1"),
        (sums, IMAGES, LABEL + 3, r"logits \(21, K\) of at least 4 classes, .* found shape \(21, 2\)"),
        (lambda x: sums(x)[:, :1], IMAGES, LABEL, r"logits \(21, K\) of at least 2 classes, .* found shape \(21, 1\)"),
    ],
)
def test_what_is_no_image_is_refused(network: Any, images: np.ndarray, label: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        measured(network, images, label, brighter, Execution())
    with pytest.raises(ValueError, match="batch_size >= 1, found 0"):
        Execution(batch_size=0)


# Exact distances of linear classifiers: closed forms, an independent solver in the box, invariances, failures.


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


def test_the_box_by_hand_with_a_point_of_a_class_or_none() -> None:
    # From (.1, .5) the plane 3 a + 4 b = .5 is met at a = -.14, so a stops at 0 and b goes on to .125.
    weight, bias = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([-0.5, 0.0])
    image, label = np.array([0.1, 0.5]).reshape(1, 1, 1, 2), np.array([0])
    free, boxed = (measure(weight, bias, image, label) for measure in (linear_distance, linear_distance_in_box))
    np.testing.assert_allclose(free.distance, 1.8 / 5)
    np.testing.assert_allclose(boxed.distance, np.hypot(0.1, 0.375))
    # Class 1 begins where the sum of two pixels is 3.
    weight, bias = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([3.0, 0.0])
    image, label = np.full((1, 1, 1, 2), 0.5), np.array([0])
    assert linear_distance_in_box(weight, bias, image, label).failed.all()
    assert linear_distance(weight, bias, image, label).distance == pytest.approx(2 / np.sqrt(2))


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
    how: Any = {"method": "SLSQP", "options": {"ftol": 1e-14, "maxiter": 500}}
    start = np.zeros(len(x))
    found = minimize(lambda d: d @ d, start, jac=lambda d: 2 * d, bounds=bounds, constraints=constraint, **how)
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
    (some, same), (free, boxed) = (
        [measure(one.weight, one.bias, one.images, one.label) for measure in (linear_distance, linear_distance_in_box)]
        for one in (model, in_the_corner(model))
    )
    # Around mid-grey no boundary is as far as a side of the box.
    np.testing.assert_allclose(same.distance, some.distance, rtol=1e-9)
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
