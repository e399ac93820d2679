"""What all attacks share: batches, passes, evaluation mode, and what they refuse."""

import numpy as np
import pytest
import torch

from fairness_audits.attacks import Execution
from fairness_audits.attacks import linear_distance as module
from fairness_audits.attacks.distances import Closest, CountedNetwork, affine, fooled_by, margin, measured, norms
from fairness_audits.attacks.linear_distance import linear_distance
from tests.attacks.builders import linear


def brighter(network: CountedNetwork, x: torch.Tensor, label: torch.Tensor) -> Closest:
    """The attack that adds a tenth to every pixel."""
    closest, everyone = Closest(x), torch.arange(len(x))
    closest.offer(everyone, x + 0.1, fooled_by(network.logits(x + 0.1), label))
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
    assert found.forward_passes == 21


def test_no_points_have_no_distances_and_adversarial_images_are_kept_only_if_asked_for() -> None:
    found = measured(sums, IMAGES[:0], LABEL[:0], brighter, Execution())
    assert found.adversarial is not None
    assert (found.distance.shape, found.adversarial.shape, found.forward_passes) == ((0,), (0, 1, 1, 4), 0)
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
    assert network.forward_passes == 7
    torch.testing.assert_close(first, 2 * x)
    torch.testing.assert_close(second, torch.ones_like(x))


def test_only_closer_images_that_fool_are_kept() -> None:
    x = torch.zeros(3, 1, 1, 1)
    closest = Closest(x)
    rows, yes = torch.tensor([0, 2]), torch.tensor([True, True])
    closest.offer(rows, torch.full((2, 1, 1, 1), 0.5), yes)
    closest.offer(rows, torch.full((2, 1, 1, 1), 0.25), torch.tensor([True, False]))
    closest.offer(rows, torch.full((2, 1, 1, 1), 0.75), yes)
    assert closest.distance.tolist() == [0.25, torch.inf, 0.5]
    assert closest.found.tolist() == [True, False, True]


def test_the_margin_is_positive_for_the_predicted_class_alone() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [4.0, 4.0, 0.0], [0.0, torch.nan, 0.0]])
    label = torch.tensor([1, 2, 0, 0])
    assert margin(logits, label)[:3].tolist() == [1.0, -1.0, 0.0]
    assert fooled_by(logits, label).tolist() == [False, True, False, False]
    assert norms(torch.full((2, 1, 3, 3), 2.0)).tolist() == [6.0, 6.0]


# Exact distances of linear classifiers: a closed form, invariances, failures.


def test_two_pixels_by_hand() -> None:
    # z = (3 a + 4 b - 2, 0): the boundary is 3 a + 4 b = 2, and a point is |3 a + 4 b - 2| / 5 from it.
    weight, bias = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([-2.0, 0.0])
    images = np.array([[0.5, 0.5], [0.1, 0.1], [1.0, 1.0]]).reshape(3, 1, 1, 2)
    found = linear_distance(weight, bias, images, np.array([0, 1, 1]))
    # The last is misclassified.
    np.testing.assert_allclose(found.distance, [0.3, 0.26, 0.0], rtol=1e-12)
    assert not found.failed.any()
    assert (found.forward_passes, found.adversarial) == (3, None)


def test_no_class_changes_within_the_distance_and_one_does_just_beyond() -> None:
    model = linear(3, n=20)
    distance = linear_distance(*model.arrays).distance
    rng = np.random.default_rng(0)
    x = model.images.reshape(20, -1).astype(float)
    for i, (far, own) in enumerate(zip(distance, model.label, strict=True)):
        away = rng.normal(size=(500, x.shape[1]))
        away = np.concatenate([away, model.weight - model.weight[own] + 1e-12])
        away /= np.linalg.norm(away, axis=1, keepdims=True)
        within, beyond = (((x[i] + s * far * away) @ model.weight.T + model.bias).argmax(1) for s in (0.999, 1.001))
        assert (within == own).all()
        assert (beyond != own).any()


def test_what_leaves_the_boundaries_where_they_are_changes_nothing_nor_do_blocks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weight, bias, images, label = linear(5).arrays
    rng = np.random.default_rng(0)
    expected = linear_distance(weight, bias, images, label).distance
    shift, order, classes = rng.normal(size=weight.shape[1]), rng.permutation(weight.shape[1]), rng.permutation(5)
    shuffled = images.reshape(60, -1)[:, order].reshape(images.shape)
    for same in (
        (7 * weight, 7 * bias, images, label),
        (weight + shift, bias + 3, images, label),
        (weight[:, order], bias, shuffled, label),
        (weight[classes], bias[classes], images, np.argsort(classes)[label]),
    ):
        np.testing.assert_allclose(linear_distance(*same).distance, expected, rtol=1e-9)
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 1000)
    np.testing.assert_allclose(linear_distance(weight, bias, images, label).distance, expected, rtol=1e-12)


def test_without_a_boundary_it_fails_and_says_so() -> None:
    found = linear_distance(np.ones((3, 4)), np.array([1.0, 0.0, 0.0]), np.full((2, 1, 2, 2), 0.5), np.array([0, 1]))
    # The second point is misclassified, which needs no boundary.
    np.testing.assert_array_equal(found.failed, [True, False])
    np.testing.assert_array_equal(found.distance, [np.nan, 0.0])


def test_the_slopes_of_a_compiled_linear_network_are_its_weights() -> None:
    linear_layer = torch.nn.Linear(4, 3)
    network = torch.nn.Sequential(torch.nn.Flatten(), linear_layer)
    weight, bias = affine(torch.compile(network, backend="aot_eager"), torch.zeros(1, 1, 2, 2))
    np.testing.assert_allclose(weight, linear_layer.weight.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(bias, linear_layer.bias.detach().numpy(), rtol=1e-6)
