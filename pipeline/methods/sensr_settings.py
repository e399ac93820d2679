"""What every engine of SenSR's iterations reads: the settings, and the numbers that are none."""

from dataclasses import dataclass
from typing import Annotated

from pipeline.fields import Checked, Count, Positive, one_of
from pipeline.methods.adam_training import HalfAndHalf

ENGINES = ("auto", "compiled", "torch")
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam, in both attacks and for the parameters."""
PENALTY_MIN, PENALTY_MAX = 1e-5, 10.0
"""Between which lambda is kept."""
RATE_DECAY = 0.999
"""Of the full attack's rate, each time that it fails."""


@dataclass(frozen=True)
class SensrSettings(Checked, of="method"):
    """What one iteration does, and how many there are.

    ``hidden_units`` H; ``learning_rate`` of the parameters' Adam; ``batch_size`` n, half of each class; ``iterations``;
    steps and rate of the two attacks; ``radius`` rho; ``initial_lambda``. ``engine``: ``compiled`` runs on ``threads``
    threads, a repetition in each, and gives the same numbers for any of them; ``torch`` runs on the visible device;
    ``auto`` is torch where a GPU is visible and compiled elsewhere.
    """

    hidden_units: Count
    learning_rate: Positive
    batch_size: HalfAndHalf
    iterations: Count
    subspace_steps: Count
    subspace_rate: Positive
    full_steps: Count
    full_rate: Positive
    radius: Positive
    initial_lambda: Positive
    engine: Annotated[str, one_of(ENGINES)]
    threads: Count
