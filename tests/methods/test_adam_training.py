"""Training of networks: the batch, the gradient, the curve; the baseline and project."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pipeline import fair_metric
from pipeline.methods import adam_training, baseline, project
from pipeline.methods import adam_training as training
from pipeline.methods.adam_training import CHUNK, NetworkTraining
from pipeline.models import mlp
from pipeline.models.initial_weights import glorot_networks
from pipeline.seeds import generators
from pipeline.types import Batch, Dataset
from tests.methods.builders import population

PLAN = NetworkTraining(hidden_units=6, learning_rate=3e-3, batch_size=20, steps=150)


def sides(dataset: Dataset, repetitions: int | None = None) -> tuple[Batch, Batch]:
    return dataset.batch("train", repetitions), dataset.batch("test", repetitions)


def test_every_batch_holds_half_of_each_class_whatever_the_imbalance() -> None:
    label = (np.arange(500) % 50 == 0).astype(np.int64)
    rows = np.concatenate(list(training.balanced_rows(label, 30, CHUNK + 7, np.random.default_rng(0))))
    assert rows.shape == (CHUNK + 7, 30)
    np.testing.assert_array_equal(label[rows], np.repeat([0, 1], 15)[None].repeat(len(rows), axis=0))
    # Within a class every row is as likely as any other: 10 rows with label 1, 160.5 expected draws of each.
    draws = np.bincount(rows[:, 15:].ravel(), minlength=500)[label == 1]
    assert ((draws - 160.5) ** 2 / 160.5).sum() < 30


def test_the_first_batches_do_not_depend_on_how_many_follow() -> None:
    label = np.array([0, 1] * 20)
    few, many = (next(training.balanced_rows(label, 4, s, np.random.default_rng(1))) for s in (CHUNK, 3 * CHUNK))
    np.testing.assert_array_equal(few, many)


def test_a_class_without_rows_cannot_be_balanced() -> None:
    with pytest.raises(ValueError, match="training rows of both classes, found none with label 1"):
        next(training.balanced_rows(np.zeros(9, dtype=int), 4, 1, np.random.default_rng(0)))


def test_initial_weights_fill_the_glorot_interval() -> None:
    network = glorot_networks(generators("glorot", repetitions=2), (60, 200, 2), bias=0.1)
    limit = np.sqrt(6 / 260)
    assert limit * 0.999 < np.abs(network["w1"]).max() < limit
    # A uniform variable on (-l, l) has variance l^2 / 3.
    np.testing.assert_allclose(network["w1"].var(axis=(1, 2)), limit**2 / 3, rtol=0.03)
    assert np.abs(network["w2"]).max() < np.sqrt(6 / 202)
    assert (network["b1"] == 0.1).all()
    assert (network["b2"] == 0.1).all()
    assert not np.array_equal(network["w1"][0], network["w1"][1])


def test_the_written_gradient_is_that_of_automatic_differentiation() -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 8, 4, dtype=torch.float64)
    x[..., -1] = 1
    w1, w2, b2 = (torch.randn(3, *shape, dtype=torch.float64, requires_grad=True) for shape in ((4, 5), (5, 2), (2,)))
    network = {"w1": w1, "b1": torch.zeros(3, 5, dtype=torch.float64), "w2": w2, "b2": b2}
    label = torch.tensor([0] * 4 + [1] * 4).expand(3, 8)
    loss = -mlp.log_probabilities(network, x).gather(-1, label[..., None]).mean(dim=(1, 2)).sum()
    expected = torch.autograd.grad(loss, (w1, w2, b2))
    with torch.no_grad():
        found = training._gradients(x, w1, w2, b2)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_repetitions_trained_together_are_those_trained_alone() -> None:
    dataset = population(repetitions=3)
    together, _ = training.train(*sides(dataset), PLAN, generators("t", repetitions=3))
    for r in range(3):
        data, held_out = (
            Batch(s.features[r : r + 1], s.label[r : r + 1], {name: v[r : r + 1] for name, v in s.protected.items()})
            for s in sides(dataset)
        )
        alone, _ = training.train(data, held_out, PLAN, generators("t", repetitions=3)[r : r + 1])
        for name, values in alone.items():
            np.testing.assert_allclose(together[name][r], values[0], atol=2e-6)


def test_the_same_generators_give_the_same_bytes() -> None:
    data, held_out = sides(population())
    first, second = (training.train(data, held_out, PLAN, generators("t", repetitions=2))[0] for _ in range(2))
    for name, values in first.items():
        assert values.tobytes() == second[name].tobytes()


def test_the_curve_ends_with_the_class_balanced_loss_of_the_result() -> None:
    data, held_out = sides(population(positives=0.15))
    parameters, history = training.train(data, held_out, PLAN, generators("t", repetitions=2))
    loss, _ = mlp.loss_and_gradient(parameters, held_out.features, held_out.label)
    correct = mlp.predict(parameters, held_out.features) == held_out.label
    for r in range(2):
        zeros, ones = held_out.label[r] == 0, held_out.label[r] == 1
        balanced = (loss[r][zeros].mean() + loss[r][ones].mean()) / 2
        assert history["loss"][r, -1] == pytest.approx(balanced, rel=1e-5)
        accuracy = (correct[r][zeros].mean() + correct[r][ones].mean()) / 2
        assert history["balanced_accuracy"][r, -1] == pytest.approx(accuracy, abs=1e-12)
    assert history["step"][-1] == PLAN.steps
    assert (history["loss"][:, -1] < history["loss"][:, 0]).all()


@pytest.mark.parametrize("steps", [1, CHUNK, 5 * CHUNK + 1, 1000 * CHUNK])
def test_a_curve_has_at_most_twenty_points_and_the_last_step_is_one(steps: int) -> None:
    chunks = training.recorded_chunks(steps)
    assert 1 <= len(chunks) <= training.RECORDS
    assert max(chunks) == -(-steps // CHUNK) - 1
    assert min(chunks) >= 0


def test_features_that_say_nothing_give_both_classes_one_half() -> None:
    """With 5 % positives an unbalanced network would settle at log odds of -2.9; balanced batches settle at 0."""
    rng = np.random.default_rng(0)
    label = (rng.random((1, 2000)) < 0.05).astype(np.int64)
    data = Batch(rng.normal(size=(1, 2000, 2)), label, {})
    plan = NetworkTraining(hidden_units=3, learning_rate=0.01, batch_size=100, steps=600)
    parameters, _ = training.train(data, data, plan, generators("t", repetitions=1))
    assert abs(mlp.margin(parameters, data.features).mean()) < 0.3


# Project does not see the sensitive subspace; apart from that it is the baseline.


VALUES = {"hidden_units": 8, "learning_rate": 3e-3, "batch_size": 20, "steps": 200}


@pytest.mark.parametrize("sensitive_inputs", [False, True])
def test_moving_along_the_sensitive_subspace_changes_nothing(sensitive_inputs: bool) -> None:
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


def test_folding_the_projector_is_projecting_the_features() -> None:
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
