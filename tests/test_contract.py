"""What every dataset, method, transport and audit in ``conf`` promises, checked by a run of each at smoke scale."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from fairness_audits.models import architecture as architecture_of
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset, ImageDataset
from pipeline import networks
from pipeline.counterparts import mapped, parted
from pipeline.datasets import adience, cifar10, cifar100, utkface
from pipeline.raw_data.image_sets import ImageConfig
from pipeline.workflow import plugins
from pipeline.workflow.conf import CONF
from pipeline.workflow.points import Point
from tests.errors import invalid
from tests.files import jpeg, packed, python2
from tests.lock import quantities

RUN = quantities.RUN
POINTS = [point for name in (*RUN.studies, *RUN.sweeps) for point in RUN.points(name)]


def shipped(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def of_images(name: str) -> bool:
    return issubclass(plugins.load("dataset", RUN.grids.kind("dataset", name)).Config, ImageConfig)


def large(point: Point) -> bool:
    """COMPAS is the smaller of the tabular sets, the digits are the smallest images."""
    return point.dataset == "adult" or (of_images(point.dataset) and point.dataset != "digits")


def point_with(group: str, name: str) -> Point:
    """A point that uses ``name``: what neither study nor sweep runs fails here, but for a dataset."""
    found = [point for point in POINTS if getattr(point, group) == name]
    if group == "dataset" and not found:
        return Point("", "", name, "", "", ())
    assert found, f"conf/{group}/{name}.yaml is run by no study and no sweep"
    return sorted(found, key=large)[0]


@pytest.fixture(scope="module", autouse=True)
def _images(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The image datasets of small made-up files, prepared; the others are twins, drawn, or come with a dependency."""
    folder = tmp_path_factory.mktemp("contract")
    raw = {name: folder / name for name in ("cifar10", "cifar100", "utkface", "adience")}
    for path in raw.values():
        path.mkdir()

    for name, published in (("cifar10", cifar10.PUBLISHED), ("cifar100", cifar100.PUBLISHED)):
        greys = np.arange(200, dtype=np.uint8)
        data = np.repeat(greys[:, None], 3 * 32 * 32, axis=1)
        batches = {}
        for part in (part for parts in published.batches.values() for part in parts):
            labels = [int(grey) % len(published.classes) for grey in greys]
            files = [f"{part.rpartition('/')[2]}_{grey}.png" for grey in greys]
            batches[part] = python2({"data": data, published.labels: labels, "filenames": files})
        packed(raw[name] / published.archive, batches)

    faces = [f"{4 * (i % 20)}_{i % 2}_{i % 5}_{20170116174525125 + i}.jpg.chip.jpg" for i in range(300)]
    packed(raw["utkface"] / utkface.ARCHIVE, {f"UTKFace/{name}": jpeg(i % 250) for i, name in enumerate(faces)})

    pictures = {}
    for fold, table in enumerate(adience.FOLDS):
        lines = ["\t".join(adience.COLUMNS)]
        for i in range(80):
            age, gender = list(adience.GROUP_OF)[i % 8], "mf"[i // 8 % 2]
            lines.append("\t".join([f"{fold}@N03", f"{i}_o.jpg", str(i), age, gender]))
            pictures[f"aligned/{fold}@N03/landmark_aligned_face.{i}.{i}_o.jpg"] = jpeg(3 * i)
        (raw["adience"] / table).write_text("\n".join(lines) + "\n")
    packed(raw["adience"] / adience.ARCHIVE, pictures)
    shown = [*POINTS, *(point_with("dataset", name) for name in shipped("dataset"))]
    for name, point in {point.name("dataset"): point for point in shown}.items():
        if (kind := RUN.grids.kind("dataset", name)) in raw:
            module, asked = plugins.load("dataset", kind), RUN.section("prepare", point)
            config = plugins.configure(module, asked["dataset"])
            rngs = generators("prepare", kind, repetitions=asked["repetitions"])
            quantities.PREPARED[name] = module.prepare(module.parse(raw[kind]), config, rngs, "official")


@pytest.mark.parametrize("name", [name for name in shipped("dataset") if of_images(name)])
def test_dataset_of_images(name: str) -> None:
    point = point_with("dataset", name)
    data, section = quantities.dataset(point.name("dataset")), RUN.grids.resolve(point)["dataset"]
    assert isinstance(data, ImageDataset)
    n, channels, *sides = data.images.shape
    assert data.images.dtype == np.uint8
    assert sides == [section["image_size"]] * 2
    assert data.images.max() <= data.maximum
    assert len(data.mean) == len(data.std) == channels
    assert (data.train.shape, data.test.shape) == ((1, section["train_points"]), (1, section["test_points"]))
    assert sorted([*data.train[0], *data.test[0]]) == list(range(n))
    assert set(data.partitions) == set(data.levels)
    np.testing.assert_array_equal(data.partitions[data.label_name], data.label)
    assert data.levels[data.label_name] == data.classes
    for key, codes in data.partitions.items():
        assert codes.shape == (n,)
        assert set(np.unique(codes)) <= set(range(-1, len(data.levels[key])))
    assert data.label.min() >= 0


@pytest.mark.parametrize("name", [name for name in shipped("dataset") if of_images(name)])
def test_dataset_of_images_is_trained_on_and_audited(name: str) -> None:
    point = next((point for point in POINTS if point.dataset == name and point.block == "linear"), None)
    if point is None:
        pytest.skip(f"no study audits a linear model of {name}")
    data, result = quantities.dataset(point.name("dataset")), quantities.audited(point)
    assert isinstance(data, ImageDataset)
    assert (result.origin, result.dataset) == (data.origin, data.name)
    groups = {(key, level) for key, levels in data.levels.items() for level in levels}
    measured = result.rows[result.rows["statistic"] == "sigma"]
    assert set(zip(measured["partition"], measured["level"], strict=True)) == groups


@pytest.mark.parametrize("name", [name for name in shipped("dataset") if not of_images(name)])
def test_dataset(name: str) -> None:
    data = quantities.dataset(point_with("dataset", name).name("dataset"))
    assert isinstance(data, Dataset)
    rows, columns = data.features.shape
    assert len(data.feature_names) == columns == len(set(data.feature_names))
    assert data.features.dtype == np.float64
    assert np.isfinite(data.features).all()
    assert set(np.unique(data.label)) <= {0, 1}
    assert set(data.protected) == set(data.levels)
    assert all(values.shape == (rows,) for values in data.protected.values())
    assert all(set(np.unique(values)) - {-1} == {0, 1} for values in data.protected.values())
    assert all(values.shape == (rows,) and np.isfinite(values).all() for values in data.outcomes.values())
    assert set(data.continuous) <= set(data.feature_names)
    assert set(data.sensitive_inputs) <= set(data.feature_names)
    assert data.train.ndim == data.test.ndim == 2
    assert len(data.train) == len(data.test) == data.repetitions
    if data.origin != "simulated":
        for train, test in zip(data.train, data.test, strict=True):
            assert not set(train) & set(test)
            assert len(set(train) | set(test)) == rows


@pytest.mark.parametrize("name", shipped("method"))
def test_method(name: str) -> None:
    point = point_with("method", name)
    classifier = quantities.classifier(point)
    data = quantities.dataset(point.name("dataset"))
    assert classifier.origin == data.origin
    assert all(len(array) == classifier.repetitions for array in classifier.parameters.values())
    assert all(np.isfinite(array).all() for array in classifier.parameters.values())
    assert all(array.shape == (classifier.repetitions,) for array in classifier.facts.values())
    assert all(array.shape == (classifier.repetitions,) for array in classifier.index.values())
    if isinstance(data, ImageDataset):
        pixels = torch.from_numpy(data.pixels(data.test[0][:5]))
        for k in range(classifier.repetitions):
            logits = networks.of_checkpoint(classifier, data, k, torch.device("cpu"))(pixels)
            assert logits.shape == (5, len(data.classes))
            assert logits.isfinite().all()
        return
    architecture: Any = architecture_of(classifier.architecture)
    x = data.with_inputs(classifier.reads).batch("test").features[:1, :50].repeat(classifier.repetitions, axis=0)
    decision, score = architecture.predict(classifier.parameters, x), architecture.score(classifier.parameters, x)
    assert decision.shape == score.shape == x.shape[:2]
    assert set(np.unique(decision)) <= {0, 1}
    # A higher score never means a lower decision.
    for d, s in zip(decision, score, strict=True):
        assert s[d == 0].max(initial=-np.inf) <= s[d == 1].min(initial=np.inf)
    if hasattr(architecture, "log_probabilities"):
        parameters = {key: torch.tensor(array, dtype=torch.float64) for key, array in classifier.parameters.items()}
        probabilities = architecture.log_probabilities(parameters, torch.from_numpy(x)).exp().numpy()
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-6)
        np.testing.assert_allclose(score, probabilities[..., 1], rtol=1e-6)
        np.testing.assert_array_equal(decision, probabilities[..., 1] > 0.5)


