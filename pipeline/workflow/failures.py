"""The account of a run in which jobs failed: which, why, and what is missing because of them.

It is written when the run has ended: ``results/failures.json``, and where a report was to be made
``results/report.html`` with what could be made, opening with what is missing. Snakemake makes the report anew as soon
as it can, since the summary that belongs to it is taken away.
"""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from fairness_audits.files import load_json, save_json

ACCOUNT = Path("results/failures.json")
JOURNAL = Path("results/failures.jsonl")
"""What the progress display wrote down when the jobs failed: how their commands ended, what the scheduler said."""
REPORT, SUMMARY = Path("results/report.html"), Path("results/summary.txt")
LAST_LINES = 12
TAIL = 8192
"""Bytes at the end of a log that are read for its last lines."""
NAMED = 6
"""Jobs or artefacts that a line of the terminal names before it counts the rest."""


def account(dag: Any, failed: Iterable[Any], artefacts: Mapping[str, Sequence[str]], root: Path) -> dict[str, Any]:
    """What failed, what was not run because of it, and which artefacts are missing.

    ``dag`` and ``failed`` are Snakemake's (:class:`snakemake.dag.DAG`, jobs and groups of them); ``artefacts`` has the
    names of each study's. The result is plain JSON: ``failed`` (``title``, ``rule``, ``outputs``, ``why``, ``logs``,
    each a path with its last lines), ``not_run`` (``title``, ``rule``, ``outputs``, ``because``: titles) and
    ``missing`` (``study``, ``artefacts``, ``because``). ``because`` is empty where the run ended before a job's turn.
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
            if job.rule.name == "draw"
        ],
    }


def save(content: Mapping[str, Any], scale: str, studies: Sequence[str], root: Path) -> None:
    """Write the account, and the report of the ``studies`` that are whole; OSError where there is no room for it."""
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
    """Take the account of an earlier run away once all is there that the failed jobs and what waits for them make."""
    if (root / ACCOUNT).is_file():
        content = load_json(root / ACCOUNT)
        outputs = [path for job in (*content["failed"], *content["not_run"]) for path in job["outputs"]]
        if not all((root / path).exists() for path in outputs):
            return
    for path in (ACCOUNT, JOURNAL):
        (root / path).unlink(missing_ok=True)


def terminal(content: Mapping[str, Any]) -> str:
    """The account in a few lines."""
    lines = [f"missing: tables and figures of {one['study']}, {_reason(one['because'])}" for one in content["missing"]]
    count = len(content["failed"]) + len(content["not_run"])
    jobs = "1 job is" if count == 1 else f"{count} jobs are"
    told = f"{REPORT}, {ACCOUNT}" if _reported(content) else ACCOUNT
    return "\n".join([*lines, f"{jobs} to be done still; what failed and why: {told}"])


def _reported(content: Mapping[str, Any]) -> bool:
    """Whether the run was to end with the report."""
    return any(job["rule"] == "report" for job in content["not_run"])


def _reason(because: Sequence[str]) -> str:
    if not because:
        return "the run ended before"
    rest = f" and {len(because) - NAMED} more" if len(because) > NAMED else ""
    return f"because of {', '.join(because[:NAMED])}{rest}"


def _named(job: Any) -> dict[str, Any]:
    return {"title": _title(job), "rule": job.rule.name, "outputs": list(map(str, job.output))}


def _why(job: Any, journal: Mapping[str, Mapping[str, Any]], root: Path) -> dict[str, Any]:
    told = journal.get(str(job.output[0]), {})
    own = [_end(str(log), root) for log in job.log]
    # A scheduler's own log says more than an empty one.
    logs = [_end(log, root) for log in told.get("logs", []) if log not in map(str, job.log)]
    return {"why": told.get("why", ""), "logs": own if any(log["lines"] for log in own) else own + logs}


def _end(log: str, root: Path) -> dict[str, Any]:
    """A log's path, its state in words and its last lines; the path as it is below ``root``."""
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
    """Return the last failure of each job, by the first file that it was to make; empty where nobody wrote a journal.

    A line that is not whole, as a kill or a full disk leaves it, is passed over.
    """
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
    """A job by its rule's message, as the progress display calls it."""
    return str(job.message or " ".join([job.rule.name, *map(str, job.wildcards)]))
