"""What DeepFool, Carlini and Wagner's attack and the fast minimum-norm attack all promise."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from fairness_audits.attacks import Execution
from fairness_audits.attacks.carlini_wagner import Settings, carlini_wagner, descend, next_search, objective, started
from fairness_audits.attacks.distances import Closest, CountedNetwork, margin
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.attacks.minimum_norm import PUSH, START_OVERSHOOT, START_SLACK, deepfool, fmn
from tests.attacks.builders import around_grey, ball, in_the_corner, linear

QUICK: dict[str, Any] = {"iterations": 60, "searches": 4, "learning_rate": 0.03, "initial_c": 0.3}
quick_carlini_wagner = partial(carlini_wagner, **QUICK)
# By how much rounding may grow over the steps.
every_attack = pytest.mark.parametrize(
    ("attack", "tolerance"),
    [(deepfool, 1e-4), (quick_carlini_wagner, 5e-3), (fmn, 2e-3)],
    ids=["DeepFool", "CW", "FMN"],
)


@every_attack
def test_images_are_misclassified_in_the_box_and_as_far_as_it_says(attack: Any, tolerance: float, digits: Any) -> None:
    found = attack(*digits.first())
    predicted = digits.network(torch.tensor(found.adversarial)).argmax(1).numpy()
    assert not found.failed.any()
    assert (predicted != digits.label).all()
    assert 0 <= found.adversarial.min() <= found.adversarial.max() <= 1
    away = (found.adversarial.astype(float) - digits.images).reshape(48, -1)
    np.testing.assert_allclose(found.distance, np.linalg.norm(away, axis=1), rtol=1e-12)


@every_attack
def test_a_point_does_not_depend_on_its_batch(attack: Any, tolerance: float, digits: Any) -> None:
    rows = np.arange(4)[::-1].copy()
    whole = attack(*digits.first(8), execution=Execution(8))
    for size in (1, 3):
        part = attack(digits.network, digits.images[rows], digits.label[rows], execution=Execution(size))
        np.testing.assert_allclose(part.distance, whole.distance[rows], rtol=tolerance)


@every_attack
def test_a_point_that_is_wrong_already_has_distance_zero(attack: Any, tolerance: float, digits: Any) -> None:
    network, images, label = digits.first(8)
    wrong = np.where(np.arange(8) % 2 == 0, (label + 1) % 10, label)
    found, right = (attack(network, images, own) for own in (wrong, label))
    np.testing.assert_array_equal(found.distance[::2], 0)
    np.testing.assert_allclose(found.distance[1::2], right.distance[1::2], rtol=tolerance)


@every_attack
@pytest.mark.parametrize("precision", [torch.float64, torch.bfloat16])
def test_scores_of_another_precision_change_only_rounding(
    attack: Any, tolerance: float, precision: torch.dtype, digits: Any
) -> None:
    network, images, label = digits.first(8)
    found, other = (attack(one, images, label) for one in (network, lambda x: network(x).to(precision)))
    exact = precision == torch.float64
    np.testing.assert_allclose(other.distance, found.distance, rtol=tolerance if exact else 0.1)


def test_scores_that_differ_by_less_than_pixels_resolve_still_decide() -> None:
    """Boundary at a brightness of 1/2, in float64 scores around 1 that float32 cannot tell apart."""

    def network(x: torch.Tensor) -> torch.Tensor:
        rise = 1e-12 * (x.double().mean((1, 2, 3)) - 0.5)
        return torch.stack([1 - rise, 1 + rise, torch.zeros_like(rise)], dim=1)

    found = deepfool(network, np.full((1, 1, 2, 2), 0.3), np.zeros(1, dtype=int), overshoot=0.0)
    np.testing.assert_allclose(found.distance, 0.4, rtol=1e-3)


@every_attack
def test_a_compiled_network_gives_the_distances_of_the_network(attack: Any, tolerance: float, digits: Any) -> None:
    network, images, label = digits.first(8)
    compiled = torch.compile(network, backend="aot_eager")
    np.testing.assert_allclose(
        attack(compiled, images, label).distance, attack(network, images, label).distance, rtol=tolerance
    )


@pytest.mark.parametrize(
    ("attack", "settings", "passes"),
    [
        # A last look, without a gradient, follows the steps.
        (deepfool, {"steps": 7}, 8),
        (carlini_wagner, {"iterations": 7, "searches": 2, "slack": np.inf}, 14),
        (carlini_wagner, {"iterations": 7, "searches": 2}, 2),
        (fmn, {"start_steps": 4}, 5),
    ],
)
def test_a_constant_network_cannot_be_fooled(attack: Any, settings: dict[str, Any], passes: int) -> None:
    def constant(x: torch.Tensor) -> torch.Tensor:
        return torch.tensor([1.0, 0.0, 0.0]) + 0 * x.sum((1, 2, 3))[:, None]

    found = attack(constant, np.full((4, 1, 2, 2), 0.5), np.zeros(4, dtype=int), **settings)
    assert found.failed.all()
    assert np.isnan(found.distance).all()
    assert found.forward_passes == 4 * passes


@pytest.mark.parametrize(
    ("attack", "settings", "worst", "typical"),
    [
        (carlini_wagner, {"iterations": 200, "searches": 9, "learning_rate": 2e-3}, np.inf, 0.01),
        (fmn, {}, 0.01, 0.01),
    ],
)
def test_it_comes_to_the_plane_of_a_linear_network(
    attack: Any, settings: dict[str, Any], worst: float, typical: float
) -> None:
    model = linear(1, n=20)
    exact, found = linear_distance(*model.arrays).distance, attack(*model.first(), **settings)
    assert not found.failed.any()
    # Some are so near that float32 moves the boundary.
    assert (found.distance >= exact * (1 - 1e-5) - 1e-6).all()
    assert (found.distance <= exact * (1 + worst) + 3e-4).all()
    assert np.median(found.distance / exact) < 1 + typical


@pytest.mark.parametrize(
    ("attack", "settings", "quantile", "farther"),
    [
        (deepfool, {}, 0.5, 1.5),
        (carlini_wagner, {"iterations": 100, "learning_rate": 0.05, "searches": 6}, 0.5, 1.1),
        # It may start towards another class than the nearest.
        (fmn, {}, 0.95, 1.01),
    ],
)
def test_in_the_corner_of_the_box_it_keeps_to_it(
    attack: Any, settings: dict[str, Any], quantile: float, farther: float
) -> None:
    model = in_the_corner(linear(2))
    nearest, found = in_the_box(*model.arrays), attack(*model.first(), **settings)
    assert 0 <= found.adversarial.min() <= found.adversarial.max() <= 1
    assert (found.failed >= np.isinf(nearest)).all()
    assert attack is not fmn or (found.failed == np.isinf(nearest)).all()
    assert (found.distance >= nearest * (1 - 1e-5) - 1e-6)[~found.failed].all()
    assert np.nanquantile(found.distance / nearest, quantile) < farther


def in_the_box(weight: Any, bias: Any, images: Any, label: Any) -> np.ndarray:
    """(n,) the least ||x' - x|| over x' = clip(x - t v, 0, 1) with v' x' + b = 0, a plane for each other class."""

    def moved(t: float, x: np.ndarray, v: np.ndarray) -> Any:
        return np.clip(x - t * v, 0, 1)

    def gap(t: float, x: np.ndarray, v: np.ndarray, b: float) -> float:
        return float(v @ moved(t, x, v) + b)

    nearest = np.full(len(label), np.inf)
    for i, (image, own) in enumerate(zip(images, label, strict=True)):
        x = image.ravel().astype(float)
        for v, b in zip(weight[own] - weight, bias[own] - bias, strict=True):
            if v.any() and gap(1e6, x, v, b) <= 0:
                there = moved(brentq(gap, 0, 1e6, args=(x, v, b)), x, v)
                nearest[i] = min(nearest[i], np.linalg.norm(there - x))
    return nearest


@pytest.mark.parametrize(
    ("attack", "settings", "every", "saved", "farther"),
    [
        (carlini_wagner, {"learning_rate": 0.02, "patience": 100}, {"slack": np.inf}, 0.95, 5e-3),
        (quick_carlini_wagner, {"patience": 10, "improvement": 0.03}, {"patience": 60}, 0.85, 0.05),
    ],
    ids=["hopeless searches", "stalled searches"],
)
def test_leaving_out_searches_saves_passes_and_costs_little(
    digits: Any, attack: Any, settings: dict[str, Any], every: dict[str, Any], saved: float, farther: float
) -> None:
    """Searches that cannot succeed, or stand still."""
    some, all_of_them = (attack(*digits.first(16), **settings | changes) for changes in ({}, every))
    assert some.forward_passes < saved * all_of_them.forward_passes
    np.testing.assert_array_equal(some.failed, all_of_them.failed)
    ratio = some.distance / all_of_them.distance
    assert abs((np.nanmedian if "improvement" in settings else np.max)(ratio) - 1) < farther


THEIRS = {"binary_search_steps": 4, "steps": 60, "stepsize": 0.03, "initial_const": 0.3, "abort_early": False}


@pytest.mark.parametrize(
    ("attack", "foolboxs", "theirs"),
    [
        (partial(deepfool, overshoot=0.02), "L2DeepFoolAttack", {"overshoot": 0.02}),
        (quick_carlini_wagner, "L2CarliniWagnerAttack", THEIRS),
    ],
)
def test_it_agrees_with_foolbox(digits: Any, foolbox: Any, attack: Any, foolboxs: str, theirs: dict[str, Any]) -> None:
    network, images, label = digits.first(16)
    model, x = foolbox.PyTorchModel(network, bounds=(0, 1), device="cpu"), torch.tensor(images)
    changed, _, success = getattr(foolbox.attacks, foolboxs)(**theirs)(model, x, torch.tensor(label), epsilons=None)
    assert bool(success.all())
    ratio = attack(network, images, label).distance / (changed - x).flatten(1).norm(dim=1).numpy()
    assert np.median(ratio) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("overshoot", [0.0, 0.05])
@pytest.mark.parametrize("classes", [2, 5])
def test_one_step_is_exact_for_a_linear_network(classes: int, overshoot: float) -> None:
    model = linear(0, classes=classes)
    exact, found = linear_distance(*model.arrays).distance, deepfool(*model.first(), overshoot=overshoot)
    # Pixels are of single precision, which a distance of some 1e-4 sees.
    np.testing.assert_allclose(found.distance, (1 + overshoot) * (exact + PUSH), rtol=1e-4, atol=2.0**-23)
    assert not found.failed.any()


def test_from_within_a_ball_it_takes_the_step_of_newton() -> None:
    radius, length = 0.4, np.linspace(0.15, 0.35, 20)
    images, label = around_grey(length), np.zeros(20, dtype=int)
    found = deepfool(ball(radius), images, label, overshoot=0.0)
    # The slope of r^2 - s^2 at s is radial, of length 2 s. It steepens outwards, so one step crosses the sphere.
    np.testing.assert_allclose(found.distance, (radius**2 - length**2) / (2 * length) + PUSH, rtol=1e-4)
    assert found.forward_passes == 2 * 20


def test_where_the_slope_flattens_it_takes_several_steps_and_ends_on_the_boundary() -> None:
    radius, length = 0.4, np.linspace(0.05, 0.35, 20)

    def network(x: torch.Tensor) -> torch.Tensor:
        inside = torch.exp(-10 * (x - 0.5).flatten(1).norm(dim=1)) - np.exp(-10 * radius)
        return torch.stack([inside, torch.zeros_like(inside)], dim=1)

    found = deepfool(network, around_grey(length), np.zeros(20, dtype=int), overshoot=0.0)
    # Newton's method comes from below and never crosses by itself, so the last push alone does.
    assert (found.distance >= radius - length - 1e-6).all()
    assert (found.distance <= radius - length + PUSH + 1e-6).all()
    assert found.forward_passes > 2 * 20


@pytest.mark.parametrize("slack", [1.5, 3.0])
def test_leaving_out_hopeless_classes_changes_nothing(digits: Any, slack: float) -> None:
    found, every = (deepfool(*digits.first(16), slack=value) for value in (slack, np.inf))
    np.testing.assert_allclose(found.distance, every.distance, rtol=1e-4)


@pytest.mark.parametrize(
    ("steepness", "settings", "distance"), [(2.9, {}, 0.0999), (3.1, {}, 0.1), (3.1, {"slack": np.inf}, 0.0999)]
)
def test_the_nearest_class_is_found_if_it_is_up_to_three_times_as_steep_as_the_runner_up(
    steepness: float, settings: dict[str, Any], distance: float
) -> None:
    """Logits 0, s - .1 and steepness (s' - .0999), with s and s' from mid-grey along two axes: class 2 is nearest."""
    grey = torch.full((1, 1, 1, 2), 0.5)

    def network(x: torch.Tensor) -> torch.Tensor:
        away = (x - grey).flatten(1)
        return torch.stack([0 * away[:, 0], away[:, 0] - 0.1, steepness * (away[:, 1] - 0.0999)], dim=1)

    found = deepfool(network, grey.numpy(), np.zeros(1, dtype=int), overshoot=0.0, **settings)
    np.testing.assert_allclose(found.distance, distance + PUSH, rtol=1e-4)


def test_two_candidates_are_the_runner_up_alone(digits: Any) -> None:
    found, every = deepfool(*digits.first(), candidates=2), deepfool(*digits.first())
    assert found.distance.mean() > every.distance.mean()


# The steps and searches of Carlini and Wagner's attack.
SETTINGS = Settings(
    iterations=100, searches=5, learning_rate=0.01, initial_c=0.1, confidence=0.0, patience=10, improvement=1e-3,
    slack=4.0,
)  # fmt: skip


def test_a_step_is_one_of_adam_with_a_count_of_its_own() -> None:
    x = torch.rand(2, 1, 2, 2)
    points = started(x, torch.zeros(2, dtype=torch.int64), SETTINGS)
    plain = torch.zeros_like(x[0]).requires_grad_(True)
    adam = torch.optim.Adam([plain], lr=SETTINGS.learning_rate)
    torch.manual_seed(0)
    for step in range(1, 6):
        slope = torch.randn_like(x)
        # The second point starts anew at every step.
        points.iteration = torch.tensor([step, 1])
        for name in ("change", "mean", "square"):
            getattr(points, name)[1] = 0.0
        descend(points, slope, SETTINGS)
        plain.grad = slope[0]
        adam.step()
        torch.testing.assert_close(points.change[0], plain.detach())
        torch.testing.assert_close(points.change[1], -SETTINGS.learning_rate * slope[1].sign(), rtol=1e-4, atol=1e-7)


def test_c_grows_tenfold_until_it_succeeds_and_is_bisected_then() -> None:
    points = started(torch.rand(3, 1, 2, 2), torch.zeros(3, dtype=torch.int64), SETTINGS)
    outcomes = [(False, True, True), (False, True, False), (True, False, True), (False, True, True)]
    seen = []
    for outcome in outcomes:
        points.fooled = torch.tensor(outcome)
        next_search(points, torch.tensor([True, True, False]))
        seen.append(points.c.tolist())
    expected = [[1.0, 0.05, 0.1], [10.0, 0.025, 0.1], [5.5, 0.0375, 0.1], [7.75, 0.03125, 0.1]]
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    # A search that goes on is left alone.
    assert points.search.tolist() == [4, 4, 0]


def test_of_a_linear_network_a_search_is_hopeless_just_where_it_would_fail() -> None:
    model = linear(0, classes=2, n=20)
    x, y = torch.tensor(model.images), torch.tensor(model.label)
    gap = margin(model(x), y)
    least = 2 * gap / float(np.sum((model.weight[0] - model.weight[1]) ** 2))
    for factor, expected in ((0.9, True), (1.1, False)):
        points = started(x, y, SETTINGS)
        points.c = factor * least / 4
        *_, hopeless = objective(CountedNetwork(model), points, Closest(x), SETTINGS)
        assert bool((hopeless == expected).all())
    # And such a c does fail, though not by so much that rounding or the tanh would decide.
    whole: dict[str, Any] = {"searches": 1, "iterations": 300, "patience": 300, "learning_rate": 1e-3, "slack": np.inf}
    for factor, fails in ((0.5, True), (2.0, False)):
        c = factor * float(least[0])
        assert carlini_wagner(*model.first(1), initial_c=c, **whole).failed[0] == fails


def test_confidence_is_a_margin_of_the_other_class(digits: Any) -> None:
    plain, sure = (quick_carlini_wagner(*digits.first(12), confidence=confidence) for confidence in (0.0, 2.0))
    assert sure.adversarial is not None
    with torch.no_grad():
        logits = digits.network(torch.tensor(sure.adversarial))
    assert (margin(logits, torch.tensor(digits.label[:12]))[torch.tensor(~sure.failed)] <= -2 + 1e-4).all()
    both = ~plain.failed & ~sure.failed
    assert (sure.distance > plain.distance)[both].all()


def test_it_finds_the_shortest_way_out_of_a_ball() -> None:
    length = np.linspace(0.1, 0.35, 20)
    found = fmn(ball(0.4), around_grey(length), np.zeros(20, dtype=int), steps=40)
    # DeepFool's step is (r^2 - s^2) / 2s here, up to twice as long.
    assert (found.distance >= 0.4 - length - 1e-6).all()
    np.testing.assert_allclose(found.distance, 0.4 - length, rtol=0.02)


def test_no_distance_is_above_that_of_its_start_and_most_are_well_below(digits: Any) -> None:
    start = deepfool(*digits.first(), overshoot=START_OVERSHOOT, slack=START_SLACK)
    found = fmn(*digits.first())
    assert (found.distance <= start.distance).all()
    assert np.median(found.distance / start.distance) < 0.97
    # A pass a step and a last look, beside the start's own.
    assert found.forward_passes == start.forward_passes + 48 * 21


def test_twenty_steps_do_the_work_of_two_hundred(digits: Any) -> None:
    some, many = (fmn(*digits.first(), steps=steps).distance for steps in (20, 200))
    assert np.median(some / many) < 1.02
