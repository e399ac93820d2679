"""Jobs of one process, the code behind them, and runs that are resumed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.workflow import batch
from pipeline.workflow.code_closure import modules_behind
from pipeline.workflow.resume import at_work, is_snakemake, main


class Stage(ModuleType):
    """A stage that copies its input, and fails where that is "bad"."""

    def __init__(self) -> None:
        super().__init__("pipeline.stages.copying")
        self.made: list[str] = []

    def main(self, arguments: list[str]) -> None:
        _, source, _, output = arguments
        text = Path(source).read_text()
        if text == "bad":
            sys.exit("cannot be copied")
        Path(output).write_text(text)
        self.made.append(output)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Stage:
    stage = Stage()
    monkeypatch.setitem(sys.modules, stage.__name__, stage)
    monkeypatch.chdir(tmp_path)
    for name in "abc":
        Path(name).write_text(name)
    return stage


JOBS = [["--input", name, "--output", f"{name}@x=[1].txt"] for name in "abc"]


def outputs() -> dict[str, str]:
    return {path.name: path.read_text() for path in Path().iterdir() if path.suffix == ".txt"}


def test_all_outputs_are_put_in_their_places_and_nothing_else_is_left(stage: Stage) -> None:
    batch.run("copying", JOBS)
    assert outputs() == {f"{name}@x=[1].txt": name for name in "abc"}


def test_after_a_failure_what_was_made_is_kept_and_not_made_again(stage: Stage) -> None:
    Path("c").write_text("bad")
    with pytest.raises(SystemExit, match="cannot be copied"):
        batch.run("copying", JOBS)
    assert not [name for name in outputs() if not name.startswith(".")]
    assert len(stage.made) == 2
    Path("c").write_text("c")
    batch.run("copying", JOBS)
    assert stage.made[2:] == ["c@x=[1].txt"]
    assert outputs() == {f"{name}@x=[1].txt": name for name in "abc"}


@pytest.mark.parametrize("changed", ["input", "code", "arguments"])
def test_what_would_be_made_of_something_else_now_is_made_again(stage: Stage, changed: str) -> None:
    Path("code.py").write_text("1")
    jobs = [[*job] for job in JOBS]
    Path("c").write_text("bad")
    with pytest.raises(SystemExit):
        batch.run("copying", jobs, ["code.py"])
    Path("c").write_text("c")
    if changed == "input":
        Path("a").write_text("another")
    elif changed == "code":
        Path("code.py").write_text("2")
    else:
        Path("a2").write_text("a")
        jobs[0][1] = "a2"
    batch.run("copying", jobs, ["code.py"])
    assert stage.made[2:].count("a@x=[1].txt") == 1
    assert ("b@x=[1].txt" in stage.made[2:]) == (changed == "code")
    assert set(outputs()) == {f"{name}@x=[1].txt" for name in "abc"}


def test_jobs_are_read_from_standard_input(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Path("jobs.json").write_text(json.dumps(JOBS[:1]))
    with Path("jobs.json").open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        batch.main(["copying", "--code", "a"])
    assert stage.made == ["a@x=[1].txt"]


# The source files behind a job are exactly those that its modules import, at any depth.


def tree(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root.joinpath(*name.split("__"))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".py").write_text(text)
    return root


def names(root: Path, module: str) -> list[str]:
    return [str(path.relative_to(root)) for path in modules_behind([module], root)]


def test_imports_are_followed_at_any_depth_and_inside_functions(tmp_path: Path) -> None:
    tree(
        tmp_path,
        house__a="import numpy\nfrom house import b\n",
        house__b="def late():\n    from house.c import thing\n    return thing\n",
        house__c="thing = 1\n",
        house__unrelated="import house.a\n",
    )
    assert names(tmp_path, "house.a") == ["house/a.py", "house/b.py", "house/c.py"]


def test_packages_and_cycles_are_closed(tmp_path: Path) -> None:
    tree(tmp_path, house__pack____init__="from house.d import x\n", house__d="import house.pack\nx = 1\n")
    (tmp_path / "house" / "pack").mkdir(exist_ok=True)
    (tmp_path / "house" / "pack" / "__init__.py").write_text("from house.d import x\n")
    assert names(tmp_path, "house.d") == ["house/d.py", "house/pack/__init__.py"]


def test_foreign_packages_are_left_out(tmp_path: Path) -> None:
    tree(tmp_path, house__a="import torch\nimport other.a\n", other__a="x = 1\n")
    assert names(tmp_path, "house.a") == ["house/a.py"]


def test_imports_for_type_checkers_alone_are_left_out(tmp_path: Path) -> None:
    tree(
        tmp_path,
        house__a="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.b import x\nimport house.c\n",
        house__b="x = 1\n",
        house__c="",
    )
    assert names(tmp_path, "house.a") == ["house/a.py", "house/c.py"]


# A stale lock is removed, a held one is respected, and what is no Snakemake is not taken for one.


SNAKEFILE = "rule all:\n    output: 'made.txt'\n    shell: 'touch started; sleep 3; touch {output}'\n"


@pytest.mark.parametrize(
    "command",
    [
        ["/env/bin/python3", "/env/bin/snakemake", "--cores", "2"],
        ["snakemake", "-n"],
        ["python", "-m", "snakemake", "--cores", "1"],
    ],
)
def test_snakemake_is_recognised(command: list[str]) -> None:
    assert is_snakemake(command)


@pytest.mark.parametrize("command", [[], ["vim", "Snakefile"], ["python", "-m", "pytest", "snakemake"], ["make"]])
def test_other_programs_are_not(command: list[str]) -> None:
    assert not is_snakemake(command)


def test_without_a_lock_there_is_nothing_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(tmp_path) == 0
    assert capsys.readouterr().err == ""


def test_files_made_before_the_clock_went_back_are_dated_now_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Else Snakemake would end each job on them: what it makes now is older than what it is made of."""
    (tmp_path / "results").mkdir()
    now = time.time()
    for name, when in {"past": -9.0, "later": 7200.0, "sooner": 3600.0, "another machine": 5.0}.items():
        (tmp_path / "results" / name).touch()
        os.utime(tmp_path / "results" / name, (now + when, now + when))
    assert main(tmp_path) == 0
    assert f"The clock went back: 2 files of the future, {tmp_path}/results/sooner first" in capsys.readouterr().err
    past, sooner, later = ((tmp_path / "results" / name).stat().st_mtime_ns for name in ("past", "sooner", "later"))
    assert past < sooner <= later <= time.time_ns()
    assert main(tmp_path) == 0
    assert capsys.readouterr().err == ""


def test_what_a_killed_process_had_half_written_is_removed_and_what_another_writes_is_left(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    names = (
        f".rows.{gone.pid}.part.parquet",
        f"..m.kept.{gone.pid}.part.npz",
        f".rows.{os.getpid()}.part.parquet",
        "x.part",
    )
    (tmp_path / "results").mkdir()
    for name in names:
        (tmp_path / "results" / name).touch()
    assert main(tmp_path) == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} == set(names[2:])


def test_a_run_at_work_is_respected_and_a_killed_one_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete", "--quiet"]
    with subprocess.Popen(snakemake, cwd=tmp_path, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert list(at_work(tmp_path)) == [process.pid]
        assert main(tmp_path) == 1
        assert f"already works in {tmp_path} (process {process.pid})" in capsys.readouterr().err
        process.kill()
    assert subprocess.run(snakemake, cwd=tmp_path, check=False, capture_output=True).returncode != 0
    assert main(tmp_path) == 0
    assert "interrupted" in capsys.readouterr().err
    assert subprocess.run(snakemake, cwd=tmp_path, check=False, env=dict(os.environ)).returncode == 0
    assert (tmp_path / "made.txt").exists()
