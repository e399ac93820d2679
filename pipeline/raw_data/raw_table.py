"""Strict reading of comma- or tab-separated raw files: unexpected content is a ValueError with file, row and column.

Rows are numbered like lines in an editor, from 1, including comments and the header.

:func:`parsed` reads columns with a reader for each name: :func:`whole` or :func:`decimal` numbers within limits, a
:func:`category`, a :func:`code` or :func:`anything`.
"""

import csv
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, dropwhile
from pathlib import Path

import numpy as np
import pandas as pd

from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array


@dataclass(frozen=True)
class RawTable:
    """A file's columns as text; ``lines[i]`` is the line number of row i."""

    file: str
    lines: Array
    texts: pd.DataFrame

    def refuse(self, column: str, bad: pd.Series, reason: str) -> None:
        """Raise ValueError for the first row where ``bad`` (n,) is true, if any, with the number of further rows."""
        if not bad.any():
            return
        first, count = int(np.argmax(bad)), int(bad.sum())
        more = f" ({count - 1} more such row{'s' if count > 2 else ''})" if count > 1 else ""
        found = self.texts[column].iloc[first]
        problem = f"{self.file}, row {self.lines[first]}, column {column!r}: {found!r} {reason}{more}"
        raise InvalidInput(problem, source=self.file, column=column, row=first)


Reader = Callable[[RawTable, str], pd.Series]
"""Checks a column of a table and returns its values (n,)."""


def anything(table: RawTable, column: str) -> pd.Series:
    """Read any text."""
    return table.texts[column]


def category(allowed: Collection[str] | Mapping[str, str]) -> Reader:
    """Read texts that must be in ``allowed``; a mapping also renames them."""

    def read(table: RawTable, column: str) -> pd.Series:
        texts = table.texts[column]
        reason = f"is an unknown category: expected one of {sorted(allowed)}"
        table.refuse(column, ~texts.isin(list(allowed)), reason)
        return texts.map(allowed).astype("str") if isinstance(allowed, Mapping) else texts

    return read


def code(pattern: str, what: str) -> Reader:
    """Read texts that must match ``pattern`` completely; ``what`` describes the pattern in words."""

    def read(table: RawTable, column: str) -> pd.Series:
        texts = table.texts[column]
        table.refuse(column, ~texts.str.fullmatch(pattern), f"is no code: expected {what}")
        return texts

    return read


def decimal(low: float, high: float) -> Reader:
    """Read numbers as float64, within [low, high]."""

    def read(table: RawTable, column: str) -> pd.Series:
        numbers = pd.to_numeric(table.texts[column], errors="coerce").astype(float)
        table.refuse(column, ~np.isfinite(numbers), "is not a number")
        table.refuse(column, (numbers < low) | (numbers > high), f"is out of range: expected {low} to {high}")
        return numbers

    return read


def whole(low: int, high: int, *, missing: bool = False) -> Reader:
    """Read whole numbers as int64, within [low, high]; with ``missing``, as float64 with NaN for empty text."""

    def read(table: RawTable, column: str) -> pd.Series:
        numbers = pd.to_numeric(table.texts[column], errors="coerce").astype(float)
        known = np.isfinite(numbers) & (numbers == np.floor(numbers)) | (table.texts[column] == "") & missing
        table.refuse(column, ~known, "is not a whole number")
        table.refuse(column, (numbers < low) | (numbers > high), f"is out of range: expected {low} to {high}")
        return numbers if missing else numbers.astype(np.int64)

    return read


def parsed(
    path: Path,
    columns: Mapping[str, Reader],
    *,
    header: bool = True,
    comment: str | None = None,
    delimiter: str = ",",
    spelled: Callable[[str], str] = str,
) -> pd.DataFrame:
    """Read ``columns`` of the file at ``path`` with their readers.

    With ``header`` the first line names the columns and can name further columns. A repeated column must have the same
    values. ``spelled`` maps names in the header to the names in ``columns``. Without ``header``, ``columns`` are all
    fields of a row, in order. Leading lines that start with ``comment`` and blank lines at the end are skipped. Raises
    ValueError for a missing, empty or undecodable file, for a missing column, for a row with a wrong number of fields,
    and for values that a reader refuses.
    """
    rows = _rows(path, comment, delimiter)
    first_line, first = next(rows, (0, []))
    if not first_line:
        raise InvalidInput(f"{path} is empty: expected rows", source=path, remedy="Delete it and fetch it again")
    names = [spelled(name) for name in first] if header else list(columns)
    missing = [name for name in columns if name not in names]
    if missing:
        problem = f"{path}, row {first_line}: columns {missing} are missing; the header names {names}"
        raise InvalidInput(problem, source=path, column=missing[0])
    # By position, because a header can name a column twice.
    positions = [position for position, name in enumerate(names) if name in columns]
    lines, texts = [], []
    for line, row in rows if header else chain([(first_line, first)], rows):
        if len(row) != len(names):
            span = f"{names[0]} to {names[-1]}"
            problem = f"{path}, row {line}: expected {len(names)} fields ({span}), found {len(row)}"
            raise InvalidInput(problem, source=path)
        lines.append(line)
        texts.append([row[position] for position in positions])
    if not lines:
        problem = f"{path} has a header and no rows: expected rows below it"
        raise InvalidInput(problem, source=path, remedy="Delete it and fetch it again")
    every = pd.DataFrame(texts, columns=positions, dtype=str)
    table = RawTable(str(path), np.array(lines), pd.DataFrame({name: every[names.index(name)] for name in columns}))
    for position in positions:
        if names.index(names[position]) != position:
            differs = every[position] != table.texts[names[position]]
            table.refuse(names[position], differs, "differs from what the second column of that name holds")
    return pd.DataFrame({name: read(table, name) for name, read in columns.items()})


def _rows(path: Path, comment: str | None, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row, without comments at the top and blank lines at the end."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            reader = csv.reader(file, delimiter=delimiter, skipinitialspace=True, strict=True)
            held_back: list[tuple[int, list[str]]] = []
            for row in dropwhile(lambda row: comment and row and row[0].startswith(comment), reader):
                held_back.append((reader.line_num, row))
                if row:
                    yield from held_back
                    held_back = []
    except FileNotFoundError:
        remedy = "Run the fetch stage, or put the file there by hand"
        raise InvalidInput(f"{path} is missing", source=path, remedy=remedy) from None
    except (UnicodeDecodeError, csv.Error) as error:
        kind = "comma" if delimiter == "," else "tab"
        problem = f"{path} is not {kind}-separated UTF-8 text ({error})"
        raise InvalidInput(problem, source=path, remedy="Delete it and get it again") from error
