"""Several outputs of one process: none is in its place before all are made, and none is made twice."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.workflow import batch


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
