"""Summary of failed jobs: which jobs failed, why, and which artefacts are missing.

It is written at the end of a run to ``results/failures.json``. If the run was to write a report,
``results/report.html`` contains the complete studies and lists the missing ones at its top. ``results/summary.txt`` is
deleted, so Snakemake writes the report again in the next run.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairness_audits.files import load_json, save_json
from pipeline.report import registry

ACCOUNT = Path("results/failures.json")
JOURNAL = Path("results/failures.jsonl")
"""The journal of the progress display: how commands ended, and messages of the scheduler."""
REPORT, SUMMARY = Path("results/report.html"), Path("results/summary.txt")
LAST_LINES = 12
TAIL = 8192
"""Number of bytes to read at the end of a log."""
NAMED = 6
"""Largest number of jobs that a printed line names."""


def conclude(dag: Any, failed: Iterable[Any], studies: Sequence[str], scale: str, root: Path) -> str:
    """Write the summary of failures of a run and return a short form for the terminal."""
    content = account(dag, failed, {study: [one.name for one in registry.declared(study)] for study in studies}, root)
    if not content["failed"]:
        return "No job failed. The run was stopped from outside."
    without = {one["study"] for one in content["missing"]}
    try:
        save(content, scale, [study for study in studies if study not in without], root)
    except OSError as error:
        return f"{terminal(content)}\nCannot write the summary of failures: {error}"
    return terminal(content)


def account(dag: Any, failed: Iterable[Any], artefacts: Mapping[str, Sequence[str]], root: Path) -> dict[str, Any]:
    """Return the failed jobs, the jobs that did not run, and the missing artefacts.

    ``dag`` and ``failed`` are objects of Snakemake (:class:`snakemake.dag.DAG`, jobs and groups of jobs). ``artefacts``
    holds the names of the artefacts of each study. The result is plain JSON:

    - ``failed``: ``title``, ``rule``, ``outputs``, ``why``, ``logs`` (path and last lines of each);
    - ``not_run``: ``title``, ``rule``, ``outputs``, ``because`` (titles of failed jobs);
    - ``missing``: ``study``, ``artefacts``, ``because``.

    ``because`` is empty if the run ended before the job could start.
    """
    missing = {job for job in dag.needrun_jobs(exclude_finished=True) if job.output}
    failed = {job for one in failed for job in (one.jobs if one.is_group() else [one])} & missing
    journal = _journal(root / JOURNAL)
    because = {
        job: sorted(_title(one) for one in failed.intersection(dag.bfs(dag.dependencies, job)))
        for job in missing - failed
    }
    return {
        "failed": [{**_named(job), **_why(job, journal, root)} for job in sorted(failed, key=_title)],
        "not_run": [{**_named(job), "because": because[job]} for job in sorted(because, key=_title)],
        "missing": [
            {
                "study": job.wildcards.study,
                "artefacts": list(artefacts[job.wildcards.study]),
                "because": because.get(job, [_title(job)]),
            }
            for job in sorted(missing, key=_title)
            if job.rule.name in {f"draw_{study}" for study in artefacts}
        ],
    }


def save(content: Mapping[str, Any], scale: str, studies: Sequence[str], root: Path) -> None:
    """Write the summary of failures and the report of the complete ``studies``. Raises OSError if the disk is full."""
    save_json(content, root / ACCOUNT)
    if _reported(content):
        (root / SUMMARY).unlink(missing_ok=True)
        command = [sys.executable, "-m", "pipeline.stages.report", "--scale", scale, "--failures", str(ACCOUNT)]
        command += ["--figures", "results/figures", "--benchmarks", "results/benchmarks", "--output", str(REPORT)]
        command += ["--index", *(f"results/tables/{study}/index.json" for study in studies)]
        log = root / "results" / "logs" / scale / "report.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w", encoding="utf-8") as file:
            subprocess.run(command, cwd=root, check=False, stdout=file, stderr=subprocess.STDOUT)


def forget(root: Path) -> None:
    """Delete the summary of an earlier run once all the missing files exist."""
    if (root / ACCOUNT).is_file():
        content = load_json(root / ACCOUNT)
        outputs = [path for job in (*content["failed"], *content["not_run"]) for path in job["outputs"]]
        if not all((root / path).exists() for path in outputs):
            return
    for path in (ACCOUNT, JOURNAL):
        (root / path).unlink(missing_ok=True)


def terminal(content: Mapping[str, Any]) -> str:
    """Format the summary in a few lines."""
    lines = [f"Missing: tables and figures of {one['study']} ({_reason(one['because'])})" for one in content["missing"]]
    count = len(content["failed"]) + len(content["not_run"])
    jobs = "1 job remains" if count == 1 else f"{count} jobs remain"
    files = f"{REPORT} and {ACCOUNT}" if _reported(content) else ACCOUNT
    return "\n".join([*lines, f"{jobs}. See {files} for the failures and their reasons."])


def _reported(content: Mapping[str, Any]) -> bool:
    """Return whether the run was to write the report."""
    return any(job["rule"] == "report" for job in content["not_run"])


def _reason(because: Sequence[str]) -> str:
    if not because:
        return "the run ended before this step"
    rest = f" and {len(because) - NAMED} more" if len(because) > NAMED else ""
    return f"needs {', '.join(because[:NAMED])}{rest}"


def _named(job: Any) -> dict[str, Any]:
    return {"title": _title(job), "rule": job.rule.name, "outputs": list(map(str, job.output))}


def _why(job: Any, journal: Mapping[str, Mapping[str, Any]], root: Path) -> dict[str, Any]:
    entry = journal.get(str(job.output[0]), {})
    own = [_end(str(log), root) for log in job.log]
    # If the log of the job is empty, show the log of the scheduler too.
    logs = [_end(log, root) for log in entry.get("logs", []) if log not in map(str, job.log)]
    return {"why": entry.get("why", ""), "logs": own if any(log["lines"] for log in own) else own + logs}


def _end(log: str, root: Path) -> dict[str, Any]:
    """Return the path of a log relative to ``root``, its state in words, and its last lines."""
    path = root / log
    shown = str(path.relative_to(root)) if path.is_relative_to(root) else log
    try:
        with path.open("rb") as file:
            file.seek(max(file.seek(0, 2) - TAIL, 0))
            lines = [line.rstrip() for line in file.read().decode(errors="replace").splitlines() if line.strip()]
    except OSError:
        return {"path": shown, "state": "does not exist.", "lines": []}
    return {"path": shown, "state": "ends with" if lines else "is empty.", "lines": lines[-LAST_LINES:]}


def _journal(path: Path) -> dict[str, dict[str, Any]]:
    """Return the last failure of each job by its first output. Skip lines that a kill or a full disk has cut short."""
    found = {}
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    for line in lines:
        with suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and entry.get("outputs"):
                found[entry["outputs"][0]] = entry
    return found


def _title(job: Any) -> str:
    """Return the title of a job, as in the progress display."""
    return str(job.message or " ".join([job.rule.name, *map(str, job.wildcards)]))
