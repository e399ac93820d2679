"""The settings and constants of SenSR's iterations; ``pipeline.methods.sensr`` states the algorithm."""

from dataclasses import dataclass

from fairness_audits.validation import Checked, Count, Positive
from pipeline.methods.baseline import HalfAndHalf

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam, in both attacks and for the parameters."""
PENALTY_MIN, PENALTY_MAX = 1e-5, 10.0
"""Between which lambda is kept."""
RATE_DECAY = 0.999
"""Of the full attack's rate, each time that it fails."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """What one iteration does, and how many there are.

    ``hidden_units`` H; ``learning_rate`` of the parameters' Adam; ``batch_size`` n, half of each class; ``iterations``;
    steps and rate of the two attacks; ``radius`` rho; ``initial_lambda``. It runs on ``threads`` threads of the
    processor, a repetition in each, and gives the same numbers for any of them.
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
    threads: Count
