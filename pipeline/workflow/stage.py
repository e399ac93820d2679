"""The command line of the stages that are programs."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.workflow import lock


def options(
    description: str | None, arguments: Sequence[str] | None, **declared: Mapping[str, Any] | str
) -> argparse.Namespace:
    """Parse options, which are required unless they have a default. A help alone declares a text, by default empty."""
    lock.join()
    parser = argparse.ArgumentParser(description=description)
    for name, given in declared.items():
        settings = {"default": "", "help": given} if isinstance(given, str) else given
        required = "default" not in settings
        parser.add_argument(f"--{name.replace('_', '-')}", **{"required": required, **settings})
    return parser.parse_args(arguments)
