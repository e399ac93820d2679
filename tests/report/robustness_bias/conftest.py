"""Inputs such as the study of robustness bias collects: distances drawn by law, measured as the audit measures them."""

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pipeline.audits.robustness_bias.measures import DENOMINATORS, Lengths, Partition, by_level, counted, partitions_of
from pipeline.methods.standard import accuracy_curve
from pipeline.report.artefacts import Artefact
from pipeline.report.described import described
from pipeline.report.inputs import Inputs
from pipeline.report.words import CONVOLUTIONAL, LOGISTIC
from pipeline.stages.collect import collect
from pipeline.types import Absent, Array, AuditResult, Classifier, ImageDataset
from pipeline.workflow.composition import Point
from pipeline.workflow.config import Workflow
from tests.builders import image_dataset
from tests.report import studies
from tests.report.studies import build

STUDY = "robustness_bias"
LEVELS: dict[str, dict[str, tuple[str, ...]]] = {
    "digits": {"digit": tuple("0123456789")},
    "cifar10": {"class": ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")},
    "cifar100": {"class": tuple(f"kind_{i:02}" for i in range(100))},
    "cifar100_super": {"superclass": tuple(f"super_{i:02}" for i in range(20))},
    "utkface": {
        "age": ("0-14", "15-24", "25-39", "40-59", "60+"),
        "gender": ("male", "female"),
        "race": ("White", "Black", "Asian", "Indian", "Others"),
    },
    "adience": {"age": ("0-2", "4-6", "8-13", "15-20", "25-32", "38-43", "48-53", "60+"), "gender": ("male", "female")},
}
"""The partitions of each data set, its classes first."""
TESTED = {"cifar100": 3000, "cifar100_super": 800}
"""Points to test, where they are not 400."""
ORIGINS = {"digits": "bundled"}
REASON = (
    "{0} has no twin and is made of {0}.tar.gz.\n{0}.tar.gz of '{0}' is nowhere to be had. Tried:\n  data/raw: absent\n"
    "What to do: get the file from https://example.org/{0}.html and put it into data/raw/{0} (licence: free); or go on"
)
LENGTHS = {"exact": 1.0, "deepfool": 1.08, "carlini_wagner": 0.96, "fmn": 0.93, "smoothing": 0.4}
"""How long each kind of distance is, relative to the exact one."""
BUDGET = 1.5
"""T, up to which areas are taken."""
EVERY = 2
"""Certificates are made for every so many points."""


def seeded(*what: str) -> np.random.Generator:
    """A generator from names."""
    return np.random.default_rng(zlib.crc32("/".join(what).encode()))


def dataset_of(name: str, origin: Any) -> ImageDataset:
    """A data set with the partitions that it has, of noise."""
    rng = seeded("data", name)
    n_test = TESTED.get(name, 400)
    n = 2 * n_test
    channels = 1 if name == "digits" else 3
    groups = {key: rng.permutation(np.arange(n) % len(levels)) for key, levels in LEVELS[name].items()}
    if "race" in groups:
        groups["race"][n_test] = -1
    images = rng.integers(0, 256, (n, channels, 8, 8))
    unreadable = ("39_1.jpg: no race in the name",) if name == "utkface" else ()
    found: dict[str, Any] = {"unreadable": unreadable, "checksums": {f"{name}.tar.gz": "0" * 64}}
    return image_dataset(images, groups, LEVELS[name], n_test, name=name, origin=origin, **found)


def classifier_of(
    dataset: ImageDataset, method: str, model: str, epochs: Sequence[int], pretrained: bool
) -> Classifier:
    """The facts and curves of a training; the weights do not matter."""
    rng = seeded("train", dataset.name, method, model)
    k = len(epochs)
    accuracy = np.sort(rng.uniform(0.6, 0.9, k)) if model != LOGISTIC else np.full(k, 0.4)
    facts = {"test_accuracy": accuracy, "train_accuracy": accuracy + 0.05, "pretrained": np.full(k, float(pretrained))}
    same = {"epochs": max(epochs), "train_rows": 1000, "parameters": 1e6, "multiply_adds": 1e8}
    facts |= {name: np.full(k, float(value)) for name, value in same.items()}
    none = {"w": np.zeros(k, np.float32)}
    index = {"epoch": np.array(epochs)}
    groups = [(), *((name, level) for name, levels in dataset.levels.items() for level in levels)]
    rising = accuracy[-1] * (1 - 0.5 / np.arange(1, max(epochs) + 1))
    history = {accuracy_curve(*group): np.tile(rising * rng.uniform(0.9, 1.1), (k, 1)) for group in groups}
    history["step"] = np.arange(1, max(epochs) + 1)
    return Classifier(method, dataset.name, dataset.origin, f"networks.{model}", none, history, facts, index)


def distances_of(dataset: ImageDataset, name: str, epochs: Sequence[int], attacks: Sequence[str]) -> dict[str, Array]:
    """Arrays as the audit keeps them: of one true distance for each point and epoch, seen with noise."""
    rng = seeded("audit", dataset.name, name)
    rows = dataset.test[0]
    shared = seeded("groups", dataset.name)
    effect = np.zeros(len(rows))
    for key, levels in dataset.levels.items():
        of_level = 0.35 * shared.standard_normal(len(levels)) + 0.1 * rng.standard_normal(len(levels))
        effect += of_level[dataset.partitions[key][rows]]
    arrays: dict[str, Array] = {"rows": rows, "epoch": np.array(epochs)}
    growth = np.linspace(0.6, 1.0, len(epochs))
    true = np.exp(effect[None] * growth[:, None] + 0.4 * rng.standard_normal((len(epochs), len(rows)))) * 0.4
    arrays["correct"] = rng.random(true.shape) < 0.75
    for attack in attacks:
        distance = true * LENGTHS[attack] * np.exp(0.1 * rng.standard_normal(true.shape))
        tried = np.zeros(true.shape, bool)
        tried[:, :: EVERY if attack == "smoothing" else 1] = True
        failed = (rng.random(true.shape) < 0.02) & (attack not in ("exact", "smoothing"))
        arrays[f"distance_{attack}"] = np.where(tried & arrays["correct"] & ~failed, distance, np.nan)
        arrays[f"tried_{attack}"] = tried
    return arrays | {key: dataset.partitions[key][rows] for key in dataset.levels}


def by_partition(lengths: Lengths, partition: Partition) -> dict[str, Array]:
    """The statistics of the levels, (L,) each: sigma by its definition; interval and test follow from sigma and n."""
    found = by_level(lengths, partition, BUDGET)
    width = np.where(found.n > 1, 2 / np.sqrt(np.maximum(found.n, 2)), np.nan)
    p = np.minimum(1.0, 0.05 * np.exp(8 * (width - np.abs(found.sigma))))
    return {
        "sigma": found.sigma,
        "sigma_ci_low": found.sigma - width,
        "sigma_ci_high": found.sigma + width,
        "sigma_p": p / len(partition),
        "sigma_p_adjusted": p,
        "n": found.n.astype(float),
    }


def rows_of(dataset: ImageDataset, arrays: Mapping[str, Array], attacks: Sequence[str]) -> pd.DataFrame:
    """Tidy rows from arrays, as the audit writes them."""
    parts: list[pd.DataFrame] = []
    for k, epoch in enumerate(arrays["epoch"]):
        correct = arrays["correct"][k]
        for attack in attacks:
            tried, distance = arrays[f"tried_{attack}"][k], arrays[f"distance_{attack}"][k]
            place = {"repetition": 0, "epoch": int(epoch), "attack": attack}
            failed = tried & correct & np.isnan(distance)
            overall = {"points": tried.sum(), "accuracy": correct[tried].mean(), "failed": failed.sum()}
            overall |= {"budget": BUDGET, "forward_passes": 40 * tried.sum()}
            overall |= {"mean_distance": np.nanmean(distance), "median_distance": np.nanmedian(distance)}
            blank = {"partition": "", "level": "", "denominator": ""}
            frame = {"statistic": list(overall), "value": np.array(list(overall.values()), float)}
            parts.append(pd.DataFrame({**frame, **place, **blank}))
            for partition in partitions_of(dataset, arrays["rows"][tried]):
                codes, of = partition.codes, {"n_correct": correct[tried], "failed": failed[tried]}
                sets: dict[str, dict[str, Array]] = {
                    "": {
                        name: np.bincount(codes[it & (codes >= 0)], minlength=len(partition)) for name, it in of.items()
                    }
                }
                for name in DENOMINATORS:
                    sets[name] = by_partition(counted(distance[tried], correct[tried], name), partition)
                for denominator, values in sets.items():
                    table = pd.DataFrame(values, index=pd.Index(partition.levels, name="level"), dtype=float)
                    columns = {"partition": partition.name, "denominator": denominator, **place}
                    long = table.melt(var_name="statistic", ignore_index=False).reset_index()
                    parts.append(long.assign(**columns))
    return pd.concat(parts, ignore_index=True)


def example_of(dataset: ImageDataset) -> dict[str, Array]:
    """Two inputs of one class and different groups, one fooled."""
    points = np.array([3, 5])
    rows = dataset.test[0][points]
    images = dataset.pixels(rows)
    partition = list(dataset.levels)[-1]
    return {
        "example_points": points,
        "example_images": images,
        "example_perturbed": np.clip(images + np.array([0.03, 0.05], np.float32).reshape(2, 1, 1, 1), 0, 1),
        "example_budget": np.array([0.5]),
        "example_distance": np.array([0.31, 0.9]),
        "example_label": np.array([1, 1]),
        "example_prediction": np.array([2, 1]),
        "example_partition": np.array([partition]),
        "example_level": dataset.partitions[partition][rows],
    }


def audited(point: Point, section: Mapping[str, Any], dataset: ImageDataset, epochs: Sequence[int]) -> AuditResult:
    """One point's audit."""
    linear = section["method"]["model"] == LOGISTIC
    attacks = [name for name in section["audit"]["attacks"] if linear or name != "exact"]
    arrays = distances_of(dataset, point.name("method"), epochs, attacks)
    rows = rows_of(dataset, arrays, attacks)
    arrays |= example_of(dataset) if point.block.startswith("networks") else {}
    return AuditResult("robustness_bias", dataset.name, section["method"]["name"], dataset.origin, rows, arrays)


def make_inputs(
    scale: str = "paper", absent: Sequence[str] = (), origins: Mapping[str, Any] = ORIGINS, pretrained: bool = True
) -> Inputs:
    """The study's inputs with the project's own grid; ``absent`` data sets pass through as such."""
    workflow = Workflow(scale=scale, studies=[STUDY])
    config = workflow.artefacts(STUDY)
    datasets: dict[str, ImageDataset] = {}
    classifiers, audits, collected = {}, {}, []
    for point in workflow.points(STUDY):
        path = workflow.audit_file(point)
        section = config["sections"][path]
        data, model = point.name("dataset"), section["method"]["model"]
        key = "/".join(path.removesuffix(".npz").split("/")[-4:])
        if point.dataset in absent:
            missing = Absent(point.dataset, REASON.format(point.dataset), section["method"]["name"], "robustness_bias")
            audits[key] = AuditResult.not_run(missing)
        else:
            if data not in datasets:
                datasets[data] = dataset_of(point.dataset, origins.get(point.dataset, "official"))
            last = section["method"]["epochs"]
            moments = {"first": 1, "middle": (1 + last) // 2, "last": last}
            epochs = sorted({moments[name] for name in section["method"]["checkpoints"]})
            begun = pretrained and section["method"]["pretrained"] != "never" and model in CONVOLUTIONAL
            audits[key] = audited(point, section, datasets[data], epochs)
            classifiers[f"{data}/{point.name('method')}"] = classifier_of(
                datasets[data], section["method"]["name"], model, epochs, begun
            )
        collected.append((audits[key], point.block, point.columns()))
    rows = collect(collected, STUDY, scale)
    held = {key: described(data) for key, data in datasets.items()}
    return Inputs(STUDY, scale, rows, config, held, audits, classifiers)


@pytest.fixture(scope="session")
def inputs() -> Inputs:
    """The study at paper scale, every data set there."""
    return make_inputs()


@pytest.fixture(scope="session")
def alone() -> Inputs:
    """The study of somebody who has nothing but the digits."""
    return make_inputs("smoke", absent=[name for name in LEVELS if name != "digits"])


@pytest.fixture(scope="session")
def published() -> pd.DataFrame:
    """The study's list of published numbers."""
    return studies.published(STUDY)


@pytest.fixture(scope="session")
def made(inputs: Inputs) -> Mapping[str, Artefact]:
    """The study's artefacts, each made once."""
    return studies.Made(lambda name: build(name, inputs))


@pytest.fixture(scope="session")
def made_alone(alone: Inputs) -> Mapping[str, Artefact]:
    """The same of the digits alone."""
    return studies.Made(lambda name: build(name, alone))
