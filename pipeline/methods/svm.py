r"""A support vector machine with a Gaussian kernel, by scikit-learn.

.. math:: \min_{f, b} \; \tfrac12 \|f\|^2 + C \sum_i \max(0, 1 - (2 y_i - 1)(f(x_i) + b)), \qquad
          k(x, x') = e^{-\gamma |x_J - x'_J|^2}

J are the features used. With random labels the machine follows the noise of its rows. Section 5.1 of Black et al. 2020
uses this boundary to amplify every error of a transport map.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from fairness_audits.models import stacked
from fairness_audits.validation import Checked, Names, Positive
from fairness_audits.values import Array, Classifier, Dataset, Generators

CACHE = 100
"""Megabytes of kernel rows that the solver caches. It uses few rows twice, so a larger cache only costs memory."""


@dataclass(frozen=True)
class Config(Checked, of="method"):
    """``inverse_penalty`` C; ``gamma``, None for 1 / (number of features); ``features``: the names J, None for all."""

    inverse_penalty: Positive
    gamma: Positive | None
    features: Names | None


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Fit one machine for each of the first len(rngs) splits. The fit is deterministic.

    Raises ValueError for a feature that the data set does not have, and for training rows of one label.
    """
    data = dataset.batch("train", len(rngs))
    columns = _columns(dataset, config.features)
    gamma = 1 / len(columns) if config.gamma is None else config.gamma
    machines = [
        _machine(x[:, columns], y, config.inverse_penalty, gamma)
        for x, y in zip(data.features, data.label, strict=True)
    ]
    parameters = {
        "support": stacked([machine.support_vectors_ for machine in machines]),
        "dual": stacked([machine.dual_coef_[0] for machine in machines]),
        "gamma": np.full(len(rngs), gamma),
        "intercept": np.array([float(machine.intercept_[0]) for machine in machines]),
        "columns": np.tile(columns, (len(rngs), 1)),
    }
    return Classifier.of("svm", dataset, "kernel", parameters)


def _machine(x: Array, y: Array, inverse_penalty: float, gamma: float) -> Any:
    """Fit the machine on rows x (n, k) and labels y (n,)."""
    from sklearn.svm import SVC

    if y.min() == y.max():
        raise ValueError(f"expected training rows of both labels, found label {y[0]} alone")
    return SVC(C=inverse_penalty, kernel="rbf", gamma=gamma, cache_size=CACHE).fit(x, y)


def _columns(dataset: Dataset, features: Sequence[str] | None) -> Array:
    names = dataset.feature_names if features is None else features
    if unknown := sorted(set(names) - set(dataset.feature_names)):
        raise ValueError(
            f"expected method.features among those of {dataset.name!r}, {', '.join(dataset.feature_names)}; "
            f"found {unknown}"
        )
    return np.array([dataset.feature_names.index(name) for name in names])
