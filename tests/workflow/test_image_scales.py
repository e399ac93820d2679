"""Every network of a scale of robustness bias, as it is set there: one epoch on a handful of images, and its audit."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from benchmarks.networks import IMAGES
from fairness_audits.values import ImageDataset
from pipeline.audits import robustness_bias
from pipeline.jobs import Run
from pipeline.workflow.plugins import configure, load
from tests.builders import image_dataset

STUDY = "robustness_bias"
TRAIN, TEST = 48, 8
FEW = {
    **{f"{name}_points": 2 for name in ("exact", "deepfool", "carlini_wagner", "fmn", "smoothing")},
    **{"carlini_wagner_iterations": 2, "carlini_wagner_searches": 1, "deepfool_steps": 2, "fmn_steps": 2},
    **{"fmn_start_steps": 2, "smoothing_samples": 100, "bootstraps": 10, "permutations": 9},
}


def handful(section: dict[str, Any]) -> ImageDataset:
    """Noise of a data set's shape, with the partitions that a penalty may be for."""
    _, _, classes, channels = IMAGES[section["name"]]
    rng, n, side = np.random.default_rng(0), TRAIN + TEST, section["image_size"]
    label, race = np.arange(n) % classes, rng.integers(2, size=n)
    names = tuple(map(str, range(classes))) if section["name"] != "cifar10" else ("cat", *map(str, range(1, 10)))
    images = rng.integers(0, 256, (n, channels, side, side))
    shades = {key: tuple(section[key]) for key in ("mean", "std")}
    levels = {"class": names, "race": ("White", "Black")}
    return image_dataset(images, {"class": label, "race": race}, levels, TRAIN, name=section["name"], **shades)


def sections(scale: str) -> Iterator[dict[str, dict[str, Any]]]:
    """Those of every point of a scale."""
    run = Run(scale, studies=[STUDY])
    yield from map(run.grids.resolve, run.points(STUDY))


def distinct(scale: str) -> dict[str, dict[str, Any]]:
    """The sections of each training that differs from the others in more than its weights and its last layer.

    At full size, where one takes ten seconds, each network is of the first data set that has it.
    """
    found: dict[str, dict[str, Any]] = {}
    for section in sections(scale):
        method = section["method"]
        shape = (section["dataset"]["image_size"], method["width"], method["input_size"])
        parts = (method["name"], method["model"], method.get("second_order"), *(() if scale == "paper" else shape))
        found.setdefault(" ".join(map(str, filter(None, parts))), section)
    return found


SCALES = {scale: distinct(scale) for scale in ("laptop", "workstation", "paper")}


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "name"), [(scale, name) for scale, found in SCALES.items() for name in found])
def test_every_network_of_a_scale_trains_and_is_audited(scale: str, name: str) -> None:
    section = SCALES[scale][name]
    dataset = handful(section["dataset"])
    changed = {"epochs": 1, "batch_size": 24, "train_points": None, "pretrained": "never"}
    module = load("method", section["method"]["kind"])
    config = configure(module, {**section["method"], **changed})
    network = module.fit(dataset, config, [np.random.default_rng(0)])
    assert np.isfinite(network.history["loss"]).all()
    audit = configure(robustness_bias, {**section["audit"], **FEW, "examples": None})
    found = robustness_bias.run(dataset, network, audit, [np.random.default_rng(0)])
    assert set(found.rows["attack"]) <= set(section["audit"]["attacks"])
    assert {"distance_deepfool", "correct"} <= set(found.arrays)


def test_what_a_network_is_set_to_learns_from_all_images_at_the_larger_scales() -> None:
    for scale in ("workstation", "paper"):
        for section in sections(scale):
            for group in ("dataset", "method"):
                assert section[group]["train_points"] is None, (scale, section[group]["name"])
