"""What cannot be had is known before anything runs, and said as if every stage had passed it on."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline import io
from pipeline.stages import absent, audit, prepare, train
from pipeline.workflow.availability import standing
from pipeline.workflow.config import Workflow


@pytest.fixture(autouse=True)
def _no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATA_MIRROR", raising=False)


@pytest.mark.parametrize(
    ("kind", "source", "expected"),
    [
        ("adult", "auto", "there"),
        ("digits", "auto", "there"),
        ("cifar10", "auto", "undecided"),
        ("utkface", "auto", "absent"),
        ("adience", "auto", "absent"),
        ("cifar10", "twin", "absent"),
        ("digits", "twin", "there"),
        ("utkface", "official", "there"),
    ],
)
def test_without_files_a_dataset_is_absent_that_nobody_offers_for_download(
    kind: str, source: str, expected: str, tmp_path: Path
) -> None:
    assert standing(kind, source, tmp_path / kind) == expected


def test_a_file_in_the_raw_folder_or_the_mirror_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, mirror = tmp_path / "raw" / "utkface", tmp_path / "mirror"
    (mirror / "utkface").mkdir(parents=True)
    monkeypatch.setenv("DATA_MIRROR", str(mirror))
    assert standing("utkface", "auto", raw) == "absent"
    (mirror / "utkface" / "utkface.tar").touch()
    assert standing("utkface", "auto", raw) == "there"
    monkeypatch.setenv("DATA_MIRROR", "https://example.org/data")
    assert standing("utkface", "auto", raw) == "undecided"
    raw.mkdir(parents=True)
    (raw / "utkface.tar").touch()
    assert standing("utkface", "auto", raw) == "there"


@pytest.mark.parametrize(("origin", "expected"), [("absent", "absent"), ("official", "there"), ("lossy", "there")])
def test_what_was_fetched_decides(origin: str, expected: str, tmp_path: Path) -> None:
    io.save_json({"origin": origin}, tmp_path / "manifest.json")
    assert standing("cifar10", "auto", tmp_path) == expected


def entry(workflow: Workflow) -> dict[str, str]:
    return workflow.plan.not_run("robustness_bias")[0]


def test_an_audit_that_is_not_run_says_what_the_stages_would_have_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_ABSENT", "utkface")
    workflow = Workflow(scale="smoke", studies=["robustness_bias"])
    said = entry(workflow)
    io.save_json({"dataset": "utkface", "origin": "absent", "files": [], "reason": "get it there"}, said["manifest"])
    absent.main(["--audits", json.dumps([said])])
    point = next(p for p in workflow.points("robustness_bias") if workflow.audit_file(p) == said["output"])
    section = json.dumps(workflow.asked("prepare", *workflow.place(point, "prepare")))
    prepare.main(["--config", section, "--manifest", said["manifest"], "--output", "d.npz"])
    section = json.dumps(workflow.asked("train", *workflow.place(point, "train")))
    train.main(["--config", section, "--dataset", "d.npz", "--output", "c.npz"])
    section = json.dumps(workflow.asked("audit", *workflow.place(point)))
    audit.main(["--config", section, "--dataset", "d.npz", "--classifier", "c.npz", "--output", "a.npz"])
    assert io.load_if_present(said["output"]) == io.load_if_present("a.npz")


def test_data_that_came_to_hand_after_all_are_not_called_absent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PIPELINE_ABSENT", "utkface")
    said = entry(Workflow(scale="smoke", studies=["robustness_bias"]))
    io.save_json({"dataset": "utkface", "origin": "official", "files": [], "reason": None}, said["manifest"])
    with pytest.raises(SystemExit, match="utkface has come to hand since this run was planned: give the same command"):
        absent.main(["--audits", json.dumps([said])])
    assert not Path(said["output"]).exists()
