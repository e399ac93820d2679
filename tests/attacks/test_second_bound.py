"""A second bound of the distance that does not lean on gradients, where the distance is known by its formula."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from fairness_audits.attacks import Execution
from fairness_audits.attacks.linear_distance import crossing, linear_distance
from fairness_audits.attacks.minimum_norm import deepfool, fmn
from fairness_audits.attacks.second_bound import lost_gradient, second_bound
from fairness_audits.models.outputs import class_scores
from tests.attacks.builders import linear

SIDE = 6
D = SIDE * SIDE
N = 24
W = torch.tensor(np.random.default_rng(3).normal(size=D), dtype=torch.float32)


def pixels(low: float, high: float) -> np.ndarray:
    """Grey images (n, 1, h, w)."""
    return np.random.default_rng(4).uniform(low, high, (N, 1, SIDE, SIDE)).astype(np.float32)


def logits(logit: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Two classes from the logit of rows (n, d)."""
    return lambda x: torch.stack((torch.zeros(len(x)), logit(x.flatten(1))), 1)


def classes(network: Callable[[torch.Tensor], torch.Tensor], images: np.ndarray) -> np.ndarray:
    return network(torch.from_numpy(images)).argmax(1).numpy()


def others(images: np.ndarray, label: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Ways to the first two images of the other of two classes."""
    return lambda rows: np.stack([images[label != label[row]][:2] for row in rows])


def both(network: Callable[[torch.Tensor], torch.Tensor], images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The distances by DeepFool, and the second bounds; each second bound fools the network."""
    label = classes(network, images)
    second = second_bound(network, images, label, others(images, label))
    assert second.adversarial is not None
    assert (classes(network, second.adversarial) != label).all()
    np.testing.assert_allclose(
        np.linalg.norm((second.adversarial - images).reshape(len(images), -1), axis=1), second.distance, rtol=1e-4
    )
    return deepfool(network, images, label).distance, second.distance


def test_it_is_within_a_few_percent_of_the_plane_of_a_linear_network() -> None:
    model = linear(1, n=N)
    known = linear_distance(*model.arrays).distance
    targets = np.stack([model.images[model.label != own][:3] for own in model.label])
    found = second_bound(*model.first(), lambda rows: targets[rows])
    assert (found.distance >= known * (1 - 1e-5) - 1e-6).all()
    assert np.median(found.distance / known) < 1.05
    assert found.forward_passes < 180 * N


@pytest.mark.parametrize("attack", [deepfool, fmn])
def test_it_tells_distances_across_quantised_pixels(attack: Callable[..., object]) -> None:
    # Steps of an eighth with a slope of a hundredth: a gradient that is a hundred times too small.
    network = logits(lambda x: (torch.round(8 * x) / 8 + 0.01 * x - 0.505) @ W)
    images = pixels(0.2, 0.8)
    label = classes(network, images)
    distance, (_, second) = attack(network, images, label).distance, both(network, images)  # type: ignore[attr-defined]
    assert np.nanmedian(distance / second) > 5


def test_it_tells_distances_through_a_steep_sigmoid() -> None:
    network = logits(lambda x: (torch.sigmoid(40 * (x - 0.5)) - 0.5) @ W)
    images = pixels(0.0, 1.0)
    distance, second = both(network, np.where(images < 0.5, 0.7 * images, 1 - 0.7 * (1 - images)).astype(np.float32))
    assert np.nanmedian(distance / second) > 2


def test_without_any_gradient_it_comes_near_the_plane() -> None:
    network = logits(lambda x: torch.sign(x @ W - 0.5 * W.sum()) + 0 * x.sum(1))
    images = pixels(0.2, 0.8)
    label = classes(network, images)
    assert (lost_gradient(network, images, label) == 1).all()
    known = np.abs(images.reshape(N, -1) @ W.numpy() - 0.5 * float(W.sum())) / float(W.norm())
    targets = others(images, label)(np.arange(N)).reshape(N, -1, W.numel())
    x = images.reshape(N, 1, -1)
    own, there = ((of - 0.5) @ W.numpy() for of in (x, targets))
    line = (own / (own - there) * np.linalg.norm(targets - x, axis=2)).min(axis=1)
    _, found = both(network, images)
    assert (found >= known * (1 - 1e-4)).all()
    assert np.median(found / known) < 0.6 * np.median(line / known)


def test_a_point_does_not_depend_on_which_device_batch_it_is_in() -> None:
    network = logits(lambda x: torch.tanh(3 * x - 1.5) @ W)
    images = pixels(0.2, 0.8)
    label = classes(network, images)
    targets = others(images, label)
    whole, parts = (
        second_bound(network, images, label, targets, execution=Execution(batch_size=size)).distance for size in (N, 5)
    )
    np.testing.assert_allclose(parts, whole, rtol=1e-4)


def test_it_fails_where_there_is_one_class() -> None:
    def constant(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([1.0, 0.0]) + 0 * x.flatten(1)[:, :1]

    images, label = pixels(0, 1), np.zeros(N, dtype=int)
    found = second_bound(constant, images, label, lambda rows: np.zeros((len(rows), 0, 1, SIDE, SIDE)))
    assert found.failed.all()
    assert np.isnan(found.distance).all()


def test_the_share_of_pixels_without_a_gradient() -> None:
    # Behind a root the slope at 0 is infinite: three pixels of the first image, none of the others.
    network = logits(lambda x: x.pow(1 / 2.2) @ W)
    images = pixels(0.2, 0.8)
    images[0, 0, 0, :3] = 0
    lost = lost_gradient(network, images, classes(network, images))
    assert lost[0] == pytest.approx(3 / D)
    assert (lost[1:] == 0).all()
    # The norm of what is 0 has no gradient at all.
    flat = logits(lambda x: 1 - (x - 0.5).norm(dim=1))
    assert lost_gradient(flat, np.full((2, 1, SIDE, SIDE), 0.5), np.ones(2, dtype=int)).tolist() == [1, 1]


def test_an_attack_goes_on_along_the_other_pixels() -> None:
    network = logits(lambda x: x.pow(1 / 2.2) @ W - 0.7 * W.sum())
    images = pixels(0.2, 0.8)
    images[:, 0, 0, 0] = 0
    found = deepfool(network, images, classes(network, images))
    assert np.isfinite(found.distance).all()
    assert found.adversarial is not None
    assert (found.adversarial[:, 0, 0, 0] == 0).all()


@pytest.mark.parametrize("scale", [5.0, 20.0, 60.0])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_probabilities_have_the_distances_of_their_logits(scale: float, columns: int) -> None:
    images = pixels(0.3, 0.7)
    bias = 0.5 * W.sum()

    def logit(x: torch.Tensor) -> torch.Tensor:
        return scale * (x.flatten(1) @ W - bias) / W.norm()

    def probability(x: torch.Tensor) -> torch.Tensor:
        if columns == 1:
            return torch.sigmoid(logit(x))
        both = torch.stack((-logit(x) / 2, logit(x) / 2), 1).softmax(1)
        # A third class that is switched off.
        return both if columns == 2 else torch.cat((both, torch.zeros(len(x), 1)), 1)

    scores = class_scores("probability", finite=True)
    network = lambda x: scores(probability(x))  # noqa: E731
    label = classes(network, images)
    exact = np.abs(images.reshape(N, -1) @ W.numpy() - float(bias)) / float(W.norm())
    # 1 - p of one column is rounded from a logit of 17 on.
    sound = (scale * exact < 10) | (label == 0) | (columns > 1)
    found = deepfool(network, images, label).distance
    assert sound.sum() > N // 3
    np.testing.assert_allclose(found[sound], exact[sound], rtol=0.1, atol=1e-3)


def test_the_crossing_is_the_nearest_point_where_two_scores_are_equal() -> None:
    model = linear(1, n=N)
    there = crossing(*model.arrays)
    scores = np.sort(model(torch.from_numpy(there)).numpy(), axis=1)
    np.testing.assert_allclose(scores[:, -1], scores[:, -2], atol=1e-4)
    moved = np.linalg.norm((there - model.images).reshape(N, -1), axis=1)
    np.testing.assert_allclose(moved, linear_distance(*model.arrays).distance, rtol=1e-4)
