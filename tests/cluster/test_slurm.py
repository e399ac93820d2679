"""On a real Slurm: the same files as on one machine, and a way on from whatever ends a job (`make test-cluster`)."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import QUICK, SECONDS, SLURM, Project
from tests.waiting import until

LITTLE = "mem_mb: 2000, runtime: 30"
"""Enough for any job here."""

pytestmark = pytest.mark.workflow


@pytest.fixture(autouse=True)
def _nothing_left_behind(tmp_path: Path) -> Iterator[None]:
    """A test that fails leaves no job of its own to the next one."""
    yield
    for number, _, _ in queue(tmp_path):
        subprocess.run(["scancel", number], check=False)


def queue(folder: Path) -> list[list[str]]:
    """Number, state and comment (``rule_train_wildcards_...``) of the jobs that were sent from below a folder."""
    command = ["squeue", "--noheader", "--format=%i|%T|%k|%Z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    jobs = [line.split("|") for line in listed.splitlines()]
    return [job for *job, sent_from in jobs if Path(sent_from).is_relative_to(folder)]


def number(of: str, folder: Path) -> str:
    """The number of the job that trains the method ``of``; "" while there is none."""
    return next((number for number, _, comment in queue(folder) if comment.endswith(of)), "")


def node(state: str) -> None:
    subprocess.run(
        ["scontrol", "update", f"nodename={os.uname().nodename.split('.')[0]}", f"state={state}", "reason=test"],
        check=True,
    )


def reasons(printed: str) -> dict[str, str]:
    """Why each job failed, by the method that it trained."""
    return dict(re.findall(r"^FAILED  train (\w+) .*?: (.*)$", printed, re.MULTILINE))


def test_a_cluster_and_one_machine_give_the_same_bytes(project: Callable[..., Project], tmp_path: Path) -> None:
    here, there = project("plain"), Project(tmp_path / "there", "plain")
    here.method("plain", LITTLE)
    there.method("plain", f"{LITTLE}, gpu: 1")
    status, printed = here.run("--cores", "1")
    assert status == 0, printed
    status, printed = there.run(*SLURM, *QUICK)
    assert status == 0, printed
    assert "has been submitted with SLURM jobid" in printed
    assert any(name.endswith("summary.csv") for name in here.made())
    assert here.made() == there.made()
    assert not there.halves()
    (log,) = (there.folder / "results" / "logs" / "smoke" / "train").rglob("*.log")
    assert log.read_text().startswith("graphics card 0"), "it was asked for, and given"


def test_what_slurm_ends_is_accounted_for_and_continues_with_the_same_command(project: Callable[..., Project]) -> None:
    """One job is cancelled, one takes too long, one takes too much memory; a fourth is done all the same."""
    work = project("plain", "cancelled", "slow", "hungry")
    work.method("plain", LITTLE)
    work.method("cancelled", LITTLE, seconds=600)
    work.method("slow", "mem_mb: 2000, runtime: 1", seconds=600)
    work.method("hungry", "mem_mb: 700, runtime: 30", megabytes=1200, seconds=30)
    command = (*SLURM, *QUICK, "--retries", "0")
    process = work.start(*command, log=work.folder / "run.log")
    until(lambda: bool(number("cancelled", work.folder)), "the job to be cancelled is in the queue", SECONDS)
    subprocess.run(["scancel", number("cancelled", work.folder)], check=True)
    assert process.wait(900) == 1
    printed = (work.folder / "run.log").read_text()
    why = reasons(printed)
    assert set(why) == {"cancelled", "slow", "hungry"}, printed
    assert "CANCELLED" in why["cancelled"]
    assert "TIMEOUT" in why["slow"]
    assert "MEMORY" in why["hungry"].upper()
    assert "failed: train slow on simulated" in printed
    assert not work.halves()
    done = {name for name in work.made() if "/plain" in name or "prepared" in name}
    assert any(name.startswith("results/audits") for name in done)
    before = {name: (work.folder / name).stat().st_mtime_ns for name in done}
    (work.folder / "mended").touch()
    status, printed = work.run(*command)
    assert status == 0, printed
    assert {name: (work.folder / name).stat().st_mtime_ns for name in done} == before
    assert any(name.endswith("summary.csv") for name in work.made())


def test_a_job_that_ran_out_of_memory_is_tried_again_with_more(project: Callable[..., Project]) -> None:
    work = project("hungry")
    work.method("hungry", "mem_mb: 900, runtime: 30", megabytes=700, seconds=10)
    status, printed = work.run(*SLURM, *QUICK, "--retries", "2")
    assert status == 0, printed
    assert "FAILED  train hungry" in printed
    assert "Trying to restart job" in printed
    assert "done    train hungry" in printed


def test_a_job_whose_node_goes_away_is_waited_for(project: Callable[..., Project]) -> None:
    work = project("waiting")
    work.method("waiting", LITTLE, seconds=600)
    process = work.start(*SLURM, *QUICK, log=work.folder / "run.log")
    try:
        until((work.folder / "started").exists, "the training has started", SECONDS)
        node("down")
        waiting = ["PENDING"]
        until(lambda: [state for _, state, _ in queue(work.folder)] == waiting, "the job is queued again", SECONDS)
        (work.folder / "started").unlink()
        assert process.poll() is None
        assert not work.halves()
        (work.folder / "mended").touch()
    finally:
        node("resume")
    assert process.wait(900) == 0, (work.folder / "run.log").read_text()
    assert (work.folder / "started").exists(), "the training ran again"
    assert any(name.endswith("summary.csv") for name in work.made())
