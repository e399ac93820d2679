"""What all attacks share: batches, passes, evaluation mode, bisection, and what they refuse."""

from typing import Any

import numpy as np
import pytest
import torch

from pipeline.attacks.distances import Closest, CountedNetwork, Execution, drawn_in, fooled_by, margin, measured, norms


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


def test_no_points_have_no_distances() -> None:
    found = measured(sums, IMAGES[:0], LABEL[:0], brighter, Execution())
    assert found.adversarial is not None
    assert (found.distance.shape, found.adversarial.shape, found.forward_passes) == ((0,), (0, 1, 1, 4), 0)


def test_a_distance_is_that_of_the_kept_image_in_double_precision() -> None:
    images = np.random.default_rng(0).uniform(0.4, 0.45, size=(9, 3, 8, 8)).astype(np.float32)
    found = measured(sums, images, LABEL[:9], brighter, Execution())
    assert found.adversarial is not None
    away = (found.adversarial.astype(float) - images.astype(float)).reshape(9, -1)
    np.testing.assert_allclose(found.distance, np.linalg.norm(away, axis=1), rtol=1e-12)


def test_adversarial_images_are_kept_only_if_asked_for() -> None:
    kept = measured(sums, IMAGES, LABEL, brighter, Execution())
    not_kept = measured(sums, IMAGES, LABEL, brighter, Execution(keep_adversarial=False))
    assert not_kept.adversarial is None
    np.testing.assert_array_equal(kept.distance, not_kept.distance)


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
