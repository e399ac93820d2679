"""A job of several tasks: what is done stays, what failed is named, and what changed is done again."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairness_audits.errors import InvalidInput
from pipeline import io
from pipeline.values import MissingData
from pipeline.workflow import launch

RECORD = "results/jobs/record.json"


def echo(config: dict[str, Any], *_: object) -> MissingData:
    """A stage whose result is its configuration, and which fails if this says so."""
    if config.get("fails"):
        raise ValueError("it cannot")
    if config.get("refuses"):
        raise InvalidInput("no such thing")
    print("ran", config["name"])
    return MissingData(json.dumps(config), "")


def task(name: str, reads: str = "", code: str = "1", **config: Any) -> dict[str, Any]:
    inputs = {"classifier": [f"{reads}.npz"] if reads else []}
    told = {
        "config": json.dumps({"name": name, **config}),
        "code": code,
        "threads": 1,
        "benchmark": f"times/{name}.tsv",
    }
    return {"stage": "echo", "output": f"{name}.npz", "inputs": inputs, **told}


@pytest.fixture(autouse=True)
def _stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(launch.FRESH, raising=False)
    monkeypatch.setitem(sys.modules, "pipeline.stages.echo", SimpleNamespace(make=echo))


def ran(capsys: pytest.CaptureFixture[str], *tasks: dict[str, Any]) -> list[str]:
    """The files that a job made anew."""
    launch.main(RECORD, tasks)
    return [line.split()[1] for line in capsys.readouterr().out.splitlines() if line[:4] == "ran "]


def test_a_job_writes_its_record_when_all_is_done_and_the_time_of_each_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert ran(capsys, task("model"), task("audit", reads="model")) == ["model", "audit"]
    files = {f"{name}.npz": io.checksum(f"{name}.npz") for name in ("model", "audit")}
    assert json.loads(Path(RECORD).read_text()) == {"files": files, "repaired": 0}
    for name in ("model", "audit"):
        header, row = Path(f"times/{name}.tsv").read_text().splitlines()
        times = dict(zip(header.split("\t"), row.split("\t"), strict=True))
        assert 0 <= float(times["cpu_time"]) < 5


def test_a_job_of_one_task_leaves_nothing_but_its_file(capsys: pytest.CaptureFixture[str]) -> None:
    launch.main("model.npz", [task("model")])
    assert {path.name for path in Path().iterdir()} == {"model.npz", "times"}


@pytest.mark.parametrize("trouble", [{"fails": True}, {"refuses": True}])
def test_a_failed_task_is_named_and_takes_with_it_only_what_needs_it(
    trouble: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    wrong, others = (
        task("bad", **trouble),
        [task("bad_audit", reads="bad"), task("model"), task("audit", reads="model")],
    )
    with pytest.raises(SystemExit) as caught:
        launch.main(RECORD, [wrong, *others])
    for name, expected in (("bad", True), ("bad_audit", True), ("model", False), ("audit", False)):
        assert (f"\n{name}.npz: " in str(caught.value)) == expected
        assert Path(f"{name}.npz").exists() != expected
    assert not Path(RECORD).exists()
    capsys.readouterr()
    assert ran(capsys, task("bad"), *others) == ["bad", "bad_audit"], "what was done is not done again"


def test_a_changed_task_runs_again_with_what_reads_its_result_and_no_other(capsys: pytest.CaptureFixture[str]) -> None:
    tasks = [task("model", rate=1), task("other"), task("audit", reads="model"), task("other_audit", reads="other")]
    assert len(ran(capsys, *tasks)) == 4
    assert ran(capsys, *tasks) == []
    assert ran(capsys, task("model", rate=2), *tasks[1:]) == ["model", "audit"]
    assert ran(capsys, task("model", rate=2), *tasks[1:3], task("other_audit", reads="other", code="2")) == [
        "other_audit"
    ]


def test_a_damaged_file_is_made_again_and_a_forced_job_makes_all(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks = [task("model"), task("audit", reads="model")]
    ran(capsys, *tasks)
    Path("model.npz").write_bytes(Path("model.npz").read_bytes()[:-30])
    assert ran(capsys, *tasks) == ["model"], "its content is the same, so the audit stays"
    monkeypatch.setenv(launch.FRESH, "yes")
    assert ran(capsys, *tasks) == ["model", "audit"]
