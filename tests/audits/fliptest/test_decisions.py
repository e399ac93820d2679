"""Scores and decisions of one evaluation are those of two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pipeline import models
from pipeline.audits.fliptest.flipsets import judged
from pipeline.models import kernel
from pipeline.types import Array, Classifier

R, D = 2, 3
SHAPES: dict[str, dict[str, tuple[int, ...]]] = {
    "kernel": {"support": (R, 9, D), "dual": (R, 9)},
    "linear": {"coef": (R, D), "intercept": (R,), "threshold": (R,)},
    "mlp": {"w1": (R, D, 4), "b1": (R, 4), "w2": (R, 4, 2), "b2": (R, 2)},
    "logistic_mixture": {"coef": (R, 2, D), "intercept": (R, 2)},
}
WITH_PROBABILITIES = ("mlp", "logistic_mixture")


def classifier(architecture: str) -> Classifier:
    rng = np.random.default_rng(11)
    parameters: dict[str, Array] = {name: rng.normal(size=shape) for name, shape in SHAPES[architecture].items()}
    if architecture == "kernel":
        parameters |= {
            "intercept": np.zeros(R),
            "gamma": np.array([0.1, 0.2]),
            "columns": np.tile(np.arange(D), (R, 1)),
        }
    if architecture == "mlp":
        parameters |= {"b1": np.zeros((R, 4)), "b2": np.zeros((R, 2))}
    if architecture == "logistic_mixture":
        parameters["weight"] = np.array([[0.3, 0.7], [1.0, 0.0]])
    return Classifier("given", "data", "twin", architecture, parameters)


@pytest.fixture
def rows() -> Array:
    return np.random.default_rng(5).normal(size=(200, D))


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("repetition", range(R))
@pytest.mark.parametrize("architecture", SHAPES)
def test_scores_and_decisions_are_the_architectures_own(
    architecture: str, repetition: int, own: bool, rows: Array
) -> None:
    model = classifier(architecture)
    module, x = models.architecture(architecture), np.stack([rows] * R)
    expected = module.score(model.parameters, x)[repetition]
    threshold = None if own else float(np.median(expected))
    score, decision = judged(model, repetition, rows, threshold)
    np.testing.assert_allclose(score, expected, rtol=1e-12)
    decided = module.predict(model.parameters, x)[repetition] if own else score >= threshold
    np.testing.assert_array_equal(decision, decided)
    assert set(np.unique(decision)) == {0, 1}


@pytest.mark.parametrize("architecture", WITH_PROBABILITIES)
def test_coins_are_tossed_against_the_score(architecture: str, rows: Array) -> None:
    model, coin = classifier(architecture), np.random.default_rng(6).random(len(rows))
    score, decision = judged(model, 1, rows, coin=coin)
    np.testing.assert_array_equal(score, judged(model, 1, rows)[0])
    np.testing.assert_array_equal(decision, coin < score)


def test_a_kernel_is_evaluated_once(monkeypatch: pytest.MonkeyPatch, rows: Array) -> None:
    evaluated, evaluate = [], kernel.score

    def watched(own: Any, x: Array) -> Array:
        evaluated.append(x.shape)
        return evaluate(own, x)

    monkeypatch.setattr(kernel, "score", watched)
    judged(classifier("kernel"), 0, rows)
    assert evaluated == [(1, *rows.shape)]
