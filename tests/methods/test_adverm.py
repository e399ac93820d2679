"""The penalty is the published one, its gradients are right, and it closes a gap that was put there."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call

from fairness_audits import fair_metric
from fairness_audits.models import mlp
from fairness_audits.models.mlp import glorot_networks
from fairness_audits.seeds import generators
from fairness_audits.values import Array, Batch, Classifier, Dataset, ImageDataset
from pipeline import networks
from pipeline.methods import adverm, baseline, project, sgd
from pipeline.methods.baseline import CHUNK
from tests.builders import image_dataset, settings
from tests.errors import invalid
from tests.methods.builders import population
from tests.methods.test_sgd import SETTINGS

COMMON = {**SETTINGS, "model": "logistic_regression", "width": 1.0, "batch_size": 50, "checkpoints": ["last"]}
GROUP = {"penalised_partition": "group", "penalised_level": "near", "scale": "pixels"}
PENALTY = {name: value for name, value in settings("adverm", **GROUP).items() if name not in SETTINGS}


def config(**changes: Any) -> adverm.Config:
    return adverm.Config(**{**COMMON, **PENALTY, **changes})


def gapped(n: int = 400, size: int = 2) -> ImageDataset:
    """Two classes apart in the first pixel, one group by far less than the other; the second pixel parts that group."""
    rng = np.random.default_rng(0)
    label, group = rng.integers(0, 2, n), rng.integers(0, 2, n)
    sign = 2 * label - 1
    images = 128 + rng.normal(0, 8, (n, 1, size, size))
    images[:, 0, 0, 0] += sign * np.where(group == 0, 15, 90)
    images[:, 0, 0, 1] += sign * np.where(group == 0, 30, 0)
    names = {"class": ("dark", "bright"), "group": ("near", "far")}
    pixels, codes = images.clip(0, 255).round(), {"class": label, "group": group}
    return image_dataset(pixels, codes, names, n // 2, name="gapped", std=(0.25,))


def fit(dataset: ImageDataset, **changes: Any) -> Classifier:
    return adverm.fit(dataset, config(**changes), [np.random.default_rng(0)])


@pytest.mark.parametrize("penalty", [{"alpha": 0.0}, {"alpha": 10.0, "indicator": "step"}])
@pytest.mark.parametrize("distance", adverm.DISTANCES)
@pytest.mark.parametrize("second_order", [False, True])
def test_without_weight_or_with_the_bare_indicator_the_penalty_changes_nothing(
    penalty: dict[str, Any], distance: str, second_order: bool
) -> None:
    data = gapped(120, size=8)
    settings = {"model": "utk_classifier", "width": 0.1, "epochs": 2}
    plain = sgd.fit(data, sgd.Config(**{**COMMON, **settings}), [np.random.default_rng(0)])
    penalised = fit(data, **penalty, distance=distance, second_order=second_order, **settings)
    for name, values in plain.parameters.items():
        np.testing.assert_array_equal(values, penalised.parameters[name])
    np.testing.assert_array_equal(plain.history["loss"], penalised.history["cross_entropy"])


@pytest.mark.parametrize("distance", adverm.DISTANCES)
@pytest.mark.parametrize("scale", adverm.SCALES)
def test_of_a_linear_classifier_the_penalty_is_the_formula(distance: str, scale: str) -> None:
    rng = np.random.default_rng(2)
    w, b, std = rng.normal(size=(3, 8)), rng.normal(size=3), np.array([0.2, 0.7])
    x = rng.random((40, 2, 2, 2))
    z = x.reshape(40, 8) @ w.T + b
    label = np.where(rng.random(40) < 0.7, z.argmax(axis=1), rng.integers(0, 3, 40))
    codes = rng.integers(-1, 2, 40)
    linear = nn.Linear(8, 3).double()
    linear.load_state_dict({"weight": torch.from_numpy(w), "bias": torch.from_numpy(b)})
    net = nn.Sequential(nn.Flatten(), linear)
    settings = config(distance=distance, scale=scale, tau=0.8, alpha=3.0)
    loss = adverm.objective(codes == 1, codes == 0, std.tolist(), settings)
    rows = torch.arange(40)
    total, _, terms = loss(net, torch.from_numpy(x), torch.from_numpy(label), rows)
    torch.testing.assert_close(total, terms["cross_entropy"] + 3 * terms["penalty"])

    near = []
    for i in range(40):
        first, second, *_ = np.argsort(-z[i])
        direction = w[first] if distance == "logit" else w[first] - w[second]
        height = abs(z[i, first]) if distance == "logit" else z[i, first] - z[i, second]
        spread = np.repeat(std, 4) if scale == "normalised" else 1.0
        near.append(1 / (1 + np.exp(-(0.8 - height / np.linalg.norm(direction * spread)))))
    right = z.argmax(axis=1) == label
    inside, outside = (np.array(near)[right & (codes == code)].mean() for code in (1, 0))
    assert terms["penalty"].item() == pytest.approx(abs(inside - outside), rel=1e-6)
    assert abs(inside - outside) > 1e-4


def curved(seed: int = 0) -> tuple[nn.Module, torch.Tensor, torch.Tensor, Array]:
    """A smooth network in double precision, pixels, labels that it gets right for the most part, and a group."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Flatten(), nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).double()
        x = torch.rand(30, 1, 2, 2, dtype=torch.float64)
    label = net(x).argmax(dim=1).detach()
    label[::5] = (label[::5] + 1) % 3
    return net, x, label, np.arange(30) % 2 == 0


