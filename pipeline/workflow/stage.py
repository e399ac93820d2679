"""Command-line options, logging and results of the stages."""

import argparse
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline import io, software
from pipeline.workflow import lock

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "config": {"type": json.loads, "help": "JSON object with the resolved configuration sections"},
    "dataset": {"help": "prepared data set (.npz)"},
    "classifier": {"help": "trained classifiers (.npz)"},
    "transport": {"nargs": "*", "default": [], "help": "transport maps (.npz) for audits of maps"},
    "manifest": {"required": False, "help": "manifest (.json); omit it for data that need no files"},
    "rows": {"help": "tidy rows (.parquet)"},
    "output": {"help": "file for the result"},
    "task": {"default": "", "help": "what identifies the task, which the result records"},
    "code": {"default": "", "help": "hash of the code: a killed task of the same code continues"},
}
"""Options that several stages have. They are required unless stated otherwise."""
TASK = ("config", "output", "task", "code")
"""Options of each stage that runs a task."""


def options(
    description: str | None, arguments: Sequence[str] | None, *names: str, **own: Mapping[str, Any]
) -> argparse.Namespace:
    """Parse the options ``names`` of :data:`OPTIONS` and the options ``own`` of one stage."""
    lock.join()
    parser = argparse.ArgumentParser(description=description)
    for name, settings in {**{name: OPTIONS[name] for name in names}, **own}.items():
        parser.add_argument(f"--{name}", **{"required": "default" not in settings, **settings})
    return parser.parse_args(arguments)


def save(value: io.Stored, options: argparse.Namespace, *inputs: str) -> None:
    """Save the result of a stage with the versions of the software that computed it and its input files."""
    recorded = [one for path in inputs for one in io.software(path)]
    io.save(value, options.output, software.distinct([software.installed(), *recorded]), options.task)


def log_to_output() -> None:
    """Log to standard output. The progress display shows the last line of a job's log."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
