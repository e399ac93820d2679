"""What an engine offers: a source of rows that can be counted, searched for faults and fetched."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

from pipeline.tabulate.reading import Reading
from pipeline.types import Array

FIRST = 5
"""How many faulty rows an error names."""
MISSING_TEXTS = ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
"""What stands for a missing value in a CSV file; the columns of a CSV file are text, whatever engine reads it."""

Fault = Literal["none", "missing", "text", "outside"]
FAULTS: tuple[Fault, ...] = ("none", "missing", "text", "outside")
"""What can be wrong with a score, by its code: nothing, no value, no number, not within the bounds."""


@dataclass(frozen=True)
class Cell:
    """``count`` rows have these values in the columns of group and label, and this reading of the outcome.

    ``outcome`` is the decision's value as it stands, 0 or 1 by a threshold, the number of a bin, or the score; it
    means nothing where there is a ``fault``.
    """

    group: Any
    label: Any
    fault: Fault
    outcome: Any
    count: int


@dataclass(frozen=True)
class Place:
    """Where a row stands: its number in its file, counted from 0 (None where there is no order), and its value."""

    row: int | None
    file: str | None
    value: Any


@dataclass(frozen=True)
class Faulty:
    """Which rows to find: those where ``column`` has the fault (``outside``: of [low, high]), or is ``value``."""

    column: str
    fault: Fault | Literal["value"]
    low: float = -math.inf
    high: float = math.inf
    value: Any = None


@dataclass(frozen=True)
class Request:
    """The columns of one table of counts, and how many cells it may have before the scan is given up."""

    group: str
    label: str
    outcome: Reading
    cells: int

    @property
    def columns(self) -> tuple[str, str, str]:
        """Group, label and outcome."""
        return self.group, self.label, self.outcome.column


@dataclass(frozen=True)
class TooManyCells:
    """The scan was given up: about how many values each column has."""

    distinct: Mapping[str, int]


@runtime_checkable
class Table(Protocol):
    """Rows somewhere. ``name`` is what errors call it. Every method raises ValueError where a file cannot be read."""

    name: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in their order."""

    def size(self) -> int:
        """The number of rows."""

    def cells(self, request: Request) -> list[Cell] | TooManyCells:
        """The counts, by one scan of the rows."""

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        """About how many values each column has."""

    def places(self, faulty: Faulty) -> list[Place]:
        """The first faulty rows."""

    def arrays(self, columns: Sequence[str]) -> dict[str, Array]:
        """Columns in the order of the rows: numbers as they are, text as objects (None for a missing one)."""
