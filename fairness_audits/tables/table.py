"""What an engine offers, a source of rows that can be counted, searched for faults and fetched, and what it is asked.

How a model's output is read as a cell of a table: a decision, a thresholded, a binned or a plain score.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np

from fairness_audits.values import Array


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
    """Bin k of 0 ... number - 1 holds the scores with edge(k) <= s < edge(k + 1), the last one also s = high.

    edge(k) = low + k (high - low) / number, evaluated in doubles from left to right. All engines evaluate this very
    expression, so a score at an edge falls into the same bin in each of them.
    """

    number: int = 100

    @property
    def edges(self) -> Array:
        """(number + 1,) bounds of the bins."""
        return self.low + np.arange(self.number + 1, dtype=np.float64) * (self.high - self.low) / self.number


Reading = Decision | Score


def reading(
    score: str | None,
    prediction: str | None,
    threshold: float | None,
    bins: int | None,
    bounds: tuple[float, float] | None,
) -> Reading:
    """The reading that these arguments ask for. Raises ValueError where they contradict each other."""
    if (score is None) == (prediction is None):
        found = "neither" if score is None else "both"
        raise ValueError(f"expected a score or a prediction column, found {found}: name one of them")
    if prediction is not None:
        if threshold is not None or bins is not None:
            raise ValueError(
                f"a threshold and bins are for scores, but {prediction!r} holds predictions: leave them out"
            )
        return Decision(prediction)
    assert score is not None
    if threshold is not None and bins is not None:
        raise ValueError("expected a threshold or bins, found both: decisions come from the one, cells from the other")
    low, high = bounds or ((0.0, 1.0) if bins is not None else (-math.inf, math.inf))
    if not low < high:
        raise ValueError(f"expected the scores' lower bound below the upper one, found {low:g} and {high:g}")
    if threshold is not None:
        if not math.isfinite(threshold):
            raise ValueError(f"expected a finite threshold, found {threshold}")
        return Threshold(score, low, high, threshold)
    if bins is None:
        return Score(score, low, high)
    if bins < 2:
        raise ValueError(f"expected at least 2 bins, found {bins}")
    if not math.isfinite(high - low):
        raise ValueError(f"bins need finite bounds, found {low:g} to {high:g}: give the smallest and the largest score")
    return Bins(score, low, high, bins)


MISSING_TEXTS = ("", "#N/A", "#NA", "-NaN", "-nan", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
"""What stands for a missing value in a CSV file; the columns of a CSV file are text, whatever engine reads it."""


def missing_texts(asked: Sequence[str] | None) -> Sequence[str]:
    """What stands for a missing value beside the empty cell; ``asked`` in place of the usual ones."""
    return MISSING_TEXTS if asked is None else ("", *asked)


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
    """Rows somewhere, ``notes`` on how they were read. Every method raises ValueError where a file cannot be read."""

    @property
    def notes(self) -> Mapping[str, Any]:
        """By name of a caveat, its quantities."""

    def size(self) -> int:
        """The number of rows."""

    def cells(self, request: Request) -> list[Cell]:
        """The counts, by one scan of the rows. Raises ValueError where there are too many."""

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        """About how many values each column has."""

    def arrays(self, columns: Sequence[str]) -> dict[str, Array]:
        """Columns in the order of the rows: numbers as they are, text as objects (None for a missing one)."""
