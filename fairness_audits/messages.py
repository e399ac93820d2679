"""What messages to a user are made of: lists of a readable length, a library's error in one line, the nearest name."""

import difflib
import re
import shlex
from collections.abc import Collection, Container, Iterable, Sequence
from itertools import chain, count
from typing import Any

from fairness_audits.errors import InvalidInput

SHOWN = 5
"""How many rows, values or columns an error names before it only counts the rest."""

EXTRAS = {
    "PIL": ("pillow", "torch"),
    "matplotlib": ("matplotlib", "figures"),
    "numba": ("numba", "permutation"),
    "onnxruntime": ("onnxruntime", "onnx"),
    "ot": ("POT", "fliptest"),
    "pyarrow": ("pyarrow", "parquet"),
    "pyspark": ("pyspark", "spark"),
    "sklearn": ("scikit-learn", "torch"),
    "skops": ("skops", "sklearn"),
    "torch": ("torch", "torch"),
}
"""The package that brings a module which a plain installation lacks, and the extra that names the package."""

UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but for the line's end, and those that reverse what follows."""


def check_columns(table: Any, names: Iterable[str], asked_by: str, source: str) -> None:
    """Raise InvalidInput for names that are no columns of the table, with the nearest that are.

    ``table`` is a data frame, or whatever else has ``columns``; ``asked_by`` is what names them, such as an option;
    ``source`` is what the message calls the table.
    """
    existing = list(table.columns)
    if absent := [name for name in names if name not in existing]:
        commas = " (are its columns separated by something other than commas?)"
        hint = commas if len(existing) == 1 else "".join(nearest(name, existing) for name in absent[:SHOWN])
        raise InvalidInput(
            f"{asked_by} names {listed(list(map(repr, absent)), SHOWN)}, but {source} has no such column{hint}",
            source=source,
            option=option_in(asked_by),
            column=absent[0],
            remedy=f"It has: {listed(existing)}",
        )


def check_distinct(names: Sequence[str], source: object) -> None:
    """Raise InvalidInput where columns of the ``source`` have the same name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise InvalidInput(
            f"{source}: more than one column is called {listed(repeated)}",
            source=str(source),
            column=repeated[0],
            remedy="Give each its own name",
        )


def option_in(text: str) -> str | None:
    """Return the option that a text names, ``--step-size`` or ``step_size``; None for any other text."""
    name = text.removeprefix("--").replace("-", "_")
    return name if name.isidentifier() else None


def unlike(name: str, taken: Container[str], note: str) -> str:
    """The name; with the note behind it where it is taken: ``sex``, ``sex (group)``, ``sex (group 2)``."""
    noted = (f"{name} ({note} {number})" for number in count(2))
    return next(one for one in chain([name, f"{name} ({note})"], noted) if one not in taken)


def apart(names: Sequence[str], taken: Collection[str], note: str) -> list[str]:
    """The names, all different, those that are taken with the note behind them."""
    used, found = {*taken, *names}, list[str]()
    for name in names:
        found.append(unlike(name, used, note) if name in taken else name)
        used.add(found[-1])
    return found


def listed(values: Sequence[object], shown: int = 40) -> str:
    """The values separated by commas, with a count of those left out beyond the first ``shown``."""
    text = ", ".join(str(value) for value in values[:shown])
    return text if len(values) <= shown else f"{text} and {len(values) - shown} more"


def advised(option: str, value: object) -> str:
    """An option with a value, ``--map=exact``: what the command line takes, and Python's keywords are made of."""
    return f"--{option}={shlex.quote(str(value))}"


def check_keys(keys: Iterable[str], known: Iterable[str], source: str) -> None:
    """Raise InvalidInput for an unknown key, with the nearest known one; ``source`` is the file that has the keys."""
    names = list(known)
    if unknown := [key for key in map(str, keys) if key not in names]:
        hint = nearest(unknown[0], names)
        raise InvalidInput(
            f"{source}: there is no key {unknown[0]!r}{hint}",
            source=source,
            option=unknown[0],
            remedy=f"There are: {', '.join(names)}",
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name most like ``name``, as the end of an error's sentence; nothing where none is like it."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""


def enumerated(names: Iterable[str]) -> str:
    """Names as part of a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def shown(text: str) -> str:
    """Text for a terminal, in which no name from the data moves the cursor, colours or reverses what stands there."""
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def not_installed(what: str, module: str) -> str:
    """Return what to do where a library is missing that an extra of the installation brings."""
    package, extra = EXTRAS[module]
    return f"{what} needs {package}, which is not installed: pip install {package} (in the extra {extra!r})"


def missing_package(error: ModuleNotFoundError) -> str:
    """Return what to do about a module that is missing, or the error's own text where no extra brings it."""
    module = (error.name or "").partition(".")[0]
    return not_installed("this audit", module) if module in EXTRAS else str(error)


def reason(error: BaseException) -> str:
    """What a library's error says, in one line without a full stop: its kind and the first line of its text.

    TorchScript begins with where it was and ends with what happened, so there it is the last line.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no further text"]
    told = lines[-1].removeprefix("RuntimeError: ") if "TorchScript interpreter" in lines[0] else lines[0]
    return f"{type(error).__name__}: {told.rstrip('. ')}"
