"""No model: P(y = 1 | x) = 1/2, for audits that draw their own populations and look at no classifier."""

from dataclasses import dataclass

import numpy as np

from fairness_audits.models import logistic_mixture
from fairness_audits.values import Classifier, Dataset, Generators


@dataclass(frozen=True)
class Config:
    """Nothing to choose."""


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """One half for every row, in each of len(rngs) repetitions; nothing is drawn."""
    parameters = logistic_mixture.regressions(np.zeros((len(rngs), dataset.features.shape[1])), np.zeros(len(rngs)))
    return Classifier.of("none", dataset, "logistic_mixture", parameters)
