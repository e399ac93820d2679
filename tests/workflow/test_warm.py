"""Where a job runs: forked from a process that has the libraries imported, or by itself."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from pipeline.workflow import launch, warm
from pipeline.workflow.conf import CONF
from tests.waiting import until


def project(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder in which a stage prints, waits or fails, and the environment of its jobs."""
    monkeypatch.chdir(folder)
    stage = folder / "pipeline" / "stages" / "echo.py"
    stage.parent.mkdir(parents=True)
    stage.write_text(ECHO)
    for package in ("pipeline", "pipeline/stages"):
        (folder / package / "__init__.py").write_text(f"__path__.append({str(CONF.parent / package)!r})\n")
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{CONF.parent}", "OMP_NUM_THREADS": "1"}


ECHO = """
import os, sys, time
def main(arguments):
    print(os.getppid(), "torch" in sys.modules, os.environ["OMP_NUM_THREADS"], flush=True)
    if arguments == ["fail"]:
        sys.exit("no")
    if arguments == ["wait"]:
        open("waiting", "w").write(str(os.getpid()))
        time.sleep(600)
"""


def launched(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pipeline.workflow.launch", "times/echo.tsv", "echo", *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def warmed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, str]]:
    """The environment of jobs where a process with the libraries imported is at work; it ends with the test."""
    environment = project(tmp_path, monkeypatch)
    monkeypatch.setattr(warm, "_started", [])
    warm.start(environment)
    (server,) = warm._started
    until((tmp_path / environment[launch.ADDRESS]).exists)
    yield environment
    assert server.stdin
    server.stdin.close()
    server.wait(20)
    assert not list((tmp_path / warm.FOLDER).iterdir())


def test_a_job_runs_where_the_libraries_are_and_says_how_it_ended(warmed: dict[str, str]) -> None:
    """What it prints and its status are those of its own process, and its time is written down."""
    (server,) = warm._started
    done, failed = launched(warmed), launched(warmed, "fail")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{server.pid} True 1\n", "")
    assert (failed.returncode, failed.stderr) == (1, "no\n")
    header, row = Path("times/echo.tsv").read_text().splitlines()
    times = dict(zip(header.split("\t"), row.split("\t"), strict=True))
    assert 0 <= float(times["cpu_time"]) < 5
    # A library that is imported already does not learn of more threads.
    assert launched({**warmed, "OMP_NUM_THREADS": "2"}).stdout == f"{os.getpid()} False 2\n"


@pytest.mark.parametrize("whose", ["client", "run"])
def test_a_job_ends_with_its_process_and_with_the_run(warmed: dict[str, str], whose: str) -> None:
    command = [sys.executable, "-m", "pipeline.workflow.launch", "times/echo.tsv", "echo", "wait"]
    with subprocess.Popen(command, env=warmed, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as client:
        until(lambda: Path("waiting").exists() and bool(Path("waiting").read_text()))
        job = psutil.Process(int(Path("waiting").read_text()))
        assert job.is_running()
        if whose == "client":
            client.kill()
        else:
            (server,) = warm._started
            server.kill()
            assert client.wait(20) == 1
            Path(warmed[launch.ADDRESS]).unlink()
        job.wait(20)
    assert not Path("times/echo.tsv").exists()


def test_without_such_a_process_a_job_runs_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = project(tmp_path, monkeypatch)
    for address in ({}, {launch.ADDRESS: "gone.socket"}):
        done = launched({**environment, **address})
        assert (done.returncode, done.stdout) == (0, f"{os.getpid()} False 1\n"), done.stderr
