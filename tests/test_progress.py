"""The progress of a run: honest counts, and no error ever hidden."""

import os
import pty
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from snakemake_logger_plugin_progress import lines
from snakemake_logger_plugin_progress.run import Job, Run
from snakemake_logger_plugin_progress.screen import last_lines


def test_a_run_counts_each_job_once_though_it_fails_and_starts_again() -> None:
    job = Job("train sensr", began=0.0)
    failed = Run(began=0.0).plan({"train": 2, "total": 2}).start(1, job).fail(1)
    assert (failed.done, failed.failed) == (0, ("train sensr",))
    run = failed.start(1, job).finish(1)
    assert (run.done, run.total, run.failed) == (1, 2, ())
    assert not run.running


def test_a_cluster_is_not_taken_for_cores() -> None:
    run = Run(began=0.0, cores=50).plan({"train": 2})
    assert lines.plan(run) == "2 jobs on 50 cores: 2 train"
    assert lines.plan(replace(run, nodes=True)) == "2 jobs on a cluster, 50 at once: 2 train"


def test_a_finished_jobs_warnings_are_shown_whole_and_nothing_else_of_its_log() -> None:
    log = "fetching\n=====\nWARNING: a twin stands in\nfor the data.\n\nno network\n=====\ndone\n"
    shown = [line.strip() for line in lines.warnings({"fetch.log": log, "absent.log": None})]
    assert shown == ["WARNING: a twin stands in", "for the data.", "(fetch.log)"]
    assert lines.warnings({"quiet.log": "step 1\nnot a WARNING\n"}) == []


GROUP_LOG = """
Error in rule audit:
    message: None
    output: out/a.npz, out/a.txt
    log: a.log (check log file(s) for error details)
slurmstepd-n1: error: Exceeded job memory limit
slurmstepd: error: *** STEP 12.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT ***
    Error in rule train:
        output: out/b.npz
"""


def test_of_jobs_sent_together_the_one_that_went_wrong_is_told_from_those_it_took_along() -> None:
    """Snakemake repeats, indented, an error for each job of a group; only the first is of the job itself."""
    assert lines.in_error(GROUP_LOG) == {"out/a.npz", "out/a.txt"}
    assert lines.in_error("all went well") == set()


def test_what_a_scheduler_did_to_a_job_is_told_in_its_words() -> None:
    cancelled = "STEP 12.0 ON n1 CANCELLED AT 2026-01-01T00:00:00 DUE TO TIME LIMIT"
    assert lines.killed(GROUP_LOG) == f"Exceeded job memory limit; {cancelled}"
    assert lines.killed("error: of a job's own") == ""
    message = "SLURM-job '12' failed, SLURM status is: 'OUT_OF_MEMORY'. Detailed failure reason unavailable."
    assert lines.of_scheduler(message) == "Slurm stopped job 12: OUT_OF_MEMORY"
    assert lines.of_scheduler("another executor's words.\n") == "another executor's words"


def test_only_the_report_of_a_failed_command_is_shortened_and_an_overwritten_log_shows_its_last(tmp_path: Path) -> None:
    died = "Command 'a\nb' died with <Signals.SIGKILL: 9>."
    message = f'RuleException:\nCalledProcessError in file "S", line 3:\n{died}'
    assert lines.command_ending(message) == "the command died with <Signals.SIGKILL: 9>"
    assert lines.command_ending("RuleException:\nValueError in file S, line 3:\nbad") == ""
    (tmp_path / "log").write_bytes(b"start\n\nstep 1\rstep 2\rstep 3\n")
    assert last_lines(tmp_path / "log") == ["start", "step 3"]
    assert last_lines(tmp_path / "absent") is None


SNAKEFILE = """
rule all:
    input: expand("out/{d}-{m}.txt", d=["adult"], m=["a", "b"])
rule prepare:
    output: "prep/{d}.txt"
    shell: "echo prepared > {output}"
rule train:
    message: "train {wildcards.m} on {wildcards.d}"
    input: "prep/{d}.txt"
    output: "out/{d}-{m}.txt"
    log: "logs/{d}-{m}.log"
    shell:
        "(echo step 1; [ {wildcards.m} = {config[bad]} ] && echo oh no && exit 3;"
        " sleep .2; touch {output}) > {log} 2>&1"
"""


def snakemake(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the small workflow with the progress display."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "progress", *options]
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


@pytest.mark.slow
def test_a_workflow_is_followed_from_failure_to_success(tmp_path: Path) -> None:
    failed = snakemake(tmp_path, "--config", "bad=b")
    assert failed.returncode == 1
    for expected in (
        "4 jobs on 1 core: 1 prepare, 2 train, 1 all",
        "start   prepare adult",
        "FAILED  train b on adult",
        "exit status 3",
        "end of log logs/adult-b.log:",
        "| oh no",
        "failed: train b on adult. Run again to continue.",
    ):
        assert expected in failed.stdout
    (tmp_path / "summary.txt").write_text("two artefacts made")
    again = ("--config", "bad=none", "--forceall", "--logger-progress-summary")
    older = snakemake(tmp_path, *again, "summary.txt").stdout
    assert "two artefacts made" not in older, "it is of an earlier run"
    assert older.splitlines()[-1].startswith("made: out/adult-")
    passed = snakemake(tmp_path, *again, "prep/adult.txt")
    assert passed.returncode == 0, passed.stdout
    assert [line[:7] for line in passed.stdout.splitlines() if "of 4, " in line] == ["done   "] * 3
    assert passed.stdout.splitlines()[-1] == "prepared"
    assert "4 of 4 jobs done in" in passed.stdout.splitlines()[-2]
    assert "Nothing to be done" in snakemake(tmp_path, "--config", "bad=none").stdout


@pytest.mark.slow
def test_quiet_silences_progress_and_no_error_and_a_dry_run_reads_as_snakemake_has_it(tmp_path: Path) -> None:
    said = snakemake(tmp_path, "--config", "bad=b", "--quiet", "all").stdout
    assert "start " not in said
    assert "FAILED  train b on adult" in said
    missing = snakemake(tmp_path, "--quiet", "all", "--config", "bad=b", "--", "no_such_file")
    assert "No rule to produce no_such_file" in missing.stdout
    said = snakemake(tmp_path, "--config", "bad=none", "--dry-run").stdout
    assert "Reason: Missing output files: out/adult-b.txt" in said
    assert "This was a dry-run" in said


def test_on_a_terminal_the_running_job_is_shown_and_the_cursor_given_back(tmp_path: Path) -> None:
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--logger", "progress", "--config", "bad=none"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        said = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # The other end is closed.
                break
            if not piece:
                break
            said += piece
    os.close(ours)
    assert process.returncode == 0
    shown = said.decode()
    assert "of 4, " in shown
    assert "4 of 4 jobs done" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
