"""Text of the printed lines, one per event, as pure functions of the state."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from snakemake_logger_plugin_progress.run import Job, Run

TITLE_WIDTH = 52
LAST_LINES = 12
MOST_FILES = 3

CHATTER = (
    "Assuming unrestricted shared filesystem",
    "Building DAG of jobs",
    "Cleaning up SLURM log files older than",
    "Complete log(s)",
    "Conda environments: ignored",
    "Elapsed time",
    "Group jobs: inactive",
    "Job stats",
    "Removing output files of failed job",
    "Select jobs to execute",
    "Shutting down",
    "Singularity containers: ignored",
    "Using shell",
    "Will exit after finishing currently running jobs",
)
"""Prefixes of redundant messages of Snakemake."""

AFTERMATH = (
    "Exiting because a job execution failed",
    "WorkflowError:\nAt least one job did not complete successfully",
)
"""Prefixes of errors of Snakemake that add nothing to the reported failures."""


def made(output: Sequence[str]) -> str:
    """List the files that a job made, at most the first ``MOST_FILES``."""
    more = f" and {len(output) - MOST_FILES} more" if len(output) > MOST_FILES else ""
    return f"made: {', '.join(output[:MOST_FILES])}{more}"


def duration(seconds: float) -> str:
    """Format a time: ``0.4 s``, ``41 s``, ``1 min 12 s``, ``1 h 2 min``."""
    if seconds < 9.95:
        return f"{max(seconds, 0.0):.1f} s"
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s" if whole % 60 else f"{whole // 60} min"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def title(rule: str, message: str | None, wildcards: Mapping[str, str] | None) -> str:
    """Return the title of a job: the message of the rule, or the rule and the values of its wildcards."""
    return message or " ".join([rule, *map(str, (wildcards or {}).values())])


def plan(run: Run) -> str:
    """Format the plan: ``31 jobs on 2 cores: 2 fetch, 3 prepare, 8 train``."""
    counts = ", ".join(f"{count} {rule}" for rule, count in run.planned.items())
    jobs = "1 job" if run.total == 1 else f"{run.total} jobs"
    cores = "1 core" if run.cores == 1 else f"{run.cores} cores"
    if run.nodes:
        cores = f"a cluster, {run.cores} at once"
    return f"{jobs} on {cores}: {counts}" if counts else f"{jobs} on {cores}"


def progress(run: Run, now: float) -> str:
    """Format the progress: ``7 of 31, 1 min 12 s so far``."""
    return f"{run.done} of {run.total}, {duration(now - run.began)} so far"


def start(job: Job) -> str:
    """Format the start of a job."""
    return f"start   {job.title}"


def done(run: Run, job: Job, now: float) -> str:
    """Format the success of a job. ``run`` is the state after it."""
    return f"done    {job.title:<{TITLE_WIDTH}} {duration(now - job.began):>12}   {progress(run, now)}"


def still(job: Job, now: float, detail: str) -> str:
    """Format a running job. ``detail`` is the last line of its log."""
    return f"{job.title}   {duration(now - job.began)}" + (f"   {detail}" if detail else "")


def failure(
    job_title: str, seconds: float | None, logs: Mapping[str, Sequence[str] | None], command: str, ending: str = ""
) -> list[str]:
    """Format a failure: the job, its duration, and path and end of its logs, or the command if the logs are empty.

    ``ending`` is how the command ended or the message of the scheduler, if known.
    """
    after = f" after {duration(seconds)}" if seconds is not None else ""
    lines = [f"FAILED  {job_title}{after}" + (f": {ending}" if ending else "")]
    for path, content in logs.items():
        if content is None:
            lines.append(f"        log {path} does not exist")
        elif not content:
            lines.append(f"        log {path} is empty")
        else:
            lines.append(f"        end of log {path}:")
            lines += [f"        | {line}" for line in content[-LAST_LINES:]]
    if command and not any(logs.values()):
        lines.append(f"        command: {command}")
    return lines


def of_scheduler(message: str) -> str:
    """Format a message about a job: ``Slurm stopped job 12: OUT_OF_MEMORY``, or any other message in one line."""
    said = re.match(r"SLURM-job '(\S+)' failed, SLURM status is: '([A-Z_]+)'", message)
    return f"Slurm stopped job {said[1]}: {said[2]}" if said else message.strip().replace("\n", " ").rstrip(".")


def killed(log: str) -> str:
    """Return the messages of a scheduler in the output of a job that it ended, or "" if there are none."""
    found = re.findall(r"^slurm(?:step)?d(?:-\S+)?: error: (.+)$", log, re.MULTILINE)
    return "; ".join(dict.fromkeys(line.strip("* ") for line in found))


def in_error(log: str) -> set[str]:
    """Return the outputs of the jobs that failed in a group, from the log of the group's Snakemake."""
    paragraphs = re.findall(r"^Error in rule \w+:\n((?:    .*\n?)+)", log, re.MULTILINE)
    named = (re.search(r"^    output: (.+)$", paragraph, re.MULTILINE) for paragraph in paragraphs)
    return {path.strip() for match in named if match for path in match[1].split(", ")}


def taken_along(titles: Sequence[str]) -> str:
    """Format the jobs that failed because another job of their group failed."""
    return f"FAILED  with it, in the same submission: {', '.join(titles)}"


def warnings(logs: Mapping[str, str | None]) -> list[str]:
    """Return the paragraphs that start with ``WARNING`` in the logs of a job, each followed by the path of its log."""
    found = []
    for path, text in logs.items():
        paragraph: list[str] = []
        for line in [*(text or "").splitlines(), ""]:
            if line.startswith("WARNING") or (paragraph and line.strip("=-* ")):
                paragraph.append(f"        {line}")
            elif paragraph:
                found += [*paragraph, f"        ({path})"]
                paragraph = []
    return found


def command_ending(message: str) -> str:
    """Extract how a command ended (``returned non-zero exit status 1``) from Snakemake's report, or return ""."""
    ended = re.fullmatch(r"RuleException:\nCalledProcessError .*\nCommand '.*' ((?:returned|died) .*)", message, re.S)
    return f"the command {ended[1].rstrip('.')}" if ended else ""


def end(run: Run, now: float) -> str:
    """Format the last line of a run."""
    took = duration(now - run.began)
    if run.failed:
        names = ", ".join(dict.fromkeys(run.failed))
        return f"Stopped after {took}: {run.done} of {run.total} jobs done, failed: {names}. Run again to continue."
    if run.done < run.total:
        return f"Stopped after {took}: {run.done} of {run.total} jobs done. Run again to continue."
    return f"{run.done} of {run.total} jobs done in {took}."
