"""A lock whose owner has ended is removed, any other is respected, and what is no Snakemake is not taken for one."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fairness_audits import process
from fairness_audits.files import written
from fairness_audits.process import Process
from pipeline.workflow import refusals, resume
from pipeline.workflow.conf import CONF
from pipeline.workflow.resume import HALF, LOCKS, OWNERS, at_work, is_snakemake, main
from tests.waiting import until

SNAKEFILE = """from pathlib import Path
from pipeline.workflow import refusals, resume

logger.addFilter(refusals.explained(list))
if not workflow.output_settings.dryrun:
    resume.record(Path.cwd())

rule all:
    output: 'made.txt'
    shell: 'touch started; while [ ! -e go ]; do sleep 0.1; done; touch {output}'
"""


@pytest.mark.parametrize(
    "command", ["/env/bin/python3 /env/bin/snakemake --cores 2", "snakemake -n", "python -m snakemake --cores 1"]
)
def test_snakemake_is_recognised_and_other_programs_are_not(command: str) -> None:
    assert is_snakemake(command.split())
    for other in ("", "vim Snakefile", "python -m pytest snakemake", "make"):
        assert not is_snakemake(other.split())


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
    assert f"2 files have dates in the future (first: {tmp_path}/results/sooner)" in capsys.readouterr().err
    past, sooner, later = ((tmp_path / "results" / name).stat().st_mtime_ns for name in ("past", "sooner", "later"))
    assert past < sooner <= later <= time.time_ns()
    assert main(tmp_path) == 0
    assert capsys.readouterr().err == ""


@pytest.fixture
def ended() -> Process:
    """A process of this machine that has ended."""
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    return replace(Process.this(), number=gone.pid)


def strangers() -> list[Process]:
    """Processes of which nothing can be seen from here: of another machine, and of containers."""
    this = Process.this()
    return [
        replace(this, machine="0" * 8),
        replace(this, namespace=1),
        replace(this, namespace=1, boot="0" * 8),
    ]  # fmt: skip


def test_a_process_is_at_work_until_it_is_known_to_have_ended(ended: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    this = Process.this()
    assert Process.named(this.name) == this
    assert Process.named("12") is None
    assert this.state == "at work"
    assert ended.state == "ended"
    assert {one.state for one in strangers()} == {"unknown"}
    if sys.platform == "linux":
        assert replace(this, started=this.started + 1).state == "ended", "another one has its number now"
        assert replace(this, number=1, started=0).state == "at work", "another user's"
    # The machine has been started again, unless all this is in a container.
    monkeypatch.setattr(process, "_here", lambda: (this.machine, "f" * 8, process.WHOLE_MACHINE))
    assert replace(this, namespace=process.WHOLE_MACHINE).state == "ended"
    assert replace(this, namespace=1).state == "unknown"


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_killed_process_that_its_parent_has_not_asked_for_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as child:
        number = child.pid
        known = replace(Process.this(), number=number, started=process._state(number)[1])
        assert known.state == "at work"
        child.kill()
        os.waitid(os.P_PID, number, os.WEXITED | os.WNOWAIT)
        assert known.state == "ended"


def test_what_a_process_that_has_ended_had_half_written_is_removed_and_nothing_else(
    tmp_path: Path, ended: Process
) -> None:
    others = [Process.this(), *strangers()]
    names = [f".rows.{ended.name}.part.parquet", f"..m.kept.{ended.name}.part.npz"]
    kept = [*(f".rows.{one.name}.part.parquet" for one in others), f".rows.{ended.number}.part.csv", "x.part"]
    (tmp_path / "results").mkdir()
    for name in (*names, *kept):
        (tmp_path / "results" / name).touch()
    assert main(tmp_path) == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} == set(kept)
    with written(tmp_path / "results" / "rows.csv") as temporary:
        temporary.touch()
        assert (match := HALF.fullmatch(temporary.name))
        assert Process.named(match[1]) == Process.this()


def locked(folder: Path, *owners: Process) -> Path:
    """A lock as Snakemake leaves it, and records of these processes."""
    lock = folder / LOCKS / "0.input.lock"
    for path in (lock, *(folder / OWNERS / f"{one.name}.json" for one in owners)):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"user": "ada", "host": "node7", "since": "noon"}))
    return lock


def test_the_lock_of_a_process_that_has_ended_is_removed_with_its_record(tmp_path: Path, ended: Process) -> None:
    lock = locked(tmp_path, ended, replace(ended, namespace=ended.namespace, started=7))
    assert main(tmp_path) == 0
    assert not lock.exists()
    assert not [*(tmp_path / OWNERS).iterdir()]


@pytest.mark.parametrize("which", [0, 1, 2, "this", "none"])
def test_the_lock_of_any_other_process_is_left_and_its_owner_is_named(
    tmp_path: Path, ended: Process, capsys: pytest.CaptureFixture[str], which: int | str
) -> None:
    owner = Process.this() if which == "this" else None if which == "none" else strangers()[int(which)]
    # Another run that has ended gives nobody the right to the lock.
    lock = locked(tmp_path, *([owner, ended] if owner else []))
    assert main(tmp_path) == 1
    told = capsys.readouterr().err
    assert lock.exists()
    if owner:
        assert f"ada on node7, process {owner.number}, since noon" in told
    assert ("make unlock" in told) == (which != "this")
    # A person says that it has ended; of one that is at work nobody is believed.
    assert main(tmp_path, unlock=True) == int(which == "this")
    assert lock.exists() == (which == "this")


def test_a_refused_run_hears_of_the_run_at_work_and_of_an_interrupted_one(tmp_path: Path, ended: Process) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as other:
        locked(tmp_path, Process.this(), ended, replace(ended, number=other.pid, started=0))
        told = refusals.locked(tmp_path)
        other.kill()
    assert f"ada on node7, process {other.pid}, since noon" in told
    assert str(os.getpid()) not in told
    assert "unlock" not in told
    (tmp_path / OWNERS / f"{replace(ended, number=other.pid, started=0).name}.json").unlink()
    assert "make resume" in refusals.locked(tmp_path)


def test_a_lock_that_another_process_takes_over_is_left_to_it(
    tmp_path: Path, ended: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = locked(tmp_path, ended)
    taken = resume.take_over

    def overtaken(folder: Path, owners: Iterable[Path]) -> None:
        for path in owners:
            path.unlink()
        locked(folder, Process.this())
        taken(folder, owners)

    monkeypatch.setattr(resume, "take_over", overtaken)
    assert main(tmp_path) == 1
    assert lock.exists()


def test_a_record_goes_with_its_process_and_one_without_a_lock_says_nothing(tmp_path: Path) -> None:
    locked(tmp_path, *strangers()).unlink()
    program = "from pathlib import Path; from pipeline.workflow import resume; print(resume.record(Path.cwd()))"
    told: dict[str, Any] = {"env": os.environ | {"PYTHONPATH": str(CONF.parent)}, "cwd": tmp_path}
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, **told)
    assert Path(run.stdout.strip()).parent == tmp_path / OWNERS
    assert not [*(tmp_path / OWNERS).iterdir()]


@pytest.mark.slow
def test_a_run_at_work_is_respected_and_a_killed_one_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "--rerun-incomplete", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(CONF.parent)}
    with subprocess.Popen(snakemake, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as running:
        until((tmp_path / "started").exists)
        assert list(at_work(tmp_path)) == [running.pid]
        assert main(tmp_path) == 1
        assert f"process {running.pid}, since" in capsys.readouterr().err
        told: dict[str, Any] = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        refused = subprocess.run(snakemake, check=False, **told)
        assert refused.returncode == 1
        assert f"process {running.pid}, since" in refused.stderr
        assert "unlock" not in refused.stderr
        for asked in ("-n", "--summary", "--rulegraph"):
            subprocess.run([*snakemake, asked], check=True, **told)
        running.kill()
    assert subprocess.run(snakemake, cwd=tmp_path, env=environment, check=False, capture_output=True).returncode != 0
    (tmp_path / "go").touch()
    assert main(tmp_path) == 0
    assert "interrupted" in capsys.readouterr().err
    assert subprocess.run(snakemake, cwd=tmp_path, check=False, env=environment).returncode == 0
    assert (tmp_path / "made.txt").exists()
    assert not [*(tmp_path / OWNERS).iterdir()]


@pytest.mark.skipif(sys.platform != "linux", reason="reads the working directory of another process")
def test_a_job_that_a_killed_run_left_behind_counts_as_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    locked(tmp_path)
    words = [sys.executable, "-m", "pipeline.workflow.launch", "benchmark.txt", "slow"]
    home = tmp_path / "pipeline" / "workflow"
    home.mkdir(parents=True)
    for folder in (home.parent, home):
        (folder / "__init__.py").touch()
    (home / "launch.py").write_text("import time\nprint('started', flush=True)\ntime.sleep(60)\n")
    around = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(words, cwd=tmp_path, env=around, stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "started\n"
        assert at_work(tmp_path) == [job.pid]
        assert main(tmp_path) == 1
        assert f"a job, process {job.pid} on this machine" in capsys.readouterr().err
        job.kill()
    assert at_work(tmp_path) == []
