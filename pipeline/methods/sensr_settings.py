"""What every engine of SenSR's iterations reads: the settings, and the numbers that are none."""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.methods.adam_training import require_even, require_positive

ENGINES = ("auto", "compiled", "torch")
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam, in both attacks and for the parameters."""
PENALTY_MIN, PENALTY_MAX = 1e-5, 10.0
"""Between which lambda is kept."""
RATE_DECAY = 0.999
"""Of the full attack's rate, each time that it fails."""


@dataclass(frozen=True)
class SensrSettings:
    """What one iteration does, and how many there are.

    ``hidden_units`` H; ``learning_rate`` of the parameters' Adam; ``batch_size`` n, half of each class; ``iterations``;
    steps and rate of the two attacks; ``radius`` rho; ``initial_lambda``. ``engine``: ``compiled`` runs on ``threads``
    threads, a repetition in each, and gives the same numbers for any of them; ``torch`` runs on the visible device;
    ``auto`` is torch where a GPU is visible and compiled elsewhere.
    """

    hidden_units: int
    learning_rate: float
    batch_size: int
    iterations: int
    subspace_steps: int
    subspace_rate: float
    full_steps: int
    full_rate: float
    radius: float
    initial_lambda: float
    engine: str
    threads: int

    def __post_init__(self) -> None:
        require_positive(
            self,
            *("hidden_units", "learning_rate", "batch_size", "iterations", "subspace_steps", "subspace_rate"),
            *("full_steps", "full_rate", "radius", "initial_lambda", "threads"),
        )
        require_even(self.batch_size)
        if self.engine not in ENGINES:
            raise ValueError(f"expected engine to be one of {', '.join(ENGINES)}, found {self.engine!r}")
