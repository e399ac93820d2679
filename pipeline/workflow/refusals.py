"""Print an error that the user can correct as one sentence, without the traceback that Snakemake adds.

Snakemake logs an error while it handles the exception, so a filter of its logger sees both. The traceback of an
InvalidInput remains available with ``--verbose``.
"""

import logging
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any

from snakemake.exceptions import MissingRuleException
from snakemake.io import expand, strip_wildcard_constraints

from fairness_audits.errors import InvalidInput
from fairness_audits.messages import nearest


def explained(known: Callable[[], Collection[str]]) -> Callable[[logging.LogRecord], bool]:
    """Return the filter of Snakemake's logger. ``known()`` returns the files and rules that a user can ask for."""

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
