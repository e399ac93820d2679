"""How precisely an audit says what it says: the level of its intervals, and the draws behind them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Precision:
    """Level 1 - ``alpha`` of the intervals, from ``bootstraps`` resamples; p-values from ``permutations`` draws."""

    alpha: float
    bootstraps: int
    permutations: int

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 1:
            raise ValueError(f"expected alpha in (0, 1), found {self.alpha}")
        for name in ("bootstraps", "permutations"):
            if getattr(self, name) < 1:
                raise ValueError(f"expected {name} of at least 1, found {getattr(self, name)}")
