r"""Least squares on a real outcome, and the decision that the predicted outcome exceeds a threshold.

.. math:: \min_{w, b} \sum_i (t_i - w^\top x_i - b)^2, \qquad h(x) = 1[w^\top x + b > c]

over the training rows; t is a column of ``dataset.outcomes``. Where the features are linearly dependent (every level of
an attribute has a column), w is the solution of least length: the weights of an attribute's levels then sum to 0.
All repetitions are solved at once, through the d x d covariances of their rows.
"""

from dataclasses import dataclass

import numpy as np

from pipeline.types import Array, Classifier, Dataset, Generators

SMALLEST_EIGENVALUE = 1e-10
"""Directions in which the features vary less than this share of the most varied one are taken for dependent."""


@dataclass(frozen=True)
class Config:
    """``outcome``: the column predicted, None for a dataset's only one. ``threshold`` c: None for the median of t."""

    outcome: str | None
    threshold: float | None


def fit(dataset: Dataset, config: Config, rngs: Generators) -> Classifier:
    """One regression for each of the first len(rngs) splits; nothing is drawn.

    Facts: ``r_squared`` and ``rmse`` on the training rows, ``rank``, the number of independent features. Raises
    ValueError for an outcome that the dataset does not have.
    """
    outcome = outcome_of(dataset, config.outcome)
    x = dataset.batch("train", len(rngs)).features
    t = outcome[dataset.train[: len(rngs)]]
    coef, intercept, rank = least_squares(x, t)
    residual = t - (x @ coef[..., None])[..., 0] - intercept[:, None]
    threshold = np.median(t, axis=1) if config.threshold is None else np.full(len(rngs), float(config.threshold))
    facts = {
        "r_squared": 1 - residual.var(axis=1) / t.var(axis=1),
        "rmse": np.sqrt((residual**2).mean(axis=1)),
        "rank": rank,
    }
    parameters = {"coef": coef, "intercept": intercept, "threshold": threshold}
    return Classifier.of("linear_regression", dataset, "linear", parameters, facts=facts)


def outcome_of(dataset: Dataset, name: str | None) -> Array:
    """The outcome column (n,) of this name, or the only one."""
    chosen = next(iter(dataset.outcomes)) if name is None and len(dataset.outcomes) == 1 else name
    if chosen is None or chosen not in dataset.outcomes:
        there_are = ", ".join(dataset.outcomes) or "none: its label is all that there is to predict"
        raise ValueError(f"expected method.outcome among those of {dataset.name!r} ({there_are}), found {name!r}")
    return dataset.outcomes[chosen]


def least_squares(x: Array, t: Array) -> tuple[Array, Array, Array]:
    """Weights (R, d), intercepts (R,) and ranks (R,) of the regressions of t (R, n) on x (R, n, d)."""
    x_mean, t_mean = x.mean(axis=1), t.mean(axis=1)
    # Centred first: the covariance of features far from 0 would lose its digits to their means.
    centred = x - x_mean[:, None, :]
    across = np.swapaxes(centred, 1, 2)
    covariance = across @ centred / x.shape[1]
    inverse = np.linalg.pinv(covariance, rcond=SMALLEST_EIGENVALUE, hermitian=True)
    coef = (inverse @ (across @ (t - t_mean[:, None])[..., None] / x.shape[1]))[..., 0]
    rank = np.linalg.matrix_rank(covariance, rtol=SMALLEST_EIGENVALUE, hermitian=True).astype(float)
    return coef, t_mean - (coef * x_mean).sum(axis=1), rank
