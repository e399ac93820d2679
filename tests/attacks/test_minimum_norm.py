"""What DeepFool, Carlini and Wagner's attack and the fast minimum-norm attack all promise."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from pipeline.attacks.carlini_wagner import carlini_wagner
from pipeline.attacks.deepfool import deepfool
from pipeline.attacks.distances import Distances, Execution
from pipeline.attacks.fmn import fmn
from pipeline.attacks.linear_distance import linear_distance, linear_distance_in_box
from tests.attacks.builders import in_the_corner, linear


@dataclass(frozen=True)
class Case:
    """An attack, quick settings, and by how much rounding may grow over its steps.

    ``lost``: settings of a few steps with the number of them that a network without a boundary takes; ``wrong``:
    settings out of range and what is said of them.
    """

    attack: Callable[..., Distances]
    tolerance: float
    lost: list[tuple[dict[str, Any], int]]
    wrong: list[tuple[dict[str, Any], str]]
    settings: dict[str, Any] = field(default_factory=dict)

    def __call__(self, *arguments: Any, **settings: Any) -> Distances:
        """The attack in its quick settings."""
        return self.attack(*arguments, **{**self.settings, **settings})


QUICK: dict[str, Any] = {"iterations": 60, "searches": 4, "learning_rate": 0.03, "initial_c": 0.3}
ATTACKS = {
    "deepfool": Case(
        deepfool,
        1e-4,
        [({"steps": 7}, 7)],
        [
            *(({name: value}, "expected steps >= 1, candidates >= 2, overshoot >= 0 and slack >= 1")
              for name, value in (("steps", 0), ("candidates", 1), ("overshoot", -0.1), ("slack", 0.9))),
        ],
    ),
    "carlini_wagner": Case(
        carlini_wagner,
        5e-3,
        [({"iterations": 7, "searches": 2, "slack": np.inf}, 14), ({"iterations": 7, "searches": 2}, 2)],
        [({"bisections": 3, "confidence": 1.0}, "a bisection ends on the boundary, where no confidence is left")],
        QUICK,
    ),
    "fmn": Case(
        fmn,
        2e-3,
        [({"start_steps": 4}, 4)],
        [
            ({"steps": 0}, "expected steps >= 1, start_steps >= 1 and step_size > 0, found 0"),
            ({"start_steps": 0}, "start_steps >= 1"),
            ({"step_size": 0.0}, "step_size > 0"),
            ({"radius_change": 1.0}, "expected 0 <= last_radius_change <= radius_change < 1, found 0.001 and 1.0"),
            ({"last_radius_change": 0.1}, "last_radius_change <= radius_change"),
        ],
    ),
}  # fmt: skip


@pytest.fixture(params=ATTACKS)
def case(request: pytest.FixtureRequest) -> Case:
    return ATTACKS[request.param]


def test_images_are_misclassified_in_the_box_and_as_far_as_it_says(case: Case, digits: Any) -> None:
    found = case(digits.network, digits.images, digits.label)
    assert found.adversarial is not None
    with torch.no_grad():
        predicted = digits.network(torch.tensor(found.adversarial)).argmax(1).numpy()
    assert not found.failed.any()
    assert (predicted != digits.label).all()
    assert found.adversarial.min() >= 0
    assert found.adversarial.max() <= 1
    away = (found.adversarial.astype(float) - digits.images).reshape(48, -1)
    np.testing.assert_allclose(found.distance, np.linalg.norm(away, axis=1), rtol=1e-12)


@pytest.mark.parametrize("batch_size", [1, 5])
def test_a_point_does_not_depend_on_its_batch(case: Case, digits: Any, batch_size: int) -> None:
    rows = np.arange(8)[::-1].copy()
    how = Execution(channels_last=True)
    whole = case(digits.network, digits.images[:16], digits.label[:16], execution=how)
    part = case(digits.network, digits.images[rows], digits.label[rows], execution=Execution(batch_size))
    np.testing.assert_allclose(part.distance, whole.distance[rows], rtol=case.tolerance)


def test_a_point_that_is_wrong_already_has_distance_zero(case: Case, digits: Any) -> None:
    label = digits.label[:8].copy()
    label[::2] = (label[::2] + 1) % 10
    found = case(digits.network, digits.images[:8], label, bisections=2)
    right = case(digits.network, digits.images[:8], digits.label[:8], bisections=2)
    np.testing.assert_array_equal(found.distance[::2], 0.0)
    np.testing.assert_array_equal(found.steps[::2], 0)
    np.testing.assert_allclose(found.distance[1::2], right.distance[1::2], rtol=case.tolerance)


def test_a_constant_network_cannot_be_fooled(case: Case) -> None:
    def constant(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([1.0, 0.0, 0.0]) + 0 * x.sum((1, 2, 3))[:, None]

    for settings, steps in case.lost:
        found = case.attack(constant, np.full((4, 1, 2, 2), 0.5), np.zeros(4, dtype=int), **settings)
        assert found.failed.all()
        assert np.isnan(found.distance).all()
        np.testing.assert_array_equal(found.steps, steps)


@pytest.mark.parametrize(
    ("name", "settings", "worst", "typical"),
    [
        ("deepfool", {"overshoot": 0.3, "bisections": 12}, 1e-3, 1e-3),
        ("carlini_wagner", {"iterations": 200, "searches": 9, "learning_rate": 2e-3, "bisections": 10}, np.inf, 0.01),
        ("fmn", {}, 0.01, 0.01),
    ],
)
def test_it_comes_to_the_plane_of_a_linear_network(
    name: str, settings: dict[str, Any], worst: float, typical: float
) -> None:
    model = linear(1, n=20)
    exact = linear_distance(model.weight, model.bias, model.images, model.label).distance
    found = ATTACKS[name].attack(model, model.images, model.label, **settings)
    assert not found.failed.any()
    # Some are so near that float32 moves the boundary.
    assert (found.distance >= exact * (1 - 1e-5) - 1e-6).all()
    assert (found.distance <= exact * (1 + worst) + 3e-4).all()
    assert np.median(found.distance / exact) < 1 + typical


@pytest.mark.parametrize(
    ("name", "settings", "quantile", "farther"),
    [
        ("deepfool", {}, 0.5, 1.5),
        ("carlini_wagner", {"iterations": 100, "learning_rate": 0.05, "searches": 6}, 0.5, 1.1),
        # It may start towards another class than the nearest.
        ("fmn", {}, 0.95, 1.01),
    ],
)
def test_in_the_corner_of_the_box_it_keeps_to_it(
    name: str, settings: dict[str, Any], quantile: float, farther: float
) -> None:
    model = in_the_corner(linear(2))
    exact = linear_distance_in_box(model.weight, model.bias, model.images, model.label)
    found = ATTACKS[name].attack(model, model.images, model.label, **settings)
    assert found.adversarial is not None
    assert 0 <= found.adversarial.min() <= found.adversarial.max() <= 1
    assert (found.failed >= exact.failed).all()
    assert name != "fmn" or (found.failed == exact.failed).all()
    assert (found.distance >= exact.distance * (1 - 1e-5) - 1e-6)[~found.failed].all()
    assert np.nanquantile(found.distance / exact.distance, quantile) < farther


@pytest.mark.parametrize(
    ("name", "settings", "every", "saved", "farther"),
    [
        ("deepfool", {}, {"slack": np.inf}, 0.75, 5e-3),
        ("carlini_wagner", {"learning_rate": 0.02, "patience": 100}, {"slack": np.inf}, 0.95, 5e-3),
        ("carlini_wagner", {**QUICK, "patience": 10, "improvement": 0.03}, {"patience": 60}, 0.85, 0.05),
    ],
    ids=["hopeless classes", "hopeless searches", "stalled searches"],
)
def test_leaving_out_saves_passes_and_costs_little(
    digits: Any, name: str, settings: dict[str, Any], every: dict[str, Any], saved: float, farther: float
) -> None:
    """Classes that are too far for DeepFool; searches of the other attack that cannot succeed, or stand still."""
    some, all_of_them = (
        ATTACKS[name].attack(digits.network, digits.images[:16], digits.label[:16], **settings | changes)
        for changes in ({}, every)
    )
    passes = [found.forward_passes + found.backward_passes for found in (some, all_of_them)]
    assert passes[0] < saved * passes[1]
    np.testing.assert_array_equal(some.failed, all_of_them.failed)
    ratio = some.distance / all_of_them.distance
    assert abs((np.nanmedian if "improvement" in settings else np.max)(ratio) - 1) < farther


@pytest.mark.parametrize(
    ("name", "foolboxs", "settings", "theirs"),
    [
        ("deepfool", "L2DeepFoolAttack", {"overshoot": 0.02}, {"overshoot": 0.02}),
        (
            "carlini_wagner",
            "L2CarliniWagnerAttack",
            {},
            {"binary_search_steps": 4, "steps": 60, "stepsize": 0.03, "initial_const": 0.3, "abort_early": False},
        ),
    ],
)
def test_it_agrees_with_foolbox(
    digits: Any, foolbox: Any, name: str, foolboxs: str, settings: dict[str, Any], theirs: dict[str, Any]
) -> None:
    images, label = digits.images[:16], digits.label[:16]
    ours = ATTACKS[name](digits.network, images, label, **settings)
    model, x = foolbox.PyTorchModel(digits.network, bounds=(0, 1), device="cpu"), torch.tensor(images)
    changed, _, success = getattr(foolbox.attacks, foolboxs)(**theirs)(model, x, torch.tensor(label), epsilons=None)
    assert bool(success.all())
    assert np.median(ours.distance / (changed - x).flatten(1).norm(dim=1).numpy()) == pytest.approx(1, abs=0.02)


def test_settings_out_of_range_are_refused(case: Case, digits: Any) -> None:
    for wrong, message in [({"bisections": -1}, "expected bisections >= 0, found -1"), *case.wrong]:
        with pytest.raises(ValueError, match=message):
            case.attack(digits.network, digits.images, digits.label, **wrong)