def slope(distance: str, second_order: bool) -> tuple[float, float]:
    """The penalty's derivative along a random change of the parameters: by its gradient, and by differences."""
    net, x, label, inside = curved()
    loss = adverm.objective(inside, ~inside, (0.5,), config(distance=distance, second_order=second_order, tau=0.6))
    generator = torch.Generator().manual_seed(1)
    change = {name: torch.randn(p.shape, dtype=p.dtype, generator=generator) for name, p in net.named_parameters()}

    def penalty(step: torch.Tensor) -> torch.Tensor:
        moved = {name: p.detach() + step * change[name] for name, p in net.named_parameters()}
        return loss(lambda at: functional_call(net, moved, at), x.clone(), label, torch.arange(30))[2]["penalty"]

    none, little = torch.zeros((), dtype=torch.float64, requires_grad=True), torch.tensor(1e-5)
    (by_gradient,) = torch.autograd.grad(penalty(none), none)
    return by_gradient.item(), (penalty(little) - penalty(-little)).item() / 2e-5


@pytest.mark.parametrize("distance", adverm.DISTANCES)
def test_in_second_order_the_gradient_is_the_penaltys_own_and_as_coded_it_leaves_the_norm_out(distance: str) -> None:
    by_gradient, by_differences = slope(distance, second_order=True)
    assert by_gradient == pytest.approx(by_differences, rel=1e-5)
    assert abs(by_differences) > 1e-4
    by_gradient, by_differences = slope(distance, second_order=False)
    assert abs(by_gradient - by_differences) > 0.05 * abs(by_differences)


def finite(net: nn.Module) -> bool:
    return all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in net.parameters())


def test_without_one_of_the_sides_there_is_no_penalty_and_without_an_input_gradients_are_finite() -> None:
    net, x, label, inside = curved()
    everybody, nobody, wrong = np.ones(30, bool), np.zeros(30, bool), (label + 1) % 3
    wrong = torch.where(net(x).argmax(dim=1) == wrong, (wrong + 1) % 3, wrong)
    for mask, other, truth in ((everybody, nobody, label), (nobody, everybody, label), (inside, ~inside, wrong)):
        loss = adverm.objective(mask, other, (0.5,), config(second_order=True))
        total, _, terms = loss(net, x.clone(), truth, torch.arange(30))
        assert terms["penalty"].item() == 0
        total.backward()
        assert finite(net)
    with torch.no_grad():
        net[1].weight.zero_()  # type: ignore[index]
    truth = net(x).argmax(dim=1)
    loss = adverm.objective(inside, ~inside, (0.5,), config(distance="margin", second_order=True, alpha=1.0))
    loss(net, x, truth, torch.arange(30))[0].backward()
    assert finite(net)


def test_who_is_in_the_group_who_outside_and_who_in_neither() -> None:
    data = gapped(120)
    codes = data.partitions["group"].copy()
    codes[:7] = -1
    inside, outside = adverm.sides(replace(data, partitions={**data.partitions, "group": codes}), "group", "far")
    np.testing.assert_array_equal(inside, codes == 1)
    np.testing.assert_array_equal(outside, codes == 0)
    # Without a name the partition is that of the classes.
    np.testing.assert_array_equal(adverm.sides(data, None, "bright")[0], data.label == 1)
    with invalid(source="gapped", option="penalised_partition"):
        adverm.sides(data, "race", "Black")
    with invalid(source="gapped", option="penalised_level", column="group"):
        adverm.sides(data, "group", None)


def bias(fitted: Classifier, data: ImageDataset, tau: float) -> float:
    """RB of the exact distances on correctly classified test rows: the gap in shares above tau."""
    f = networks.of_checkpoint(fitted, data, 0, torch.device("cpu"))
    rows = data.test[0]
    x = torch.from_numpy(data.pixels(rows))
    margin = (f(x)[:, 1] - f(x)[:, 0]).numpy()
    weight = fitted.parameters["net.linear.weight"][0] / data.std[0]
    distance = np.abs(margin) / np.linalg.norm(weight[1] - weight[0])
    right = (margin > 0) == (data.label[rows] == 1)
    near = data.partitions["group"][rows] == 0
    assert right.mean() > 0.95
    return abs(float((distance[right & near] > tau).mean() - (distance[right & ~near] > tau).mean()))


