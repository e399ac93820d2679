"""Adult and COMPAS with every row and every input, and the twins that stand in for them."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from pipeline import io
from pipeline.datasets import adult, compas
from pipeline.datasets.twins import model, preserved
from pipeline.seeds import generators
from pipeline.stages import fetch, prepare
from pipeline.types import Dataset
from pipeline.workflow import plugins

TWINS = Path(__file__).resolve().parents[2] / "data" / "twins"
ROWS = {"adult": 48_842, "compas": 7_214}
FEATURES = {"adult": 100, "compas": 10}


def through_the_stages(name: str, rows: str, source: str, folder: Path) -> Dataset:
    manifest, output = folder / "manifest.json", folder / f"{name}_{rows}.npz"
    fetch.main(["--dataset", name, "--source", source, "--raw", str(folder / "raw" / name), "--output", str(manifest)])
    section = {"name": f"{name}_all", "kind": name, "train_fraction": 0.8, "rows": rows}
    config = json.dumps({"dataset": section, "repetitions": 1})
    prepare.main(["--config", config, "--manifest", str(manifest), "--output", str(output)])
    return io.load(output, Dataset)


@pytest.mark.parametrize("name", ["adult", "compas"])
def test_every_official_row_is_kept_and_protected_attributes_are_no_inputs(
    name: str, official: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_MIRROR", str(official(name).parent))
    data = through_the_stages(name, "all", "official", tmp_path)
    assert data.features.shape == (ROWS[name], FEATURES[name])
    assert data.dropped == {}
    assert data.sensitive_inputs == ()
    assert not {"sex", "race"} & {column.split("=")[0] for column in data.feature_names}
    assert data.train.shape[1] == int(0.8 * ROWS[name])
    for values in data.protected.values():
        # Nor does any single input tell the protected attribute, but a husband or a wife.
        told = [np.abs(np.corrcoef(column, values)[0, 1]) for column in data.features.T if column.std()]
        assert max(told) < 0.65


def test_the_education_of_adult_is_the_one_of_the_raw_files(official: Callable[[str], Path]) -> None:
    folder = official("adult")
    raw = []
    for file in ("adult.data", "adult.test"):
        with (folder / file).open() as lines:
            raw += [row[3] for row in csv.reader(lines, skipinitialspace=True) if len(row) == 15]
    data = adult.prepare(adult.parse(folder), adult.Config(0.8, "all"), generators("t", repetitions=1), "official")
    columns = [i for i, name in enumerate(data.feature_names) if name.startswith("education=")]
    names = np.array([data.feature_names[i].removeprefix("education=") for i in columns])
    assert names[data.features[:, columns].argmax(axis=1)].tolist() == raw
    np.testing.assert_array_equal(data.features[:, columns].sum(axis=1), 1)


def test_unknown_is_a_category_of_its_own(official: Callable[[str], Path]) -> None:
    rows = adult.parse(official("adult"))
    data = adult.prepare(rows, adult.Config(0.8, "all"), generators("t", repetitions=1), "official")
    for name in ("workclass", "occupation", "native-country"):
        column = data.features[:, data.feature_names.index(f"{name}=?")]
        assert column.sum() == (rows[name] == "?").sum() > 0


def test_race_of_all_of_compas_is_african_american_or_not(official: Callable[[str], Path]) -> None:
    rows = compas.parse(official("compas"))
    data = compas.prepare(rows, compas.Config(0.8, "all"), generators("t", repetitions=1), "official")
    assert data.levels["race"] == ("African-American", "not African-American")
    np.testing.assert_array_equal(data.protected["race"] == 0, rows["race"] == "African-American")
    assert rows["race"].nunique() == 6


@pytest.mark.parametrize("name", ["adult", "compas"])
def test_each_choice_of_rows_has_its_own_twin(name: str, tmp_path: Path) -> None:
    for rows, file in plugins.load("dataset", name).TWINS.items():
        data = through_the_stages(name, rows, "twin", tmp_path)
        twin = model.from_json(io.load_json(TWINS / file))
        assert (data.origin, len(data.label)) == ("twin", twin.rows)
        assert list(data.checksums) == [file]
        assert (data.features.shape[1] == FEATURES[name]) == (rows == "all")


@pytest.mark.parametrize(("name", "bound"), [("adult", 0.03), ("compas", 0.06)])
def test_the_twin_of_all_rows_keeps_the_association_of_every_pair(name: str, bound: float) -> None:
    path = TWINS / f"{name}_all.json"
    twin = model.from_json(io.load_json(path))
    found = preserved.association(model.sample(twin, twin.rows, np.random.default_rng(0)), twin.root, twin.columns)
    errors = [abs(found[pair] - v) for pair, v in twin.preserved["association"].items()]
    assert max(errors) < bound
    assert np.mean(errors) < 0.02
    assert path.stat().st_size < 4 * twin.rows  # under four bytes a person
