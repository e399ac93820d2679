"""How to test."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from pipeline.audits.permutation.pvalue import SafeStop
from pipeline.audits.permutation.result import Alternative, Method

RESAMPLING_METHODS = ("studentized", "unstudentized", "lift", "bootstrap")


@dataclass(frozen=True)
class Settings:
    """How to test; ``run.permutation_test`` says what the values mean."""

    method: Method = "auto"
    alternative: Alternative = "two-sided"
    alpha: float = 0.05
    draws: int = 10_000
    smoothing: float = 1.0
    bootstraps: int = 200
    resampling_risk: float | None = None

    def __post_init__(self) -> None:
        methods = ("auto", "exact", *RESAMPLING_METHODS)
        if self.method not in methods:
            raise ValueError(f"expected a method among {', '.join(methods)}; found {self.method!r}")
        if self.alternative not in ("two-sided", "greater", "less"):
            raise ValueError(f"expected alternative two-sided, greater or less; found {self.alternative!r}")
        if not 0 < self.alpha < 1:
            raise ValueError(f"expected alpha between 0 and 1, found {self.alpha}")
        if self.draws < 1 or self.bootstraps < 2:
            raise ValueError(f"expected draws >= 1 and bootstraps >= 2, found {self.draws} and {self.bootstraps}")
        if not (isfinite(self.smoothing) and self.smoothing >= 0):
            raise ValueError(
                f"expected a finite smoothing >= 0, found {self.smoothing}: 1 is the default, 0 Wald's variance"
            )
        if self.resampling_risk is not None:
            SafeStop(self.alpha, self.resampling_risk)

    @property
    def stop(self) -> SafeStop | None:
        """When to stop drawing."""
        return None if self.resampling_risk is None else SafeStop(self.alpha, self.resampling_risk)
