"""DeepFool is exact where the network is linear, and elsewhere does what its definition says, in any batch."""

from typing import Any

import numpy as np
import pytest
import torch

from pipeline.attacks.deepfool import PUSH, deepfool
from pipeline.attacks.linear_distance import linear_distance
from tests.attacks.builders import around_grey, ball, linear


@pytest.mark.parametrize("overshoot", [0.0, 0.05])
@pytest.mark.parametrize("classes", [2, 5])
def test_one_step_is_exact_for_a_linear_network(classes: int, overshoot: float) -> None:
    model = linear(0, classes=classes)
    exact = linear_distance(model.weight, model.bias, model.images, model.label).distance
    found = deepfool(model, model.images, model.label, overshoot=overshoot)
    np.testing.assert_array_equal(found.steps, 1)
    # Pixels are of single precision, which a distance of some 1e-4 sees.
    np.testing.assert_allclose(found.distance, (1 + overshoot) * (exact + PUSH), rtol=1e-4, atol=2.0**-23)
    assert not found.failed.any()


def test_its_passes_are_those_that_the_loop_needs() -> None:
    two, five = linear(0, classes=2), linear(0, classes=5)
    found = deepfool(two, two.images, two.label)
    # At the image and a step on; a gradient at the image alone, as nobody needs one after the step.
    assert (found.forward_passes, found.backward_passes) == (2 * 60, 60)
    every = deepfool(five, five.images, five.label, slack=np.inf)
    assert (every.forward_passes, every.backward_passes) == (2 * 60, 4 * 60)
    # Some points are traced anew to spare the others gradients that they have no use for.
    some = deepfool(five, five.images, five.label)
    assert some.forward_passes > 2 * 60
    assert some.forward_passes + some.backward_passes < every.forward_passes + every.backward_passes


def test_from_within_a_ball_it_takes_the_step_of_newton() -> None:
    radius, length = 0.4, np.linspace(0.15, 0.35, 20)
    images, label = around_grey(length), np.zeros(20, dtype=int)
    found = deepfool(ball(radius), images, label, overshoot=0.0)
    # The slope of r^2 - s^2 at s is radial, of length 2 s. It steepens outwards, so one step crosses the sphere.
    np.testing.assert_allclose(found.distance, (radius**2 - length**2) / (2 * length) + PUSH, rtol=1e-4)
    np.testing.assert_array_equal(found.steps, 1)
    drawn = deepfool(ball(radius), images, label, overshoot=0.0, bisections=16)
    np.testing.assert_allclose(drawn.distance, radius - length, rtol=1e-3)


def test_where_the_slope_flattens_it_takes_several_steps_and_ends_on_the_boundary() -> None:
    radius, length = 0.4, np.linspace(0.05, 0.35, 20)

    def network(x: torch.Tensor) -> torch.Tensor:
        inside = torch.exp(-10 * (x - 0.5).flatten(1).norm(dim=1)) - np.exp(-10 * radius)
        return torch.stack([inside, torch.zeros_like(inside)], dim=1)

    found = deepfool(network, around_grey(length), np.zeros(20, dtype=int), overshoot=0.0)
    # Newton's method comes from below and never crosses by itself, so the last push alone does.
    assert (found.distance >= radius - length - 1e-6).all()
    assert (found.distance <= radius - length + PUSH + 1e-6).all()
    assert found.steps.min() > 1


def plain_deepfool(network: torch.nn.Module, image: np.ndarray, label: int, overshoot: float) -> float:
    """The definition, for one image, with the gradient of every class."""
    x = torch.tensor(image[None])
    for _ in range(100):
        leaf = x.detach().requires_grad_(True)
        logits = network(leaf)[0]
        if int(logits.argmax()) != label:
            break
        others = [k for k in range(len(logits)) if k != label]
        slopes = [torch.autograd.grad(logits[k] - logits[label], leaf, retain_graph=True)[0] for k in others]
        gaps = [float((logits[label] - logits[k]).detach()) for k in others]
        best = min(range(len(others)), key=lambda j: gaps[j] / float(slopes[j].norm()))
        length = gaps[best] / float(slopes[best].norm()) + PUSH
        x = (x + (1 + overshoot) * length * slopes[best] / slopes[best].norm()).clamp(0, 1)
    return float((x - torch.tensor(image[None])).norm())


@pytest.mark.parametrize("slack", [1.5, 3.0, np.inf])
def test_leaving_out_hopeless_classes_changes_nothing(digits: Any, slack: float) -> None:
    found = deepfool(digits.network, digits.images, digits.label, slack=slack)
    plain = [plain_deepfool(digits.network, x, y, 0.05) for x, y in zip(digits.images[:16], digits.label, strict=False)]
    np.testing.assert_allclose(found.distance[:16], plain, rtol=1e-4)


@pytest.mark.parametrize(("steepness", "found"), [(2.9, 2), (3.1, 1)])
def test_the_nearest_class_is_found_if_it_is_up_to_three_times_as_steep_as_the_runner_up(
    steepness: float, found: int
) -> None:
    """Logits 0, s - .1 and steepness (s' - .0999), with s and s' from mid-grey along two axes: class 2 is nearest."""
    grey = torch.full((1, 1, 1, 2), 0.5)

    def network(x: torch.Tensor) -> torch.Tensor:
        away = (x - grey).flatten(1)
        return torch.stack([0 * away[:, 0], away[:, 0] - 0.1, steepness * (away[:, 1] - 0.0999)], dim=1)

    distances = {1: 0.1, 2: 0.0999}
    result = deepfool(network, grey.numpy(), np.zeros(1, dtype=int), overshoot=0.0)
    np.testing.assert_allclose(result.distance, distances[found] + PUSH, rtol=1e-4)
    every = deepfool(network, grey.numpy(), np.zeros(1, dtype=int), overshoot=0.0, slack=np.inf)
    np.testing.assert_allclose(every.distance, distances[2] + PUSH, rtol=1e-4)


def test_two_candidates_are_the_runner_up_alone(digits: Any) -> None:
    found = deepfool(digits.network, digits.images, digits.label, candidates=2)
    every = deepfool(digits.network, digits.images, digits.label)
    assert found.backward_passes <= found.forward_passes
    assert found.distance.mean() > every.distance.mean()
