"""The locked jobs: what every rule receives at every scale, as hashes of parts of it.

``python -m tests.lock.jobs`` writes the list anew, when jobs are meant to change.
"""

import csv
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fairness_audits.files import written
from pipeline.jobs import Run
from pipeline.workflow import references

FILE = Path(__file__).with_name("jobs.csv")
COMMAND = "python -m tests.lock.jobs"
SCALES = ("smoke", "laptop", "workstation", "extended", "paper", "gpu")
RUNS: dict[str, dict[str, Any]] = {
    **{scale: {"scale": scale} for scale in SCALES},
    "some data sets": {"scale": "smoke", "datasets": ["compas", "utkface"]},
    "settings of the user": {
        "scale": "smoke",
        "overrides": ["method.sensr.iterations=10", "dataset.gaussian.repetitions=20", "audit.fliptest.bootstraps=9"],
    },
}
"""What a user asks for, by name."""
ABSENT = "cifar100"
"""Data that a run without them does not find."""


HEADER = ("run", "what", "of", "entries", "sha256")


def locked(path: Path = FILE) -> dict[tuple[str, ...], tuple[str, ...]]:
    """The number and the hash of what some rules of a run receive."""
    with path.open(encoding="utf-8", newline="") as file:
        return {tuple(row[:3]): tuple(row[3:]) for row in csv.reader(file)}


def computed() -> dict[tuple[str, ...], tuple[str, ...]]:
    """The same, computed now."""
    found: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for name, given in RUNS.items():
        for what, of, content in received(Run(**given, tracker="disabled")):
            found[name, what, of].append(content)
    for what, of, content in received(Run("smoke", tracker="disabled", absent=[ABSENT])):
        found[f"without {ABSENT}", what, of].append(content)
    hashed = {key: (str(len(contents)), digest(contents)) for key, contents in sorted(found.items())}
    return {HEADER[:3]: HEADER[3:], **hashed}


def received(run: Run) -> Iterator[tuple[str, str, Any]]:
    """What the rules receive: the rule, the data set, the block or the study that it is for, and its values."""
    for task in run.tasks.values():
        names = task.output.split("/")[3:]
        of = "/".join(names[:2]) if task.stage == "audit" else names[0].removesuffix(".npz").split("@")[0]
        values = {
            "output": task.output,
            "inputs": {option: list(paths) for option, paths in task.inputs.items()},
            "section": json.loads(task.config),
            "threads": task.threads,
        }
        yield task.stage, of, values
        requests = [run.requested_by_task(*run.owners[task.output], attempt) for attempt in (1, 2)]
        yield f"{task.stage} requests", of, [task.output, requests]
    for record in run.records:
        parts = record.removesuffix(".json").split("/")[2:]
        wildcards = dict(zip(("scale", "study", "dataset", "part"), parts, strict=True))
        job = run.job("audit", wildcards)
        asked = [run.requested("audit", wildcards, attempt) for attempt in (1, 2)]
        yield "job", wildcards["study"], [record, [task.output for task in job.tasks], job.inputs, job.threads, asked]
    for study in (*run.studies, *run.sweeps):
        names_of = {"scale": run.scale, "study": study}
        rules = ("collect", "draw", "sweep", "report")
        yield "collect", study, [run.files("audit", study), run.collect(study)]
        yield "made", study, run.made(study)
        yield "requests", study, [run.requested(rule, names_of, 2) for rule in rules]
        yield "benchmarks", study, run.benchmarks(study)
    for study in run.studies:
        files = {stage: run.files(stage, study) for stage in ("prepare", "train", "audit")}
        options = [references.fill_option(run, study), references.regression_option(run, study)]
        yield "artefacts", study, [run.artefacts(study), files, *options]
    for sweep in run.sweeps:
        yield "sweep", sweep, run.sweep(sweep)


def digest(contents: list[Any]) -> str:
    """The beginning of the hash of values, whatever their order."""
    texts = sorted(json.dumps(content, sort_keys=True) for content in contents)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16]


def write(path: Path = FILE) -> None:
    """Write the list."""
    found = computed()
    with written(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows((*key, *values) for key, values in found.items())
    print(f"{path}: {len(found) - 1} hashes")


if __name__ == "__main__":
    write()
