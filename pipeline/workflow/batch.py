"""Run a stage several times in one process: ``python -m pipeline.workflow.batch train --code HASH < jobs.json``.

Standard input is a JSON list of the stage's argument lists, each with ``--output``. What is made is kept beside its
place until all of it is there: where the process is killed, or one of its jobs fails, Snakemake removes what stands in
the places of a job's outputs, and the next attempt goes on with what was kept, if it would be made of the same.
"""

import argparse
import hashlib
import importlib
import json
import sys
from collections.abc import Iterable, Sequence
from glob import escape
from pathlib import Path

DIGITS = 16


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every job that was not kept, then put what was made in its place."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stage", help="a module of pipeline.stages")
    parser.add_argument("--code", default="", help="the hash of the code that the outputs depend on")
    options = parser.parse_args(arguments)
    run(options.stage, json.load(sys.stdin), options.code)


def run(stage: str, jobs: Sequence[Sequence[str]], code: str = "") -> None:
    """Run ``jobs``, the argument lists of a stage, and skip those that an earlier attempt did."""
    module = importlib.import_module(f"pipeline.stages.{stage}")
    if len(jobs) == 1:
        module.main(list(jobs[0]))
        return
    kept = []
    for number, job in enumerate(jobs, 1):
        output = Path(job[job.index("--output") + 1])
        place = kept_beside(output, digest([code.encode(), *made_of(job)]))
        kept.append((place, output))
        print(f"{number} of {len(jobs)}: {output}{' was made before' if place.exists() else ''}", flush=True)
        if not place.exists():
            module.main(list(job))
            output.replace(place)
    for place, output in kept:
        # Snakemake takes an output for outdated that is older than what it was made from.
        place.touch()
        place.replace(output)
        for other in output.parent.glob(f".{escape(output.stem)}.{'?' * DIGITS}.kept{output.suffix}"):
            other.unlink()


def kept_beside(output: Path, made_of: str) -> Path:
    """Where an output waits for the others, by the digest of what it is ``made_of``."""
    return output.with_name(f".{output.stem}.{made_of}.kept{output.suffix}")


def made_of(job: Sequence[str]) -> list[bytes]:
    """The arguments, and of those that are files, but for the output, size and time of the last change."""
    parts = []
    for flag, argument in zip(["", *job], job, strict=False):
        parts.append(argument.encode())
        if flag != "--output" and not argument.startswith(("{", "[", "-")) and Path(argument).is_file():
            found = Path(argument).stat()
            parts.append(f"{found.st_size} {found.st_mtime_ns}".encode())
    return parts


def digest(parts: Iterable[bytes]) -> str:
    """The beginning of the SHA-256 of several byte strings, in hexadecimal digits."""
    found = hashlib.sha256()
    for part in parts:
        found.update(hashlib.sha256(part).digest())
    return found.hexdigest()[:DIGITS]


if __name__ == "__main__":
    main()
