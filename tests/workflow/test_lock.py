"""One run at a time works in a folder; a killed one leaves no lock, and what it left unfinished is removed."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fairness_audits.files import UNFINISHED, written
from pipeline.workflow import lock
from pipeline.workflow.conf import CONF
from pipeline.workflow.lock import RECORD, main, take
from tests.errors import invalid
from tests.waiting import until

SNAKEFILE = """from pathlib import Path
from pipeline.workflow import invocation, lock

logger.addFilter(invocation.explained(list))

rule all:
    output: 'made.txt'
    shell: 'touch started; while [ ! -e go ]; do sleep 0.1; done; touch {output}'
rule other:
    output: 'other.txt'
    shell: 'touch {output}'
onstart:
    lock.take(Path.cwd())
"""


def left(folder: Path, **changed: str) -> dict[str, str]:
    """Leave the record of a killed run of this host, with these changes."""
    with take(folder) as file:
        file.seek(0)
        record = {**json.load(file), "user": "ada", "process": "12", **changed}
    (folder / RECORD).write_text(json.dumps(record))
    return record


def test_a_second_run_is_refused_with_the_name_of_the_first_until_that_ends(tmp_path: Path) -> None:
    with take(tmp_path), invalid(source=tmp_path.name) as refused:
        take(tmp_path, forget=True)
    assert f"process {os.getpid()}" in str(refused.value)
    take(tmp_path).close()


def test_a_run_that_ended_by_itself_leaves_no_record_and_a_killed_one_leaves_no_lock(tmp_path: Path) -> None:
    lock.release(take(tmp_path))
    assert (tmp_path / RECORD).read_text() == ""
    left(tmp_path)
    take(tmp_path).close()


@pytest.mark.parametrize("changed", [{"host": "other"}, {"boot": "other"}, {}])
def test_a_container_of_this_machine_and_this_host_after_a_restart_see_each_others_locks(
    changed: dict[str, str], tmp_path: Path
) -> None:
    if sys.platform == "linux" or "host" not in changed:
        left(tmp_path, **changed)
        take(tmp_path).close()


def test_a_killed_run_of_another_host_is_respected_until_a_person_unlocks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    left(tmp_path, host="node7", boot="other")
    with invalid(source=tmp_path.name) as refused:
        take(tmp_path)
    assert "ada on node7, process 12" in str(refused.value)
    assert "make unlock" in str(refused.value)
    assert main(tmp_path) == 1
    assert "node7" in capsys.readouterr().err
    assert main(tmp_path, forget=True) == main(tmp_path) == 0


def test_a_file_system_without_locks_leaves_the_judgement_to_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unsupported(*_: object) -> None:
        raise OSError("No locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)
    lock.release(take(tmp_path))
    take(tmp_path).close()
    with invalid(source=tmp_path.name):
        take(tmp_path)


def test_a_job_that_a_killed_run_left_behind_counts_as_a_run(tmp_path: Path) -> None:
    left(tmp_path)
    program = "from pipeline.workflow import lock; lock.join(); print(1, flush=True); import time; time.sleep(60)"
    told: dict[str, Any] = {"env": {**os.environ, "PYTHONPATH": str(CONF.parent)}, "cwd": tmp_path, "text": True}
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, **told) as job:
        assert job.stdout is not None
        assert job.stdout.readline() == "1\n"
        with invalid(source=tmp_path.name):
            take(tmp_path)
        job.kill()
    take(tmp_path).close()


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


def test_what_a_killed_job_had_half_written_is_removed_and_nothing_else(tmp_path: Path) -> None:
    kept = ["x.part", ".rows.12.part.csv", "hydra/.rows.0123abcd.part.csv"]
    (tmp_path / "results" / "hydra").mkdir(parents=True)
    for name in (".rows.0123abcd.part.parquet", "..m.kept.0123abcd.part.npz", *kept):
        (tmp_path / "results" / name).touch()
    with take(tmp_path):
        assert main(tmp_path) == 1, "of an active run nothing is removed"
        assert len(list((tmp_path / "results").iterdir())) == 5
    assert main(tmp_path) == 0
    found = {path for path in (tmp_path / "results").rglob("*") if path.is_file()}
    assert found == {tmp_path / "results" / name for name in kept}
    with written(tmp_path / "results" / "rows.csv") as temporary:
        temporary.touch()
        assert UNFINISHED.fullmatch(temporary.name)


@pytest.mark.slow
def test_a_run_at_work_is_respected_and_a_killed_one_continues(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    snakemake = [sys.executable, "-m", "snakemake", "--cores", "1", "--nolock", "--rerun-incomplete", "--quiet"]
    environment = os.environ | {"PYTHONPATH": str(CONF.parent)}
    told: dict[str, Any] = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
    with subprocess.Popen(snakemake, cwd=tmp_path, env=environment, stderr=subprocess.PIPE) as running:
        until((tmp_path / "started").exists)
        for target in ("all", "other.txt"):
            refused = subprocess.run([*snakemake, "--", target], check=False, **told)
            assert refused.returncode == 1
            assert f"process {running.pid}, since" in refused.stderr
            assert not any(word in refused.stderr for word in ("Traceback", "unlock"))
        for asked in ("-n", "--summary", "--rulegraph"):
            subprocess.run([*snakemake, asked], check=True, **told)
        running.kill()
    (tmp_path / "go").touch()
    assert main(tmp_path) == 0
    assert subprocess.run(snakemake, check=False, **told).returncode == 0
    assert (tmp_path / "made.txt").exists()
    assert (tmp_path / RECORD).read_text() == ""
