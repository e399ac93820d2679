"""The audit: true distances of linear networks, bounds on the right side of them, counted failures, an example."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fairness_audits.attacks.carlini_wagner import carlini_wagner
from fairness_audits.attacks.linear_distance import linear_distance
from fairness_audits.attacks.minimum_norm import deepfool, fmn
from fairness_audits.attacks.smoothing import certify
from fairness_audits.audits.robustness_bias.distances import exact_arithmetic
from fairness_audits.seeds import generators
from fairness_audits.values import Classifier, ImageDataset
from pipeline import network_distances, networks
from pipeline.audits.robustness_bias import SCALES, Config, run
from pipeline.network_distances import AuditedNetwork
from pipeline.values import AuditResult
from tests.builders import chosen, image_dataset, number, shipped
from tests.methods.builders import Kept

torch = pytest.importorskip("torch")

CONFIG = Config(
    **shipped("audit", "robustness_bias")
    | {"attacks": ("exact", "deepfool"), "deepfool_overshoot": 0.0, "bootstraps": 50, "permutations": 99}
    | {"carlini_wagner_learning_rate": 0.02, "carlini_wagner_initial_c": 0.1}
    | {"smoothing_scale": "pixels", "smoothing_samples": 1000, "smoothing_growth": 2.0}
)
TRAIN, TEST = 6, 60
MEAN, STD = (0.3, 0.6), (0.5, 0.25)


@pytest.fixture(scope="module")
def dataset() -> ImageDataset:
    """Three shapes of 4 x 4 pixels in two colours, in noise; the hand that drew each, of whom one is unsteady."""
    rng = np.random.default_rng(0)
    n = TRAIN + TEST
    label, hand = rng.integers(3, size=n), rng.integers(2, size=n)
    shapes = rng.uniform(60, 190, size=(3, 2, 4, 4))
    noise = rng.normal(scale=np.where(hand == 0, 8, 25)[:, None, None, None], size=(n, 2, 4, 4))
    hand[-5:] = -1
    names = {"shape": ("cross", "ring", "bar"), "hand": ("steady", "unsteady")}
    images = np.clip(shapes[label] + noise, 0, 255)
    return image_dataset(images, {"shape": label, "hand": hand}, names, TRAIN, name="shapes", mean=MEAN, std=STD)


def trained(dataset: ImageDataset, architecture: str = "logistic_regression", checkpoints: int = 2) -> Classifier:
    """Two checkpoints: of a linear network its nearest-mean rule, tilted in the first; of any other random weights."""
    states = []
    for k in range(checkpoints):
        torch.manual_seed(k)
        state = networks.arrays(networks.network(architecture, dataset).state_dict())
        if architecture == "logistic_regression":
            x = (dataset.pixels(np.arange(TRAIN + TEST)).reshape(-1, 32) - np.repeat(MEAN, 16)) / np.repeat(STD, 16)
            means = np.stack([x[dataset.label == c].mean(axis=0) for c in range(3)])
            tilt = np.random.default_rng(k).normal(scale=2.5 * (checkpoints - 1 - k), size=means.shape)
            learned = means + tilt, -(means**2).sum(axis=1) / 2
            names = [name for name in state if "net" in name]
            state |= {name: values.astype(np.float32) for name, values in zip(names, learned, strict=True)}
        states.append(state)
    facts = networks.facts(architecture, dataset, 1.0, None)
    return Classifier.of(
        "standard",
        dataset,
        f"networks.{architecture}",
        {name: np.stack([state[name] for state in states]) for name in states[0]},
        facts={name: np.full(checkpoints, value) for name, value in facts.items()},
        index={"epoch": np.array([1, 5, 9][:checkpoints])},
    )


def audited(
    dataset: ImageDataset, classifier: Classifier | None = None, *, resume: Kept | None = None, **changes: Any
) -> AuditResult:
    known = trained(dataset) if classifier is None else classifier
    return run(dataset, known, replace(CONFIG, **changes), generators("audit", repetitions=known.repetitions), resume)


def value(
    result: AuditResult, statistic: str, attack: str, epoch: int = 5, level: str = "", denominator: str = ""
) -> float:
    where = {"attack": attack, "epoch": epoch, "level": level, "denominator": denominator}
    return number(result.rows, statistic=statistic, **where)


def test_exact_distances_are_those_to_the_planes_in_pixels(dataset: ImageDataset) -> None:
    classifier = trained(dataset)
    arrays = audited(dataset, classifier, attacks=["exact"]).arrays
    pixels, label = dataset.pixels(dataset.test[0]), dataset.label[dataset.test[0]]
    for k in (0, 1):
        weight, bias = (classifier.parameters[name][k].astype(float) for name in classifier.parameters if "net" in name)
        slope = weight / np.repeat(STD, 16)
        expected = linear_distance(slope, bias - slope @ np.repeat(MEAN, 16), pixels, label).distance
        assert (expected > 0).mean() > 0.3
        np.testing.assert_array_equal(arrays["correct"][k], expected > 0)
        np.testing.assert_allclose(arrays["distance_exact"][k], np.where(expected > 0, expected, np.nan), 1e-6, 1e-7)
    # Otherwise no misclassified point would have been looked at.
    assert not arrays["correct"][0].all()


@pytest.mark.parametrize("overshoot", [0.0, 0.05])
def test_without_overshoot_deepfool_finds_the_exact_distance_and_with_it_so_much_more(
    dataset: ImageDataset, overshoot: float
) -> None:
    arrays = audited(dataset, deepfool_overshoot=overshoot).arrays
    ratio, correct = arrays["distance_deepfool"] / arrays["distance_exact"], arrays["correct"]
    # A step is pushed by 1e-4, and the box is in the way of some.
    assert np.median(ratio[correct]) == pytest.approx(1 + overshoot, abs=5e-3)
    assert (ratio[correct] >= 1 + overshoot - 1e-5).all()
    assert np.isnan(arrays["distance_deepfool"][~correct]).all()


def test_the_bounds_lie_on_their_sides_of_the_exact_distance(dataset: ImageDataset) -> None:
    # With two classes the smoothed network has the boundary of the network itself.
    rows = np.flatnonzero(dataset.label < 2)
    shapes = {"shape": dataset.label[rows]}, {"shape": ("cross", "ring")}
    pair = image_dataset(dataset.images[rows], *shapes, 2, name="shapes", mean=MEAN, std=STD)
    whole = trained(dataset, checkpoints=1)
    cut = {name: values[:, :2] if "net" in name else values for name, values in whole.parameters.items()}
    classifier = replace(whole, parameters=cut, facts={**whole.facts, "classes": np.array([2.0])})
    few: Any = dict.fromkeys(("carlini_wagner_points", "fmn_points", "smoothing_points"), 12)
    arrays = audited(pair, classifier, attacks=network_distances.NAMES, **few).arrays
    found = {name: arrays[f"distance_{name}"][0] for name in network_distances.NAMES}
    exact = found["exact"]
    assert arrays["correct"][0, :12].sum() > 5
    for name in ("deepfool", "carlini_wagner", "fmn"):
        known = ~np.isnan(found[name])
        assert known.any()
        assert (found[name] >= exact * (1 - 1e-5))[known].all()
    assert (found["smoothing"] <= exact + 1e-9)[~np.isnan(found["smoothing"])].all()
    assert np.nanmax(found["smoothing"]) > 0.1
    assert 1 <= np.nanmedian(found["fmn"] / exact) < 1.02


def test_an_attack_is_made_on_the_first_so_many_points_and_on_the_correct_ones_of_them(dataset: ImageDataset) -> None:
    result = audited(dataset, deepfool_points=20)
    correct, tried = result.arrays["correct"], result.arrays["tried_deepfool"]
    np.testing.assert_array_equal(tried, np.tile(np.arange(TEST) < 20, (2, 1)))
    np.testing.assert_array_equal(~np.isnan(result.arrays["distance_deepfool"]), tried & correct)
    assert result.arrays["tried_exact"].all()
    for k, epoch in enumerate((1, 5)):
        assert value(result, "points", "deepfool", epoch) == 20
        assert value(result, "points", "exact", epoch) == TEST
        assert value(result, "accuracy", "deepfool", epoch) == correct[k, :20].mean()
        members = dataset.label[dataset.test[0]][:20] == 1
        assert value(result, "n", "deepfool", epoch, "ring", "paper") == members.sum()
        assert value(result, "n", "deepfool", epoch, "ring", "correct") == correct[k, :20][members].sum()


def test_rows_and_arrays_say_whose_they_are(dataset: ImageDataset) -> None:
    result = audited(dataset)
    assert set(result.rows["epoch"]) == {1, 5}
    np.testing.assert_array_equal(result.arrays["rows"], dataset.test[0])
    np.testing.assert_array_equal(result.arrays["hand"], dataset.partitions["hand"][dataset.test[0]])
    assert result.arrays["distance_deepfool"].dtype == np.float64
    # Unknown hands are on neither side.
    counts = [value(result, "n", "exact", 5, level, "paper") for level in ("steady", "unsteady")]
    assert sum(counts) == TEST - 5
    assert value(result, "forward_passes", "exact") == result.arrays["correct"][1].sum()
    assert value(result, "forward_passes", "deepfool") >= 2 * result.arrays["correct"][1].sum()


def test_failed_attacks_are_counted_and_their_distances_unknown(dataset: ImageDataset) -> None:
    hopeless: dict[str, Any] = {
        f"carlini_wagner_{name}": value for name, value in (("initial_c", 1e-6), ("searches", 1))
    }
    result = audited(dataset, attacks=["carlini_wagner"], carlini_wagner_iterations=2, **hopeless)
    correct, bars = result.arrays["correct"][1], dataset.label[dataset.test[0]] == 2
    assert value(result, "failed", "carlini_wagner") == correct.sum() > 0
    assert value(result, "failed", "carlini_wagner", 5, "bar") == correct[bars].sum()
    assert np.isnan(result.arrays["distance_carlini_wagner"][1]).all()
    assert np.isnan(value(result, "sigma", "carlini_wagner", 5, "bar", "correct"))
    assert value(result, "n", "carlini_wagner", 5, "bar", "correct") == 0
    assert "example_images" not in result.arrays


def test_only_linear_networks_have_exact_distances(dataset: ImageDataset) -> None:
    large = replace(dataset, images=dataset.images.repeat(8, axis=2).repeat(8, axis=3))
    result = audited(large, trained(large, "utk_classifier", 1), exact_points=5, deepfool_points=5, checkpoints="last")
    assert set(result.rows["attack"]) == {"deepfool"}
    assert "distance_exact" not in result.arrays


def test_the_last_checkpoint_alone_is_the_last_of_all(dataset: ImageDataset) -> None:
    every, last = audited(dataset), audited(dataset, checkpoints="last")
    assert set(last.rows["epoch"]) == {5}
    assert last.arrays["epoch"].tolist() == [5]
    np.testing.assert_array_equal(last.arrays["distance_deepfool"], every.arrays["distance_deepfool"][1:])
    kept = every.rows[every.rows["epoch"] == 5].reset_index(drop=True)
    pd.testing.assert_frame_equal(last.rows, kept)


def test_smoothing_can_be_kept_to_the_last_checkpoint_and_is_the_same_there(dataset: ImageDataset) -> None:
    asked: dict[str, Any] = {"attacks": ["deepfool", "smoothing"], "smoothing_points": 10}
    every, last = audited(dataset, **asked), audited(dataset, **asked, smoothing_checkpoints="last")
    assert last.arrays["tried_smoothing"].sum(axis=1).tolist() == [0, 10]
    assert np.isnan(last.arrays["distance_smoothing"][0]).all()
    np.testing.assert_array_equal(last.arrays["distance_smoothing"][1], every.arrays["distance_smoothing"][1])
    np.testing.assert_array_equal(last.arrays["distance_deepfool"], every.arrays["distance_deepfool"])
    kept = every.rows[(every.rows["epoch"] == 5) | (every.rows["attack"] != "smoothing")].reset_index(drop=True)
    pd.testing.assert_frame_equal(last.rows, kept)


def test_two_runs_are_alike_to_the_last_bit_and_attacks_do_not_disturb_one_another(dataset: ImageDataset) -> None:
    first, again, alone = (
        audited(dataset, attacks=attacks, smoothing_points=10)
        for attacks in (["exact", "smoothing"], ["exact", "smoothing"], ["smoothing"])
    )
    pd.testing.assert_frame_equal(first.rows, again.rows, check_exact=True)
    for name, values in first.arrays.items():
        np.testing.assert_array_equal(values, again.arrays[name])
    np.testing.assert_array_equal(first.arrays["distance_smoothing"], alone.arrays["distance_smoothing"])
    theirs = chosen(first.rows, attack="smoothing").reset_index(drop=True)
    pd.testing.assert_frame_equal(theirs, alone.rows, check_exact=True)


def test_the_example_is_two_points_and_one_budget_that_fools_one_of_them(dataset: ImageDataset) -> None:
    result = audited(dataset)
    found = {name.removeprefix("example_"): values for name, values in result.arrays.items() if "example_" in name}
    near, far = points = found["points"]
    assert found["partition"].tolist() == ["hand"]
    assert (result.arrays["hand"][points] == found["level"]).all()
    label = dataset.label[dataset.test[0]]
    assert label[near] == label[far] == found["label"][0]
    np.testing.assert_array_equal(found["images"], dataset.pixels(dataset.test[0][points]))
    (budget,) = found["budget"]
    assert found["distance"][0] < budget < found["distance"][1]
    np.testing.assert_array_equal(found["distance"], result.arrays["distance_deepfool"][-1][points])
    moved = np.sqrt(((found["perturbed"] - found["images"]).astype(float) ** 2).sum(axis=(1, 2, 3)))
    np.testing.assert_allclose(moved, [found["distance"][0], budget], rtol=1e-4)
    np.testing.assert_array_equal(found["prediction"] == label[near], [False, True])
    network = networks.of_checkpoint(trained(dataset), dataset, 1, torch.device("cpu"))
    classes = network(torch.from_numpy(found["perturbed"])).argmax(dim=1).numpy()
    np.testing.assert_array_equal(classes, found["prediction"])
    assert found["images"].dtype == found["perturbed"].dtype == np.float32
    assert 0 <= found["perturbed"].min() <= found["perturbed"].max() <= 1
    for without in ({"examples": None}, {"attacks": ["exact"]}):
        assert not any("example" in name for name in audited(dataset, **without).arrays)


def test_torch_is_left_as_it_was() -> None:
    def state() -> tuple[Any, ...]:
        cudnn, deterministic = torch.backends.cudnn, torch.are_deterministic_algorithms_enabled()
        return torch.get_num_threads(), deterministic, cudnn.allow_tf32, cudnn.deterministic

    before = state()
    # One thread of a CPU computes in one order anyway.
    for threads, deterministic in ((2, True), (1, torch.cuda.is_available())):
        with exact_arithmetic(threads):
            assert state() == (threads, deterministic, False, True)
    assert state() == before


# Each name is the attack that it says, with its own settings, on pixels, and with noise that belongs to the point.
SMOOTHING: dict[str, Any] = {"sigma": 0.125, "selection_samples": 100, "samples": 400, "first_samples": 100}
SMOOTHING |= {"growth": 2.0, "tolerance": 0.1, "alpha": 0.001}
IMAGES = np.random.default_rng(0).uniform(0.2, 0.8, size=(20, 2, 4, 4)).astype(np.float32)


@pytest.fixture(scope="module")
def network() -> Any:
    """A linear network of three classes on two channels of 4 x 4 pixels."""
    from fairness_audits.models.pixels import PixelNetwork
    from pipeline.networks.convolutional import logistic_regression

    torch.manual_seed(0)
    return PixelNetwork(logistic_regression(3, 2, 4), MEAN, STD, 4, None, False).requires_grad_(False).eval()


@pytest.fixture(scope="module")
def label(network: Any) -> np.ndarray:
    return np.asarray(network(torch.from_numpy(IMAGES)).argmax(1).numpy())


@pytest.fixture(scope="module")
def subject(network: Any, dataset: ImageDataset) -> AuditedNetwork:
    return AuditedNetwork(network, dataset, dataset.test[0], torch.device("cpu"))


def made(subject: AuditedNetwork, name: str, batch: int | None = None, keep: bool = False, **settings: Any) -> Any:
    config = replace(CONFIG, batch_size=batch, **{f"{name}_{key}": value for key, value in settings.items()})
    return config.attack(subject, name, np.random.default_rng(0), keep)


@pytest.mark.parametrize(
    ("attack", "settings"),
    [
        (deepfool, {"steps": 7, "candidates": 2, "overshoot": 0.3}),
        (carlini_wagner, {"iterations": 30, "searches": 2, "learning_rate": 0.02, "initial_c": 0.5}),
        (fmn, {"steps": 3}),
    ],
)
def test_an_attack_gets_its_settings(
    subject: AuditedNetwork, label: np.ndarray, attack: Any, settings: dict[str, Any]
) -> None:
    expected = attack(subject.f, IMAGES, label, **settings)
    found, without = (
        made(subject, attack.__name__, batch, keep, **settings)(IMAGES, label, np.arange(20))
        for batch, keep in ((6, True), (None, False))
    )
    np.testing.assert_allclose(found.distance, expected.distance, rtol=1e-3)
    assert found.adversarial.shape == IMAGES.shape
    assert without.adversarial is None
    assert (attack(subject.f, IMAGES, label).distance != expected.distance).any()


@pytest.mark.parametrize("scale", SCALES)
def test_certificates_have_their_scale_and_each_point_its_noise(
    subject: AuditedNetwork, label: np.ndarray, scale: str
) -> None:
    whole = made(subject, "smoothing", **SMOOTHING, scale=scale)(IMAGES, label, np.arange(20))
    rows = np.array([11, 4])
    part = made(subject, "smoothing", 100, **SMOOTHING, scale=scale)(IMAGES[rows], label[rows], rows)
    np.testing.assert_array_equal(part.distance, whole.distance[rows])
    seed = int(np.random.default_rng(0).integers(2**63))
    channels = STD if scale == "normalised" else None
    direct = certify(subject.f, IMAGES, label, **SMOOTHING, seed=seed, channel_scale=channels)
    np.testing.assert_array_equal(whole.distance, direct.distance)
    assert (whole.distance > 0).any()
    assert (whole.distance <= made(subject, "deepfool")(IMAGES, label, np.arange(20)).distance).all()


@pytest.mark.parametrize("kill_after", [1, 10, 50])
def test_a_killed_audit_goes_on_to_the_same_numbers(
    dataset: ImageDataset, kill_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network_distances, "SAVED_EVERY", -1.0)
    config: dict[str, Any] = {"attacks": ["deepfool", "smoothing"], "smoothing_points": 20, "batch_size": 8}
    whole, counted, resume = Kept(), Kept(), Kept(kill_after)
    expected = audited(dataset, resume=whole, **config)
    with pytest.raises(KeyboardInterrupt):
        audited(dataset, resume=resume, **config)
    counted.state = resume.state
    resumed = audited(dataset, resume=counted, **config)
    pd.testing.assert_frame_equal(resumed.rows, expected.rows)
    np.testing.assert_equal(dict(resumed.arrays), dict(expected.arrays))
    # No batch is attacked twice; and none of another audit is gone on from.
    assert counted.saves == whole.saves - kill_after
    counted.saves = 0
    audited(dataset, resume=counted, **config | {"deepfool_overshoot": 0.05})
    assert counted.saves == whole.saves
