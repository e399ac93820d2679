"""No model: P(y = 1 | x) = 1/2, for audits that draw their own populations and look at no classifier."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.types import Classifier, Dataset


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def fit(dataset: Dataset, config: Config, rngs: Sequence[np.random.Generator]) -> Classifier:
    """One half for every row, in each of len(rngs) repetitions; nothing is drawn."""
    shape = (len(rngs), 1)
    parameters = {
        "weight": np.ones(shape),
        "coef": np.zeros((*shape, dataset.features.shape[1])),
        "intercept": np.zeros(shape),
    }
    return Classifier("none", dataset.name, dataset.origin, "logistic_mixture", parameters)
