"""Interface of an engine, which counts rows, finds faulty rows and fetches rows, and the types of its requests.

A reading turns a model's output into a cell of a table: a decision, or a thresholded or plain score.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np

from fairness_audits.audits.permutation.outcomes import in_precision
from fairness_audits.errors import InvalidInput
from fairness_audits.values import Array

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Decision:
    """Reading of a column that holds the decision, in two classes."""

    column: str


@dataclass(frozen=True)
class Score:
    """Reading of a column of numbers s with low <= s <= high, in which each value is a cell."""

    column: str
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class Threshold(Score):
    """Reading of scores as the decision 1[s >= threshold]."""

    threshold: float = 0.5


Reading = Decision | Score


def reading(
    score: str | None,
    prediction: str | None,
    threshold: float | None,
    bounds: tuple[float, float] | None,
) -> Reading:
    """Return the reading that these arguments describe. Raises InvalidInput if they contradict each other."""
    if (score is None) == (prediction is None):
        found = "neither" if score is None else "both"
        problem = f"expected a score or a prediction column, found {found}"
        raise InvalidInput(problem, option="score", remedy="Name one of them")
    if prediction is not None:
        if threshold is not None:
            problem = f"a threshold needs scores, but {prediction!r} holds predictions"
            raise InvalidInput(problem, option="threshold", column=prediction, remedy="Drop it")
        return Decision(prediction)
    assert score is not None
    low, high = bounds or (-math.inf, math.inf)
    if not low < high:
        problem = f"expected the scores' lower bound below the upper one, found {low:g} and {high:g}"
        raise InvalidInput(problem, option="bounds")
    if threshold is not None:
        if not math.isfinite(threshold):
            raise InvalidInput(f"expected a finite threshold, found {threshold}", option="threshold")
        return Threshold(score, low, high, threshold)
    return Score(score, low, high)


MISSING_TEXTS = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "NaN", "None", "n/a", "nan", "null"),
)
"""Texts of missing values in CSV files, as in ``pandas.read_csv``. Every engine reads CSV columns as text."""


def missing_texts(texts: Sequence[str] | None) -> Sequence[str]:
    """Return the texts of missing values, which always include the empty cell; ``texts`` replace the defaults."""
    return MISSING_TEXTS if texts is None else ("", *texts)


Read = TypeVar("Read", bound=Decision | Score)


def in_precision_of(outcome: Read, dtype: np.dtype) -> Read:
    """Round the numbers of a reading to the column's precision: single-precision scores are cut at single 0.7.

    The bounds of an integer column are limited to the integers that doubles can distinguish.
    """
    names = [one.name for one in fields(outcome) if one.name in ("low", "high", "threshold")]
    rounded: dict[str, Any] = {name: float(in_precision(getattr(outcome, name), dtype)) for name in names}
    if dtype.kind == "i" and not isinstance(outcome, Decision):
        rounded |= {"low": max(outcome.low, -DISTINGUISHED), "high": min(outcome.high, DISTINGUISHED)}
    return replace(outcome, **rounded)


HALF = np.float16
DIGITS = 15
"""Doubles represent all decimal numbers with at most this number of digits uniquely."""
DISTINGUISHED = 2.0**53 - 1
"""Largest integer up to which doubles represent every integer uniquely."""


def precision_of(column: pd.Series) -> np.dtype:
    """Return the type of a data frame's column, as a NumPy type if it is a pandas extension type."""
    return np.dtype(getattr(column.dtype, "numpy_dtype", column.dtype))


def as_written(numbers: Any, dtype: np.dtype) -> Array:
    """Return numbers of a column of this type as doubles that print as the column's numbers: 0.7 for single 0.7."""
    if dtype.kind != "f" or dtype == np.float64:
        return np.asarray(numbers)
    return np.asarray(numbers, dtype=dtype).astype(str).astype(np.float64)


def half_columns(frame: pd.DataFrame) -> frozenset[str]:
    """Return the columns with half precision, which engines store in single precision."""
    from pandas.api.types import is_float_dtype

    floats = ((str(name), column) for name, column in frame.items() if is_float_dtype(column))
    return frozenset(name for name, column in floats if precision_of(column) == HALF)


Fault = Literal["none", "missing", "text", "outside"]
FAULTS: tuple[Fault, ...] = ("none", "missing", "text", "outside")
"""Faults of a score, in the order of their codes: none, missing value, not a number, out of bounds."""


@dataclass(frozen=True)
class Cell:
    """The ``count`` of rows with these values of group and label, and this reading of the outcome.

    ``outcome`` is the raw value of a decision, 0 or 1 by a threshold, or a score. It has no meaning if there is a
    ``fault``.
    """

    group: Any
    label: Any
    fault: Fault
    outcome: Any
    count: int


@dataclass(frozen=True)
class Place:
    """The position of a row: its number in its file, counted from 0 (None if rows have no order), and its value."""

    row: int | None
    file: str | None
    value: Any


@dataclass(frozen=True)
class Faulty:
    """A search for rows whose ``column`` has a fault (``outside`` means outside [low, high]) or the given ``value``."""

    column: str
    fault: Fault | Literal["value"]
    low: float = -math.inf
    high: float = math.inf
    value: Any = None


@dataclass(frozen=True)
class Request:
    """The columns of one table of counts, and its maximum number of cells."""

    group: str
    label: str
    outcome: Reading
    cells: int

    @property
    def columns(self) -> tuple[str, str, str]:
        """Return the columns of group, label and outcome."""
        return self.group, self.label, self.outcome.column


class Placed(Protocol):
    """The part of a table that error messages use: its name, its columns, and the positions of faulty rows."""

    @property
    def name(self) -> str:
        """Return the name of the table in error messages."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the names of the columns in order."""

    def places(self, faulty: Faulty) -> list[Place]:
        """Return the first faulty rows."""
