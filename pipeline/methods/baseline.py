"""Baseline: a network with one hidden layer, trained for accuracy alone.

Class-balanced batches, mean cross entropy, Adam. Source: Maity et al. 2021, appendix F.3.1 and table 2.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pipeline.methods.adam_training import NetworkTraining, train
from pipeline.types import Classifier, Dataset


@dataclass(frozen=True)
class Config(NetworkTraining):
    """See :class:`pipeline.methods.adam_training.NetworkTraining`."""


def fit(dataset: Dataset, config: Config, rngs: Sequence[np.random.Generator]) -> Classifier:
    """Train on the first ``len(rngs)`` splits, all in one batch."""
    count = len(rngs)
    parameters, history = train(dataset.batch("train", count), dataset.batch("test", count), config, rngs)
    return Classifier(
        method="baseline",
        dataset=dataset.name,
        origin=dataset.origin,
        architecture="mlp",
        parameters=parameters,
        history=history,
    )
