"""What every dataset, method, transport and audit in ``conf`` promises, checked by a run of each at smoke scale."""

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from pipeline import io
from pipeline.datasets import adience, cifar10, cifar100, utkface
from pipeline.datasets.image_sets import ImageConfig
from pipeline.models import architecture as architecture_of
from pipeline.models import networks
from pipeline.seeds import generators
from pipeline.stages import fetch, prepare
from pipeline.stages import transport as fit_maps
from pipeline.transport.between import mapped, parted
from pipeline.types import AuditResult, Classifier, Dataset, ImageDataset, TransportMap
from pipeline.workflow import availability, plugins
from pipeline.workflow.composition import Point
from pipeline.workflow.config import CONF, Workflow
from tests.files import jpeg, packed, python2

WORKFLOW = Workflow(scale="smoke")
POINTS = [point for name in (*WORKFLOW.studies, *WORKFLOW.sweeps) for point in WORKFLOW.points(name)]


def shipped(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def of_images(name: str) -> bool:
    return issubclass(plugins.load("dataset", WORKFLOW.kind("dataset", name)).Config, ImageConfig)


def large(point: Point) -> bool:
    """COMPAS is the smaller of the tabular sets, the digits are the smallest images."""
    return point.dataset == "adult" or (of_images(point.dataset) and point.dataset != "digits")


def point_with(group: str, name: str) -> Point:
    """A point that uses ``name``: a file that neither study nor sweep runs fails here, but for a dataset."""
    found = [point for point in POINTS if getattr(point, group) == name]
    if group == "dataset" and not found:
        return Point("", "", name, "", "", ())
    assert found, f"conf/{group}/{name}.yaml is run by no study and no sweep"
    return sorted(found, key=large)[0]


@functools.cache
def prepared(name: str, folder: Path) -> Dataset | ImageDataset:
    config = WORKFLOW.asked("prepare", name)
    kind = config["dataset"]["kind"]
    output = folder / f"{name}.npz"
    if (folder / "raw" / kind).is_dir():
        # Made-up files would not pass the fetch stage, which checks that they are the published ones.
        module = plugins.load("dataset", kind)
        rngs = generators("prepare", kind, repetitions=config["repetitions"])
        rows = module.parse(folder / "raw" / kind)
        io.save(module.prepare(rows, plugins.configure(module, config["dataset"]), rngs, "official"), output)
    else:
        manifest, raw, module = folder / f"{kind}.json", availability.RAW / kind, plugins.load("dataset", kind)
        source = "twin" if availability.twins(module) else "auto"
        wanted, copies = availability.sources(module), availability.copies(kind, module, raw)
        if source == "auto" and not copies and availability.reachable(wanted, raw) != "there":
            pytest.skip(f"{kind} has no twin, and its files are neither in {raw} nor in a DATA_MIRROR folder")
        raw = raw if raw.is_dir() else folder / kind
        fetch.main(["--dataset", kind, "--source", source, "--raw", str(raw), "--output", str(manifest)])
        prepare.main(["--config", json.dumps(config), "--manifest", str(manifest), "--output", str(output)])
    dataset = io.load_if_present(output)
    assert isinstance(dataset, (Dataset, ImageDataset))
    return dataset


@functools.cache
def fitted(dataset_name: str, method_name: str, folder: Path) -> Classifier:
    dataset, config = prepared(dataset_name, folder), WORKFLOW.asked("train", dataset_name, method_name)
    module = plugins.load("method", config["method"]["kind"])
    rngs = generators("train", dataset.name, config["method"]["name"], repetitions=config["repetitions"])
    classifier = module.fit(dataset, plugins.configure(module, config["method"]), rngs)
    assert isinstance(classifier, Classifier)
    return classifier


@functools.cache
def transported(point: Point, folder: Path) -> TransportMap:
    dataset, transport = point.name("dataset"), point.name("transport")
    prepared(dataset, folder)
    output = folder / f"{dataset}+{transport}.npz"
    config = json.dumps(WORKFLOW.asked("transport", dataset, transport))
    fit_maps.main(["--config", config, "--dataset", str(folder / f"{dataset}.npz"), "--output", str(output)])
    return io.load(output, TransportMap)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for what is made, with small made-up files of the image datasets below ``raw``."""
    folder = tmp_path_factory.mktemp("contract")
    raw = {name: folder / "raw" / name for name in ("cifar10", "cifar100", "utkface", "adience")}
    for path in raw.values():
        path.mkdir(parents=True)

    for name, published in (("cifar10", cifar10.PUBLISHED), ("cifar100", cifar100.PUBLISHED)):
        greys = np.arange(200, dtype=np.uint8)
        data = np.repeat(greys[:, None], 3 * 32 * 32, axis=1)
        batches = {published.meta: python2({published.names: list(published.classes)})}
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
    return folder


@pytest.mark.parametrize("name", [name for name in shipped("dataset") if of_images(name)])
def test_dataset_of_images(name: str, folder: Path) -> None:
    point = point_with("dataset", name)
    data, section = prepared(point.name("dataset"), folder), WORKFLOW.section("dataset", point)
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
def test_dataset_of_images_is_trained_on_and_audited(name: str, folder: Path) -> None:
    point = next((point for point in POINTS if point.dataset == name and point.block == "linear"), None)
    if point is None:
        pytest.skip(f"no study audits a linear model of {name}")
    data, result = prepared(point.name("dataset"), folder), audited(point, folder)
    assert isinstance(data, ImageDataset)
    assert (result.origin, result.dataset) == (data.origin, data.name)
    groups = {(key, level) for key, levels in data.levels.items() for level in levels}
    measured = result.rows[result.rows["statistic"] == "sigma"]
    assert set(zip(measured["partition"], measured["level"], strict=True)) == groups


@pytest.mark.parametrize("name", [name for name in shipped("dataset") if not of_images(name)])
def test_dataset(name: str, folder: Path) -> None:
    data = prepared(point_with("dataset", name).name("dataset"), folder)
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
def test_method(name: str, folder: Path) -> None:
    point = point_with("method", name)
    classifier = fitted(point.name("dataset"), point.name("method"), folder)
    data = prepared(point.name("dataset"), folder)
    assert (classifier.method, classifier.origin) == (WORKFLOW.kind("method", name), data.origin)
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
def test_transport(name: str, folder: Path) -> None:
    point = point_with("transport", name)
    data, maps = prepared(point.name("dataset"), folder), transported(point, folder)
    assert isinstance(data, Dataset)
    assert (maps.transport, maps.dataset, maps.origin) == (name, data.name, data.origin)
    assert all(len(array) == maps.trials for array in (*maps.parameters.values(), *maps.reverse.values()))
    assert not any(np.isnan(array).any() for array in maps.parameters.values() if array.dtype.kind == "f")
    assert all(array.shape == (maps.trials,) for array in maps.facts.values())
    assert set(maps.features) <= set(data.feature_names)
    between, _ = parted(WORKFLOW.section("transport", point))
    for direction in ("forward", "reverse") if maps.reverse else ("forward",):
        for person in mapped(maps, data, between.split, maps.trials, direction):
            assert person.images.shape == person.features.shape
            assert np.isfinite(person.images).all()


@functools.cache
def audited(point: Point, folder: Path) -> AuditResult:
    data = prepared(point.name("dataset"), folder)
    classifier = fitted(point.name("dataset"), point.name("method"), folder)
    section = WORKFLOW.section("audit", point)
    module = plugins.load("audit", section["kind"])
    rngs = generators("audit", data.name, classifier.method, point.audit, repetitions=classifier.repetitions)
    maps = [transported(point, folder)] if point.transport else []
    data = data.with_inputs(classifier.reads) if isinstance(data, Dataset) else data
    result = module.run(data, classifier, plugins.configure(module, section), rngs, *maps)
    assert isinstance(result, AuditResult)
    return result


@pytest.mark.parametrize("name", shipped("audit"))
def test_audit(name: str, folder: Path) -> None:
    point = point_with("audit", name)
    data, result = prepared(point.name("dataset"), folder), audited(point, folder)
    classifier = fitted(point.name("dataset"), point.name("method"), folder)
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
    section = WORKFLOW.section(group, point)
    module = plugins.load(group, section["kind"])
    with pytest.raises(ValueError, match="there is no key 'colour'"):
        plugins.configure(module, {**section, "colour": "red"})
    lost = next(key for key in section if key not in ("name", "kind"))
    with pytest.raises(ValueError, match=rf"{lost} is not given"):
        plugins.configure(module, {key: value for key, value in section.items() if key != lost})


def test_a_name_without_a_module_says_which_file_to_write() -> None:
    with pytest.raises(ValueError, match=r"write pipeline/methods/nobody\.py"):
        plugins.load("method", "nobody")
