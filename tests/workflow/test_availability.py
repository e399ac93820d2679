"""Data that cannot be had are known before anything runs; a run of Hydra's own is one repetition."""

import json
from pathlib import Path

import numpy as np
import pytest
from omegaconf import OmegaConf

from fairness_audits.files import save_json
from fairness_audits.seeds import generators
from fairness_audits.values import Dataset
from pipeline import io
from pipeline.jobs import Run
from pipeline.stages import audit, prepare, train
from pipeline.stages.prepare import check, prepared
from pipeline.stages.report import benchmarks
from pipeline.workflow import availability, multirun, plugins
from pipeline.workflow.availability import check_mirror, status
from pipeline.workflow.conf import Conf
from pipeline.workflow.launch import Task
from pipeline.workflow.points import Grids, Point
from tests.builders import dataset, image_dataset
from tests.errors import invalid


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
    assert status(kind, source, tmp_path / kind) == expected


@pytest.mark.parametrize("mirror", ["mirrro", "http://127.0.0.1:9/data", "file:/data"])
def test_a_mirror_that_is_not_there_is_refused(mirror: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with invalid(option="DATA_MIRROR"):
        check_mirror({"DATA_MIRROR": mirror}, "auto")
    with pytest.raises(SystemExit, match="DATA_MIRROR"):
        availability.main({"DATA_MIRROR": mirror})
    # Twins need no mirror.
    check_mirror({"DATA_MIRROR": mirror}, "twin")
    Path("mirrro").mkdir()
    check_mirror({"DATA_MIRROR": "mirrro"}, "official")


def test_a_run_needs_a_core() -> None:
    with invalid(option="cores"):
        Run().check(0, {})


def splits(train: list[int], test: list[int], *names: str) -> Dataset:
    """Four people with these features, once split."""
    label = np.array([0, 1, 0, 1])
    rows = np.array([train]), np.array([test])
    return dataset(np.zeros((4, len(names))), label, {"sex": label}, *rows, feature_names=names)


def test_a_data_set_whose_splits_overlap_or_whose_features_share_a_name_is_refused() -> None:
    check(splits([0, 1], [2, 3], "a", "b"))
    with invalid(source="toy", row=1):
        check(splits([0, 1], [3, 1], "a", "b"))
    with invalid(source="toy", column="b"):
        check(splits([0, 1], [2, 3], "a", "b", "b"))
    images = {"class": np.array([0, 1, 0, 1])}
    with invalid(source="toy", row=2):
        check(image_dataset(np.zeros((4, 1, 2, 2)), images, {"class": ("x", "y")}, 3, test=np.array([[2, 3]])))


def test_the_default_profile_is_a_file_and_goes_on_after_a_failure() -> None:
    profile = Path("profiles", "default", "config.yaml")
    assert not any(path.is_symlink() for path in (profile, *profile.parents))
    assert "keep-going: true" in profile.read_text().splitlines()


def test_a_file_in_the_raw_folder_or_the_mirror_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    raw, mirror = tmp_path / "raw" / "utkface", tmp_path / "mirror"
    (mirror / "utkface").mkdir(parents=True)
    monkeypatch.setenv("DATA_MIRROR", str(mirror))
    assert status("utkface", "auto", raw) == "absent"
    (mirror / "utkface" / "utkface.tar").touch()
    assert status("utkface", "auto", raw) == "there"
    monkeypatch.setenv("DATA_MIRROR", "https://example.org/data")
    assert status("utkface", "auto", raw) == "undecided"
    raw.mkdir(parents=True)
    (raw / "utkface.tar").touch()
    assert status("utkface", "auto", raw) == "there"


@pytest.mark.parametrize(("origin", "expected"), [("absent", "absent"), ("official", "there"), ("re-encoded", "there")])
def test_what_was_fetched_decides(origin: str, expected: str, tmp_path: Path) -> None:
    save_json({"origin": origin}, tmp_path / "manifest.json")
    assert status("cifar10", "auto", tmp_path) == expected


def test_a_superseded_manifest_decides_nothing(tmp_path: Path) -> None:
    raw = tmp_path / "raw" / "utkface"
    raw.mkdir(parents=True)
    save_json({"origin": "absent"}, raw / "manifest.json")
    assert status("utkface", "auto", raw) == "absent"
    (raw / "utkface.tar").touch()
    assert status("utkface", "auto", raw) == "there"


def test_times_are_those_of_the_scale_and_of_what_belongs_to_none(tmp_path: Path) -> None:
    for name in ("fetch/adult", "small/audit/a", "huge/audit/a", "small/study/all"):
        path = tmp_path / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    found = benchmarks(tmp_path, "small")
    assert sorted(found) == [("audit", "small/audit/a"), ("fetch", "fetch/adult"), ("study", "small/study/all")]


def not_run(run: Run) -> tuple[Point, Task]:
    """The first audit of a data set that cannot be had, and its task."""
    point = next(p for p in run.points("robustness_bias") if not run.has_data(p))
    record = next(record for record, paths in run.records.items() if run.path("audit", point) in paths)
    names = dict(zip(("scale", "study", "dataset", "part"), record.removesuffix(".json").split("/")[2:], strict=True))
    task = next(task for task in run.job("audit", names).tasks if task.output == run.path("audit", point))
    assert task.stage == "absent"
    return point, task


def test_an_audit_that_is_not_run_says_what_the_stages_would_have_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Run(scale="smoke", studies=["robustness_bias"], absent=["utkface"])
    point, task = not_run(run)
    (manifest,) = task.inputs["manifest"]
    save_json({"dataset": "utkface", "origin": "absent", "files": [], "reason": "get it there"}, manifest)
    task.run()
    assert task.is_done()
    io.save(prepare.make(run.section("prepare", point), task.inputs), "d.npz")
    inputs = {"dataset": ["d.npz"], "classifier": ["c.npz"], "transport": []}
    io.save(train.make(run.section("train", point), inputs), "c.npz")
    assert audit.make(run.section("audit", point), inputs) == io.load_if_present(task.output)


def test_data_that_came_to_hand_are_not_called_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    _, task = not_run(Run(scale="smoke", studies=["robustness_bias"], absent=["utkface"]))
    save_json({"dataset": "utkface", "origin": "official", "files": [], "reason": None}, *task.inputs["manifest"])
    with invalid(source="utkface"):
        task.run()
    assert not Path(task.output).exists()


# A run of Hydra's own trains one repetition of the workflow, alone.


SETTINGS = {"dataset.train": 400, "dataset.test": 100}


@pytest.fixture
def fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    manifest: dict = {"dataset": "hiring", "origin": "simulated", "files": [], "reason": None}
    path = tmp_path / "data" / "raw" / "hiring" / "manifest.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(manifest))
    monkeypatch.setattr(multirun, "ROOT", tmp_path)
    return manifest


def test_seed_k_is_repetition_k_of_the_workflow(fetched: dict) -> None:
    grids = Grids(Conf(), "smoke")
    data = prepared(grids.resolve(Point("", "", "hiring", "", "", tuple(SETTINGS.items())))["dataset"], 3, fetched)
    section = grids.resolve(Point("", "", "hiring", "logistic", ""))["method"]
    module = plugins.load("method", section["kind"])
    rngs = generators("train", "hiring", "logistic", repetitions=3)
    every = module.fit(data, plugins.configure(module, section), rngs)
    for seed in (0, 2):
        one = multirun.trained("hiring", "logistic", "smoke", seed, SETTINGS)
        assert one.repetitions == 1
        for name, values in every.parameters.items():
            assert np.allclose(one.parameters[name][0], values[seed], rtol=1e-6), (seed, name)
    assert not np.allclose(every.parameters[name][0], every.parameters[name][2])


def test_data_that_were_not_fetched_are_asked_for_and_those_that_cannot_be_had_are_no_empty_classifier(
    fetched: dict, tmp_path: Path
) -> None:
    with invalid(option="dataset", remedy="Run `snakemake --cores 1 data/raw/compas/manifest.json`"):
        multirun.trained("compas", "logistic", "smoke", 0, {})
    with invalid(option="seed"):
        multirun.trained("hiring", "logistic", "smoke", -1, {})
    path = tmp_path / "data" / "raw" / "hiring" / "manifest.json"
    path.write_text(json.dumps({**fetched, "origin": "absent", "reason": "put it there"}))
    with invalid(option="dataset", remedy=""):
        multirun.trained("hiring", "logistic", "smoke", 0, {})


def test_the_command_line_may_set_what_training_reads_and_nothing_else() -> None:
    config = OmegaConf.create({"method": {"rate": 0.5}, "seed": 2})
    assert multirun.settings_of(config, ["method=sensr", "method.rate=0.5", "seed=2"]) == {"method.rate": 0.5}
    with invalid(option="audit.delta"):
        multirun.settings_of(config, ["audit.delta=2"])
