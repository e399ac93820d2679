"""The numbers of SenSR's iterations that are no parameters: the same for every engine. ``pipeline.methods.sensr``."""

from __future__ import annotations

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Of Adam, in both attacks and for the parameters."""
PENALTY_MIN, PENALTY_MAX = 1e-5, 10.0
"""Between which lambda is kept."""
RATE_DECAY = 0.999
"""Of the full attack's rate, each time that it fails."""
