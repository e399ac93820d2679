"""What a run gets from the command line (``snakemake --config``) and the environment, and what it tells the user."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, MutableMapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import snakemake
from snakemake.exceptions import MissingRuleException
from snakemake.io import expand, strip_wildcard_constraints

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest

INVOCATION = {
    "scale": "SCALE", "study": "STUDY", "datasets": "DATASETS", "finished": "FINISHED", "source": "DATA_SOURCE",
    "tracker": "TRACKER", "set": "SET",
}  # fmt: skip
"""The keys of ``snakemake --config`` and the corresponding environment variables."""
ABSENT = "PIPELINE_ABSENT"
"""The environment variable with the names of the unavailable data."""
FOREIGN = re.compile(r"PYTHON\w*|BASH_ENV|ENV|SHELLOPTS|BASHOPTS|MPLBACKEND|MATPLOTLIBRC")
"""The variables that change what bash, Python and matplotlib do in a job."""
HARMLESS = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


def arguments(config: Mapping[str, Any], environment: Mapping[str, str], defaults: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of :class:`pipeline.jobs.Run`.

    ``study`` and ``datasets`` are lists, separated by spaces or commas. ``set`` is a list of group.name.key=value,
    separated by semicolons. The command line takes precedence. Raises InvalidInput for unknown keys.
    """
    if unknown := sorted(set(config) - set(INVOCATION)):
        hint = nearest(unknown[0], INVOCATION)
        raise InvalidInput(
            f"--config {unknown[0]}=... is unknown{hint}. The keys are {', '.join(INVOCATION)}", option=unknown[0]
        )
    given = {
        key: next((str(value) for value in (config.get(key), environment.get(variable)) if value not in (None, "")), "")
        for key, variable in INVOCATION.items()
    }
    # YAML turns yes and no into True and False.
    if (finished := given["finished"].lower() or "no") not in ("yes", "no", "true", "false"):
        raise InvalidInput(f"FINISHED={given['finished']}: expected yes or no", option="FINISHED")
    return {
        **{key: given[key] or default for key, default in defaults.items()},
        "studies": given["study"].replace(",", " ").split(),
        "datasets": given["datasets"].replace(",", " ").split(),
        "finished": finished in ("yes", "true"),
        "overrides": [text for text in given["set"].split(";") if text],
    }


def isolate(environment: MutableMapping[str, str], project: Path) -> None:
    """Keep the settings of the user's shell, Python and notebook out of the ``environment`` of the jobs.

    Their input and output are UTF-8. PYTHONPATH becomes the ``project``, but stays if Snakemake itself comes from it.
    If this process cannot print a letter, it prints an escape.
    """
    path = environment.get("PYTHONPATH", "")
    needed = any(part and Path(snakemake.__file__).is_relative_to(part) for part in path.split(os.pathsep))
    for name in [name for name in environment if FOREIGN.fullmatch(name) and name not in HARMLESS]:
        del environment[name]
    environment.update({"PYTHONPATH": path if needed else str(project), "PYTHONUTF8": "1"})
    for stream in (sys.stdout, sys.stderr):
        with suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def explained(known: Callable[[], Collection[str]]) -> Callable[[logging.LogRecord], bool]:
    """Return a filter of Snakemake's logger that prints an error that the user can correct as one sentence.

    ``known()`` returns the files and rules that a user can ask for. Snakemake logs an error while it handles the
    exception, so the filter sees both. The traceback remains available with ``--verbose``.
    """

    def explain(record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR and (text := sentence(sys.exc_info()[1], known)):
            record.msg, record.args = text, ()
        return True

    return explain


def sentence(error: BaseException | None, known: Callable[[], Collection[str]]) -> str:
    """Return the text for an error that the user can correct; empty for other errors."""
    if isinstance(error, MissingRuleException) and (name := re.match(r"No rule to produce (\S+)", str(error))):
        return f"There is no file or rule {name[1]!r} to make{nearest(name[1], known())}"
    while error and not isinstance(error, InvalidInput):
        error = error.__cause__ or error.__context__
    return str(error) if error else ""


def targets(rules: Iterable[Any], scale: str, studies: Iterable[str], sweeps: Iterable[str]) -> Iterator[str]:
    """Yield the rules, and their files for these studies and sweeps. Omit files of single data sets and models."""
    names = {"scale": [scale], "study": list(studies), "sweep": list(sweeps)}
    for rule in rules:
        yield rule.name
        for output in rule.output:
            if output.get_wildcard_names() <= names.keys():
                yield from filter(output.match, expand(strip_wildcard_constraints(output), **names))
