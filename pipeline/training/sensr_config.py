"""Settings and constants of SenSR; ``pipeline.methods.sensr`` states the algorithm."""

from dataclasses import dataclass

from fairness_audits.validation import Checked, Count, Positive
from pipeline.methods.baseline import HalfAndHalf

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Constants of Adam, in both attacks and for the parameters."""
PENALTY_MIN, PENALTY_MAX = 1e-5, 10.0
"""Bounds of lambda."""
RATE_DECAY = 0.999
"""Factor on the full attack's rate after each failure."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """Settings of the training.

    ``hidden_units`` H; ``learning_rate`` of the parameters' Adam; ``batch_size`` n, half from each class;
    ``iterations``; steps and rate of the two attacks; ``radius`` rho; ``initial_lambda``. ``threads``: repetitions
    trained in parallel, which does not change the results.
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
