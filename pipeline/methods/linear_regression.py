r"""Least squares on a real outcome, and the decision that the predicted outcome exceeds a threshold.

.. math:: \min_{w, b} \sum_i (t_i - w^\top x_i - b)^2, \qquad h(x) = 1[w^\top x + b > c]

over the training rows, where t is the only column of ``dataset.outcomes``. If the features are linearly dependent
(every level of an attribute has a column), w is the solution of least norm: the weights of an attribute's levels sum to
0. All repetitions are solved at once from the d x d covariance matrices.
"""

from dataclasses import dataclass

import numpy as np

from fairness_audits.values import Array, Classifier, Dataset, Generators

SMALLEST_EIGENVALUE = 1e-10
"""Directions with less than this share of the largest variance count as linearly dependent."""


@dataclass(frozen=True)
class Config:
    """``threshold`` c: None for the median of t."""

    threshold: float | None


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """Fit one regression for each of the first len(rngs) splits. The fit is deterministic.

    Raises ValueError for a data set without an outcome, or with several.
    """
    if len(dataset.outcomes) != 1:
        raise ValueError(f"expected one outcome of {dataset.name!r} to predict, found {sorted(dataset.outcomes)}")
    (outcome,) = dataset.outcomes.values()
    t = outcome[dataset.train[: len(rngs)]]
    coef, intercept = least_squares(dataset.batch("train", len(rngs)).features, t)
    threshold = np.median(t, axis=1) if config.threshold is None else np.full(len(rngs), float(config.threshold))
    parameters = {"coef": coef, "intercept": intercept, "threshold": threshold}
    return Classifier.of("linear_regression", dataset, "linear", parameters)


def least_squares(x: Array, t: Array) -> tuple[Array, Array]:
    """Compute weights (R, d) and intercepts (R,) of the regressions of t (R, n) on x (R, n, d)."""
    x_mean, t_mean = x.mean(axis=1), t.mean(axis=1)
    # Centre first: the covariance of features far from 0 would lose digits to their means.
    centred = x - x_mean[:, None, :]
    across = np.swapaxes(centred, 1, 2)
    covariance = across @ centred / x.shape[1]
    inverse = np.linalg.pinv(covariance, rcond=SMALLEST_EIGENVALUE, hermitian=True)
    coef = (inverse @ (across @ (t - t_mean[:, None])[..., None] / x.shape[1]))[..., 0]
    return coef, t_mean - (coef * x_mean).sum(axis=1)
