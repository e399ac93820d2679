"""Fetching and preparing: official, twin or an error, with a manifest that says which and why, and what comes of it."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from fairness_audits.files import load_json, save_json
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline import io
from pipeline.raw_data.source import Source
from pipeline.stages import fetch
from pipeline.workflow import plugins
from tests.datasets.builders import fetched, staged
from tests.errors import invalid

BODY = b"name,age\nann,3\n"
SHA256 = hashlib.sha256(BODY).hexdigest()
TWINS = Path(__file__).resolve().parents[2] / "data" / "twins"
COMPAS = {"name": "compas", "kind": "compas", "train_fraction": 0.8, "first_repetition": 0, "rows": "complete"}


def run(folder: Path, section: dict[str, Any], repetitions: int = 2, source: str = "twin") -> Dataset:
    """The dataset that both stages make; what was fetched before is not fetched again."""
    return io.load(staged(folder, section, repetitions, source), Dataset)


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return tmp_path / "raw" / "toy"


@pytest.fixture
def mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "mirror"
    (folder / "toy").mkdir(parents=True)
    monkeypatch.setenv("DATA_MIRROR", str(folder))
    return folder


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A dataset of one file, whose official address nobody answers at, with the twin of COMPAS."""
    module = ModuleType("toy")
    source = Source("toy.csv", ("http://127.0.0.1:9/toy.csv",), SHA256, len(BODY), "none", "https://example.org")
    vars(module).update(SOURCES=(source,), TWINS={"": ("compas.parquet",)})
    monkeypatch.setattr(plugins, "load", lambda group, kind: module)
    monkeypatch.delenv("DATA_MIRROR", raising=False)
    return module


@pytest.mark.parametrize("source", ["auto", "official"])
def test_official_files_from_the_mirror(
    toy: ModuleType, mirror: Path, raw: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    original = mirror / "toy" / "toy.csv"
    original.write_bytes(BODY)
    file = {"path": str(raw / "toy.csv"), "sha256": SHA256, "size": len(BODY), "place": str(original)}
    assert fetched(raw, source, "toy") == {"dataset": "toy", "origin": "official", "files": [file], "reason": None}
    assert capsys.readouterr() == (f"toy: official ({original})\n", "")


def test_auto_falls_back_to_the_twin_aloud(toy: ModuleType, raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest, twin = fetched(raw, "auto", "toy"), TWINS / "compas.parquet"
    assert manifest["origin"] == "twin"
    (file,) = manifest["files"]
    assert Path(file["path"]).samefile(twin)
    assert file["sha256"] == hashlib.sha256(twin.read_bytes()).hexdigest()
    assert "http://127.0.0.1:9/toy.csv: cannot be reached" in manifest["reason"]
    captured = capsys.readouterr()
    assert captured.out == "toy: twin (data/twins/compas.parquet)\n"
    for part in ("WARNING: toy is a SYNTHETIC TWIN", "get the file from https://example.org", str(raw), "DATA_MIRROR"):
        assert part in captured.err


def test_a_twin_that_was_asked_for_is_no_cause_for_alarm(
    toy: ModuleType, mirror: Path, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mirror / "toy" / "toy.csv").write_bytes(BODY)
    manifest = fetched(raw, "twin", "toy")
    assert (manifest["origin"], manifest["reason"]) == ("twin", "asked for (DATA_SOURCE=twin)")
    assert capsys.readouterr().err == ""
    assert not raw.exists()


@pytest.mark.parametrize("source", ["auto", "official"])
@pytest.mark.parametrize("place", ["raw", "mirror"])
def test_no_corrupt_file_is_papered_over_with_a_twin(
    toy: ModuleType, mirror: Path, raw: Path, source: str, place: str
) -> None:
    folder = raw if place == "raw" else mirror / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "toy.csv").write_bytes(BODY.replace(b"3", b"4"))
    with pytest.raises(SystemExit, match=r"fetch toy: toy\.csv from .* is not the published file"):
        fetched(raw, source, "toy")
    assert not (raw.parent / "manifest.json").exists()


def test_without_a_twin_data_are_absent_aloud(toy: ModuleType, raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del toy.TWINS
    for source, reason in (("auto", "nowhere to be had"), ("twin", r"asked for \(DATA_SOURCE=twin\)")):
        manifest = fetched(raw, source, "toy")
        assert (manifest["origin"], manifest["files"]) == ("absent", [])
        assert re.match(rf"toy has no twin and is made of toy\.csv\.\n(.|\n)*{reason}", manifest["reason"])
    assert "WARNING: toy is MISSING in this run." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("official", r"fetch toy: toy\.csv of 'toy' is nowhere to be had"),
        ("twin", r"compas\.parquet is missing\. Restore it"),
    ],
)
def test_a_file_that_nobody_has_is_named_and_so_is_an_unknown_dataset(
    toy: ModuleType, raw: Path, monkeypatch: pytest.MonkeyPatch, source: str, message: str
) -> None:
    monkeypatch.setattr(fetch, "TWINS", raw.parent)
    with pytest.raises(SystemExit, match=message):
        fetched(raw, source, "toy")
    assert not (raw.parent / "manifest.json").exists()
    monkeypatch.undo()
    with pytest.raises(SystemExit, match="atlantis"):
        fetched(raw, "auto", "atlantis")


