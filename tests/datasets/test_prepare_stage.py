"""The prepare stage: from a manifest to a saved dataset, and nothing from files that changed since."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pipeline import io
from pipeline.datasets.twins import kinds
from pipeline.stages import fetch, prepare
from pipeline.types import Dataset
from pipeline.workflow import plugins

TWINS = Path(__file__).resolve().parents[2] / "data" / "twins"
COMPAS = {"name": "compas", "kind": "compas", "train_fraction": 0.8, "rows": "complete"}


def run(folder: Path, section: dict[str, Any], repetitions: int = 2, source: str = "twin") -> Dataset:
    kind = section["kind"]
    manifest, output, raw = folder / "manifest.json", folder / "prepared.npz", folder / kind
    if not manifest.exists():
        fetch.main(["--dataset", kind, "--source", source, "--raw", str(raw), "--output", str(manifest)])
    config = json.dumps({"dataset": section, "repetitions": repetitions})
    prepare.main(["--config", config, "--manifest", str(manifest), "--output", str(output)])
    return io.load(output, Dataset)


def test_a_twin_is_sampled_prepared_and_marked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = run(tmp_path, COMPAS, repetitions=3)
    assert (data.name, data.origin, data.repetitions) == ("compas", "twin", 3)
    assert data.features.shape == (5_278, 7)
    assert data.dropped == {}
    assert list(data.checksums) == ["compas.json"]
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == (
        "compas (twin): 5,278 rows of 7 features, 3 splits of 4,222 to train and 1,056 to test; rows dropped: none"
    )


def test_the_same_manifest_gives_the_same_bytes_and_more_splits_change_no_earlier_one(tmp_path: Path) -> None:
    first = run(tmp_path, COMPAS, repetitions=2)
    bytes_of_first = (tmp_path / "prepared.npz").read_bytes()
    run(tmp_path, COMPAS, repetitions=2)
    assert (tmp_path / "prepared.npz").read_bytes() == bytes_of_first
    more = run(tmp_path, COMPAS, repetitions=4)
    np.testing.assert_array_equal(more.features, first.features)
    np.testing.assert_array_equal(more.train[:2], first.train)


def test_simulated_data_are_drawn(tmp_path: Path) -> None:
    data = run(tmp_path, {"name": "arrests", "kind": "arrests", "n": 15})
    assert (data.origin, data.features.shape, data.train.shape) == ("simulated", (60, 1), (2, 30))
    assert data.checksums == {}


@pytest.mark.parametrize(
    ("kind", "origin", "message"),
    [
        ("compas", "simulated", "says simulated, but the data of 'compas' are made of files: delete it"),
        ("arrests", "official", "says official, but the data of 'arrests' are drawn, or come with a dependency"),
    ],
)
def test_a_manifest_of_an_origin_that_the_data_cannot_have_is_refused(
    kind: str, origin: str, message: str, tmp_path: Path
) -> None:
    io.save_json({"dataset": kind, "origin": origin, "files": [], "reason": None}, tmp_path / "manifest.json")
    with pytest.raises(SystemExit, match=message):
        run(tmp_path, COMPAS if kind == "compas" else {"name": "arrests", "kind": "arrests", "n": 15})


def test_a_file_that_changed_since_it_was_fetched_is_refused(tmp_path: Path) -> None:
    shutil.copyfile(TWINS / "compas.json", tmp_path / "compas.json")
    run(tmp_path, COMPAS)
    manifest = io.load_json(tmp_path / "manifest.json")
    manifest["files"][0]["path"] = str(tmp_path / "compas.json")
    io.save_json(manifest, tmp_path / "manifest.json")
    run(tmp_path, COMPAS)
    (tmp_path / "compas.json").write_text("{}")
    with pytest.raises(SystemExit, match=r"prepare compas: .*compas\.json has changed since it was fetched: expected"):
        run(tmp_path, COMPAS)
    (tmp_path / "compas.json").unlink()
    with pytest.raises(SystemExit, match=r"compas\.json is missing, but was fetched before"):
        run(tmp_path, COMPAS)


def test_a_manifest_of_another_dataset_is_refused(tmp_path: Path) -> None:
    run(tmp_path, COMPAS)
    with pytest.raises(SystemExit, match="the manifest is of 'compas', expected 'adult'"):
        run(tmp_path, {"name": "adult", "kind": "adult", "train_fraction": 0.8, "rows": "complete"})


def test_a_bad_setting_stops_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(
        SystemExit,
        match=r"prepare compas: .*expected dataset\.train_fraction to be",
    ):
        run(tmp_path, {**COMPAS, "train_fraction": 2.0})
    with pytest.raises(SystemExit, match=r"no key 'colour'"):
        run(tmp_path, {**COMPAS, "colour": "red"})
    assert not (tmp_path / "prepared.npz").exists()


@pytest.mark.parametrize("name", ["adult", "compas"])
def test_each_choice_of_rows_has_its_own_twin(name: str, tmp_path: Path) -> None:
    for rows, file in plugins.load("dataset", name).TWINS.items():
        data = run(tmp_path, {"name": f"{name}_{rows}", "kind": name, "train_fraction": 0.8, "rows": rows}, 1)
        twin = kinds.read(io.load_json(TWINS / file))
        assert (data.origin, len(data.label)) == ("twin", twin.rows)
        assert list(data.checksums) == [file]
        assert (data.features.shape[1] == {"adult": 100, "compas": 10}[name]) == (rows == "all")
        # Women are as many as the shipped model says.
        cells = dict(zip(twin.root.cells, twin.root.counts, strict=True))
        women = sum(count for cell, count in cells.items() if cell[0] == "Female") / sum(cells.values())
        share = data.protected["sex"].mean() if name == "compas" else 1 - data.protected["sex"].mean()
        assert share == pytest.approx(women, abs=len(cells) / len(data.label))


@pytest.mark.parametrize(("name", "rows"), [("adult", 45_222), ("compas", 5_278)])
def test_official_files_from_a_mirror(
    name: str, rows: int, official: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_MIRROR", str(official(name).parent))
    data = run(tmp_path, {"name": name, "kind": name, "train_fraction": 0.8, "rows": "complete"}, source="official")
    assert (data.origin, len(data.label)) == ("official", rows)
    assert sum(data.dropped.values()) > 0
    assert all(len(digest) == 64 for digest in data.checksums.values())
    # A byte that changes after the fetch is found.
    raw = next(tmp_path.glob(f"{name}/*"))
    raw.write_bytes(raw.read_bytes()[:-1] + b" ")
    with pytest.raises(SystemExit, match="has changed since it was fetched"):
        run(tmp_path, {"name": name, "kind": name, "train_fraction": 0.8, "rows": "complete"})
