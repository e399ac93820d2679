"""What a scale of robustness bias costs by network: rates measured here, on one thread, and what follows from them.

    python benchmarks/networks.py [--scale workstation] [--seconds 2]

Each network of the grid is built as the scale sets it and takes a few steps of training and of evaluation on noise of
the right size. From the two rates, images a CPU-second:

    training = epochs * training images / rate,     audit = sum over distances of checkpoints * points * cost / rate

with ``COST`` evaluations a point, measured on a network that had learned, and ``RIGHT`` the share of points attacked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from pipeline import networks
from pipeline.jobs import Run
from pipeline.training.sgd_training import _precision

STUDY = "robustness_bias"
IMAGES = {
    **{"digits": (1_437, 360, 10, 1), "cifar10": (50_000, 10_000, 10, 3), "cifar100": (50_000, 10_000, 100, 3)},
    **{"cifar100_super": (50_000, 10_000, 20, 3), "utkface": (18_965, 4_742, 5, 3), "adience": (14_007, 3_445, 8, 3)},
}
"""Number of training images, test images, classes and channels of each data set."""
COST = {"exact": 0, "deepfool": 12, "fmn": 63, "carlini_wagner": 1_050}
"""Evaluations per point, where a backward pass counts as two: docs/guide/robustness_bias.md."""
NOISY = 0.5
"""Share of the allowed samples that a certificate uses."""
RIGHT = 0.75
CPU = torch.device("cpu")


class Shape(NamedTuple):
    """The parts of a data set that determine a network."""

    name: str
    images: np.ndarray
    label: np.ndarray
    classes: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


def shape_of(name: str, size: int) -> Shape:
    """Return the shape of a data set."""
    _, _, classes, channels = IMAGES[name]
    images = np.zeros((2, channels, size, size), np.uint8)
    return Shape(name, images, np.array([0, 1]), tuple(range(classes)), (0.5,) * channels, (0.5,) * channels)


def rate(step: Callable[[], object], images: int, seconds: float) -> float:
    """Return the number of images per CPU-second."""
    step()
    start, done = time.process_time(), 0
    while time.process_time() - start < seconds:
        step()
        done += images
    return done / (time.process_time() - start)


def rates(section: Mapping[str, Any], seconds: float) -> tuple[float, float]:
    """Return the rates of training and of evaluation for the network of a resolved point."""
    method, data = section["method"], section["dataset"]
    shape = shape_of(data["name"], data["image_size"])
    torch.manual_seed(0)
    network: Any = networks.network(method["model"], shape, method["width"], method["input_size"])  # type: ignore[arg-type]
    # For large images, a small batch takes as long per image as a large batch.
    size = min(method["batch_size"], max(2, 2**18 // (method["input_size"] or data["image_size"]) ** 2))
    pixels = torch.rand(size, *shape.images.shape[1:])
    label = torch.zeros(size, dtype=torch.long)
    half = _precision(method["precision"], CPU) == "bfloat16"

    def train() -> None:
        with torch.autocast("cpu", torch.bfloat16, enabled=half):
            logits = network(pixels)
        torch.nn.functional.cross_entropy(logits.float(), label).backward()

    def evaluate() -> None:
        with torch.no_grad():
            network(pixels)

    trained = rate(network.train() and train, size, seconds)
    return trained, rate(network.eval() and evaluate, size, seconds)


def cost(section: Mapping[str, Any], trained: float, evaluated: float) -> tuple[float, float]:
    """Return the CPU-seconds of a point's training and of its audit."""
    method, audit, data = section["method"], section["audit"], section["dataset"]
    train, test = IMAGES[data["name"]][:2]
    train = min(train, data["train_points"] or train, method["train_points"] or train)
    passes = 0.0
    for name in audit["attacks"]:
        points = min(test, audit[f"{name}_points"] or test, data["test_points"] or test) * RIGHT
        checkpoints = 1 if audit.get(f"{name}_checkpoints") == "last" else len(method["checkpoints"])
        passes += checkpoints * points * (COST[name] if name in COST else NOISY * audit["smoothing_samples"])
    # The penalty needs one more differentiation.
    factor = 1.6 if method["kind"] == "adverm" else 1.0
    return factor * method["epochs"] * train / trained, passes / evaluated


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", default="workstation")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each rate (1)")
    options = parser.parse_args()
    torch.set_num_threads(1)
    run = Run(options.scale, studies=[STUDY])
    known: dict[str, tuple[float, float]] = {}
    hours: dict[tuple[str, str], np.ndarray] = {}
    for point in run.points(STUDY):
        section = run.grids.resolve(point)
        method = section["method"]
        key = repr([section["dataset"]["name"], *(method[name] for name in ("model", "width", "input_size"))])
        if key not in known:
            known[key] = rates(section, options.seconds)
        place = point.dataset, method["model"]
        hours[place] = hours.get(place, np.zeros(2)) + np.array(cost(section, *known[key])) / 3600
    print(f"| | {' | '.join(IMAGES)} | all |\n|---|{'---|' * len(IMAGES)}---|")
    models = dict.fromkeys(model for _, model in hours)
    for model in models:
        print(_line(model, [hours.get((dataset, model)) for dataset in IMAGES]))
    print(_line("all", [sum((of for (d, _), of in hours.items() if d == name), np.zeros(2)) for name in IMAGES]))


def _line(name: str, cells: Sequence[Any]) -> str:
    """Return a row of training and audit hours with their sums."""
    known = [cell for cell in cells if cell is not None]
    texts = ("" if cell is None else "{:.1f} + {:.1f}".format(*cell) for cell in cells)
    return f"| {name} | {' | '.join(texts)} | {'{:.1f} + {:.1f}'.format(*np.sum(known, axis=0))} |"


if __name__ == "__main__":
    main()