@pytest.mark.parametrize("second_order", [False, True])
def test_the_penalty_on_margins_closes_a_gap_that_was_put_there(second_order: bool) -> None:
    data, tau = gapped(), 0.2
    settings: dict[str, Any] = {"epochs": 12, "distance": "margin", "second_order": second_order, "tau": tau}
    without, with_it = fit(data, alpha=0.0, **settings), fit(data, alpha=10.0, **settings)
    assert bias(without, data, tau) > 0.9
    assert bias(with_it, data, tau) < 0.2
    assert with_it.method == "adverm"


# Training of networks: the batch, the gradient, the curve; the baseline and project.


PLAN = baseline.Config(hidden_units=6, learning_rate=3e-3, batch_size=20, steps=150)


def sides(dataset: Dataset, repetitions: int | None = None) -> tuple[Batch, Batch]:
    return dataset.batch("train", repetitions), dataset.batch("test", repetitions)


def test_every_batch_holds_half_of_each_class_whatever_the_imbalance() -> None:
    label = (np.arange(500) % 50 == 0).astype(np.int64)
    rows = np.concatenate(list(baseline.balanced_rows(label, 30, CHUNK + 7, np.random.default_rng(0))))
    assert rows.shape == (CHUNK + 7, 30)
    np.testing.assert_array_equal(label[rows], np.repeat([0, 1], 15)[None].repeat(len(rows), axis=0))
    # Within a class every row is as likely as any other: 10 rows with label 1, 160.5 expected draws of each.
    draws = np.bincount(rows[:, 15:].ravel(), minlength=500)[label == 1]
    assert ((draws - 160.5) ** 2 / 160.5).sum() < 30


def test_the_first_batches_do_not_depend_on_how_many_follow_and_a_class_needs_rows() -> None:
    label = np.array([0, 1] * 20)
    few, many = (next(baseline.balanced_rows(label, 4, s, np.random.default_rng(1))) for s in (CHUNK, 3 * CHUNK))
    np.testing.assert_array_equal(few, many)
    with invalid(option="label"):
        next(baseline.balanced_rows(np.zeros(9, dtype=int), 4, 1, np.random.default_rng(0)))


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
        found = baseline._gradients(x, w1, w2, b2)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_repetitions_trained_together_are_those_trained_alone() -> None:
    dataset = population(repetitions=3)
    together, _ = baseline.train(*sides(dataset), PLAN, generators("t", repetitions=3))
    for r in range(3):
        data, held_out = (Batch(s.features[r : r + 1], s.label[r : r + 1], {}) for s in sides(dataset))
        alone, _ = baseline.train(data, held_out, PLAN, generators("t", repetitions=3)[r : r + 1])
        for name, values in alone.items():
            np.testing.assert_allclose(together[name][r], values[0], atol=2e-6)


def test_the_curve_ends_with_the_class_balanced_loss_of_the_result() -> None:
    data, held_out = sides(population(positives=0.15))
    parameters, history = baseline.train(data, held_out, PLAN, generators("t", repetitions=2))
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
    chunks = baseline.recorded_chunks(steps)
    assert 1 <= len(chunks) <= baseline.RECORDS
    assert max(chunks) == -(-steps // CHUNK) - 1
    assert min(chunks) >= 0


# Project does not see the sensitive subspace; apart from that it is the baseline.


VALUES = {"hidden_units": 8, "learning_rate": 3e-3, "batch_size": 20, "steps": 200}


@pytest.mark.parametrize("sensitive_inputs", [False, True])
def test_moving_along_the_sensitive_subspace_changes_nothing(sensitive_inputs: bool) -> None:
    dataset = population(sensitive_inputs=sensitive_inputs)
    classifier = project.fit(dataset, project.Config(**VALUES), generators("p", repetitions=2))  # type: ignore[arg-type]
    x = dataset.batch("test").features
    inputs = [dataset.feature_names.index(name) for name in dataset.sensitive_inputs]
    metric = fair_metric.learn_batch(dataset.batch("train"), inputs)
    along = np.random.default_rng(0).normal(size=(*x.shape[:2], metric.basis.shape[-1]))
    moved = x + 10 * along @ metric.basis.swapaxes(1, 2)
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
    data, held_out = (replace(side, features=side.features @ projector) for side in sides(dataset))
    parameters, history = baseline.train(data, held_out, config, generators("p", repetitions=2))
    x = dataset.batch("test").features
    folded, projected = mlp.margin(classifier.parameters, x), mlp.margin(parameters, x @ projector)
    np.testing.assert_allclose(folded, projected, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(history["balanced_accuracy"], classifier.history["balanced_accuracy"])
