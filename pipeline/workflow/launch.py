"""Run the tasks of a job: ``python -m pipeline.workflow.launch OUTPUT [REPAIRED] < TASKS``.

``TASKS`` is a JSON list of :class:`Task`. ``OUTPUT`` is the file of the only task, or the record of several, which
names the file of each task with a checksum of its content, and how often deleted files were REPAIRED.

The value in the file of a task is what ``make(config, inputs, resume)`` returns in the module of its stage. ``resume``
keeps the state of long work beside the file. A task whose file exists is skipped if the file was made with the same
parameters and code, from inputs of the same content. If a task fails, the tasks that do not need its file still run.
"""

import contextlib
import importlib
import json
import logging
import os
import resource
import sys
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairness_audits.errors import InvalidInput
from fairness_audits.files import save_json
from pipeline import io, software
from pipeline.workflow import lock, tracking

FRESH = "PIPELINE_FRESH"
"""The environment variable that makes a job run all its tasks, because the user forces a rule to run."""


@dataclass(frozen=True)
class Task:
    """The work that makes one file.

    ``inputs`` holds the input files by their name in the stage, ``config`` the resolved section as JSON, and ``code``
    the hash of the code. The time and the memory that the task used go to the file ``benchmark``.
    """

    stage: str
    output: str
    inputs: Mapping[str, Sequence[str]]
    config: str
    code: str
    threads: int
    benchmark: str

    def identity(self) -> str:
        """Return the hash of all that the result depends on."""
        inputs = {name: [io.checksum(path) for path in paths] for name, paths in self.inputs.items()}
        return io.digest([self.stage, self.config, self.code, inputs])

    def is_done(self) -> bool:
        """Return whether the file exists and is the one that the task would make."""
        return not os.environ.get(FRESH) and io.made_by(self.output) == self.identity()

    def run(self) -> None:
        """Make the file, with the versions of the software that computed the value and its inputs, and track it."""
        config, resume = json.loads(self.config), io.CheckpointFile(self.output, self.code)
        value = importlib.import_module(f"pipeline.stages.{self.stage}").make(config, self.inputs, resume)
        computed = [path for paths in self.inputs.values() for path in paths if path.endswith(".npz")]
        versions = [software.installed(), *(one for path in computed for one in io.software(path))]
        io.save(value, self.output, software.distinct(versions), self.identity())
        resume.forget()
        if found := tracking.metrics(value):
            tracking.record(self.output, config, *found)


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


def run(tasks: Sequence[Task]) -> dict[str, str]:
    """Run tasks, and return the reason why a file was not made for each task that failed."""
    failed: dict[str, str] = {}
    for task in tasks:
        if missing := [path for paths in task.inputs.values() for path in paths if path in failed]:
            failed[task.output] = f"needs {missing[0]}"
            continue
        try:
            if task.is_done():
                continue
            if len(tasks) > 1:
                print(f"{task.output}:", flush=True)
            with measured(task.benchmark):
                task.run()
        except Exception as error:
            if not isinstance(error, InvalidInput):
                traceback.print_exc()
            failed[task.output] = str(error) or type(error).__name__
    return failed


def main(output: str, tasks: Sequence[Mapping[str, Any]], repaired: int = 0) -> None:
    """Run the tasks of a job and write its record, unless its only task makes the ``output``."""
    lock.join()
    # The progress display shows the last line of a job's log.
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
    failed = run([Task(**one) for one in tasks])
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
