"""What the programs of the stages share: how they are asked for something, and what a training leaves behind."""

import argparse
import json
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Any

OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "config": {"type": json.loads, "help": "JSON: the resolved sections"},
    "dataset": {"help": "a prepared dataset (.npz)"},
    "classifier": {"help": "trained classifiers (.npz)"},
    "transport": {"required": False, "nargs": "*", "default": [], "help": "transport maps (.npz), if it is of maps"},
    "manifest": {"required": False, "help": "what the fetch stage wrote (.json); none of data that need no files"},
    "rows": {"help": "tidy rows (.parquet)"},
    "output": {"help": "where the result goes"},
}
"""What several stages are asked for; each is needed unless it says otherwise."""


def options(
    description: str | None, arguments: Sequence[str] | None, *names: str, **own: Mapping[str, Any]
) -> argparse.Namespace:
    """The values of the options ``names`` of :data:`OPTIONS` and of a stage's ``own``."""
    parser = argparse.ArgumentParser(description=description)
    for name, given in {**{name: OPTIONS[name] for name in names}, **own}.items():
        parser.add_argument(f"--{name}", **{"required": "default" not in given, **given})
    return parser.parse_args(arguments)


def log_to_output() -> None:
    """What is logged of a computation is the job's log, whose last line the progress display shows."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
