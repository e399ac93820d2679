"""The fetch stage: official, twin or an error, and a manifest that says which and why."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pipeline.datasets.source import Source
from pipeline.stages import fetch
from pipeline.workflow import plugins

BODY = b"name,age\nann,3\n"
TWIN = Path(__file__).resolve().parents[2] / "data" / "twins" / "compas.json"


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
    digest = hashlib.sha256(BODY).hexdigest()
    source = Source("toy.csv", ("http://127.0.0.1:9/toy.csv",), digest, len(BODY), "none", "https://example.org")
    vars(module).update(SOURCES=(source,), TWINS={"": "compas.json"})
    monkeypatch.setattr(plugins, "load", lambda group, kind: module)
    monkeypatch.delenv("DATA_MIRROR", raising=False)
    return module


def run(raw: Path, source: str, name: str = "toy") -> dict[str, Any]:
    output = raw.parent / "manifest.json"
    fetch.main(["--dataset", name, "--source", source, "--raw", str(raw), "--output", str(output)])
    manifest: dict[str, Any] = json.loads(output.read_text())
    return manifest


@pytest.mark.parametrize("source", ["auto", "official"])
def test_official_files_from_the_mirror(
    toy: ModuleType, mirror: Path, raw: Path, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    original = mirror / "toy" / "toy.csv"
    original.write_bytes(BODY)
    file = {"path": str(raw / "toy.csv"), "sha256": hashlib.sha256(BODY).hexdigest(), "size": len(BODY)}
    assert run(raw, source) == {
        "dataset": "toy",
        "origin": "official",
        "files": [{**file, "place": str(original)}],
        "reason": None,
    }
    captured = capsys.readouterr()
    assert captured.out == f"toy: official ({original})\n"
    assert captured.err == ""


def test_auto_falls_back_to_the_twin_aloud(toy: ModuleType, raw: Path, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = run(raw, "auto")
    assert manifest["origin"] == "twin"
    (file,) = manifest["files"]
    assert Path(file["path"]).samefile(TWIN)
    assert file["sha256"] == hashlib.sha256(TWIN.read_bytes()).hexdigest()
    assert "http://127.0.0.1:9/toy.csv: cannot be reached" in manifest["reason"]
    captured = capsys.readouterr()
    assert captured.out == "toy: twin (data/twins/compas.json)\n"
    for part in ("WARNING: toy is a SYNTHETIC TWIN", "get the file from https://example.org", str(raw), "DATA_MIRROR"):
        assert part in captured.err


def test_a_twin_that_was_asked_for_is_no_cause_for_alarm(
    toy: ModuleType, mirror: Path, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (mirror / "toy" / "toy.csv").write_bytes(BODY)
    manifest = run(raw, "twin")
    assert (manifest["origin"], manifest["reason"]) == ("twin", "asked for (DATA_SOURCE=twin)")
    assert capsys.readouterr().err == ""
    assert not raw.exists()


def test_official_is_an_error_when_nobody_has_the_file(toy: ModuleType, raw: Path) -> None:
    with pytest.raises(SystemExit, match=r"fetch toy: toy\.csv of 'toy' is nowhere to be had"):
        run(raw, "official")
    assert not (raw.parent / "manifest.json").exists()


@pytest.mark.parametrize("source", ["auto", "official"])
@pytest.mark.parametrize("place", ["raw", "mirror"])
def test_a_corrupt_file_is_never_papered_over_with_a_twin(
    toy: ModuleType, mirror: Path, raw: Path, source: str, place: str
) -> None:
    folder = raw if place == "raw" else mirror / "toy"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "toy.csv").write_bytes(BODY.replace(b"3", b"4"))
    with pytest.raises(SystemExit, match=r"fetch toy: toy\.csv from .* is not the published file"):
        run(raw, source)
    assert not (raw.parent / "manifest.json").exists()


def test_without_a_twin_the_data_are_absent_aloud(
    toy: ModuleType, raw: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    del toy.TWINS
    for source, reason in (("auto", "nowhere to be had"), ("twin", r"asked for \(DATA_SOURCE=twin\)")):
        manifest = run(raw, source)
        assert (manifest["origin"], manifest["files"]) == ("absent", [])
        assert re.match(rf"toy has no twin and is made of toy\.csv\.\n(.|\n)*{reason}", manifest["reason"])
    assert "WARNING: toy is ABSENT in this run. What needs it is listed as not run." in capsys.readouterr().err


def test_a_lost_twin_model_is_named(toy: ModuleType, raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TWINS", raw.parent)
    with pytest.raises(SystemExit, match=r"compas\.json is missing: restore it from the repository"):
        run(raw, "twin")


@pytest.mark.parametrize("source", ["auto", "official", "twin"])
def test_simulated_data_need_no_files(raw: Path, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    manifest = run(raw, source, name="simulated")
    assert manifest == {"dataset": "simulated", "origin": "simulated", "files": [], "reason": None}
    assert capsys.readouterr().out == "simulated: simulated (nothing to fetch, it is drawn)\n"


def test_an_unknown_dataset_is_named(raw: Path) -> None:
    with pytest.raises(SystemExit, match="fetch atlantis: dataset 'atlantis' has no module"):
        run(raw, "auto", name="atlantis")
