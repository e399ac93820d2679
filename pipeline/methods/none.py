"""No model: P(y = 1 | x) = 1/2, for audits that draw their own populations and use no classifier."""

from dataclasses import dataclass

import numpy as np

from fairness_audits.models import logistic_mixture
from fairness_audits.values import Classifier, Dataset, Generators


@dataclass(frozen=True)
class Config:
    """No settings."""


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Return 1/2 for every row, in each of the len(rngs) repetitions."""
    parameters = logistic_mixture.regressions(np.zeros((len(rngs), dataset.features.shape[1])), np.zeros(len(rngs)))
    return Classifier.of("none", dataset, "logistic_mixture", parameters)
