"""Carlini and Wagner's attack is what its definition says for every point by itself, and comes to the boundary."""

from typing import Any

import numpy as np
import torch

from pipeline.attacks.carlini_wagner import (
    INSIDE,
    Settings,
    carlini_wagner,
    descend,
    next_search,
    objective,
    started,
)
from pipeline.attacks.distances import Closest, CountedNetwork, margin
from tests.attacks.builders import linear

SETTINGS = Settings(
    iterations=100,
    searches=5,
    learning_rate=0.01,
    initial_c=0.1,
    confidence=0.0,
    patience=10,
    improvement=1e-3,
    slack=4.0,
)
QUICK: dict[str, Any] = {"iterations": 60, "searches": 4, "learning_rate": 0.03, "initial_c": 0.3}


def test_the_gradient_is_that_of_the_objective(digits: Any) -> None:
    x, y = torch.tensor(digits.images[:6]), torch.tensor(digits.label[:6])
    points = started(x, y, SETTINGS)
    torch.manual_seed(0)
    points.change, points.c, points.taken = torch.randn_like(x), torch.linspace(0.1, 9, 6), points.taken + 1
    value, slope, fooled, hopeless = objective(CountedNetwork(digits.network), points, Closest(x), SETTINGS)
    w = (points.origin + points.change).requires_grad_(True)
    image = (torch.tanh(w) + 1) / 2
    logits = digits.network(image)
    expected = (image - x).square().sum((1, 2, 3)) + points.c * margin(logits, y).clamp_min(0)
    (gradient,) = torch.autograd.grad(expected.sum(), w)
    torch.testing.assert_close(value, expected.detach())
    torch.testing.assert_close(slope, gradient, rtol=1e-4, atol=1e-6)
    assert torch.equal(fooled, logits.argmax(1) != y)
    assert hopeless.shape == (6,)


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


def plain_attack(network: torch.nn.Module, image: np.ndarray, label: int) -> float:
    """The definition, for one image, with torch's Adam and every iteration."""
    x, c, low, high, best = torch.tensor(image[None]), QUICK["initial_c"], 0.0, np.inf, np.inf
    for _ in range(QUICK["searches"]):
        w = torch.atanh((2 * x - 1) * INSIDE).requires_grad_(True)
        adam = torch.optim.Adam([w], lr=QUICK["learning_rate"])
        succeeded = False
        for _ in range(QUICK["iterations"]):
            changed = (torch.tanh(w) + 1) / 2
            logits = network(changed)[0]
            others = torch.cat([logits[:label], logits[label + 1 :]])
            square = (changed - x).square().sum()
            if int(logits.argmax()) != label:
                succeeded, best = True, min(best, float(square.detach().sqrt()))
            adam.zero_grad()
            (square + c * (logits[label] - others.max()).clamp_min(0)).backward()
            adam.step()
        low, high = (low, min(high, c)) if succeeded else (max(low, c), high)
        c = 10 * c if high == np.inf else (low + high) / 2
    return best


def test_it_is_the_definition_for_every_point(digits: Any) -> None:
    whole: dict[str, Any] = {"patience": QUICK["iterations"], "slack": np.inf}
    found = carlini_wagner(digits.network, digits.images[:6], digits.label[:6], **QUICK, **whole)
    plain = [plain_attack(digits.network, x, y) for x, y in zip(digits.images[:6], digits.label[:6], strict=True)]
    # Rounding grows over the iterations.
    np.testing.assert_allclose(found.distance, plain, rtol=5e-3)
    assert found.forward_passes == found.backward_passes == 6 * QUICK["searches"] * QUICK["iterations"]


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
        assert carlini_wagner(model, model.images[:1], model.label[:1], initial_c=c, **whole).failed[0] == fails


def test_confidence_is_a_margin_of_the_other_class(digits: Any) -> None:
    plain, sure = (
        carlini_wagner(digits.network, digits.images[:12], digits.label[:12], **QUICK, confidence=confidence)
        for confidence in (0.0, 2.0)
    )
    assert sure.adversarial is not None
    with torch.no_grad():
        logits = digits.network(torch.tensor(sure.adversarial))
    assert (margin(logits, torch.tensor(digits.label[:12]))[torch.tensor(~sure.failed)] <= -2 + 1e-4).all()
    both = ~plain.failed & ~sure.failed
    assert (sure.distance > plain.distance)[both].all()
