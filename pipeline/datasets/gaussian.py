"""Two samples of one Gaussian law, to see how stable a transport map is: section 3.2 of Black et al. (2020).

    S, S' ~ N(0, Sigma) in d dimensions,   Sigma = (1 - rho) I + rho 1 1^T

n points of each, drawn anew in every repetition, except two: the first row of S is the fixed point (1, ..., 1) and the
second is (0, ..., 0), whose images are compared from draw to draw. The paper fixes one point at a time and draws the
other n - 1 of S; here both stand in the same draw, next to n - 2 others, so that one map serves both questions. The
rest of S follows and then S'; all of them are training and test rows alike. There is no true label: all are 0. Nothing
is standardised, every feature having mean 0 and variance 1 already.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fairness_audits.validation import Checked, Count, above
from fairness_audits.values import Dataset, Generators, Provenance
from pipeline.raw_data import tabular

LEVELS = ("S'", "S")
FIXED_POINTS = ("ones", "zeros")
"""The first rows of S in every repetition, in this order."""


@dataclass(frozen=True)
class Config(Checked, of="dataset"):
    """``n`` points of each group, ``dimension`` d and ``correlation`` rho of any two features."""

    n: Annotated[int, above(len(FIXED_POINTS))]
    dimension: Count
    correlation: float

    def __post_init__(self) -> None:
        super().__post_init__()
        lowest = -1 / (self.dimension - 1) if self.dimension > 1 else -1.0
        if not lowest <= self.correlation <= 1:
            raise ValueError(
                f"dataset.correlation of {self.dimension} features must lie in [{lowest:.4g}, 1], "
                f"found {self.correlation}"
            )


def prepare(rows: None, config: Config, rngs: Generators, origin: Provenance) -> Dataset:
    """Draw 2 n rows with each generator."""
    draws = [_draw(config, rng) for rng in rngs]
    names = tabular.numbered("x", config.dimension)
    return tabular.stacked("gaussian", draws, feature_names=names, attribute="group", levels=LEVELS)


def _draw(config: Config, rng: np.random.Generator) -> tabular.Draw:
    d, rho = config.dimension, config.correlation
    # Sigma's root: sqrt(1 - rho) across the diagonal 1, sqrt(1 + (d - 1) rho) along it. In one dimension Sigma is 1.
    across, along = (np.sqrt(1 - rho), np.sqrt(max(1 + (d - 1) * rho, 0.0))) if d > 1 else (1.0, 1.0)
    z = rng.standard_normal((2 * config.n, d))
    x = across * z + (along - across) * z.mean(axis=1, keepdims=True)
    x[0], x[1] = 1.0, 0.0
    group = np.repeat((1, 0), config.n)
    return tabular.Draw(x, np.zeros_like(group), group)
