r"""A linear rule that is given, not trained: its weights and its threshold stand in the configuration.

.. math:: h(x) = 1[w^\top x > t] \qquad \text{or, with a slope } k, \qquad P(h = 1 \mid x) = \sigma(k (w^\top x - t))

The weights belong to the features as the dataset prepares them: standardised where it standardises. With a slope the
decision itself is random, for an audit that draws it: a steep one leaves nothing to chance except at the threshold,
where the odds are even.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from pipeline.fields import Checked, above, finite
from pipeline.types import Array, Classifier, Dataset


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``weights`` by feature name (0 for the others), ``threshold`` t, and ``slope`` k of a random decision or None."""

    weights: Mapping[str, Annotated[float, finite]]
    threshold: Annotated[float, finite]
    slope: Annotated[float, above(0), finite] | None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.weights:
            raise ValueError(
                "expected method.weights by feature name, found none: give this dataset's under per_dataset "
                "in the method's YAML"
            )


def fit(dataset: Dataset, config: Config, rngs: Sequence[np.random.Generator]) -> Classifier:
    """The rule, the same in each of len(rngs) repetitions; nothing is drawn.

    Raises ValueError for a weight on a feature that the dataset does not have.
    """
    repetitions = len(rngs)
    coef = np.tile(_weights(dataset, config.weights), (repetitions, 1))
    threshold = np.full(repetitions, float(config.threshold))
    if config.slope is None:
        architecture = "linear"
        parameters = {"coef": coef, "intercept": np.zeros(repetitions), "threshold": threshold}
    else:
        architecture = "logistic_mixture"
        parameters = {
            "weight": np.ones((repetitions, 1)),
            "coef": config.slope * coef[:, None, :],
            "intercept": -config.slope * threshold[:, None],
        }
    return Classifier("given", dataset.name, dataset.origin, architecture, parameters)


def _weights(dataset: Dataset, weights: Mapping[str, float]) -> Array:
    """The weights in the order of the dataset's features: (d,)."""
    if unknown := sorted(set(weights) - set(dataset.feature_names)):
        raise ValueError(
            f"expected method.weights among the features of {dataset.name!r}, {', '.join(dataset.feature_names)}; "
            f"found {unknown}"
        )
    return np.array([float(weights.get(name, 0.0)) for name in dataset.feature_names])
