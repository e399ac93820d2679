"""What every dataset, method and audit found in ``conf`` promises, checked by running each at smoke scale."""

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
from pipeline.types import AuditResult, Classifier, Dataset

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
    assert all(values.shape == (rows,) and set(np.unique(values)) == {0, 1} for values in data.protected.values())
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
    assert (classifier.method, classifier.origin) == (name, data.origin)
    assert all(len(array) == classifier.repetitions for array in classifier.parameters.values())
    assert all(np.isfinite(array).all() for array in classifier.parameters.values())
    assert all(array.shape == (classifier.repetitions,) for array in classifier.facts.values())
    assert all(array.shape == (classifier.repetitions,) for array in classifier.index.values())
    import importlib

    architecture = importlib.import_module(f"pipeline.models.{classifier.architecture}")
    x = data.batch("test").features[:1, :50].repeat(classifier.repetitions, axis=0)
    import torch

    parameters = {
        key: torch.from_numpy(np.asarray(array, dtype=np.float64)) for key, array in classifier.parameters.items()
    }
    probabilities = architecture.log_probabilities(parameters, torch.from_numpy(x)).exp().numpy()
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, rtol=1e-6)
    np.testing.assert_array_equal(architecture.predict(classifier.parameters, x), probabilities[..., 1] > 0.5)


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
    result = module.run(data, classifier, plugins.configure(module, section), rngs)
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
