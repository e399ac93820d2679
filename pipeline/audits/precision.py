"""How precisely an audit says what it says: the level of its intervals, and the draws behind them."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.fields import Checked, Count, Share


@dataclass(frozen=True)
class Precision(Checked):
    """Level 1 - ``alpha`` of the intervals, from ``bootstraps`` resamples; p-values from ``permutations`` draws."""

    alpha: Share
    bootstraps: Count
    permutations: Count