@pytest.mark.parametrize("source", ["auto", "official", "twin"])
def test_simulated_data_need_no_files(raw: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    expected: dict[str, Any] = {"dataset": "simulated", "origin": "simulated", "files": [], "reason": None}
    assert fetched(raw, source, "simulated") == expected
    assert capsys.readouterr().out == "simulated: simulated (nothing to fetch: simulated)\n"


def test_a_twin_is_sampled_prepared_and_marked_to_the_same_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path, COMPAS, repetitions=3)
    first = (tmp_path / "prepared.npz").read_bytes()
    data = run(tmp_path, COMPAS, repetitions=3)
    assert (tmp_path / "prepared.npz").read_bytes() == first
    assert (data.name, data.origin, data.repetitions) == ("compas", "twin", 3)
    assert data.features.shape == (5_278, 7)
    assert data.dropped == {}
    assert list(data.checksums) == ["compas.parquet"]
    line = capsys.readouterr().out.splitlines()[-1]
    splits = "3 splits of 4,222 to train and 1,056 to test; rows dropped: none"
    assert line == f"compas (twin): 5,278 rows of 7 features, {splits}"


@pytest.mark.parametrize(
    ("section", "option"),
    [
        ({**COMPAS, "train_fraction": 2.0}, "train_fraction"),
        ({**COMPAS, "colour": "red"}, "colour"),
    ],
)
def test_a_setting_that_the_data_cannot_have_stops_before_anything_is_written(
    section: dict[str, Any], option: str, tmp_path: Path
) -> None:
    with invalid(option=option):
        run(tmp_path, section)
    assert not (tmp_path / "prepared.npz").exists()


def test_a_file_that_changed_since_it_was_fetched_or_changes_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copyfile(TWINS / "compas.parquet", tmp_path / "compas.parquet")
    run(tmp_path, COMPAS)
    manifest = load_json(tmp_path / "manifest.json")
    manifest["files"][0]["path"] = str(tmp_path / "compas.parquet")
    save_json(manifest, tmp_path / "manifest.json")
    run(tmp_path, COMPAS)
    (tmp_path / "prepared.npz").unlink()
    load_rows = io.load_rows

    def meanwhile(path: Path) -> Any:
        rows = load_rows(path)
        path.write_bytes(b"")
        return rows

    monkeypatch.setattr(io, "load_rows", meanwhile)
    for _ in ("while it is read", "before"):
        with invalid(source="compas.parquet"):
            run(tmp_path, COMPAS)
    assert not (tmp_path / "prepared.npz").exists()
    (tmp_path / "compas.parquet").unlink()
    with invalid(source="compas.parquet"):
        run(tmp_path, COMPAS)


def test_the_first_repetition_of_a_later_run_is_that_repetition_of_a_longer_run(tmp_path: Path) -> None:
    longer = run(tmp_path / "longer", COMPAS, 5)
    later = run(tmp_path / "later", {**COMPAS, "first_repetition": 3}, 2)
    assert (longer.first_repetition, later.first_repetition) == (0, 3)
    assert (later.train == longer.train[3:]).all()
    assert (later.test == longer.test[3:]).all()
    drawn = (
        [rng.random() for rng in generators("train", "compas", repetitions=repetitions, first=first)]
        for repetitions, first in ((5, 0), (2, 3))
    )
    assert next(drawn)[3:] == next(drawn)


def test_trainings_share_a_split(tmp_path: Path) -> None:
    """The splits are those of one training each, and the last one may have fewer."""
    each = run(tmp_path / "each", {**COMPAS, "first_repetition": 7}, 2)
    shared = run(tmp_path / "shared", {**COMPAS, "first_repetition": 7, "trainings": 3}, 5)
    assert (shared.first_repetition, shared.repetitions) == (7, 5)
    assert (shared.train == each.train[[0, 0, 0, 1, 1]]).all()
    assert (shared.test == each.test[[0, 0, 0, 1, 1]]).all()


def test_folds_audit_everybody_once_in_each_partition(tmp_path: Path) -> None:
    """All but the n mod k rows that would make a fold larger than the others."""
    data = run(tmp_path, {**COMPAS, "first_repetition": 7, "folds": 5}, 10)
    n = len(data.label)
    assert (data.repetitions, data.test.shape[1]) == (10, n // 5)
    for partition in (slice(5), slice(5, 10)):
        assert len(np.unique(data.test[partition])) == n - n % 5
    for train, test in zip(data.train, data.test, strict=True):
        assert sorted([*train, *test]) == list(range(n))
    assert sorted(data.test[0]) != sorted(data.test[5])
    later = run(tmp_path / "later", {**COMPAS, "first_repetition": 8, "folds": 5}, 5)
    assert (later.test == data.test[5:]).all()


@pytest.mark.parametrize("name", ["adult", "compas"])
def test_each_choice_of_rows_has_its_own_twin(name: str, tmp_path: Path) -> None:
    for rows, files in plugins.load("dataset", name).TWINS.items():
        data = run(tmp_path, {**COMPAS, "name": f"{name}_{rows}", "kind": name, "rows": rows}, 1)
        (twin,) = (io.load_rows(TWINS / file) for file in files)
        assert (data.origin, len(data.label)) == ("twin", len(twin))
        assert tuple(data.checksums) == files
        assert (data.features.shape[1] == {"adult": 100, "compas": 10}[name]) == (rows == "all")
        share = data.protected["sex"].mean() if name == "compas" else 1 - data.protected["sex"].mean()
        assert share == pytest.approx((twin["sex"] == "Female").mean())


def test_official_files_from_a_mirror_are_prepared(
    official: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATA_MIRROR", str(official("compas").parent))
    data = run(tmp_path, COMPAS, source="official")
    assert (data.origin, len(data.label)) == ("official", 5_278)
    assert sum(data.dropped.values()) > 0
    assert all(len(digest) == 64 for digest in data.checksums.values())
