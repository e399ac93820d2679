"""The locked options: the flags of every command, with what they expect, their defaults and their help.

``python -m tests.lock.options`` writes the list anew, when options are meant to change.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

from fairness_audits.cli.commands import COMMANDS
from fairness_audits.files import written
from fairness_audits.validation import described

FILE = Path(__file__).with_name("options.csv")
COMMAND = "python -m tests.lock.options"
HEAD = ("audit", "flag", "default", "required", "python", "expects", "help")
LOCKED = 5
"""Number of the first columns that a test compares: the descriptions may change."""


def computed() -> Iterator[tuple[str, ...]]:
    """Yield a row for each option of each command."""
    for name, command in COMMANDS.items():
        for one in command.options.values():
            default = "" if one.required else repr(one.default)
            keyword = one.name if one.name in command.audit.audited.options else ""  # type: ignore[attr-defined]
            yield name, one.flag, default, str(one.required), keyword, described(one.hint), one.doc


def locked() -> list[tuple[str, ...]]:
    """Return the rows of the list."""
    with FILE.open(encoding="utf-8", newline="") as file:
        return [tuple(row) for row in csv.reader(file)][1:]


def write() -> None:
    """Write the list."""
    with written(FILE) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEAD, *computed()])


if __name__ == "__main__":
    write()
