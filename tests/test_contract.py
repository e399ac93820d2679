"""What every dataset, method, transport and audit in ``conf`` promises, checked by a run of each at smoke scale."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pipeline import io, plugins
from pipeline.composition import Point
from pipeline.config import CONF, Workflow
from pipeline.seeds import generators
from pipeline.stages import fetch, prepare
from pipeline.stages import transport as fit_maps
from pipeline.transport.between import mapped, parted
from pipeline.types import AuditResult, Classifier, Dataset, TransportMap

WORKFLOW = Workflow(scale="smoke")
POINTS = [point for study in WORKFLOW.studies for point in WORKFLOW.points(study)]


def shipped(group: str) -> list[str]:
    return sorted(path.stem for path in (CONF / group).glob("*.yaml"))


def point_with(group: str, name: str) -> Point:
    """A point of a study that uses ``name``: a configuration file that no study runs fails here."""
    found = [point for point in POINTS if getattr(point, group) == name]
    assert found, f"conf/{group}/{name}.yaml is run by no study"
    # COMPAS is the smaller of the tabular sets.
    return sorted(found, key=lambda point: point.dataset == "adult")[0]


@functools.cache
def prepared(name: str, folder: Path) -> Dataset:
    config = WORKFLOW.prepare(name)
    kind = config["dataset"]["kind"]
    manifest, output = folder / f"{kind}.json", folder / f"{name}.npz"
    fetch.main(["--dataset", kind, "--source", "twin", "--raw", str(folder / kind), "--output", str(manifest)])
    prepare.main(["--config", json.dumps(config), "--manifest", str(manifest), "--output", str(output)])
    return io.load_dataset(output)


@functools.cache
def fitted(dataset_name: str, method_name: str, folder: Path) -> Classifier:
    dataset, config = prepared(dataset_name, folder), WORKFLOW.train(dataset_name, method_name)
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
    config = json.dumps(WORKFLOW.transport(dataset, transport))
    fit_maps.main(["--config", config, "--dataset", str(folder / f"{dataset}.npz"), "--output", str(output)])
    return io.load_transport(output)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("contract")


@pytest.mark.parametrize("name", shipped("dataset"))
def test_dataset(name: str, folder: Path) -> None:
    data = prepared(point_with("dataset", name).name("dataset"), folder)
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
    import importlib

    architecture = importlib.import_module(f"pipeline.models.{classifier.architecture}")
    x = data.batch("test").features[:1, :50].repeat(classifier.repetitions, axis=0)
    decision, score = architecture.predict(classifier.parameters, x), architecture.score(classifier.parameters, x)
    assert decision.shape == score.shape == x.shape[:2]
    assert set(np.unique(decision)) <= {0, 1}
    # A higher score never means a lower decision.
    assert all(
        s[d == 0].max(initial=-np.inf) <= s[d == 1].min(initial=np.inf) for d, s in zip(decision, score, strict=True)
    )
    if hasattr(architecture, "log_probabilities"):
        import torch

        parameters = {
            key: torch.from_numpy(np.asarray(array, dtype=np.float64)) for key, array in classifier.parameters.items()
        }
        probabilities = architecture.log_probabilities(parameters, torch.from_numpy(x)).exp().numpy()
        np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-6)
        np.testing.assert_allclose(score, probabilities[..., 1], rtol=1e-6)
        np.testing.assert_array_equal(decision, probabilities[..., 1] > 0.5)


@pytest.mark.parametrize("name", shipped("transport"))
def test_transport(name: str, folder: Path) -> None:
    point = point_with("transport", name)
    data, maps = prepared(point.name("dataset"), folder), transported(point, folder)
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


@pytest.mark.parametrize("name", shipped("audit"))
def test_audit(name: str, folder: Path) -> None:
    point = point_with("audit", name)
    data, classifier = (
        prepared(point.name("dataset"), folder),
        fitted(point.name("dataset"), point.name("method"), folder),
    )
    section = WORKFLOW.section("audit", point)
    module = plugins.load("audit", section["kind"])
    rngs = generators("audit", data.name, classifier.method, name, repetitions=classifier.repetitions)
    maps = [transported(point, folder)] if point.transport else []
    result = module.run(data, classifier, plugins.configure(module, section), rngs, *maps)
    assert isinstance(result, AuditResult)
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
    with pytest.raises(ValueError, match=r"has no field \['colour'\]"):
        plugins.configure(module, {**section, "colour": "red"})
    lost = next(key for key in section if key not in ("name", "kind"))
    with pytest.raises(ValueError, match=rf"needs \['{lost}'\]"):
        plugins.configure(module, {key: value for key, value in section.items() if key != lost})


def test_a_name_without_a_module_says_which_file_to_write() -> None:
    with pytest.raises(ValueError, match=r"write pipeline/methods/nobody\.py"):
        plugins.load("method", "nobody")
