"""How what a model says of a row is read as a cell of a table: a decision, a thresholded, a binned or a plain score."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pipeline.types import Array


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
