r"""A linear rule with weights and a threshold from the configuration; nothing is trained.

.. math:: h(x) = 1[w^\top x > t] \qquad \text{or, with a slope } k, \qquad P(h = 1 \mid x) = \sigma(k (w^\top x - t))

The weights apply to the features as the data set prepares them, standardised or not. With a slope, an audit can draw
the decision at random. A steep slope makes it random only at the threshold, where the odds are even.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from fairness_audits.models import logistic_mixture
from fairness_audits.validation import Checked, above, finite
from fairness_audits.values import Classifier, Dataset, Generators


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``weights`` by feature name (default 0), ``threshold`` t, and ``slope`` k of a random decision, or None."""

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


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Return the rule, identical in each of the len(rngs) repetitions.

    Raises ValueError for a weight on a feature that the data set does not have.
    """
    names = dataset.feature_names
    if unknown := sorted(set(config.weights) - set(names)):
        raise ValueError(
            f"expected method.weights among the features of {dataset.name!r}, {', '.join(names)}; found {unknown}"
        )
    coef = np.tile([float(config.weights.get(name, 0.0)) for name in names], (len(rngs), 1))
    threshold = np.full(len(rngs), float(config.threshold))
    if config.slope is not None:
        parameters = logistic_mixture.regressions(config.slope * coef, -config.slope * threshold)
        return Classifier.of("given", dataset, "logistic_mixture", parameters)
    parameters = {"coef": coef, "intercept": np.zeros(len(rngs)), "threshold": threshold}
    return Classifier.of("given", dataset, "linear", parameters)
