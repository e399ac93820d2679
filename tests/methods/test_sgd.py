"""Networks learn, are tested as they are, and a training that was killed ends as one that was not."""

import logging
import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from fairness_audits.models.device import float32_kernels
from fairness_audits.values import Array, Classifier, ImageDataset
from pipeline import networks
from pipeline.methods import sgd
from pipeline.training import sgd_training
from pipeline.training.sgd_training import batches
from tests.builders import image_dataset, settings
from tests.errors import invalid
from tests.methods.builders import Kept

SETTINGS = settings(
    "standard", model="utk_classifier", width=0.25, pretrained="never", epochs=3, learning_rate=0.05, batch_size=16,
    precision="float32",
)  # fmt: skip


def stripes(n: int = 120, size: int = 8, seed: int = 0) -> ImageDataset:
    """Noisy pictures of two kinds: bright above or bright on the left."""
    rng = np.random.default_rng(seed)
    label = rng.integers(0, 2, n)
    images = rng.integers(0, 100, (n, 1, size, size))
    images[label == 0, :, : size // 2] += 120
    images[label == 1, :, :, : size // 2] += 120
    kinds, train = {"kind": ("above", "left")}, n * 2 // 3
    return image_dataset(images, {"kind": label}, kinds, train, name="stripes", mean=(0.4,), std=(0.3,))


def fit(dataset: ImageDataset, resume: Any = None, seed: int = 0, **changes: Any) -> Classifier:
    config = sgd.Config(**{**SETTINGS, **changes})
    return sgd.fit(dataset, config, [np.random.default_rng(seed)], resume)


def same(a: Classifier, b: Classifier) -> bool:
    """Equal to the last bit in everything."""
    return all(
        x.keys() == y.keys() and all(np.array_equal(x[name], y[name]) for name in x)
        for x, y in ((a.parameters, b.parameters), (a.history, b.history), (a.facts, b.facts), (a.index, b.index))
    )


@pytest.mark.parametrize("model", ["logistic_regression", "utk_classifier"])
def test_a_separable_task_is_learned(model: str) -> None:
    fitted = fit(stripes(), model=model)
    assert fitted.facts["test_accuracy"][-1] > 0.95
    assert fitted.history["loss"].shape == fitted.history["accuracy"].shape == (3, 3)
    assert fitted.history["loss"][0, -1] < 0.5 * fitted.history["loss"][0, 0]


def test_the_test_accuracy_of_every_group_is_kept_epoch_by_epoch() -> None:
    data = stripes()
    fitted = fit(data, model="logistic_regression", epochs=4, learning_rate=0.002)
    curves = {name: values[0] for name, values in fitted.history.items() if name.startswith("test_accuracy")}
    assert list(curves) == ["test_accuracy", "test_accuracy/kind/above", "test_accuracy/kind/left"]
    assert curves["test_accuracy"][[0, 1, 3]].tolist() == fitted.facts["test_accuracy"].tolist()
    shares = np.bincount(data.label[data.test[0]]) / len(data.test[0])
    together = shares @ [curves["test_accuracy/kind/above"], curves["test_accuracy/kind/left"]]
    np.testing.assert_allclose(together, curves["test_accuracy"])
    assert fitted.facts["multiply_adds"].tolist() == [data.images[0].size * 2] * 3


@pytest.mark.parametrize(
    ("model", "size", "rate"),
    [("pyramidnet", 8, 0.1), ("pyramidnet_bottleneck", 8, 0.1), ("deep_cnn_cifar100", 32, 0.05)],
)
def test_deep_networks_train(model: str, size: int, rate: float) -> None:
    fitted = fit(stripes(48, size), model=model, width=0.1, learning_rate=rate, epochs=6)
    assert fitted.history["loss"][0, -1] < 0.8 * fitted.history["loss"][0, 0]


def test_the_checkpoints_are_the_first_the_middle_and_the_last_epoch() -> None:
    data = stripes()
    fitted = fit(data, model="logistic_regression", epochs=5)
    assert fitted.architecture == "networks.logistic_regression"
    assert fitted.index["epoch"].tolist() == [1, 3, 5]
    assert fitted.history["step"].tolist() == [1, 2, 3, 4, 5]
    # What is drawn in an epoch does not depend on how many follow: a shorter training is the beginning of a longer one.
    shorter = fit(data, model="logistic_regression", epochs=3)
    assert shorter.index["epoch"].tolist() == [1, 2, 3]
    for name, values in fitted.parameters.items():
        assert values.dtype == np.float32
        np.testing.assert_array_equal(values[:2], shorter.parameters[name][::2])
    assert fit(data, model="logistic_regression", epochs=1).index["epoch"].tolist() == [1]
    assert fit(data, model="logistic_regression", epochs=4, checkpoints=("last",)).index["epoch"].tolist() == [4]


def by_full_batches(**settings: Any) -> tuple[Array, Any]:
    """Three weights of a linear network trained on all rows at once, and the gradient of the loss at the k-th.

    The order does not matter, and the update has a closed form.
    """
    data = stripes(60)
    fitted = fit(data, model="logistic_regression", batch_size=40, learning_rate=0.1, **settings)
    x = ((data.pixels(data.train[0]) - 0.4) / 0.3).reshape(40, -1).astype(float)
    truth = np.eye(2)[data.label[data.train[0]]]
    weight, bias = (fitted.parameters[f"net.linear.{name}"].astype(float) for name in ("weight", "bias"))

    def gradient(k: int) -> Array:
        z = x @ weight[k].T + bias[k]
        p = np.exp(z - z.max(axis=1, keepdims=True))
        return (p / p.sum(axis=1, keepdims=True) - truth).T @ x / len(x)

    return weight, gradient


def test_one_epoch_is_momentum_on_the_mean_cross_entropy_of_its_batches() -> None:
    weight, gradient = by_full_batches()
    expected = 0.9 * (weight[1] - weight[0]) - 0.1 * gradient(1)
    np.testing.assert_allclose(weight[2] - weight[1], expected, atol=1e-6)
    assert np.abs(expected).max() > 1e-3


def test_nesterov_momentum_weight_decay_and_one_cycle_of_the_rate() -> None:
    weight, slope = by_full_batches(schedule="one_cycle", nesterov=True, weight_decay=0.02)
    # One step an epoch, at 1/6, 3/6 and 5/6 of all; the rate rises in the first quarter.
    rates = 0.1 * np.array([1 / 6 / 0.25, 0.5 / 0.75, 1 / 6 / 0.75])
    g = [slope(k) + 0.02 * weight[k] for k in (0, 1)]
    # theta_1 - theta_2 = eta (g + .9 v) has the v of the second step, from which that of the third follows.
    v = ((weight[0] - weight[1]) / rates[1] - g[0]) / 0.9
    expected = rates[2] * (g[1] + 0.9 * (0.9 * v + g[1]))
    np.testing.assert_allclose(weight[1] - weight[2], expected, atol=1e-6)
    assert np.abs(expected).max() > 1e-3


def test_augmented_images_are_flipped_and_moved_by_an_eighth_at_most() -> None:
    image = torch.arange(256.0).reshape(1, 1, 16, 16)
    torch.manual_seed(0)
    many = image.repeat(200, 1, 1, 1)
    assert sgd_training.augmented(many, "none") is many
    flipped = sgd_training.augmented(many, "flip")
    turned = (flipped == image.flip(3)).flatten(1).all(dim=1)
    assert torch.equal(flipped[~turned], many[~turned])
    assert 70 < int(turned.sum()) < 130
    # Of 16 pixels up to 2 to either side, what is beyond the border mirrored.
    padded = torch.nn.functional.pad(image, (2, 2, 2, 2), mode="reflect")
    windows = [padded[0, :, y : y + 16, x : x + 16] for y in range(5) for x in range(5)]
    known = {tuple(one.flatten().tolist()) for window in windows for one in (window, window.flip(2))}
    moved = {tuple(one.flatten().tolist()) for one in sgd_training.augmented(many, "flip_and_shift")}
    assert moved <= known
    assert len(moved) > 40


def test_accuracies_are_those_of_the_checkpoints_on_their_rows() -> None:
    data = stripes()
    fitted = fit(data)
    for k in range(3):
        f = networks.of_checkpoint(fitted, data, k, torch.device("cpu"))
        for name, rows in (("train_accuracy", data.train[0][: len(data.test[0])]), ("test_accuracy", data.test[0])):
            decided = f(torch.from_numpy(data.pixels(rows))).argmax(dim=1).numpy()
            assert fitted.facts[name][k] == pytest.approx((decided == data.label[rows]).mean())
    expected = {"epochs": 3, "pretrained": 0, "classes": 2, "channels": 1, "size": 8, "width": 0.25, "input_size": 0}
    assert {name: fitted.facts[name].tolist() for name in expected} == {name: [v] * 3 for name, v in expected.items()}
    sizes = [values[0].size for name, values in fitted.parameters.items() if name.startswith("net.")]
    assert fitted.facts["parameters"][0] == sum(sizes)


def test_test_images_leave_no_trace_in_batch_normalisation() -> None:
    data = stripes(60, size=32)
    other = data.images.copy()
    other[data.test[0]] = 255 - other[data.test[0]]
    settings: dict[str, Any] = {"model": "deep_cnn", "width": 0.05, "epochs": 2}
    a, b = fit(data, **settings), fit(replace(data, images=other), **settings)
    assert a.parameters["net.1.num_batches_tracked"].tolist() == [3, 6]
    assert a.parameters["net.1.num_batches_tracked"].dtype == np.int64
    for name, values in a.parameters.items():
        np.testing.assert_array_equal(values, b.parameters[name])


def test_the_same_seed_gives_the_same_bytes_and_another_seed_does_not() -> None:
    data = stripes()
    first = fit(data)
    torch.rand(3)  # Whatever the global generator is at.
    assert same(first, fit(data))
    assert not same(first, fit(data, seed=1))
    assert not same(first, fit(data, training=2))


@pytest.mark.parametrize(
    ("kill_after", "momentum", "every"),
    [(1, 0.9, 30.0), (2, 0.9, 30.0), (3, 0.9, 30.0), (2, 0.0, 30.0), (1, 0.9, -1.0), (5, 0.9, -1.0), (7, 0.0, -1.0)],
)
def test_a_killed_training_goes_on_to_the_same_bytes(
    kill_after: int, momentum: float, every: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sgd_training, "SAVED_EVERY", every)
    # Dropout, batch normalisation's statistics, momentum and the order of the rows all have to be right for it.
    data = stripes(60, size=32)
    settings: dict[str, Any] = {"model": "deep_cnn", "width": 0.05, "momentum": momentum}
    settings |= {"schedule": "one_cycle", "augmentation": "flip_and_shift", "nesterov": momentum > 0}
    resume = Kept(kill_after)
    with pytest.raises(KeyboardInterrupt):
        fit(data, resume, **settings)
    resumed = fit(data, resume, **settings)
    assert resume.saves == (3 if every > 0 else 3 * 3)  # once an epoch, or once a batch
    assert same(resumed, fit(data, **settings))


def test_what_another_training_kept_is_not_gone_on_from() -> None:
    data = stripes()
    resume = Kept(2)
    with pytest.raises(KeyboardInterrupt):
        fit(data, resume, model="logistic_regression")
    kept = resume.state
    changed = replace(data, images=data.images[::-1].copy())
    others: list[tuple[ImageDataset, dict[str, Any], int]]
    others = [(data, {"learning_rate": 0.06}, 0), (changed, {}, 0), (data, {}, 1)]
    for dataset, changes, seed in others:
        resume = Kept()
        resume.state = kept
        fitted = fit(dataset, resume, seed, **{"model": "logistic_regression", **changes})
        assert resume.saves == 3
        assert same(fitted, fit(dataset, None, seed, **{"model": "logistic_regression", **changes}))


def test_nothing_of_torchs_state_is_left_changed_and_an_epoch_is_said_when_it_is_done(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Torch sets variables of its own when it first imports its compiler, which asking for determinism does.
    torch.use_deterministic_algorithms(False)
    torch.manual_seed(5)
    drawn = torch.rand(3)
    torch.manual_seed(5)
    before = (torch.get_num_threads(), torch.backends.cudnn.benchmark, dict(os.environ))
    with caplog.at_level(logging.INFO, logger=sgd_training.__name__):
        fit(stripes(), model="logistic_regression", epochs=2, threads=2)
    assert [line[:17] for line in caplog.messages] == ["epoch 1 of 2, los", "epoch 2 of 2, los"]
    assert torch.equal(torch.rand(3), drawn)
    assert (torch.get_num_threads(), torch.backends.cudnn.benchmark, dict(os.environ)) == before
    assert not torch.are_deterministic_algorithms_enabled()


def test_it_is_deterministic_and_on_its_threads_while_it_trains(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def watched(*arguments: Any) -> Any:
        seen.append((torch.are_deterministic_algorithms_enabled(), torch.get_num_threads()))
        return standard_loss(*arguments)

    standard_loss = sgd.cross_entropy
    monkeypatch.setattr(sgd, "cross_entropy", watched)
    fit(stripes(), model="logistic_regression", epochs=1, threads=2)
    fit(stripes(), model="logistic_regression", epochs=1, deterministic=False)
    assert set(seen) == {(True, 2), (False, 1)}


def test_float32_is_not_rounded_to_a_shorter_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default, a GPU uses TensorFloat-32 in convolutions of float32."""
    kernels, during = float32_kernels(), list[str]()
    for one in kernels:
        monkeypatch.setattr(one, "fp32_precision", "tf32")
    with sgd_training.own_state_of_torch(torch.device("cpu"), deterministic=True, threads=1):
        during += [one.fp32_precision for one in kernels]
    assert during == ["ieee"] * len(kernels)
    assert {one.fp32_precision for one in kernels} == {"tf32"}


def test_half_precision_learns_and_keeps_whole_parameters() -> None:
    fitted = fit(stripes(), precision="bfloat16")
    assert {values.dtype for values in fitted.parameters.values()} == {np.dtype(np.float32)}
    assert fitted.facts["test_accuracy"][-1] > 0.95
    whole = fit(stripes())
    difference = np.abs(fitted.history["loss"] - whole.history["loss"])
    assert 0 < difference.max() < 0.1


def test_every_row_is_in_one_batch_no_batch_has_one_row_and_only_the_first_rows_asked_for_are_used() -> None:
    for n, sizes in ((10, [4, 4, 2]), (9, [4, 5]), (8, [4, 4]), (5, [5]), (3, [3])):
        parts = batches(torch.arange(n), 4)
        assert [len(part) for part in parts] == sizes
        assert torch.cat(parts).tolist() == list(range(n))
    data = stripes()
    cut = replace(data, train=data.train[:, :30])
    first, second = (fit(d, model="logistic_regression", train_points=30) for d in (data, cut))
    for name, values in first.parameters.items():
        np.testing.assert_array_equal(values, second.parameters[name])


@pytest.mark.parametrize(
    ("settings", "data", "option"),
    [
        ({"learning_rate": 1e12}, {}, "learning_rate"),
        ({"model": "deep_cnn"}, {}, "input_size"),
        ({}, {"classes": ("above",)}, None),
        ({"momentum": 0.0, "nesterov": True}, {}, "nesterov"),
        ({}, {"train": np.array([[0]])}, "train_points"),
    ],
)
def test_a_training_that_diverges_or_cannot_be_begun_names_the_option(settings: Any, data: Any, option: str) -> None:
    with invalid(option=option):
        fit(replace(stripes(), **data), **settings)