@pytest.mark.parametrize("name", shipped("transport"))
def test_transport(name: str) -> None:
    point = point_with("transport", name)
    data, maps = quantities.dataset(point.name("dataset")), quantities.maps(point)
    assert isinstance(data, Dataset)
    assert (maps.transport, maps.dataset, maps.origin) == (name, data.name, data.origin)
    assert all(len(array) == maps.trials for array in (*maps.parameters.values(), *maps.reverse.values()))
    assert not any(np.isnan(array).any() for array in maps.parameters.values() if array.dtype.kind == "f")
    assert all(array.shape == (maps.trials,) for array in maps.facts.values())
    assert set(maps.features) <= set(data.feature_names)
    between, _ = parted(RUN.grids.resolve(point)["transport"])
    for direction in ("forward", "reverse") if maps.reverse else ("forward",):
        for person in mapped(maps, data, between.split, maps.trials, direction):
            assert person.images.shape == person.features.shape
            assert np.isfinite(person.images).all()


@pytest.mark.parametrize("name", shipped("audit"))
def test_audit(name: str) -> None:
    point = point_with("audit", name)
    data, result = quantities.dataset(point.name("dataset")), quantities.audited(point)
    classifier = quantities.classifier(point)
    assert isinstance(result.rows, pd.DataFrame)
    assert {"repetition", "statistic", "value"} <= set(result.rows.columns)
    assert result.rows["value"].dtype.kind == "f"
    assert set(result.rows["repetition"]) <= set(range(classifier.repetitions))
    settings = [column for column in result.rows.columns if column != "value"]
    assert not result.rows.duplicated(subset=settings).any()
    assert (result.origin, result.dataset, result.method) == (data.origin, data.name, classifier.method)


@pytest.mark.parametrize("group", ["dataset", "method", "audit"])
def test_a_key_too_many_and_a_key_too_few_are_named(group: str) -> None:
    point = POINTS[0]
    section = RUN.grids.resolve(point)[group]
    module = plugins.load(group, section["kind"])
    with invalid(option="colour"):
        plugins.configure(module, {**section, "colour": "red"})
    lost = next(key for key in section if key not in ("name", "kind"))
    with invalid(option=lost):
        plugins.configure(module, {key: value for key, value in section.items() if key != lost})


def test_a_name_without_a_module_says_which_file_to_write() -> None:
    with invalid(source="nobody.py", option="method"):
        plugins.load("method", "nobody")
