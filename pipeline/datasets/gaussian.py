"""Two samples from one Gaussian distribution, to measure the stability of a map: section 3.2 of Black et al. (2020).

    S, S' ~ N(0, Sigma) in d dimensions,   Sigma = (1 - rho) I + rho 1 1^T

Each repetition draws n points of each group, except two: the first row of S is the fixed point (1, ..., 1) and the
second is (0, ..., 0). Their images are compared between draws. The paper fixes one point at a time and draws the other
n - 1 points of S. Here both fixed points are in the same sample, next to n - 2 others, so one map serves both
questions. The rest of S follows, then S'. All rows are both training and test rows. There is no true label; all labels
are 0. The features have mean 0 and variance 1 and are not standardised again.
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
    """``n`` points in each group, ``dimension`` d, and ``correlation`` rho of any two features."""

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
    # Root of Sigma: sqrt(1 - rho) orthogonal to (1, ..., 1), sqrt(1 + (d - 1) rho) along it. For d = 1, Sigma = 1.
    across, along = (np.sqrt(1 - rho), np.sqrt(max(1 + (d - 1) * rho, 0.0))) if d > 1 else (1.0, 1.0)
    z = rng.standard_normal((2 * config.n, d))
    x = across * z + (along - across) * z.mean(axis=1, keepdims=True)
    x[0], x[1] = 1.0, 0.0
    group = np.repeat((1, 0), config.n)
    return tabular.Draw(x, np.zeros_like(group), group)
