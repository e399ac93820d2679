"""Project does not see the sensitive subspace; apart from that it is the baseline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from pipeline import fair_metric
from pipeline.methods import adam_training, baseline, project
from pipeline.models import mlp
from pipeline.seeds import generators
from pipeline.types import Dataset

VALUES = {"hidden_units": 8, "learning_rate": 3e-3, "batch_size": 20, "steps": 200}


@pytest.mark.parametrize("sensitive_inputs", [False, True])
def test_moving_along_the_sensitive_subspace_changes_nothing(
    population: Callable[..., Dataset], sensitive_inputs: bool
) -> None:
    dataset = population(sensitive_inputs=sensitive_inputs)
    classifier = project.fit(dataset, project.Config(**VALUES), generators("p", repetitions=2))  # type: ignore[arg-type]
    x = dataset.batch("test").features
    inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
    metric = fair_metric.learn_batch(dataset.batch("train"), inputs)
    assert metric.basis is not None
    moved = x + 10 * np.random.default_rng(0).normal(size=(*x.shape[:2], metric.basis.shape[-1])) @ (
        metric.basis.swapaxes(1, 2)
    )
    before, after = mlp.margin(classifier.parameters, x), mlp.margin(classifier.parameters, moved)
    np.testing.assert_allclose(before, after, atol=1e-11)
    assert before.std() > 0.1
    # The baseline does see it.
    plain = baseline.fit(dataset, baseline.Config(**VALUES), generators("p", repetitions=2))  # type: ignore[arg-type]
    assert np.abs(mlp.margin(plain.parameters, x) - mlp.margin(plain.parameters, moved)).mean() > 0.1


def test_folding_the_projector_is_projecting_the_features(population: Callable[..., Dataset]) -> None:
    dataset, config = population(), project.Config(**VALUES)  # type: ignore[arg-type]
    classifier = project.fit(dataset, config, generators("p", repetitions=2))
    projector = fair_metric.learn_batch(dataset.batch("train")).matrix
    data, held_out = (
        replace(side, features=side.features @ projector) for side in (dataset.batch("train"), dataset.batch("test"))
    )
    parameters, history = adam_training.train(data, held_out, config, generators("p", repetitions=2))
    x = dataset.batch("test").features
    np.testing.assert_allclose(
        mlp.margin(classifier.parameters, x), mlp.margin(parameters, x @ projector), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_array_equal(history["balanced_accuracy"], classifier.history["balanced_accuracy"])


def test_the_baseline_learns_what_can_be_learned(population: Callable[..., Dataset]) -> None:
    dataset = population(n=2000, repetitions=1)
    classifier = baseline.fit(dataset, baseline.Config(**{**VALUES, "steps": 600}), generators("b", repetitions=1))  # type: ignore[arg-type]
    assert (classifier.method, classifier.architecture, classifier.dataset) == ("baseline", "mlp", "population")
    assert classifier.history["balanced_accuracy"][0, -1] > 0.65
