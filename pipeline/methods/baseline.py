"""Baseline: a network with one hidden layer, trained for accuracy alone.

Class-balanced batches, mean cross entropy, Adam. Source: Maity et al. 2021, appendix F.3.1 and table 2.
"""

from pipeline.methods.adam_training import NetworkTraining, train
from pipeline.types import Classifier, Dataset, Generators

Config = NetworkTraining


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Train on the first ``len(rngs)`` splits, all in one batch."""
    count = len(rngs)
    parameters, history = train(dataset.batch("train", count), dataset.batch("test", count), config, rngs)
    return Classifier.of("baseline", dataset, "mlp", parameters, history=history)
