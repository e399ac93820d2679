"""The progress of a run: honest counts, and no error ever hidden."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from snakemake_logger_plugin_progress.logs import command_ending, killed, last_lines, warnings
from snakemake_logger_plugin_progress.run import Job, Run, duration


def test_a_run_counts_each_job_once_though_it_fails_and_starts_again() -> None:
    run, job = Run(began=0.0), Job("train sensr", "train", began=0.0)
    run.plan({"train": 2, "total": 2})
    run.start(1, job)
    run.fail(1, "train", ("train.log",))
    assert (run.done, run.failed) == (0, {"train sensr": ("train.log",)})
    assert "train sensr (train.log)" in run.end(1.0)
    run.start(1, job)
    run.finish(1, now=5.0)
    assert (run.done, run.total, run.failed, run.running, run.left) == (1, 2, {}, {}, {"train": 1})


def test_the_time_left_is_the_usual_time_of_what_remains_on_these_cores() -> None:
    run = Run(began=0.0)
    run.plan({"fetch": 2, "train": 4, "total": 6})
    run.at_once(2, None)
    for number, (rule, took) in enumerate([("fetch", 1.0), ("fetch", 3.0), ("train", 60.0)]):
        assert "left" not in run.progress(0.0)
        run.start(number, Job(rule, rule, 0.0))
        run.finish(number, took)
    assert run.progress(60.0) == "3 of 6, 1 min so far, about 1 min 30 s left", "3 times 60 s on 2 cores"
    run.start(3, Job("train", "train", 60.0))
    assert run.progress(80.0) == "3 of 6, 1 min 20 s so far, about 1 min 20 s left"
    assert run.progress(960.0) == "3 of 6, 16 min so far, about 1 min left", (
        "a job that takes longer ends at any moment"
    )


def test_a_cluster_is_not_taken_for_cores() -> None:
    run = Run(began=0.0)
    run.plan({"train": 2})
    run.at_once(50, None)
    assert run.planned() == "2 jobs on 50 cores: 2 train"
    run.at_once(None, 50)
    assert run.planned() == "2 jobs on a cluster, 50 at once: 2 train"


def test_times_are_given_in_two_units_at_most() -> None:
    texts = ["0.4 s", "41 s", "1 min 12 s", "2 min", "1 h 2 min"]
    assert [duration(seconds) for seconds in (0.42, 41.2, 72, 119.8, 3725)] == texts


def test_a_finished_jobs_warnings_are_shown_whole_and_nothing_else_of_its_log(tmp_path: Path) -> None:
    log, quiet = tmp_path / "fetch.log", tmp_path / "quiet.log"
    log.write_text("fetching\n=====\nWARNING: a twin stands in\nfor the data.\n\nno network\n=====\ndone\n")
    quiet.write_text("step 1\nnot a WARNING\n")
    (shown,) = warnings([str(log), str(quiet), str(tmp_path / "absent.log")])
    assert [line.strip() for line in shown.splitlines()] == ["WARNING: a twin stands in", "for the data.", f"({log})"]


def test_only_the_report_of_a_failed_command_is_shortened_and_an_overwritten_log_shows_its_last(tmp_path: Path) -> None:
    died = "Command 'a\nb' died with <Signals.SIGKILL: 9>."
    message = f'RuleException:\nCalledProcessError in file "S", line 3:\n{died}'
    assert command_ending(message) == "the command died with <Signals.SIGKILL: 9>"
    assert command_ending("RuleException:\nValueError in file S, line 3:\nbad") == ""
    (tmp_path / "log").write_bytes(b"start\n\nstep 1\rstep 2\rstep 3\n")
    assert last_lines(str(tmp_path / "log")) == ["start", "step 3"]
    assert last_lines(str(tmp_path / "absent")) == []


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


def test_why_slurm_ended_a_job_is_read_from_its_log_once(tmp_path: Path) -> None:
    """Without accounting, Slurm's state says no more than FAILED."""
    own, sent = tmp_path / "train.log", tmp_path / "7.log"
    own.write_text("slurmd is a word here: error: none\n")
    line = "error: *** JOB 7 ON vm EXCEEDED MEMORY LIMIT ***"
    sent.write_text(
        f"epoch 1\nslurmstepd: {line}\nslurmstepd-node1: {line}\nslurmd: error: Detected 1 oom_kill event\n"
    )
    why = "JOB 7 ON vm EXCEEDED MEMORY LIMIT; Detected 1 oom_kill event"
    assert killed([str(own), str(sent), str(tmp_path / "absent.log")]) == why
    assert killed([str(own)]) == ""


@pytest.mark.slow
def test_a_workflow_is_followed_from_failure_to_success(tmp_path: Path) -> None:
    failed = snakemake(tmp_path, "--config", "bad=b")
    assert failed.returncode == 1
    for expected in (
        "4 jobs on 1 core: 1 prepare, 2 train, 1 all",
        "start   prepare adult",
        "FAILED  train b on adult",
        "exit status 3",
        "log logs/adult-b.log:",
        "| oh no",
        "1 failed. Run again to continue.",
        "failed: train b on adult (logs/adult-b.log)",
    ):
        assert expected in failed.stdout
    passed = snakemake(tmp_path, "--config", "bad=none", "--forceall")
    assert passed.returncode == 0, passed.stdout
    assert [line[:7] for line in passed.stdout.splitlines() if "of 4, " in line] == ["done   "] * 3
    assert "4 of 4 jobs done in" in passed.stdout.splitlines()[-1]
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
