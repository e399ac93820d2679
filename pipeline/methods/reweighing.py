r"""Reweighing: a logistic regression with row weights that make group and label independent.

.. math:: W(a, y) = \frac{P(A = a)\, P(Y = y)}{P(A = a, Y = y)}, \qquad
          \min_{w, b} \; \tfrac12 |w|^2 + C \sum_{i \in F} W(a_i, y_i) \log(1 + e^{-(2 y_i - 1)(w^\top x_i + b)})

with shares of the training rows. The groups a are the combinations of all protected attributes; rows in neither group
of an attribute are a third level. With these weights every group has the same share of positive labels. The regression
and the choice of C follow :mod:`pipeline.methods.logistic`. Validation rows are weighted too.

Source: Kamiran and Calders 2012, "Data preprocessing techniques for classification without discrimination".
"""

import numpy as np

from fairness_audits.values import Array, Classifier, Dataset, Generators
from pipeline.methods import logistic
from pipeline.methods.reductions import crossed_groups

Config = logistic.Config


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Fit one regression for each of the first len(rngs) splits, with the facts of the logistic regression."""
    data = dataset.batch("train", len(rngs))
    weight = np.stack(
        [
            weights(crossed_groups({name: values[r] for name, values in data.protected.items()}), label)
            for r, label in enumerate(data.label)
        ]
    )
    return logistic.classifier("reweighing", dataset, logistic.fits(data, config, weight))


def weights(group: Array, label: Array) -> Array:
    """Compute the weight W of each row, (n,), from its ``group`` (n,), coded from 0, and its ``label`` (n,)."""
    counts = np.zeros((group.max() + 1, 2))
    np.add.at(counts, (group, label), 1)
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / len(label)
    return np.asarray((expected / np.where(counts > 0, counts, 1))[group, label])
