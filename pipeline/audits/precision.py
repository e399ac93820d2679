"""The level of an audit's intervals, and the number of draws behind its intervals and p-values."""

from dataclasses import dataclass

from pipeline.fields import Checked, Count, Share


@dataclass(frozen=True)
class Precision(Checked):
    """Level 1 - ``alpha`` of the intervals, from ``bootstraps`` resamples; p-values from ``permutations`` draws."""

    alpha: Share
    bootstraps: Count
    permutations: Count
