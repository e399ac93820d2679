"""Run the tasks of a job: ``python -m pipeline.workflow.launch OUTPUT [REPAIRED] < TASKS``.

``TASKS`` is the JSON list of :class:`pipeline.jobs.Task`. ``OUTPUT`` is the file of the only task, or the record of
several, which names the file of each task with a checksum of its content, and how often deleted files were REPAIRED.

A task whose file exists is skipped if the file was made with the same parameters and code, from inputs of the same
content. If a task fails, the tasks that do not need its file still run.
"""

import contextlib
import importlib
import json
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from fairness_audits.files import save_json
from pipeline import io

FRESH = "PIPELINE_FRESH"
"""The environment variable that makes a job run all its tasks, because the user forces a rule to run."""


@contextlib.contextmanager
def measured(path: str) -> Iterator[None]:
    """Write the wall time and the processor time of a task to ``path``, in Snakemake's columns.

    The memory is the largest that this process has used so far.
    """
    begun, before = time.monotonic(), _processor_seconds()
    yield
    wall, processor = time.monotonic() - begun, _processor_seconds() - before
    used = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    memory = max(used) / (2**20 if sys.platform == "darwin" else 2**10)
    minutes, seconds = divmod(int(wall), 60)
    clock = f"{minutes // 60}:{minutes % 60:02d}:{seconds:02d}"
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    row = f"{wall:.4f}\t{clock}\t{memory:.2f}\t{processor:.2f}"
    Path(path).write_text(f"s\th:m:s\tmax_rss\tcpu_time\n{row}\n", encoding="utf-8")


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def words(task: Mapping[str, Any]) -> list[str]:
    """Return the command line of the stage of a task."""
    inputs = [word for option, paths in task["inputs"].items() if paths for word in (f"--{option}", *paths)]
    return [
        "--config",
        task["config"],
        *inputs,
        "--output",
        task["output"],
        *("--task", identity(task), "--code", task["code"]),
    ]


def identity(task: Mapping[str, Any]) -> str:
    """Return the hash of all that the result of a task depends on."""
    inputs = {option: [io.checksum(path) for path in paths] for option, paths in task["inputs"].items()}
    return io.digest([task["stage"], task["config"], task["code"], inputs])


def is_done(task: Mapping[str, Any]) -> bool:
    """Return whether the file of a task exists and is the one that the task would make."""
    return not os.environ.get(FRESH) and io.made_by(task["output"]) == identity(task)


def run(tasks: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Run tasks, and return the reason why a file was not made for each task that failed."""
    failed: dict[str, str] = {}
    for task in tasks:
        output = task["output"]
        if missing := [path for paths in task["inputs"].values() for path in paths if path in failed]:
            failed[output] = f"needs {missing[0]}"
            continue
        if is_done(task):
            continue
        if len(tasks) > 1:
            print(f"{output}:", flush=True)
        try:
            with measured(task["benchmark"]):
                importlib.import_module(f"pipeline.stages.{task['stage']}").main(words(task))
        except (Exception, SystemExit) as error:
            if not isinstance(error, SystemExit):
                traceback.print_exc()
            failed[output] = str(error) or type(error).__name__
    return failed


def main(output: str, tasks: Sequence[Mapping[str, Any]], repaired: int = 0) -> None:
    """Run the tasks of a job and write its record, unless its only task makes the ``output``."""
    failed = run(tasks)
    if failed and len(tasks) == 1:
        sys.exit(next(iter(failed.values())))
    if failed:
        lines = (f"{path}: {reason}" for path, reason in failed.items())
        sys.exit("\n".join([f"{len(failed)} of {len(tasks)} tasks failed. The files of the others are kept.", *lines]))
    if output not in (task["output"] for task in tasks):
        files = {task["output"]: io.checksum(task["output"]) for task in tasks}
        save_json({"files": files, "repaired": repaired}, Path(output))


if __name__ == "__main__":
    main(sys.argv[1], json.load(sys.stdin), *map(int, sys.argv[2:]))
