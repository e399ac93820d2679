"""Keep the settings of the user's own shell, Python and notebook out of the jobs."""

import os
import re
import sys
from collections.abc import MutableMapping
from contextlib import suppress
from pathlib import Path

import snakemake

FOREIGN = re.compile(r"PYTHON\w*|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|MPLBACKEND|MATPLOTLIBRC")
"""The variables that change what bash, Python and matplotlib do in a job."""
HARMLESS = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


def isolate(environment: MutableMapping[str, str], project: Path) -> None:
    """Remove foreign settings from the ``environment`` of the jobs. Their input and output are UTF-8.

    PYTHONPATH becomes the ``project``, but stays if Snakemake itself comes from it. If this process cannot print a
    letter, it prints an escape.
    """
    path = environment.get("PYTHONPATH", "")
    needed = any(part and Path(snakemake.__file__).is_relative_to(part) for part in path.split(os.pathsep))
    for name in [name for name in environment if FOREIGN.fullmatch(name) and name not in HARMLESS]:
        del environment[name]
    environment.update({"PYTHONPATH": path if needed else str(project), "PYTHONUTF8": "1"})
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
