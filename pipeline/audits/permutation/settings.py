"""How to test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pipeline.audits.permutation.pvalue import SafeStop
from pipeline.audits.permutation.result import Alternative, Method, tails
from pipeline.fields import Checked, Count, Share, at_least, finite


@dataclass(frozen=True)
class Settings(Checked):
    """How to test; ``run.permutation_test`` says what the values mean."""

    method: Method = "auto"
    alternative: Alternative = "two-sided"
    alpha: Share = 0.05
    draws: Count = 10_000
    smoothing: Annotated[float, at_least(0), finite] = 1.0
    bootstraps: Annotated[int, at_least(2)] = 200
    resampling_risk: Share | None = None

    @property
    def stop(self) -> SafeStop | None:
        """When to stop drawing."""
        level = self.alpha / tails(self.alternative)
        return None if self.resampling_risk is None else SafeStop(level, self.resampling_risk)
