"""The command line of the stages that are programs."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from pipeline.workflow import lock


def options(
    description: str | None, arguments: Sequence[str] | None, **declared: Mapping[str, Any]
) -> argparse.Namespace:
    """Parse options. They are required unless they have a default."""
    lock.join()
    parser = argparse.ArgumentParser(description=description)
    for name, settings in declared.items():
        required = "default" not in settings
        parser.add_argument(f"--{name.replace('_', '-')}", **{"required": required, **settings})
    return parser.parse_args(arguments)
