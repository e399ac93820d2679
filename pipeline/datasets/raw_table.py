"""Strict reading of comma-separated raw files: every oddity is a ValueError that names file, row and column.

Rows are counted as an editor counts lines, from 1, comments and header included.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from pipeline.types import Array


@dataclass(frozen=True)
class RawTable:
    """A file's columns as text; ``lines[i]`` is the number of the line on which row i stands."""

    file: str
    lines: Array
    texts: pd.DataFrame

    def category(self, column: str, allowed: Collection[str]) -> pd.Series:
        """The column's texts (n,), each of which must be one of ``allowed``."""
        texts = self.texts[column]
        unknown = ~texts.isin(list(allowed))
        if unknown.any():
            self._refuse(column, unknown, f"is an unknown category: expected one of {sorted(allowed)}")
        return texts

    def code(self, column: str, pattern: str, what: str) -> pd.Series:
        """The column's texts (n,), each of which must match all of ``pattern``; ``what`` says so in words."""
        texts = self.texts[column]
        wrong = ~texts.str.fullmatch(pattern)
        if wrong.any():
            self._refuse(column, wrong, f"is no code: expected {what}")
        return texts

    def integer(self, column: str, low: int, high: int) -> pd.Series:
        """The column's whole numbers (n,) int64, each within [low, high]."""
        numbers = pd.to_numeric(self.texts[column], errors="coerce").astype(float)
        whole = np.isfinite(numbers) & (numbers == np.floor(numbers))
        if not whole.all():
            self._refuse(column, ~whole, "is not a whole number")
        self._refuse_outside(column, numbers, low, high)
        return numbers.astype(np.int64)

    def decimal(self, column: str, low: float, high: float) -> pd.Series:
        """The column's numbers (n,) float64, each within [low, high]."""
        numbers = pd.to_numeric(self.texts[column], errors="coerce").astype(float)
        finite = np.isfinite(numbers)
        if not finite.all():
            self._refuse(column, ~finite, "is not a number")
        self._refuse_outside(column, numbers, low, high)
        return numbers

    def rows(self, keep: pd.Series) -> RawTable:
        """The rows where ``keep`` (n,) is true, with their line numbers."""
        return RawTable(self.file, self.lines[keep.to_numpy()], self.texts[keep])

    def _refuse_outside(self, column: str, numbers: pd.Series, low: float, high: float) -> None:
        outside = (numbers < low) | (numbers > high)
        if outside.any():
            self._refuse(column, outside, f"is out of range: expected {low} to {high}")

    def _refuse(self, column: str, bad: pd.Series, reason: str) -> None:
        """Raise for the first bad row."""
        first, count = int(np.argmax(bad)), int(bad.sum())
        more = f" ({count - 1} more such row{'s' if count > 2 else ''})" if count > 1 else ""
        found = self.texts[column].iloc[first]
        raise ValueError(f"{self.file}, row {self.lines[first]}, column {column!r}: {found!r} {reason}{more}")


def read(
    path: Path,
    columns: Sequence[str],
    *,
    header: bool,
    comment: str | None = None,
    spelled: Callable[[str], str] = str,
) -> RawTable:
    """Read ``columns`` of the file at ``path``, all as text.

    With ``header`` the first line names the columns and may name more than those asked for; a column that occurs twice
    must say the same twice; ``spelled`` turns a name of the header into the one asked for. Without, ``columns`` are all
    the fields of a row, in order. Lines at the top that start with ``comment`` are skipped, and so are blank lines at
    the end. Raises ValueError for a missing, empty or undecodable file, for a missing column, and for a row with
    another number of fields than there are columns.
    """
    first, top, counts = _survey(path, comment)
    names = [spelled(name) for name in first] if header else list(columns)
    missing = [name for name in columns if name not in names]
    if missing:
        raise ValueError(f"{path}, row {len(top) + 1}: columns {missing} are missing; the header names {names}")
    wrong = np.flatnonzero(counts[:, 1] != len(names))
    if len(wrong):
        line, count = counts[wrong[0]]
        raise ValueError(f"{path}, row {line}: expected {len(names)} fields ({names[0]} to {names[-1]}), found {count}")
    if header and len(counts) == 1:
        raise ValueError(f"{path} has a header and no rows: expected rows below it; delete it and fetch it again")
    # By position: pandas would rename the second of two columns that share a name.
    every = pd.read_csv(
        path,
        header=None,
        usecols=[position for position, name in enumerate(names) if name in columns],
        skiprows=len(top) + header,
        dtype=str,
        na_filter=False,
        skipinitialspace=True,
        encoding="utf-8",
    )
    lines = counts[int(header) :, 0]
    assert len(every) == len(lines), "the csv module and pandas count rows alike"
    table = RawTable(str(path), lines, pd.DataFrame({name: every[names.index(name)] for name in columns}))
    for position, name in enumerate(names):
        if name in columns and names.index(name) != position:
            differs = every[position] != table.texts[name]
            if differs.any():
                table._refuse(name, differs, "differs from what the second column of that name holds")
    return table


def _survey(path: Path, comment: str | None) -> tuple[list[str], list[str], Array]:
    """The first row's fields, the comment lines above it, and (line, number of fields) of every row (n, 2).

    The rows themselves are not kept: pandas reads them faster, but it fills short rows up in silence.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            top = []
            while comment is not None and (line := file.readline()).startswith(comment):
                top.append(line)
            file.seek(0)
            reader = csv.reader(file, skipinitialspace=True, strict=True)
            for _ in top:
                next(reader)
            first = next(reader, [])
            counts = [(reader.line_num, len(first))]
            counts += [(reader.line_num, len(row)) for row in reader]
    except FileNotFoundError:
        raise ValueError(f"{path} is missing: run the fetch stage, or put the file there by hand") from None
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is not comma-separated UTF-8 text ({error}): delete it and fetch it again") from error
    while counts and counts[-1][1] == 0:
        counts.pop()
    if not counts:
        raise ValueError(f"{path} is empty: expected rows; delete it and fetch it again")
    return first, top, np.array(counts)
