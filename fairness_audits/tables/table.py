"""The interface of an engine: a source of rows that it counts, searches for faults and fetches, and its requests.

How a model's output is read as a cell of a table: a decision, a thresholded, a binned or a plain score.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, runtime_checkable

import numpy as np

from fairness_audits.audits.permutation.outcomes import in_precision
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

if TYPE_CHECKING:
    import pandas as pd

    from fairness_audits.tables.groupings import Grouping


@dataclass(frozen=True)
class Decision:
    """The column holds the decision itself, in two classes."""

    column: str


@dataclass(frozen=True)
class Score:
    """The column holds a number s with low <= s <= high, each value a cell of its own."""

    column: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Threshold(Score):
    """The decision is 1 where s >= threshold."""

    threshold: float = 0.5


@dataclass(frozen=True)
class Bins(Score):
    """Scores that lie together in rank, counted together.

    The rows of each label are ranked and cut into ``number`` bins of equal counts. Two scores are in one cell if they
    begin and end in the same bin of both labels. So a cell holds at most one in ``number`` of the rows of each label,
    or it is a single score.
    """

    number: int = 100


Reading = Decision | Score


def reading(
    score: str | None,
    prediction: str | None,
    threshold: float | None,
    bins: int | None,
    bounds: tuple[float, float] | None,
) -> Reading:
    """The reading that these arguments ask for. Raises InvalidInput where they contradict each other."""
    if (score is None) == (prediction is None):
        found = "neither" if score is None else "both"
        problem = f"expected a score or a prediction column, found {found}"
        raise InvalidInput(problem, option="score", remedy="Name one of them")
    if prediction is not None:
        if threshold is not None or bins is not None:
            raise InvalidInput(
                f"a threshold and bins are for scores, but {prediction!r} holds predictions",
                option="bins" if threshold is None else "threshold",
                column=prediction,
                remedy="Leave them out",
            )
        return Decision(prediction)
    assert score is not None
    if threshold is not None and bins is not None:
        problem = "expected a threshold or bins, found both"
        raise InvalidInput(problem, option="bins", remedy="Give a threshold for decisions, bins for cells of scores")
    low, high = bounds or (-math.inf, math.inf)
    if not low < high:
        problem = f"expected the scores' lower bound below the upper one, found {low:g} and {high:g}"
        raise InvalidInput(problem, option="bounds")
    if threshold is not None:
        if not math.isfinite(threshold):
            raise InvalidInput(f"expected a finite threshold, found {threshold}", option="threshold")
        return Threshold(score, low, high, threshold)
    if bins is None:
        return Score(score, low, high)
    if bins < 2:
        raise InvalidInput(f"expected at least 2 bins, found {bins}", option="bins")
    return Bins(score, low, high, bins)


MISSING_TEXTS = ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
"""What stands for a missing value in a CSV file; the columns of a CSV file are text, whatever engine reads it."""


def missing_texts(texts: Sequence[str] | None) -> Sequence[str]:
    """Return the texts of a missing value beside the empty cell; ``texts`` replace the usual ones."""
    return MISSING_TEXTS if texts is None else ("", *texts)


Read = TypeVar("Read", bound=Decision | Score)


def in_precision_of(outcome: Read, dtype: np.dtype) -> Read:
    """The reading with its numbers in the precision of the column: those of single precision are cut at single 0.7.

    Whole numbers are allowed as far as doubles tell them apart.
    """
    names = [one.name for one in fields(outcome) if one.name in ("low", "high", "threshold")]
    rounded: dict[str, Any] = {name: float(in_precision(getattr(outcome, name), dtype)) for name in names}
    if dtype.kind == "i" and not isinstance(outcome, Decision):
        rounded |= {"low": max(outcome.low, -DISTINGUISHED), "high": min(outcome.high, DISTINGUISHED)}
    return replace(outcome, **rounded)


HALF = np.float16
DISTINGUISHED = 2.0**53 - 1
"""Whole numbers up to this one are the double of no other."""


def precision_of(column: pd.Series) -> np.dtype:
    """The type of a data frame's column, NumPy's where it is one of pandas' own."""
    return np.dtype(getattr(column.dtype, "numpy_dtype", column.dtype))


def half_columns(frame: pd.DataFrame) -> frozenset[str]:
    """The columns of half precision, which engines hold in single precision."""
    from pandas.api.types import is_float_dtype

    floats = ((str(name), column) for name, column in frame.items() if is_float_dtype(column))
    return frozenset(name for name, column in floats if precision_of(column) == HALF)


Fault = Literal["none", "missing", "text", "outside"]
FAULTS: tuple[Fault, ...] = ("none", "missing", "text", "outside")
"""What can be wrong with a score, by its code: nothing, no value, no number, not within the bounds."""


@dataclass(frozen=True)
class Cell:
    """``count`` rows have these values in the columns of group and label, and this reading of the outcome.

    ``outcome`` is the decision's value as it stands, 0 or 1 by a threshold, the score, or what names a bin, of which
    ``lower`` and ``upper`` are the rows' lowest and highest score; it means nothing where there is a ``fault``.
    """

    group: Any
    label: Any
    fault: Fault
    outcome: Any
    count: int
    lower: float = math.nan
    upper: float = math.nan


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


class Placed(Protocol):
    """What errors speak of: rows that are called ``name``, their columns, and where the faulty ones stand."""

    @property
    def name(self) -> str:
        """What errors call the rows."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in their order."""

    def places(self, faulty: Faulty) -> list[Place]:
        """The first faulty rows."""


@runtime_checkable
class Table(Placed, Protocol):
    """Rows somewhere, ``notes`` on how they were read. Every method raises InvalidInput where a file cannot be read."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """By name of a caveat, its quantities."""

    def size(self) -> int:
        """The number of rows."""

    def cells(self, request: Request) -> list[Cell]:
        """The counts, by one scan of the rows. Raises InvalidInput where there are too many."""

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        """About how many values each column has."""

    def precision(self, column: str) -> np.dtype:
        """In which type a column's numbers are compared: a floating-point type, or int64 for whole numbers."""

    def add(self, grouping: Grouping) -> None:
        """Add a column that is made of others."""

    def arrays(self, columns: Sequence[str]) -> dict[str, Array]:
        """Columns in the order of the rows: numbers as they are, text as objects (None for a missing one)."""
