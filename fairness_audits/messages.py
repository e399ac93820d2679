"""Build user messages: lists of readable length, one-line summaries of library errors, nearest names."""

import difflib
import re
from collections.abc import Callable, Collection, Container, Iterable, Sequence
from itertools import chain, count
from typing import Any

from fairness_audits.errors import InvalidInput

SHOWN = 5
"""Number of rows, values or columns that an error names before it counts the rest."""

EXTRAS = {
    "PIL": ("pillow", "torch"),
    "matplotlib": ("matplotlib", "figures"),
    "numba": ("numba", "permutation"),
    "onnxruntime": ("onnxruntime", "onnx"),
    "ot": ("POT", "fliptest"),
    "pyarrow": ("pyarrow", "parquet"),
    "pyspark": ("pyspark", "spark"),
    "sklearn": ("scikit-learn", "tables"),
    "skops": ("skops", "sklearn"),
    "torch": ("torch", "torch"),
}
"""The package that provides a module missing from a plain installation, and the extra that installs it."""

UNSEEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters except the end of a line, and characters that reverse the text after them."""


def check_columns(table: Any, names: Iterable[str], named_by: str, source: str) -> None:
    """Raise InvalidInput for names that are not columns of the table, suggesting the nearest columns.

    ``table`` is a data frame, or another object with ``columns``. ``named_by`` is the source of the names, such as an
    option. ``source`` is the table's name in the message.
    """
    existing = list(table.columns)
    if absent := [name for name in names if not has_column(table, name)]:
        commas = " (are its columns separated by something other than commas?)"
        # Names of files have a dot, names of data frames have none.
        alone = len(existing) == 1 and "." in str(source)
        hint = commas if alone else "".join(nearest(name, existing, as_option) for name in absent[:SHOWN])
        problem = f"{named_by} names {listed(list(map(repr, absent)), SHOWN)}, but {source} has no such column{hint}"
        raise InvalidInput(
            problem, source=source, option=option_in(named_by), column=absent[0], remedy=f"It has: {listed(existing)}"
        )


def has_column(table: Any, name: str) -> bool:
    """Return whether a table has a column of this name, among those of its source or those derived by an audit."""
    return name in list(table.columns) or name in getattr(table, "derived", ())


def check_distinct(names: Sequence[str], source: object) -> None:
    """Raise InvalidInput if columns of the ``source`` have the same name."""
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        problem = f"{source} has several columns named {listed(repeated)}"
        raise InvalidInput(problem, source=str(source), column=repeated[0], remedy="Rename them")


def option_in(text: str) -> str | None:
    """Return a text that is the name of an option, such as ``step_size``; None for any other text."""
    return text if text.isidentifier() else None


def unlike(name: str, taken: Container[str], note: str) -> str:
    """Return the name, followed by the note if it is taken: ``sex``, ``sex (group)``, ``sex (group 2)``."""
    numbered = (f"{name} ({note} {number})" for number in count(2))
    return next(one for one in chain([name, f"{name} ({note})"], numbered) if one not in taken)


def apart(names: Sequence[str], taken: Collection[str], note: str) -> list[str]:
    """Return distinct names: names that are taken are followed by the note."""
    used, found = {*taken, *names}, list[str]()
    for name in names:
        found.append(unlike(name, used, note) if name in taken else name)
        used.add(found[-1])
    return found


def listed(values: Sequence[object], shown: int = 40) -> str:
    """Join the values with commas, and count the values beyond the first ``shown``."""
    text = ", ".join(str(value) for value in values[:shown])
    return text if len(values) <= shown else f"{text} and {len(values) - shown} more"


def advised(option: str, value: object) -> str:
    """Return an option with a value, such as ``map='exact'``."""
    return f"{option}={value if isinstance(value, bool) else repr(str(value))}"


def check_keys(keys: Iterable[str], known: Iterable[str], source: str) -> None:
    """Raise InvalidInput for an unknown key, suggesting the nearest known one; ``source`` is the file with the keys."""
    names = list(known)
    if unknown := [key for key in map(str, keys) if key not in names]:
        hint = nearest(unknown[0], names)
        problem = f"{source}: there is no key {unknown[0]!r}{hint}"
        raise InvalidInput(problem, source=source, option=unknown[0], remedy=f"There are: {', '.join(names)}")


def nearest(name: str, known: Iterable[str], shown: Callable[[str], str] = repr) -> str:
    """Return a suggestion of the known name nearest to ``name``, to end a sentence; empty if none is near."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {shown(close[0])}?)" if close else ""


def as_option(name: str) -> str:
    """Return a column's name as an option takes it; in a list, commas and spaces around a name need quotes."""
    quoted = f'"{name}"'
    return f"{name!r}, in a list {quoted!r}" if name != name.strip() or "," in name else repr(name)


def enumerated(names: Iterable[str]) -> str:
    """Join names for a sentence: ``a``, ``a and b``, ``a, b and c``."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def shown(text: str) -> str:
    """Escape text for a terminal, so that names from the data cannot move the cursor, colour or reverse text."""
    return UNSEEN.sub(lambda found: ascii(found[0])[1:-1], text)


def not_installed(what: str, module: str) -> str:
    """Return how to install a missing library that belongs to an extra."""
    package, extra = EXTRAS[module]
    return f"{what} needs {package}, which is not installed: pip install {package} (in the extra {extra!r})"


def missing_package(error: ModuleNotFoundError) -> str:
    """Return how to install a missing module, or the error's own text if no extra provides it."""
    module = (error.name or "").partition(".")[0]
    return not_installed("this audit", module) if module in EXTRAS else str(error)


def reason(error: BaseException) -> str:
    """Return a library's error in one line without a full stop: its type and the first line of its text.

    TorchScript errors begin with the location and end with the problem, so we take their last line.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["no further text"]
    line = lines[-1].removeprefix("RuntimeError: ") if "TorchScript interpreter" in lines[0] else lines[0]
    return f"{type(error).__name__}: {line.rstrip('. ')}"
